//! Charts of single requests.

use plimsoll_metrics::{
    Chosen, ExemplarRequest, InstrumentHealth, RunExemplars, RunMetadata, RunSummary, Snapshot,
};
use plimsoll_page::{Input, ServerParts, page};

use crate::support::{charts, data, rows, texts, without_scripts};

const HOSTILE: &str = "</svg></script><img src=x onerror=alert(1)>";

/// A stream of five reads; the gap before the fourth is `stall` milliseconds.
fn stream(number: u32, chosen: &[Chosen], ttft: f64, stall: f64) -> ExemplarRequest {
    let reads = [0.0, 10.0, 20.0, 20.0 + stall, 30.0 + stall].map(|ms| ttft + ms);
    let end = reads[4] + 1.0;
    ExemplarRequest {
        chosen: chosen.to_vec(),
        request_id: format!("id-{number}"),
        scenario: "chat".to_owned(),
        target: "direct".to_owned(),
        stage: "@10:10s".to_owned(),
        stream: true,
        status: 200,
        outcome: "completed".to_owned(),
        intended_s: f64::from(number),
        dispatch_lag_ms: 2.0,
        connected_ms: Some(3.0),
        connect_ms: Some(3.0),
        sent_ms: Some(3.5),
        ttfb_ms: Some(ttft - 5.0),
        ttft_ms: Some(ttft),
        last_token_ms: Some(reads[4]),
        service_time_ms: Some(end),
        response_time_ms: Some(end + 2.0),
        events: 6,
        gap_max_ms: Some(stall.max(10.0)),
        read_ms: reads.to_vec(),
        ..ExemplarRequest::default()
    }
}

fn exemplars() -> RunExemplars {
    use Chosen::{LongestGap, Random, ResponseTime, Ttft};
    let failed = ExemplarRequest {
        target: HOSTILE.to_owned(),
        stage: HOSTILE.to_owned(),
        outcome: "failed".to_owned(),
        error: Some("reset".to_owned()),
        generator_ms: Some(5.0),
        ..stream(4, &[Random], 40.0, 12.0)
    };
    let open = ExemplarRequest {
        outcome: "in_flight".to_owned(),
        response_time_ms: None,
        service_time_ms: None,
        open_ms: Some(50.0),
        ..stream(5, &[ResponseTime], 40.0, 12.0)
    };
    RunExemplars {
        offered: 1_234,
        targets: vec!["direct".to_owned(), HOSTILE.to_owned()],
        requests: vec![
            stream(1, &[ResponseTime, Ttft], 80.0, 10.0),
            stream(2, &[ResponseTime, LongestGap], 40.0, 150.0),
            stream(3, &[Random], 40.0, 11.0),
            failed,
            open,
        ],
        ..RunExemplars::default()
    }
}

fn html(exemplars: &RunExemplars) -> String {
    html_with(exemplars, &[])
}

fn html_with(exemplars: &RunExemplars, server: &[ServerParts]) -> String {
    let (metadata, health) = (RunMetadata::default(), InstrumentHealth::default());
    let summary = RunSummary::build(metadata, health, &Snapshot::new(), &[]).unwrap();
    let input = Input {
        summary: &summary,
        timeline: None,
        exemplars: Some(exemplars),
        versus: None,
        server,
    };
    page(&input)
}

#[test]
fn the_slowest_requests_stand_in_their_order_with_their_ids() {
    let html = html(&exemplars());
    let bars = &data(&html, "slowest")["rows"];
    let mut ids = texts(bars, "request");
    ids.dedup();
    assert_eq!(ids, ["id-2", "id-1", "id-5"], "no other one is slow");
    assert_eq!(rows(&html, "slowest").iter().map(|row| &*row[0]).collect::<Vec<_>>(), ids);
    assert!(html.contains("The 3 slowest of 1,234 requests outside of warm-up"));
    assert!(!without_scripts(&html).contains("<img"), "a tag of a target");
}

#[test]
fn a_time_that_the_generator_may_have_made_is_marked() {
    let mut all = exemplars();
    // 5 ms of 85 may be measurement error: more than a twentieth.
    all.requests[3].chosen = vec![Chosen::ResponseTime];
    let html = html(&all);
    let shown = rows(&html, "slowest");
    let failed = shown.iter().find(|row| row[0] == "id-4").unwrap();
    assert_eq!((&*failed[4], &*failed[5]), ("failed: reset", "85.0ms!"));
}

/// By hand: the last byte of id-1 was sent 2 + 3.5 ms after the intended start.
#[test]
fn the_log_has_a_bar_from_the_moment_of_sending() {
    let parts = |id: &str, outside: f64| ServerParts {
        request_id: id.to_owned(),
        outside_ms: outside,
        gateway_ms: Some(10.0),
        upstream_ms: Some(60.0),
    };
    // The second is impossible, and the third belongs to another request.
    let server = [parts("id-1", 20.0), parts("id-2", -3.0), parts("other", 1.0)];
    let html = html_with(&exemplars(), &server);
    let drawn = data(&html, "slowest");
    let bars = drawn["rows"].as_array().unwrap();
    let of_log = bars.iter().filter(|bar| bar["seen by"] == "log");
    let found: Vec<_> = of_log.map(|bar| [&bar["from"], &bar["to"]]).collect();
    assert_eq!(found, [[5.5, 25.5], [25.5, 35.5], [35.5, 95.5]]);
    let told: Vec<_> = rows(&html, "slowest").iter().map(|row| row[16..].join(" ")).collect();
    assert_eq!(told, ["-3.00ms 10.0ms 60.0ms", "20.0ms 10.0ms 60.0ms", "- - -"]);
}

#[test]
fn a_run_without_requests_has_no_chart() {
    assert!(charts(&html(&RunExemplars::default())).is_empty());
}
