//! Tests the content of the screen.

use plimsoll_live::{Look, Model, RunFacts, SoFar};
use plimsoll_measure::Nanos;
use plimsoll_metrics::Judgement;

use crate::support::{comparison, facts, model, model_of, run, shown, threshold};

const SIZES: [(u16, u16); 4] = [(120, 40), (100, 30), (60, 20), (20, 5)];

fn golden(name: &str, text: &str) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/");
    expect_test::expect_file![format!("{folder}{name}.txt")].assert_eq(text);
}

/// The line that contains all parts.
#[track_caller]
fn line<'t>(text: &'t str, parts: &[&str]) -> &'t str {
    let found = text.lines().find(|line| parts.iter().all(|part| line.contains(part)));
    assert!(found.is_some(), "no line with {parts:?}:\n{text}");
    found.unwrap()
}

#[test]
fn the_view_is_as_stored_at_every_size() {
    let run = {
        let mut run = run();
        let thresholds = vec![threshold("p(99)<40ms", 29.0, Judgement::Pass)];
        run.judge(SoFar { invalid: Vec::new(), thresholds });
        run
    };
    for (width, height) in SIZES {
        for (name, model) in [("run", &run), ("versus", &comparison())] {
            let text = shown(model, Look::default(), width, height);
            golden(&format!("{name}-{width}x{height}"), &text);
        }
    }
    let help = Look { help: true, ..Look::default() };
    golden("help-100x30", &shown(&run, help, 100, 30));
}

#[test]
fn nothing_is_drawn_outside_and_nothing_panics_at_any_size() {
    let (early, late) = (Model::new(facts(&["a", "b"])), comparison());
    let looks = [(&early, 0, false), (&late, 0, true), (&late, 3, false), (&late, 99, false)];
    for width in [1, 2, 3, 7, 19, 40, 89, 90, 91, 250] {
        for height in [1, 2, 3, 6, 9, 14, 23, 24, 25, 60] {
            for (model, part, help) in looks {
                let text = shown(model, Look { part, help, frozen: help }, width, height);
                assert_eq!(text.lines().count(), usize::from(height));
            }
        }
    }
}

#[test]
fn figures_are_those_that_were_counted() {
    let text = shown(&run(), Look::default(), 100, 30);
    // Ten requests per second were planned and ended; two more were always in flight.
    line(&text, &["planned", " 10.0/s"]);
    line(&text, &["sent", " 10.0/s"]);
    line(&text, &["in flight", " 2 "]);
    line(&text, &["tokens out", " 120/s"]);
    // Ten requests of 20 to 29 ms: the fifth and the tenth.
    line(&text, &["p50 24.0ms", "max 29.0ms", "TTFT p50 12.0ms max 14.0ms"]);
    // The seconds 0 and 40 had one failure each.
    line(&text, &["completed", " 748 "]);
    line(&text, &["failed", " 2 ", "0.27%"]);
    line(&text, &["most often: reset x2"]);
    line(&text, &["stage 2 of 3 @10:2m", "1:15 left of 2:30"]);
    line(&text, &["▶ @10:2m", "1:05 of 2:00"]);
    line(&text, &["gateway", "0.41 CPU", "64.0"]);
    line(&text, &["redis", "gone"]);
    line(&text, &["max now", "40.0us"]);
}

#[test]
fn parts_have_figures_of_their_own() {
    let model = model(&["gateway", "other"], 12);
    assert_eq!(model.parts(), 5);
    // Everything, two scenarios, two targets.
    let part = |part| shown(&model, Look { part, ..Look::default() }, 100, 30);
    // The last two of every ten, on both targets.
    line(&part(2), &["completed", " 4.00/s"]);
    assert!(line(&part(2), &["last second"]).contains("scenario complex"));
    line(&part(4), &["p50 29.0ms", "max 34.0ms"]);
    assert!(line(&part(4), &["last second"]).contains("target other"));
}

/// A thousand requests have a 99th percentile, ten have none, so a column for both shows the
/// maximum.
#[test]
fn a_column_of_targets_is_of_one_kind() {
    let shown_with = |requests: &[u64]| {
        shown(&model_of(&["gateway", "other"], 12, requests), Look::default(), 120, 40)
    };
    let text = shown_with(&[1_000, 10]);
    line(&text, &["p50 now", "max now"]);
    // 1,000 requests of 20 to 1,019 ms, and ten of 25 to 34 ms.
    line(&text, &["gateway", " 1.02s "]);
    line(&text, &["other", " 34.0ms "]);
    line(&shown_with(&[1_000, 1_000]), &["p50 now", "p99 now"]);
}

#[test]
fn the_verdict_names_its_reason() {
    let mut run = model(&["gateway"], 3);
    line(&shown(&run, Look::default(), 100, 30), &["not judged yet"]);
    let verdict = |run: &mut Model, invalid: &[&str], thresholds| {
        let invalid = invalid.iter().map(|why| (*why).to_owned()).collect();
        run.judge(SoFar { invalid, thresholds });
        shown(run, Look::default(), 100, 30)
    };
    line(&verdict(&mut run, &[], Vec::new()), &["valid", "no thresholds"]);
    let fail = || threshold("p(50)<20ms", 24.5, Judgement::Fail);
    let open = || threshold("p(99)<40ms", 29.0, Judgement::Inconclusive("9 samples".to_owned()));
    let pass = || threshold("p(95)<40ms", 33.0, Judgement::Pass);
    line(&verdict(&mut run, &[], vec![pass()]), &["PASS: thresholds 1 kept"]);
    let text = verdict(&mut run, &[], vec![pass(), open()]);
    line(&text, &["not decided: thresholds 1 kept, 1 pending"]);
    line(&text, &["p(99)<40ms: 9 samples"]);
    let text = verdict(&mut run, &[], vec![pass(), open(), fail()]);
    line(&text, &["FAIL: thresholds 1 broken, 1 kept, 1 pending"]);
    line(&text, &["p(50)<20ms: 24.5"]);
    // An invalid run has no other verdict.
    let text = verdict(&mut run, &["the median TTFT: 9 ms", "gen_io: 1"], vec![fail()]);
    line(&text, &["INVALID: the measurement error"]);
    line(&text, &["the median TTFT: 9 ms (and 1 more)"]);
}

#[test]
fn targets_are_compared_with_intervals() {
    let text = shown(&comparison(), Look::default(), 120, 40);
    line(&text, &["direct", "748", "24.0ms", "29.0ms"]);
    line(&text, &["a ", "748", "29.0ms", "34.0ms", "+143us [133, 153]"]);
    line(&text, &["b against a", "+1.290ms [1.280, 1.300]"]);
    line(&text, &["TTFT added to direct"]);
}

#[test]
fn hostile_names_are_harmless() {
    let mut facts = facts(&["\x1b]0;owned\x07", "b\u{202e}c\n\t"]);
    facts.name = "\x1b[2J\x1b[31mred".to_owned();
    facts.stages[0].name = "\x1b[9;9H".to_owned();
    let mut model = Model::new(facts);
    model.say("\x1b[?1049lgone\r");
    let invalid = vec!["\x1b[0m\x07".to_owned()];
    let thresholds = vec![threshold("\x1b[1m<1", 2.0, Judgement::Inconclusive("\x1b[8m".into()))];
    for so_far in [SoFar { invalid, ..SoFar::default() }, SoFar { invalid: Vec::new(), thresholds }]
    {
        model.judge(so_far);
        for (width, height) in SIZES {
            let text = shown(&model, Look::default(), width, height);
            assert!(
                !text.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'),
                "{text:?}"
            );
        }
    }
}

#[test]
fn the_place_in_the_run_is_told() {
    let mut model = Model::new(facts(&["gateway"]));
    let place = |model: &Model, look| shown(model, look, 100, 30);
    line(&place(&model, Look::default()), &["starting, 2:30 to go"]);
    let mut at = |seconds: u64, ending| {
        model.update(plimsoll_metrics::IntervalUpdate {
            elapsed: Nanos::from_millis(seconds * 1_000),
            stage: 2,
            length: Nanos::from_secs(1),
            cells: &plimsoll_metrics::Snapshot::new(),
            in_flight: 7,
            ended: 412,
            ending,
            taken_out: &[],
            processes: Vec::new(),
            own_cpu: None,
            own_cores: None,
        });
        place(&model, Look { frozen: ending, ..Look::default() })
    };
    line(&at(140, false), &["stage 3 of 3 8:20s  0:10 left of 2:30"]);
    line(&at(140, false), &["planned", "8 at once"]);
    line(&at(151, false), &["waiting for 7 responses"]);
    line(&at(141, true), &["PAUSED (p resumes)  ending, 7 in flight"]);
}

/// 3 s and 30 requests into a run that ends after 40 requests, however long its stages are.
#[test]
fn a_run_that_a_number_of_requests_ends_counts_them() {
    let counted = RunFacts { max_requests: Some(40), ..facts(&["gateway"]) };
    let place = |model: &Model| shown(model, Look::default(), 102, 30);
    line(&place(&Model::new(counted.clone())), &["starting, 40 requests to go"]);
    let mut run = Model::new(counted);
    run.update(plimsoll_metrics::IntervalUpdate {
        elapsed: Nanos::from_secs(30),
        stage: 1,
        length: Nanos::from_secs(1),
        cells: &plimsoll_metrics::Snapshot::new(),
        in_flight: 7,
        ended: 30,
        ending: false,
        taken_out: &[],
        processes: Vec::new(),
        own_cpu: None,
        own_cores: None,
    });
    let text = place(&run);
    line(&text, &["stage 2 of 3 @10:2m  30 of 40 requests"]);
    line(&text, &["▶ @10:2m", "30 of 40 requests"]);
    assert!(!text.contains("left of"), "{text}");
    // Three quarters of a bar of a hundred columns, minus a gap after the warm-up.
    assert_eq!(text.matches('━').count(), 74, "{text}");
}
