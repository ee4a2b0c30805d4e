//! The requests that are kept whole, against all samples of the run and the mock's own log.

use std::collections::BTreeMap;

use plimsoll_measure::{Moment, Nanos, Sample};
use plimsoll_metrics::{Chosen, Exemplar, RunExemplars};
use plimsoll_mock::LogRecord;

use crate::support::{Ran, joined, mock, plan, run, url};

/// Times to first token and gaps that differ by more than any disturbance.
const SPREAD: &str = "ttft: {lognormal: {median: 30ms, p95: 200ms}}, gap: {bimodal: {low: 2ms, high: 150ms, high_share: 0.02}}, output: 8";
const STREAMS: &str = "content: {mode: sized, approx_input_tokens: 32}\nstream: true\ndrain: 5s\nworkers: 3\nstages: 'w@50:400ms,@120:1500ms'\n";

type Time = fn(&Sample) -> Option<Nanos>;

fn chosen(ran: &Ran, why: Chosen) -> impl Iterator<Item = &Exemplar> {
    ran.result.exemplars.requests.iter().filter(move |of| of.chosen.contains(&why))
}

/// The keys of the requests with the largest values, by sorting all samples of the run.
fn largest(ran: &Ran, most: usize, of: impl Fn(&Sample) -> Option<Nanos>) -> Vec<u64> {
    let mut all: Vec<_> = ran
        .samples
        .iter()
        .filter(|sample| !sample.warmup)
        .filter_map(|sample| Some((of(sample)?, sample.conversation.0)))
        .collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    let mut keys: Vec<_> = all.iter().take(most).map(|of| of.1).collect();
    keys.sort_unstable();
    keys
}

fn keys<'e>(exemplars: impl Iterator<Item = &'e Exemplar>) -> Vec<u64> {
    let mut keys: Vec<_> = exemplars.map(|of| of.sample.conversation.0).collect();
    keys.sort_unstable();
    keys
}

/// Arrivals of the content in milliseconds since 1970, by the mock.
fn content(record: &LogRecord) -> Vec<f64> {
    record.chunks.iter().filter(|c| c.tokens > 0).map(|c| c.written as f64 / 1e6).collect()
}

#[test]
fn three_workers_keep_the_slowest_of_all_samples_and_every_random_one_once() {
    let mock = mock(SPREAD);
    let ran = run(plan(&url(&mock), STREAMS));
    let measured = ran.samples.iter().filter(|sample| !sample.warmup).count();
    let kept = &ran.result.exemplars;
    assert_eq!((kept.offered as usize, measured), (180, 180), "the warm-up's 20 are left out");
    let rules: [(Chosen, Time); 3] = [
        (Chosen::ResponseTime, |of| of.timeline.response_time()),
        (Chosen::Ttft, |of| of.timeline.ttft()),
        (Chosen::LongestGap, |of| Some(of.gaps.max)),
    ];
    for (why, time) in rules {
        assert_eq!(keys(chosen(&ran, why)), largest(&ran, why.most(), time), "{why:?}");
    }
    assert_eq!(chosen(&ran, Chosen::Random).count(), 20);
    let mut all = keys(kept.requests.iter());
    all.dedup();
    assert_eq!(all.len(), kept.requests.len(), "each once");
}

#[test]
fn the_slowest_are_slow_by_the_mocks_own_log_and_its_writes_are_their_reads() {
    let mut why = Ok(());
    for _ in 0..5 {
        why = slowest_are_slow();
        if why.is_ok() {
            return;
        }
    }
    why.unwrap();
}

/// Whether they are: pauses of the host can put others among them.
fn slowest_are_slow() -> Result<(), String> {
    let mock = mock(SPREAD);
    let ran = run(plan(&url(&mock), STREAMS));
    let log = mock.take_log();
    let records: BTreeMap<u64, (Sample, &LogRecord)> = joined(&ran, &log)
        .into_iter()
        .map(|(sample, record)| (sample.conversation.0, (sample, record)))
        .collect();
    let ttft = |record: &LogRecord| content(record)[0] - record.body_complete as f64 / 1e6;
    let measured = records.values().filter(|(sample, _)| !sample.warmup);
    let mut by_mock: Vec<f64> = measured.map(|(_, record)| ttft(record)).collect();
    by_mock.sort_by(f64::total_cmp);
    // A short pause puts a few others among them.
    let tenth = by_mock[by_mock.len() - 10] - 5.0;
    let slow = chosen(&ran, Chosen::Ttft).map(|of| ttft(records[&of.sample.conversation.0].1));
    let slow: Vec<_> = slow.collect();
    if slow.iter().filter(|ms| **ms >= tenth).count() < 8 {
        return Err(format!("{slow:?} against {tenth}"));
    }
    let ids = ran.result.metadata.run.id_seed();
    let named = RunExemplars::build(&ran.result.exemplars, &ran.result.metadata, |sample| {
        let conversation = plimsoll_workload::conversation_id(ids, sample.conversation);
        format!("{}-{}", conversation.as_str(), sample.turn)
    });
    let mut errors = Vec::new();
    for (kept, request) in ran.result.exemplars.requests.iter().zip(&named.requests) {
        let (sample, record) = records[&kept.sample.conversation.0];
        assert_eq!(Some(&*request.request_id), record.request_id.as_deref());
        assert_eq!((request.events, request.reads_left_out), (8, 0));
        // Every read is a moment at which the mock had written something.
        let dispatched = ran.started_unix_ns + dispatched(&sample).as_nanos();
        let writes = content(record);
        for read in &request.read_ms {
            let at = dispatched as f64 / 1e6 + read;
            errors.push(writes.iter().map(|write| (at - write).abs()).fold(f64::MAX, f64::min));
        }
        // The gaps add up: the last read is the last token, to the microsecond of each.
        let last = *request.read_ms.last().unwrap();
        assert!((last - request.last_token_ms.unwrap()).abs() < 0.002, "{last}: {request:?}");
    }
    errors.sort_by(f64::total_cmp);
    let quartile = errors[errors.len() / 4];
    if errors.len() < 200 || quartile >= 2.0 {
        return Err(format!(
            "a quarter of {} reads is within {quartile} ms of a write",
            errors.len()
        ));
    }
    Ok(())
}

fn dispatched(sample: &Sample) -> Moment {
    sample.timeline.dispatched.unwrap()
}

#[test]
fn a_request_that_never_ends_is_among_the_slowest() {
    let mock = mock("ttft: 5ms, output: 2, faults: [{fault: hang, share: 0.2}]");
    let profile = "content: {mode: sized, approx_input_tokens: 32}\nstream: true\ndrain: 0s\nstages: '@100:1s'\n";
    let ran = run(plan(&url(&mock), profile));
    let open: Vec<_> = ran.samples.iter().filter(|s| s.timeline.finished.is_none()).collect();
    assert!(open.len() >= 2, "{} of 100 hang", open.len());
    let slowest = keys(chosen(&ran, Chosen::ResponseTime));
    let early =
        open.iter().filter(|s| s.timeline.intended.since(Moment::EPOCH) < Nanos::from_millis(600));
    // Others may be slower yet, where the host paused.
    let least = chosen(&ran, Chosen::ResponseTime)
        .map(|of: &Exemplar| {
            let timeline = &of.sample.timeline;
            timeline.response_time().unwrap_or_else(|| of.recorded.since(timeline.intended))
        })
        .min()
        .unwrap();
    for hangs in early {
        let open = Moment::from_nanos(1_000_000_000).since(hangs.timeline.intended);
        assert!(slowest.contains(&hangs.conversation.0) || least >= open, "{least} {hangs:?}");
    }
    for kept in
        ran.result.exemplars.requests.iter().filter(|of| of.sample.timeline.finished.is_none())
    {
        assert!(kept.recorded > kept.sample.timeline.intended);
    }
}
