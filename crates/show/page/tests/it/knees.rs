//! The page of searches of knees.

use plimsoll_knee::{
    AtLeast, Confirmed, CurvePoint, FORMAT, Found, KeptShare, Kind, KneeReport, Load, Phase, Probe,
    ProbeFigures, State, TargetKnee,
};
use plimsoll_page::knee_page;

use crate::pages::HOSTILE;
use crate::support::{charts, marks, rows};

const fn kept(value: f64, low: f64, high: f64) -> KeptShare {
    KeptShare { value, low, high }
}

fn probe(load: f64, phase: Phase, share: KeptShare, state: State) -> Probe {
    let late = 1.0 - share.value;
    Probe {
        load,
        seconds: 15.0,
        phase,
        missed: 10,
        doubtful: 0,
        requests: 1_000,
        kept: Some(share),
        state,
        invalid: (state == State::Invalid).then(|| "dispatch was late".to_owned()),
        ended: None,
        took_s: 17.0,
        figures: ProbeFigures {
            p50_ms: Some(2.0 + load / 1e3),
            p99_ms: (late < 0.5).then_some(5.0 + late * 500.0),
            throughput_per_s: Some(load * 0.999),
            goodput_per_s: Some(load * share.value),
            response_time_p50_ms: Some(2.0 + load / 1e3),
            response_time_p99_ms: Some(6.0 + late * 500.0),
            tokens_per_s: Some(load * 20.0),
            tokens_per_s_per_user: Some(120.0 - load / 50.0),
            ..ProbeFigures::default()
        },
    }
}

/// A search as it goes: up, down, on both sides of 1,750/s, and the confirmation.
fn probes() -> Vec<Probe> {
    use Phase::{Bracket, Confirm, Estimate, Floor, Narrow};
    vec![
        probe(100.0, Floor, kept(1.0, 0.991, 1.0), State::Kept),
        probe(1_600.0, Bracket, kept(0.998, 0.994, 0.999_5), State::Kept),
        probe(2_560.0, Bracket, kept(0.12, 0.1, 0.15), State::Missed),
        probe(2_023.0, Narrow, kept(0.8, 0.75, 0.84), State::Missed),
        probe(1_799.0, Narrow, kept(0.985, 0.97, 0.995), State::Unclear),
        probe(1_725.0, Estimate, kept(0.993, 0.991, 0.995), State::Kept),
        probe(1_790.0, Estimate, kept(0.984, 0.98, 0.988), State::Missed),
        probe(1_760.0, Estimate, kept(0.5, 0.4, 0.6), State::Invalid),
        probe(1_690.0, Confirm, kept(0.995, 0.993, 0.996_5), State::Kept),
    ]
}

fn target(name: &str, knee: Found, probes: Vec<Probe>) -> TargetKnee {
    let whole = probes.iter().enumerate().filter(|(_, probe)| probe.state != State::Invalid);
    TargetKnee {
        name: name.to_owned(),
        target: format!("http://127.0.0.1/{HOSTILE}"),
        plan_hash: "01ab".to_owned(),
        knee,
        goodput: None,
        provider: None,
        at_least: None,
        took_s: 240.0,
        curve: whole
            .map(|(probe, of)| CurvePoint { probe, load: of.load, figures: of.figures })
            .collect(),
        probes,
    }
}

fn found() -> Found {
    Found {
        kind: Kind::Interval,
        load: Some(1_750.0),
        low: Some(1_710.0),
        high: Some(1_790.0),
        why: None,
        confirmed: Some(Confirmed {
            load: 1_690.0,
            seconds: 60.0,
            kept: kept(0.995, 0.993, 0.9965),
        }),
    }
}

fn found_of(kind: Kind, low: Option<f64>, high: Option<f64>) -> Found {
    Found {
        kind,
        load: None,
        low,
        high,
        why: Some(format!("because of {HOSTILE}")),
        confirmed: None,
    }
}

fn report(knees: Vec<TargetKnee>) -> KneeReport {
    KneeReport {
        format: FORMAT.to_owned(),
        tool_version: "0".to_owned(),
        started: "20261122T120000Z".to_owned(),
        profile: HOSTILE.to_owned(),
        objective: "response_time<20ms : 99%".to_owned(),
        load: Load::RequestsPerSecond,
        interrupted: false,
        budget_s: Some(300.0),
        knees,
    }
}

fn one(knee: Found) -> String {
    knee_page(&report(vec![target("gateway", knee, probes())]))
}

/// The numbers of an attribute of every tag of a class.
fn attributes(svg: &str, class: &str, name: &str) -> Vec<f64> {
    let drawing = svg.split("</svg>").next().unwrap();
    let tags = drawing.split('<').filter(|tag| tag.contains(&format!("class=\"{class}\"")));
    tags.filter_map(|tag| -> Option<f64> {
        tag.split(&format!(" {name}=\"")).nth(1)?.split('"').next()?.parse().ok()
    })
    .collect()
}

fn chart(html: &str, id: &str) -> String {
    let found = charts(html).into_iter().find(|(name, _)| name == id);
    found.unwrap().1
}

#[test]
fn the_verdict_comes_first_and_every_probe_is_in_the_table() {
    let html = one(found());
    let verdict = html.find("<b class=\"good\">FOUND</b>: knee at 1,750/s [1,710/s, 1,790/s]");
    assert!(verdict.unwrap() < html.find("<table").unwrap());
    let table = rows(&html, "kept");
    assert_eq!(table.len(), probes().len());
    assert_eq!(&table[5][..3], ["6", "gateway", "1,725/s"]);
    assert_eq!(table[5][5], "99.30 % [99.10, 99.50]");
    // What shows nothing has no figure.
    assert_eq!(&table[7][5..7], ["-", "nothing"]);
    assert!(table[7][12].contains("dispatch was late"));
    assert!(!html.contains("<img") && !html.contains("<script"), "a text became markup");
    let drawn = charts(&html);
    assert!(drawn.iter().all(|(_, svg)| marks(svg) > 3 && !svg.contains("NaN")));
    let ids: Vec<_> = drawn.iter().map(|(id, _)| id.as_str()).collect();
    let all = ["kept", "kept-near-0", "times", "throughput-latency", "interactivity", "search"];
    assert_eq!(ids, all);
}

/// The axis of shares by hand: the ends are three times as far out in odds as the outermost share,
/// which are 10 % (2,560/s) and 99.95 % (1,600/s); the drawing is from 12 to 210 from the top.
#[test]
fn shares_and_loads_lie_where_their_odds_and_logarithms_put_them() {
    let svg = chart(&one(found()), "kept");
    let odds = |share: f64| (share / (1.0 - share)).ln();
    let (low, high) = (odds(0.1) - 3f64.ln(), odds(0.9995) + 3f64.ln());
    let y = |share: f64| 210.0 - (odds(share) - low) / (high - low) * 198.0;
    // A line at the share that was asked for.
    let asked = attributes(&svg, "l-asked", "y1");
    assert!((asked[0] - y(0.99)).abs() < 0.06, "{asked:?} for {}", y(0.99));
    // Probes that kept it are circles: the first kept all, which is the upper end.
    let circles = attributes(&svg, "f2", "cy");
    let expected = [12.0, y(0.998), y(0.993), y(0.995)];
    assert_eq!(circles.len(), expected.len());
    assert!(circles.iter().zip(expected).all(|(found, y)| (found - y).abs() < 0.06), "{circles:?}");
    // Loads by their logarithm, with an eighth (12 %) beside the outermost, from 62 to 450.
    let (low, high) = ((100.0 / 1.12_f64).ln(), (2_560.0 * 1.12_f64).ln());
    let x = |load: f64| 62.0 + (load.ln() - low) / (high - low) * 388.0;
    let found = attributes(&svg, "f2", "cx");
    let loads = [100.0, 1_600.0, 1_725.0, 1_690.0];
    assert!(
        found.iter().zip(loads).all(|(found, load)| (found - x(load)).abs() < 0.06),
        "{found:?}"
    );
    // The band of the knee, and the load that was confirmed.
    let band = (attributes(&svg, "f0 faint", "x")[0], attributes(&svg, "f0 faint", "width")[0]);
    assert!((band.0 - x(1_710.0)).abs() < 0.06, "{band:?}");
    assert!((band.1 - (x(1_790.0) - x(1_710.0))).abs() < 0.11, "{band:?}");
    assert!((attributes(&svg, "l-held", "x1")[0] - x(1_690.0)).abs() < 0.06);
    // Missed ones are diamonds, and what shows nothing is a cross, at the axis.
    assert_eq!(svg.split("</svg>").next().unwrap().matches("<path class=\"void\"").count(), 1);
    assert_eq!(svg.split("</svg>").next().unwrap().matches("<path class=\"f1\"").count(), 3);
}

#[test]
fn near_the_knee_marks_have_their_place_in_the_order_of_time() {
    let svg = chart(&one(found()), "kept-near-0");
    let texts = svg.split("class=\"num over\"").skip(1);
    let numbers: Vec<_> = texts
        .map(|text| text.split('>').nth(1).unwrap().split('<').next().unwrap().to_owned())
        .collect();
    // Within a quarter of 1,750: all but the floor and the largest step. The 8th shows nothing.
    assert_eq!(numbers, ["2", "4", "5", "6", "7", "8", "9"]);
}

#[test]
fn what_is_not_known_is_drawn_as_open() {
    let end = 450.0;
    let band = |knee: Found| {
        let html = one(knee);
        let svg = chart(&html, "kept");
        assert!(!html.contains("<img"));
        (attributes(&svg, "f0 faint", "x"), attributes(&svg, "f0 faint", "width"), svg)
    };
    let (x, width, svg) = band(found_of(Kind::AtLeast, Some(1_600.0), None));
    assert!((x[0] + width[0] - end).abs() < 0.11, "to the end of the axis");
    assert!(svg.contains("the knee is here or beyond: nothing higher could be judged"));
    let (x, _, svg) = band(found_of(Kind::NotEven, None, Some(100.0)));
    assert!((x[0] - 62.0).abs() < 0.06 && svg.contains("not even the lowest load"), "{x:?}");
    let (x, _, svg) = band(found_of(Kind::Bracket, Some(1_600.0), Some(2_560.0)));
    assert!(x.len() == 1 && svg.contains("between a load that keeps"));
    let (_, _, svg) = band(found_of(Kind::Unstable, Some(1_710.0), Some(1_790.0)));
    assert!(
        svg.contains("class=\"f0 faint unsure\"") && svg.contains("found here, and not confirmed")
    );
    let (x, _, _) = band(found_of(Kind::Unknown, None, None));
    assert!(x.is_empty());
}

#[test]
fn several_targets_have_colours_and_a_line_of_the_table_each() {
    let mut wanted = target("a", found(), probes());
    wanted.at_least = Some(AtLeast { load: 1_500.0, state: State::Kept });
    let other = target(HOSTILE, found_of(Kind::AtLeast, Some(2_560.0), None), probes());
    let html = knee_page(&report(vec![wanted, other]));
    let svg = chart(&html, "kept");
    for class in ["f0 faint", "f1 faint"] {
        assert_eq!(attributes(&svg, class, "x").len(), 1, "{class}");
    }
    assert_eq!(attributes(&svg, "l-wanted", "x1").len(), 1);
    assert!(svg.contains("a: knee at 1,750/s") && svg.contains("asked to carry 1,500/s"));
    assert_eq!(rows(&html, "kept").len(), 2 * probes().len());
    assert!(html.contains("Capacity of 2 targets") && !html.contains("<img"));
}

#[test]
fn a_search_without_a_probe_has_a_page_and_no_chart() {
    let html =
        knee_page(&report(vec![target("a", found_of(Kind::Unknown, None, None), Vec::new())]));
    assert!(charts(&html).is_empty() && html.contains("the knee is unknown"));
}

#[test]
fn the_drawing_of_a_search_is_the_stored_one() {
    let html = one(found());
    for id in ["kept", "search"] {
        let path = format!("{}/tests/golden/knee-{id}.svg.txt", env!("CARGO_MANIFEST_DIR"));
        expect_test::expect_file![path]
            .assert_eq(&format!("{}\n", chart(&html, id).replace("><", ">\n<")));
    }
}
