//! 7 dropped rows, 5 duplicated, 3 with wrong tokens, and a clock 3.7 s ahead with 50 ppm of drift.

use plimsoll_join::{Options, Verdict};

use crate::support::{
    Files, START, audit_row, options, run_row, sent, service, total, upstream, ways,
};

/// Offset of the log's clock at request `n`.
fn apart(n: i64) -> i64 {
    3_700_000_000 + (sent(n) - START) * 50 / 1_000_000
}

/// The log of the first `count` requests.
pub(crate) fn log(count: i64) -> impl Iterator<Item = String> {
    (0..count).flat_map(move |n| {
        let step = count / 10;
        let times = match n % step {
            // One row in each of seven tenths.
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

    // Rows have a resolution of a microsecond.
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

/// A row of the log with a cache state.
fn with_cache(n: i64, state: &str) -> String {
    let field = format!(r#""cache":"{state}","request_bytes""#);
    audit_row(n, 0, 64).replace(r#""request_bytes""#, &field)
}

#[test]
fn hits_and_misses_of_the_log_have_times_of_their_own_and_headers_are_compared() {
    let count = 3_000;
    // One in three is a hit in the log. The headers agree except for ten requests.
    let header = |n: i64| if n % 3 == 0 && n >= 30 { "hit" } else { "miss" };
    let files = Files::of((0..count).map(|n| {
        run_row(n).replace(r#""status""#, &format!(r#""cache":"{}","status""#, header(n)))
    }));
    let log = (0..count).map(|n| with_cache(n, if n % 3 == 0 { "hit" } else { "miss" }));
    files.lines("audit.jsonl", log);
    let join = files.join("audit.jsonl", &[]).unwrap();
    assert_eq!(join.verdict, Verdict::Agree, "another cache may have written the header");
    let caches = join.caches.as_ref().unwrap();
    assert_eq!((caches.hits, caches.misses, caches.bypassed, caches.unknown), (1_000, 2_000, 0, 0));
    assert_eq!(caches.unlike_headers, 10);
    let groups: Vec<_> =
        join.times.iter().map(|group| (group.cache.as_deref(), group.requests)).collect();
    assert_eq!(groups, [(None, 3_000), (Some("hit"), 1_000), (Some("miss"), 2_000)]);
    let hits = median((0..count).filter(|n| n % 3 == 0).map(service));
    let found = join.times[1].client.p50_ms.unwrap();
    assert!((found - hits).abs() < 0.002, "{found} for {hits}");
    let text = plimsoll_join::text(&join);
    for part in ["  cache: hit", "1,000 hits, 2,000 misses; 10 differ from the response headers"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_a_gateway_states_of_its_own_time_stands_beside_its_log() {
    let count = 2_000;
    // The header reports 0.2 ms of overhead; the log has 0.3 ms.
    let parts =
        r#""server_time_ms":15.5,"server_parts_ms":{"x-litellm-overhead-duration-ms":0.2},"#;
    let files = Files::of(
        (0..count).map(|n| run_row(n).replace(r#""status""#, &format!(r#"{parts}"status""#))),
    );
    files.lines("audit.jsonl", (0..count).map(|n| audit_row(n, 0, 64)));
    let rows = files.path("joined.jsonl");
    let options = Options { rows: Some(rows.clone()), ..options(&[]) };
    let join = files.join_with(&files.path("audit.jsonl"), &options).unwrap();
    assert!(join.caches.is_none(), "the log says nothing of caches");
    let [whole, own] = join.stated.as_slice() else { panic!("{:?}", join.stated) };
    assert_eq!((&*whole.name, whole.stated.p50_ms), ("server_time", Some(15.5)));
    assert_eq!((&*own.name, own.requests), ("x-litellm-overhead-duration-ms", 2_000));
    assert_eq!(own.stated.p50_ms, Some(0.2));
    let gateway = own.gateway.unwrap().p50_ms.unwrap();
    assert!((gateway - 0.3).abs() < 0.002, "{gateway}");
    let client = own.client.p50_ms.unwrap();
    assert!((client - median((0..count).map(service))).abs() < 0.002, "{client}");
    let rows = std::fs::read_to_string(rows).unwrap();
    let last: serde_json::Value = serde_json::from_str(rows.lines().last().unwrap()).unwrap();
    assert_eq!(last["stated_ms"]["x-litellm-overhead-duration-ms"], 0.2);
    assert_eq!((&last["log_status"], &last["log_output_tokens"]), (&200.into(), &64.into()));
}
