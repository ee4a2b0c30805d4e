//! Snapshots as shown by a page.

use plimsoll_export::{Conclusion, LIMITS_NS, LiveKnee, LiveMetrics, Verdict};
use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_metrics::Snapshot;

use crate::support::{read, request, run, snapshot, update};

const SHORT: &str = r#"scenario="short",target="gateway",warmup="false""#;
const ENV: &str = r#"environment="test""#;

const fn ms(millis: u64) -> Nanos {
    Nanos::from_millis(millis)
}

fn value(live: &LiveMetrics, name: &str, labels: &str) -> Option<f64> {
    let separator = if labels.is_empty() { "" } else { "," };
    read(&live.page().0).get(&format!("{name}{{{labels}{separator}{ENV}}}")).copied()
}

#[test]
fn every_line_of_a_counter_is_there_from_the_start() {
    let live = LiveMetrics::default();
    live.begin(run());
    let requests = |labels: &str| {
        let labels = format!("{labels},outcome=\"completed\"");
        value(&live, "plimsoll_live_requests_total", &labels)
    };
    assert_eq!(requests(SHORT), Some(0.0));
    let escaped = r#"scenario="a \"long\"\none",target="gateway",warmup="true""#;
    assert_eq!(requests(escaped), Some(0.0));
    let reset = r#"target="gateway",warmup="false",class="reset",side="network""#;
    assert_eq!(value(&live, "plimsoll_live_errors_total", reset), Some(0.0));
    assert_eq!(value(&live, "plimsoll_live_run_valid", ""), None, "nobody looked yet");
    let stage = r#"stage="w@5:1s",index="1",warmup="true""#;
    assert_eq!(value(&live, "plimsoll_live_stage", stage), Some(1.0));
}

#[test]
fn counts_are_those_of_all_snapshots_and_of_all_runs() {
    let live = LiveMetrics::default();
    live.begin(run());
    update(&live, 0, &snapshot(&[request(0, 0, Ok(ms(9))), request(0, 0, Ok(ms(9)))]));
    let failed = Err(ErrorClass::ServerError);
    update(&live, 1, &snapshot(&[request(1, 0, Ok(ms(2))), request(1, 0, failed)]));
    update(&live, 1, &snapshot(&[request(1, 0, Ok(ms(2)))]));
    let count = |outcome: &str| {
        let labels = format!("{SHORT},outcome=\"{outcome}\"");
        value(&live, "plimsoll_live_requests_total", &labels)
    };
    assert_eq!(
        (count("completed"), count("failed"), count("rejected")),
        (Some(2.0), Some(1.0), Some(0.0))
    );
    let warmup = SHORT.replace("false", "true");
    let warmup = format!("{warmup},outcome=\"completed\"");
    assert_eq!(value(&live, "plimsoll_live_requests_total", &warmup), Some(2.0));
    let class = r#"target="gateway",warmup="false",class="server_error",side="target""#;
    assert_eq!(value(&live, "plimsoll_live_errors_total", class), Some(1.0));
    let status = r#"target="gateway",warmup="false",status="503""#;
    assert_eq!(value(&live, "plimsoll_live_responses_total", status), Some(1.0));
    assert_eq!(value(&live, "plimsoll_live_scheduled_total", SHORT), Some(3.0));
    assert_eq!(value(&live, "plimsoll_live_in_flight_requests", ""), Some(3.0));
    assert_eq!(value(&live, "plimsoll_live_generator_cpu_seconds_total", ""), Some(0.25));

    // The second run of a command begins where the first one ended.
    live.begin(run());
    assert_eq!(count("completed"), Some(2.0));
    update(&live, 1, &snapshot(&[request(1, 0, Ok(ms(2)))]));
    assert_eq!(count("completed"), Some(3.0));
    assert_eq!(value(&live, "plimsoll_live_runs_total", ""), Some(2.0));
}

#[test]
fn a_histogram_counts_up_to_fixed_limits() {
    let live = LiveMetrics::default();
    live.begin(run());
    // One and a half milliseconds is a limit itself; 200 s are above all.
    let times = [Nanos::from_micros(90), Nanos::from_micros(1_490), Nanos::from_secs(200)];
    let requests = times.map(|took| request(1, 0, Ok(took)));
    update(&live, 1, &snapshot(&requests));
    let name = "plimsoll_live_response_time_seconds";
    let found = ["0.0001", "0.001", "0.0015", "100", "+Inf"].map(|le| {
        value(&live, &format!("{name}_bucket"), &format!("{SHORT},le=\"{le}\"")).unwrap()
    });
    assert_eq!(found.map(Some), [1.0, 1.0, 2.0, 2.0, 3.0].map(Some));
    assert_eq!(value(&live, &format!("{name}_count"), SHORT), Some(3.0));
    let sum = value(&live, &format!("{name}_sum"), SHORT).unwrap();
    assert!((sum - 200.001_58).abs() < 1e-9, "{sum}");
    let lines = read(&live.page().0);
    let buckets = lines.keys().filter(|series| series.starts_with(&format!("{name}_bucket")));
    // Only of the scenario that has values.
    assert_eq!(buckets.count(), LIMITS_NS.len() + 1);
}

/// A counter must not decrease within a process, because Prometheus would see a reset.
#[test]
fn no_counter_falls_to_the_end_of_the_last_run() {
    let live = LiveMetrics::default();
    let (mut last, mut whole) = (read(&live.page().0), Snapshot::new());
    let mut look = |live: &LiveMetrics| {
        let now = read(&live.page().0);
        let is_counter = |series: &str| {
            let name = series.split_once('{').unwrap().0;
            ["_total", "_bucket", "_sum", "_count"].iter().any(|end| name.ends_with(end))
        };
        for (series, before) in last.iter().filter(|(series, _)| is_counter(series)) {
            let is_labelled = now.contains_key(series);
            // Before the first run the page has no label of a run.
            assert!(!is_labelled || now[series] >= *before, "{series} fell from {before}");
            assert!(is_labelled || *before <= 0.0, "{series} is gone");
        }
        last = now;
    };
    for round in 0..2 {
        live.begin(run());
        for second in 0..5_u64 {
            let took = |n| Ok(Nanos::from_micros(100 + 1_000 * (second * 7 + n) % 9_000));
            let requests: Vec<_> =
                (0..20).map(|n| request(1, u16::from(n % 2 == 1), took(n))).collect();
            let counts = snapshot(&requests);
            update(&live, 1, &counts);
            look(&live);
            whole.append(counts);
        }
        // The last answers come after the last look.
        whole.append(snapshot(&[request(1, 0, Ok(ms(1)))]));
        live.end(&whole, Verdict { valid: round == 0, thresholds: [1, 0, 2] });
        look(&live);
        whole = Snapshot::new();
        assert_eq!(value(&live, "plimsoll_live_run_valid", ""), Some(f64::from(1 - round)));
        assert_eq!(value(&live, "plimsoll_live_run_over", ""), Some(1.0));
    }
    let count = value(&live, "plimsoll_live_response_time_seconds_count", SHORT);
    assert_eq!(count, Some(2.0 * (5.0 * 10.0 + 1.0)));
    let open = r#"judgement="inconclusive""#;
    assert_eq!(value(&live, "plimsoll_live_thresholds", open), Some(2.0));
}

#[test]
fn many_scenarios_are_not_told_apart() {
    let live = LiveMetrics::default();
    let mut many = run();
    many.scenarios = (0..500).map(|n| format!("s{n}")).collect();
    live.begin(many);
    update(&live, 1, &snapshot(&[request(1, 0, Ok(ms(1))), request(1, 1, Ok(ms(1)))]));
    let all = r#"scenario="",target="gateway",warmup="false",outcome="completed""#;
    assert_eq!(value(&live, "plimsoll_live_requests_total", all), Some(2.0));
    assert!(live.page().0.lines().count() < 500);
}

/// A search makes many runs, and is over when it says so.
#[test]
fn a_search_tells_its_part_and_its_end() {
    let live = LiveMetrics::default();
    let over = || (value(&live, "plimsoll_live_run_over", ""), live.page().1);
    live.begin_series();
    live.begin_part("floor", "a");
    live.begin(run());
    let part = |labels: &str| value(&live, "plimsoll_live_part", labels);
    assert_eq!(part(r#"name="floor",target="a""#), Some(1.0));
    update(&live, 1, &snapshot(&[request(1, 0, Ok(ms(2)))]));
    let verdict = Verdict { valid: true, ..Verdict::default() };
    live.end(&snapshot(&[request(1, 0, Ok(ms(2)))]), verdict);
    assert_eq!(over(), (Some(0.0), false), "one run is over, and not the search");
    live.begin_part("a \"b\"", "a");
    live.begin(run());
    assert_eq!(part(r#"name="floor",target="a""#), Some(0.0));
    assert_eq!(part(r#"name="a \"b\"",target="a""#), Some(1.0));
    live.end(&snapshot(&[request(1, 0, Ok(ms(2)))]), verdict);
    let knee = LiveKnee {
        target: "a".to_owned(),
        kind: "between",
        unit: "virtual_users",
        load: [Some(11.5), None],
    };
    live.conclude(Conclusion { outcome: "fail", knees: vec![knee] });
    assert_eq!(over(), (Some(1.0), true));
    let figure = |name: &str, labels: &str| value(&live, &format!("plimsoll_live_{name}"), labels);
    assert_eq!(figure("outcome", r#"outcome="fail""#), Some(1.0));
    assert_eq!(figure("knee_state", r#"target="a",status="between""#), Some(1.0));
    let unit = r#"target="a",metric="virtual_users""#;
    assert_eq!(figure("knee_load_low", unit), Some(11.5));
    assert_eq!(figure("knee_load_high", unit), None);
    assert_eq!(part(r#"name="floor",target="a""#), Some(0.0));
    let count = value(&live, "plimsoll_live_response_time_seconds_count", SHORT);
    assert_eq!(count, Some(2.0), "counts go on from run to run");
}

/// Written by hand: dashboards add up runs of all versions by these limits.
#[test]
fn the_limits_of_the_classes_stay_as_they_are() {
    let first = [100_000, 150_000, 200_000, 300_000, 500_000, 700_000, 1_000_000, 1_500_000];
    assert_eq!(LIMITS_NS[..8], first);
    assert_eq!(LIMITS_NS[35..], [70_000_000_000, 100_000_000_000]);
}
