//! Arrivals: their times, shards, a full limit, an interrupt.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use plimsoll_engine::{Control, Run};
use plimsoll_metrics::InstrumentHealth;
use plimsoll_mock::LogRecord;
use plimsoll_profile::Overrides;

use crate::support::{CHAT, Ran, joined, mock, plan, plan_with, run, run_under, url};

#[test]
fn a_constant_rate_arrives_as_scheduled() {
    let mock = mock("");
    let ran = run(plan(&url(&mock), &format!("{CHAT}stages: '@500:2s'\n")));
    let mut arrivals: Vec<u64> = mock.take_log().iter().map(|record| record.arrived).collect();
    assert_eq!((ran.accounting().scheduled, arrivals.len()), (1_000, 1_000));
    assert_eq!(ran.result.health.planned_arrivals, Some(1_000));
    arrivals.sort_unstable();
    // By the receive time stamps of the mock's kernel, against the closed form n / rate from the
    // run's start. That the pacer itself is exact is shown in virtual time. Here a busy machine may
    // delay many arrivals; none is early, and some are not late.
    let start = ran.started_unix_ns as f64 / 1e6 + ran.result.metadata.stages[0].start_s * 1e3;
    let due = (0..1_000).map(|n| start + f64::from(n) * 2.0);
    let mut lateness: Vec<f64> =
        arrivals.iter().zip(due).map(|(&at, due)| at as f64 / 1e6 - due).collect();
    lateness.sort_unstable_by(f64::total_cmp);
    // The two wall clocks were read at different times.
    assert!(lateness[0] > -0.5, "early by {} ms", -lateness[0]);
    assert!(lateness[100] < 1.0, "a tenth is late by less than {} ms", lateness[100]);
}

#[test]
fn shards_and_workers_carry_exactly_the_whole_schedule() {
    let arrivals = |shard: &str, workers: u16| {
        let mock = mock("");
        let overrides = Overrides {
            shard: Some(shard.to_owned()),
            run_id: Some("one-run".to_owned()),
            ..Overrides::default()
        };
        let profile = format!("{CHAT}stages: '@400:1s'\narrivals: poisson\nworkers: {workers}\n");
        let ran = run(plan_with(&url(&mock), &profile, &overrides));
        let log = mock.take_log();
        assert_eq!(log.len(), ran.samples.len());
        log.into_iter().map(|r| (r.request_id.unwrap(), r.prompt_hash)).collect::<BTreeSet<_>>()
    };
    let whole = arrivals("0/1", 1);
    let parts: Vec<_> = ["0/3", "1/3", "2/3"].iter().map(|shard| arrivals(shard, 2)).collect();
    assert_eq!(
        parts.iter().map(BTreeSet::len).sum::<usize>(),
        whole.len(),
        "no arrival in two shards"
    );
    assert_eq!(
        parts.into_iter().flatten().collect::<BTreeSet<_>>(),
        whole,
        "the same ids and prompts"
    );
}

/// The findings' case: each worker had a slot at least, so that 16 workers sent 11 at once with a
/// limit of 4, and two workers two with a limit of 1.
#[test]
fn the_limit_in_flight_holds_over_all_workers() {
    for (workers, limit) in [(16, 4), (2, 1)] {
        let mock = mock("ttft: {constant: 50ms}");
        let profile =
            format!("{CHAT}stages: '@200:200ms'\nmax_in_flight: {limit}\nworkers: {workers}\n");
        let ran = run(plan(&url(&mock), &profile));
        let log = mock.take_log();
        // One at a time they take two of the five seconds of the drain.
        assert_eq!((ran.count("completed"), log.len()), (40, 40));
        assert_eq!(most_at_once(&log, 49), limit, "{workers} workers");
    }
}

#[test]
fn a_shard_without_a_slot_is_refused() {
    let prepare = |shard: &str, stages: &str| {
        let overrides = Overrides { shard: Some(shard.to_owned()), ..Overrides::default() };
        let profile = format!("{CHAT}stages: '{stages}'\nmax_in_flight: 2\n");
        Run::prepare(plan_with("http://127.0.0.1:1", &profile, &overrides)).err()
    };
    assert!(prepare("1/3", "@10:1s").is_none());
    assert!(prepare("2/3", "3:1s").is_none(), "the closed model has no slots");
    let refused = prepare("2/3", "@10:1s").unwrap().to_string();
    assert!(refused.contains("shard 2/3") && refused.contains("max_in_flight"), "{refused}");
}

/// The most requests that the mock processed at once. Each took `least_ms` at least; the mock may
/// note its end late.
fn most_at_once(log: &[LogRecord], least_ms: u64) -> i64 {
    let least = least_ms * 1_000_000;
    let mut changes: Vec<(u64, i64)> = log
        .iter()
        .flat_map(|record| [(record.received, 1), (record.received + least, -1)])
        .collect();
    changes.sort_unstable();
    let mut now = 0;
    let at_once = changes.iter().map(|(_, change)| {
        now += change;
        now
    });
    at_once.max().unwrap_or_default()
}

/// The time that the mock processed requests, over the time that it could have processed `places`
/// of them.
fn busy_share(log: &[LogRecord], places: f64) -> f64 {
    let busy: u64 = log.iter().map(|record| record.finished - record.received).sum();
    let first = log.iter().map(|record| record.received).min().unwrap();
    let last = log.iter().map(|record| record.finished).max().unwrap();
    busy as f64 / (last - first) as f64 / places
}

/// A run of 50 arrivals in a second, two at a time, 100 ms each.
fn overloaded(overflow: &str) -> (Ran, Vec<LogRecord>) {
    let mock = mock("ttft: {constant: 100ms}");
    let profile =
        format!("{CHAT}stages: '@50:1s'\nmax_in_flight: 2\nworkers: 1\noverflow: {overflow}\n");
    let ran = run(plan(&url(&mock), &profile));
    (ran, mock.take_log())
}

#[test]
fn overflow_is_queued_and_charged_from_the_intended_start() {
    let (ran, log) = overloaded("queue");
    assert_eq!((ran.count("completed"), log.len()), (50, 50));
    assert!(most_at_once(&log, 99) <= 2);
    // 50 arrivals of one second take at least 2.5 s, and the last waits at least 1.5 s. How long it
    // really took is what the mock says.
    let joined = joined(&ran, &log);
    let response_time = |sample: &plimsoll_measure::Sample| {
        sample.timeline.response_time().unwrap().as_millis_f64()
    };
    let (longest, record) = joined
        .iter()
        .max_by(|a, b| f64::total_cmp(&response_time(&a.0), &response_time(&b.0)))
        .unwrap();
    let intended = ran.started_unix_ns + longest.timeline.intended.as_nanos();
    let by_mock = (record.finished - intended) as f64 / 1e6;
    let longest = response_time(longest);
    assert!(longest >= 1_450.0, "longest response {longest} ms");
    assert!((longest / by_mock - 1.0).abs() < 0.1, "longest response {longest}, not {by_mock} ms");
    let health = &ran.result.health;
    assert_held_up_by_the_limit(health);
}

#[test]
fn overflow_is_dropped_and_counted_where_the_plan_says_so() {
    let (ran, log) = overloaded("drop");
    let (sent, never) = (ran.count("completed"), ran.count("never_sent"));
    assert_eq!((sent + never, sent), (50, log.len()));
    // 2 places x 1 s / 100 ms = 20 at most, and one more for each place at the end of a late
    // second. A place that is free is filled by the next arrival, within 20 ms: it is busy for 100
    // of 120 ms.
    assert!(most_at_once(&log, 99) <= 2 && sent <= 22, "{sent} sent");
    let busy = busy_share(&log, 2.0);
    assert!(busy > 0.7, "the places were busy for {busy} of the time");
}

#[test]
fn a_backlog_is_sent_while_responses_are_awaited_and_the_rest_is_accounted_for() {
    let mock = mock("ttft: {constant: 100ms}");
    let profile = format!("{CHAT}stages: '@50:1s'\nmax_in_flight: 1\nworkers: 1\n")
        .replace("drain: 5s", "drain: 1s");
    let ran = run(plan(&url(&mock), &profile));
    let (never, in_flight) = (ran.count("never_sent"), ran.count("in_flight"));
    assert_eq!(ran.samples.len(), 50);
    // A busy mock may not have read the last request before its connection was closed.
    let requests = mock.stats().requests as usize;
    assert!((ran.sent() - in_flight..=ran.sent()).contains(&requests), "{requests} requests");
    // One at a time, 100 ms each, for two seconds.
    let completed = ran.count("completed");
    assert!(completed <= 21, "{completed} completed");
    assert!(never >= 28 && in_flight <= 1, "{never} never sent, {in_flight} in flight");
    let log = mock.take_log();
    let busy = busy_share(&log, 1.0);
    assert!(busy > 0.7, "the target was busy for {busy} of the time");
    assert!(log.len() >= completed && most_at_once(&log, 99) == 1);
    let health = &ran.result.health;
    assert_held_up_by_the_limit(health);
}

/// The limit on requests in flight held them up, and not the generator. A busy machine may have
/// kept it from a few.
fn assert_held_up_by_the_limit(health: &InstrumentHealth) {
    assert_eq!(health.planned_arrivals, Some(50));
    assert!(
        (45..=50).contains(&health.achieved_arrivals.unwrap()),
        "{:?}",
        health.achieved_arrivals
    );
}

/// When exactly the run ends is shown in virtual time.
#[test]
fn an_interrupt_ends_the_run_at_once_and_the_accounting_holds() {
    let mock = mock("ttft: {constant: 5ms}");
    let control = Control::new();
    let profile = format!("{CHAT}stages: '@300:30s,10:30s'\nworkers: 1\n");
    // Interrupted when the first second is reported.
    let mut interrupted: Option<(Instant, f64)> = None;
    let ran = run_under(plan(&url(&mock), &profile), &control, &mut |progress| {
        control.interrupt();
        interrupted.get_or_insert_with(|| (Instant::now(), progress.elapsed.as_secs_f64()));
    });
    let (interrupted, elapsed) = interrupted.unwrap();
    assert!(interrupted.elapsed() < Duration::from_secs(4), "{:?}", interrupted.elapsed());
    assert_eq!(mock.stats().requests as usize, ran.sent());
    let stages = &ran.result.metadata.stages;
    let (played, of_next) = (stages[0].duration_s, stages[1].duration_s);
    assert!((elapsed..30.0).contains(&played) && of_next == 0.0, "{played} s, {of_next} s");
    // Every arrival that was intended before the end, and no other: n / 300 s < played.
    let planned = (played * 300.0).ceil();
    assert!(
        (ran.samples.len() as f64 - planned).abs() <= 1.0,
        "{} of {planned}",
        ran.samples.len()
    );
}
