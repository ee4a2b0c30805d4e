//! L1: 7 rows dropped, 5 doubled, 3 with wrong tokens, a clock 3.7 s ahead with 50 ppm of drift.

use plimsoll_join::Verdict;

use crate::support::{Files, START, audit_row, sent, service, total, upstream, ways};

/// The log's clock at request `n`.
fn apart(n: i64) -> i64 {
    3_700_000_000 + (sent(n) - START) * 50 / 1_000_000
}

/// The log of the first `count` requests.
pub(crate) fn log(count: i64) -> impl Iterator<Item = String> {
    (0..count).flat_map(move |n| {
        let step = count / 10;
        let times = match n % step {
            // One in each of seven tenths.
            3 if n / step < 7 => 0,
            4 if n / step < 5 => 2,
            _ => 1,
        };
        let tokens = if n % step == 5 && n / step < 3 { 65 } else { 64 };
        std::iter::repeat_n(audit_row(n, apart(n), tokens), times)
    })
}

fn median(values: impl Iterator<Item = i64>) -> f64 {
    let mut sorted: Vec<_> = values.collect();
    sorted.sort_unstable();
    sorted[(sorted.len() - 1) / 2] as f64 / 1e6
}

fn mean(values: impl Iterator<Item = i64>) -> f64 {
    let all: Vec<_> = values.collect();
    all.iter().sum::<i64>() as f64 / all.len() as f64 / 1e6
}

#[test]
fn exactly_the_planted_differences_are_found() {
    let count = 3_000;
    let files = Files::run(count);
    files.lines("audit.jsonl", log(count));
    let join = files.join("audit.jsonl", &[]).unwrap();
    let books = &join.books;
    assert_eq!((books.lost, books.twice, books.disagreeing), (7, 5, 3), "{books:?}");
    assert_eq!((books.in_run, books.matched, books.in_log), (3_000, 2_993, 2_998));
    assert_eq!((books.foreign, books.rows_twice, books.retried), (0, 5, 0));
    assert_eq!(join.verdict, Verdict::Disagree);
    assert_eq!(join.disagreements.len(), 1);
    assert_eq!(
        (join.disagreements[0].field.as_str(), join.disagreements[0].count),
        ("output tokens", 3)
    );
    assert!(join.disagreements[0].examples[0].ends_with("the run 64, the log 65"), "{join:?}");

    // Half time of 30 s: 15 s with 50 ppm are 0.75 ms.
    let (clock, middle) = (join.clock.unwrap(), 3_700.75);
    assert!(clock.offset_low_ms <= middle && middle <= clock.offset_high_ms, "{clock:?}");
    assert!(clock.drift_low_ppm <= 50.0 && 50.0 <= clock.drift_high_ppm, "{clock:?}");
    assert!(clock.offset_high_ms - clock.offset_low_ms < 3.0, "{clock:?}");
    assert!(clock.drift_high_ppm - clock.drift_low_ppm < 250.0, "{clock:?}");

    // Rows have whole microseconds.
    let [times] = join.times.as_slice() else { panic!("{:?}", join.times) };
    let matched = || (0..count).filter(|n| !(n % 300 == 3 && n / 300 < 7));
    for (found, expected) in [
        (times.client, median(matched().map(service))),
        (times.outside, median(matched().map(|n| ways(n).0 + ways(n).1))),
        (times.gateway.unwrap(), 0.3),
        (times.upstream.unwrap(), median(matched().map(upstream))),
    ] {
        let value = found.p50_ms.unwrap();
        assert!((value - expected).abs() < 0.002, "{value} for {expected}");
        let (low, high) = (found.p50_low_ms.unwrap(), found.p50_high_ms.unwrap());
        assert!(low <= value && value <= high, "{found:?}");
    }
    assert_eq!((times.requests, join.impossible), (2_993, 0));
    let [stage] = join.stages.as_slice() else { panic!("{:?}", join.stages) };
    assert_eq!((&*stage.stage, stage.completed, stage.matched), ("@100:10s", 3_000, 2_993));
    for (found, expected) in [
        (stage.client_ms, mean(matched().map(service))),
        (stage.outside_ms, mean(matched().map(|n| ways(n).0 + ways(n).1))),
        (stage.gateway_ms.unwrap(), 0.3),
        (stage.upstream_ms, mean(matched().map(upstream))),
    ] {
        assert!((found - expected).abs() < 0.002, "{found} for {expected}");
    }
    assert!(total(0) > upstream(0));
    let text = plimsoll_join::text(&join);
    assert!(text.contains("7 lost by the log, 5 twice, 3 disagreeing, 0 foreign"), "{text}");
    let wide = text.lines().find(|line| line.chars().count() > 80);
    assert!(
        wide.is_none_or(|line| line.starts_with("log ")
            || line.starts_with("run ")
            || line.contains("the run")),
        "{wide:?}"
    );
}

#[test]
fn a_log_without_differences_agrees() {
    let files = Files::run(200);
    files.lines("audit.jsonl", (0..200).map(|n| audit_row(n, 0, 64)));
    let join = files.join("audit.jsonl", &[]).unwrap();
    assert_eq!(join.verdict, Verdict::Agree);
    assert_eq!(join.map_origin, "preset plimsoll, by its columns");
}
