//! Load against the mock: what we say that we did is what the mock says that it saw.
#![expect(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::disallowed_methods,
    unreachable_pub,
    reason = "tests may fail loudly"
)]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plimsoll_engine::{Control, Run};
use plimsoll_measure::{ErrorClass, Moment, Nanos, Outcome, TokenSource};
use plimsoll_metrics::Metric;
use plimsoll_profile::Overrides;
use support::{joined, mock, plan, plan_with, run, run_under, url};

const CHAT: &str = "content: {mode: sized, approx_input_tokens: 64}\nmax_tokens: 8\ndrain: 5s\n";

#[test]
fn closed_loop_counts_agree_with_the_mock_and_tokens_are_exact() {
    let mock = mock("");
    let ran = run(plan(
        &url(&mock),
        &format!("{CHAT}stages: '8:1s'\nstream: true\nlimits: {{}}\n").replace("limits: {}\n", ""),
    ));
    let log = mock.take_log();
    let accounting = ran.accounting();
    assert_eq!(accounting.completed, accounting.scheduled);
    assert_eq!(log.len() as u64, accounting.scheduled);
    assert!(accounting.scheduled > 100, "only {} requests in a second", accounting.scheduled);
    let pairs = joined(&ran, 1, &log);
    assert_eq!(
        pairs.len(),
        ran.samples.len(),
        "every sample has its record under its own request id"
    );
    for (sample, record) in pairs {
        assert_eq!(u64::from(sample.usage.prompt.count), record.prompt_tokens);
        assert_eq!(record.prompt_tokens, 64);
        assert_eq!(sample.usage.completion.count, record.planned_tokens);
        assert_eq!(sample.usage.completion.source, TokenSource::Reported);
        assert_eq!((sample.events, record.planned_tokens), (8, 8));
        assert_eq!(sample.status, 200);
    }
    // Unique prompts by default: a cache in between could never hit.
    let prompts: BTreeSet<u64> = log.iter().map(|record| record.prompt_hash).collect();
    assert_eq!(prompts.len(), log.len());
}

#[test]
fn a_constant_rate_arrives_as_scheduled() {
    let mock = mock("");
    let ran = run(plan(&url(&mock), &format!("{CHAT}stages: '@500:2s'\n")));
    let mut arrivals: Vec<u64> = mock.take_log().iter().map(|record| record.received).collect();
    assert_eq!((ran.accounting().scheduled, arrivals.len()), (1_000, 1_000));
    assert_eq!(ran.result.health.planned_arrivals, Some(1_000));
    arrivals.sort_unstable();
    // Offsets from the first arrival against the closed form n / rate.
    let mut errors: Vec<f64> = arrivals
        .iter()
        .enumerate()
        .map(|(n, &at)| ((at - arrivals[0]) as f64 / 1e6 - n as f64 * 2.0).abs())
        .collect();
    errors.sort_unstable_by(f64::total_cmp);
    assert!(errors[500] < 1.0, "median deviation {} ms", errors[500]);
}

#[test]
fn shards_and_workers_carry_exactly_the_whole_schedule() {
    let arrivals = |shard: &str, workers: u16| {
        let mock = mock("");
        let overrides = Overrides { shard: Some(shard.to_owned()), ..Overrides::default() };
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

#[test]
fn conversations_grow_turn_by_turn_and_keep_to_the_weights() {
    let mock = mock("");
    let profile = "
stages: '20:2s'
stream: true
max_tokens: 16
drain: 5s
scenarios:
  - {name: short, weight: 3, turns: 1, content: {mode: pool, prompts: [one, two]}}
  - {name: long, weight: 1, turns: 3, content: {mode: scripted, script: [a, b, c]}, think_time: 1ms}
";
    let ran = run(plan(&url(&mock), profile));
    let log = mock.take_log();
    let mut by_conversation: BTreeMap<u64, Vec<(u16, u64, u32)>> = BTreeMap::new();
    for (sample, record) in joined(&ran, 1, &log) {
        if sample.scenario.0 == 1 {
            let turns = by_conversation.entry(sample.conversation.0).or_default();
            turns.push((sample.turn, record.prompt_tokens, record.messages));
        }
    }
    let whole: Vec<_> = by_conversation.values_mut().filter(|turns| turns.len() == 3).collect();
    assert!(whole.len() > 50);
    for turns in whole {
        turns.sort_unstable();
        assert!(turns[0].1 < turns[1].1 && turns[1].1 < turns[2].1, "{turns:?}");
        // User, then user-assistant-user, then two more.
        assert_eq!(turns.iter().map(|turn| turn.2).collect::<Vec<_>>(), [1, 3, 5]);
    }
    let conversations = |scenario: u16| {
        ran.samples.iter().filter(|s| s.scenario.0 == scenario && s.turn == 0).count() as f64
    };
    let (short, long) = (conversations(0), conversations(1));
    let share = short / (short + long);
    let sigma = (0.75 * 0.25 / (short + long)).sqrt();
    assert!((share - 0.75).abs() < 4.0 * sigma, "share {share}, sigma {sigma}");
}

#[test]
fn every_fault_ends_in_its_own_class() {
    for (fault, stream, expected) in [
        ("x-mock-status: '401'", false, Outcome::Rejected(401)),
        ("x-mock-status: '429'", true, Outcome::Rejected(429)),
        ("x-mock-status: '503'", true, Outcome::Failed(ErrorClass::ServerError)),
        ("x-mock-fault: cut@3", true, Outcome::Failed(ErrorClass::BodyTruncated)),
        ("x-mock-fault: error@3", true, Outcome::Failed(ErrorClass::StreamError)),
        ("x-mock-fault: reset", true, Outcome::Failed(ErrorClass::Reset)),
        ("x-mock-fault: hang", true, Outcome::TimedOut),
    ] {
        let mock = mock("");
        let profile = format!(
            "{CHAT}stages: '@50:200ms'\nstream: {stream}\ntimeout: 300ms\nheaders: {{{fault}}}\n"
        );
        let ran = run(plan(&url(&mock), &profile));
        let outcomes: BTreeSet<String> =
            ran.samples.iter().map(|s| format!("{:?}", s.outcome)).collect();
        assert_eq!(outcomes, BTreeSet::from([format!("{expected:?}")]), "{fault}");
        assert_eq!(ran.samples.len(), 10);
    }
}

#[test]
fn nobody_there_is_an_outcome_and_does_not_spin() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let ran = run(plan(&format!("http://{closed}"), &format!("{CHAT}stages: '4:500ms'\n")));
    assert_eq!(ran.count("failed"), ran.samples.len());
    assert!(ran.samples.iter().all(|s| s.outcome == Outcome::Failed(ErrorClass::ConnectRefused)));
    // Four users who rest 10 ms after each refusal.
    assert!((20..=220).contains(&ran.samples.len()), "{} attempts", ran.samples.len());
    let cause = &ran.result.causes[0];
    assert_eq!(cause.kind, "connect_refused");
    assert!(cause.first.contains(&closed.to_string()), "{}", cause.first);
}

#[test]
fn what_is_unanswered_at_the_end_is_counted_as_in_flight() {
    let mock = mock("ttft: {constant: 60s}");
    let profile =
        format!("{CHAT}stages: '@100:300ms'\ntimeout: 100s\n").replace("drain: 5s", "drain: 200ms");
    let ran = run(plan(&url(&mock), &profile));
    assert_eq!((ran.count("in_flight"), ran.samples.len()), (30, 30));
    assert!(ran.samples.iter().all(|sample| sample.timeline.response_time().is_none()));
}

#[test]
fn overflow_is_queued_from_the_intended_start_or_dropped_and_counted() {
    let ran = |overflow: &str| {
        let mock = mock("ttft: {constant: 100ms}");
        let profile =
            format!("{CHAT}stages: '@50:1s'\nmax_in_flight: 2\nworkers: 1\noverflow: {overflow}\n");
        let ran = run(plan(&url(&mock), &profile));
        (ran, mock.stats().requests)
    };
    let (queued, seen) = ran("queue");
    // Two at a time, 100 ms each: 50 arrivals of one second take 2.5 s, and the last waits 1.5 s.
    assert_eq!((queued.count("completed"), seen), (50, 50));
    let waits: Vec<f64> = queued
        .samples
        .iter()
        .map(|s| s.timeline.response_time().unwrap().as_millis_f64())
        .collect();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    assert!((1_450.0..2_200.0).contains(&longest), "longest response {longest} ms");
    let health = &queued.result.health;
    assert_eq!((health.planned_arrivals, health.achieved_arrivals), (Some(50), Some(50)));

    let (dropped, seen) = ran("drop");
    let (sent, never) = (dropped.count("completed"), dropped.count("never_sent"));
    assert_eq!((sent + never, sent as u64), (50, seen));
    assert!((18..=22).contains(&sent), "2 places x 1 s / 100 ms = 20, not {sent}");
}

#[test]
fn a_backlog_is_sent_while_answers_are_awaited_and_the_rest_is_named() {
    let mock = mock("ttft: {constant: 100ms}");
    let profile = format!("{CHAT}stages: '@50:1s'\nmax_in_flight: 1\nworkers: 1\n")
        .replace("drain: 5s", "drain: 1s");
    let ran = run(plan(&url(&mock), &profile));
    let (never, in_flight) = (ran.count("never_sent"), ran.count("in_flight"));
    assert_eq!(ran.samples.len(), 50);
    // One at a time, 100 ms each, for two seconds.
    assert!((15..=21).contains(&ran.count("completed")), "{} completed", ran.count("completed"));
    assert!(never >= 28 && in_flight <= 1, "{never} never sent, {in_flight} in flight");
    assert_eq!(mock.stats().requests as usize, ran.sent());
}

#[test]
fn an_interrupt_ends_the_run_at_once_and_keeps_the_books() {
    let mock = mock("ttft: {constant: 5ms}");
    let control = Control::new();
    let trigger = control.clone();
    let began = std::time::Instant::now();
    let thread = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(700));
        trigger.interrupt();
    });
    let profile = format!("{CHAT}stages: '@300:30s,10:30s'\n");
    let ran = run_under(plan(&url(&mock), &profile), &control, &mut |_| {});
    thread.join().unwrap();
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(mock.stats().requests as usize, ran.sent());
    assert!((150..=260).contains(&ran.samples.len()), "{} samples", ran.samples.len());
    let played = ran.result.metadata.stages[0].duration_s;
    assert!((0.6..1.0).contains(&played), "the stage lasted {played} s");
}

#[test]
fn times_agree_with_the_mocks_own_record() {
    let mock = mock("preamble: {constant: 20ms}, ttft: {constant: 60ms}, gap: {constant: 5ms}");
    let profile = "content: {mode: sized, approx_input_tokens: 32}\nmax_tokens: 20\nstream: true\nstages: '@20:2s'\n";
    let ran = run(plan(&url(&mock), profile));
    let log = mock.take_log();
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for (sample, record) in joined(&ran, 1, &log) {
        let wall = |moment: Option<Moment>| {
            (ran.started_unix_ns + moment.unwrap().as_nanos()) as f64 / 1e6
        };
        let line = sample.timeline;
        let content: Vec<f64> =
            record.chunks.iter().filter(|c| c.tokens > 0).map(|c| c.written as f64 / 1e6).collect();
        let mut note = |what, error: f64| errors.entry(what).or_default().push(error.abs());
        note("first token", wall(line.first_token) - content[0]);
        note("last token", wall(line.last_token) - content[content.len() - 1]);
        note("longest gap", sample.gaps.max.as_millis_f64() - longest_gap(&content));
        assert_eq!((content.len(), sample.events), (20, 20));
        // A thread that is held up finds several events in one read: a burst, and no invented gaps.
        assert!(sample.gaps.count < 20 && sample.gaps.count + sample.gaps.largest_burst >= 10);
        assert!(line.ttft().unwrap() >= Nanos::from_millis(60));
        assert!(line.ttfb().unwrap() < Nanos::from_millis(55), "the role chunk is no token");
    }
    for (what, mut errors) in errors {
        errors.sort_unstable_by(f64::total_cmp);
        let median = errors[errors.len() / 2];
        assert!(median < 2.0, "{what}: median error {median} ms");
    }
    let itl = ran.result.snapshot.total(|_| true).distribution(Metric::Itl).unwrap().count();
    assert_eq!(itl, ran.samples.iter().map(|sample| u64::from(sample.gaps.count)).sum::<u64>());
    assert!(itl > 40 * 15, "most events come in a read of their own: {itl} gaps");
}

fn longest_gap(times: &[f64]) -> f64 {
    times.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max)
}

#[test]
fn warm_up_is_recorded_apart_and_stages_get_their_own() {
    let mock = mock("");
    let ran = run(plan(&url(&mock), &format!("{CHAT}stages: 'w@100:500ms,@200:500ms,4:500ms'\n")));
    let of_stage =
        |stage: u16| ran.samples.iter().filter(|s| s.stage.0 == stage).collect::<Vec<_>>();
    assert_eq!((of_stage(0).len(), of_stage(1).len()), (50, 100));
    assert!(of_stage(0).iter().all(|s| s.warmup) && of_stage(1).iter().all(|s| !s.warmup));
    assert!(!of_stage(2).is_empty());
    assert_eq!(mock.stats().requests as usize, ran.samples.len());
}

#[test]
fn the_probe_tells_what_would_make_the_load_pointless() {
    let probe = |target: &str, profile: &str| {
        Run::prepare(plan(target, &format!("{CHAT}stages: '1:1s'\n{profile}")))
            .unwrap()
            .probe()
            .unwrap()
    };
    let mock = mock("");
    let fine = probe(&url(&mock), "");
    assert_eq!((fine.requests, fine.findings.len()), (1, 0));
    for (profile, fatal, words) in [
        ("headers: {x-mock-status: '401'}", true, "--vk"),
        ("headers: {x-mock-status: '404'}", true, "--model"),
        ("headers: {x-mock-status: '429'}", false, "429"),
        ("headers: {x-mock-status: '503'}", false, "503"),
    ] {
        let found = &probe(&url(&mock), profile).findings[0];
        assert_eq!(found.fatal, fatal, "{profile}");
        assert!(found.message.contains(words), "{profile}: {}", found.message);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = probe(&format!("http://{closed}"), "");
    assert!(nobody.findings[0].fatal && nobody.findings[0].message.contains("--target"));
}

#[test]
fn progress_is_told_about_once_a_second() {
    let mock = mock("");
    let mut told = Vec::new();
    run_under(
        plan(&url(&mock), &format!("{CHAT}stages: '@100:2500ms'\n")),
        &Control::new(),
        &mut |progress| {
            told.push((progress.elapsed.as_secs_f64(), progress.interval.accounting().completed));
        },
    );
    assert!((2..=3).contains(&told.len()), "{told:?}");
    for (_, completed) in told.iter().take(2) {
        assert!((80..=120).contains(completed), "{told:?}");
    }
}
