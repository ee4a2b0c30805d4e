//! Charts of single requests.

use plimsoll_metrics::{
    Chosen, ExemplarRequest, InstrumentHealth, RunExemplars, RunMetadata, RunSummary, Snapshot,
};
use plimsoll_page::{Input, ServerParts, page};

use crate::support::rows;

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

/// The drawing of a chart, a tag in each line.
fn drawing(html: &str, id: &str) -> String {
    let section = html.split(&format!("<section id=\"{id}\"")).nth(1).unwrap();
    let svg = section.split("<figure>").nth(1).unwrap().split("</figure>").next().unwrap();
    format!("{}\n", svg.replace("><", ">\n<"))
}

#[test]
fn the_slowest_requests_stand_in_their_order_with_their_ids() {
    let html = html(&exemplars());
    let svg = drawing(&html, "slowest");
    let places: Vec<_> = ["id-2", "id-1", "id-5"].map(|id| svg.find(id)).to_vec();
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}");
    assert!(!svg.contains("id-3"), "that one is not slow");
    assert!(html.contains("The 3 slowest of 1,234 requests outside of warm-up"));
    let random = drawing(&html, "random");
    assert!(random.contains("id-3") && random.contains("failed: reset"));
    // 5 ms of 85 may be the generator's: more than a twentieth.
    assert!(random.contains(">85.0ms!<") && !random.contains(">84.0ms!<"), "{random}");
    assert!(!html.contains("<img"), "a tag of a target");
}

#[test]
fn gaps_much_longer_than_the_median_are_marked_in_two_steps() {
    let html = html(&exemplars());
    let svg = drawing(&html, "tokens-slowest");
    // The median gap of all streams is 10 ms: 150 ms are more than 10 times as long.
    assert!(html.contains("gap over 30.0ms (3 x the median)"));
    let marks = |class: &str| svg.matches(&format!("<rect class=\"{class}\" x")).count();
    assert_eq!((marks("f4"), marks("f1")), (0, 1));
    assert_eq!(marks("f0 half"), 2, "a wait for the first token in each row");
    // Five reads in each row.
    let ticks = svg.lines().filter(|line| line.starts_with("<path class=\"tick\""));
    assert_eq!(ticks.map(|path| path.matches('M').count()).collect::<Vec<_>>(), [5, 5]);
}

#[test]
fn one_request_that_is_far_longer_than_the_others_does_not_hide_them() {
    let mut all = exemplars();
    all.requests[0].response_time_ms = Some(60_000.0);
    let html = html(&all);
    let svg = drawing(&html, "slowest");
    assert!(html.contains("One goes on beyond the axis: an arrow marks it."));
    assert!(svg.contains("60.0s") && svg.contains("class=\"frame\""), "{svg}");
}

/// By hand: of id-1 the last byte left 2 + 3.5 ms after the intended start; the slowest takes
/// 223 ms, so that the axis ends at 250 ms: 468 units of the drawing.
#[test]
fn what_the_log_tells_lies_below_the_bar_from_the_moment_of_sending() {
    let parts = |id: &str, outside: f64| ServerParts {
        request_id: id.to_owned(),
        outside_ms: outside,
        gateway_ms: Some(10.0),
        upstream_ms: Some(60.0),
    };
    // The second cannot be true, and the third is of another request.
    let server = [parts("id-1", 20.0), parts("id-2", -3.0), parts("other", 1.0)];
    let html = html_with(&exemplars(), &server);
    let svg = drawing(&html, "slowest");
    let drawing = svg.split("</svg>").next().unwrap();
    let found: Vec<(f64, f64)> = drawing
        .lines()
        .filter(|line| line.contains("class=\"s-part"))
        .map(|line| {
            let value = |name: &str| {
                let text = line.split(&format!(" {name}=\"")).nth(1).unwrap();
                text.split('"').next().unwrap().parse::<f64>().unwrap()
            };
            (value("x"), value("width"))
        })
        .collect();
    let scale = 468.0 / 250.0;
    let expected = [(5.5, 20.0), (25.5, 10.0), (35.5, 60.0)];
    assert_eq!(found.len(), expected.len(), "{found:?}");
    for ((x, width), (from, length)) in found.into_iter().zip(expected) {
        assert!((x - (6.0 + from * scale)).abs() < 0.06, "{x} for {from} ms");
        assert!((width - length * scale).abs() < 0.06, "{width} for {length} ms");
    }
    assert!(html.contains("Below 1 of 3 stands what the gateway's own log tells"));
    let told: Vec<_> = rows(&html, "slowest").iter().map(|row| row[16..].join(" ")).collect();
    assert_eq!(told, ["-3.00ms 10.0ms 60.0ms", "20.0ms 10.0ms 60.0ms", "- - -"]);
    assert!(!html_with(&exemplars(), &[]).contains("s-part "), "nothing without a log");
}

#[test]
fn a_run_without_streams_has_no_token_timeline_and_one_without_requests_no_chart() {
    let mut plain = exemplars();
    for request in &mut plain.requests {
        (request.ttft_ms, request.gap_max_ms) = (None, None);
        request.read_ms.clear();
    }
    let ids = |html: &str| html.matches("<section id=\"").count();
    assert_eq!(ids(&html(&plain)), 2);
    assert_eq!(ids(&html(&RunExemplars::default())), 0);
}

#[test]
fn drawings_of_requests_are_the_stored_ones() {
    let html = html(&exemplars());
    for id in ["slowest", "tokens-slowest"] {
        let path = format!("{}/tests/golden/{id}.svg.txt", env!("CARGO_MANIFEST_DIR"));
        expect_test::expect_file![path].assert_eq(&drawing(&html, id));
    }
}
