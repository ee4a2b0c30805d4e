//! Parts of times as targets name them, in reports and in rows.

use std::sync::Arc;

use plimsoll_measure::{NAMED_PARTS, Nanos, Outcome, PartTimes, Sample, ServerParts};
use plimsoll_metrics::{InstrumentHealth, Recorder, RunMetadata, RunSummary, Snapshot};
use plimsoll_report::{Style, text};
use plimsoll_run_files::{RowContext, RowNames, rebuild, write_row};

use crate::support::{metadata, samples, stage_ends};

const NAMES: [&str; 2] = ["gw", "db\u{1b}[31m"];

/// Parts of each completed turn: 100 and 200 us, and every second time 50 us of further names. One
/// in a hundred says more than its time.
fn parts(index: usize) -> ServerParts {
    let mut times = PartTimes::default();
    times[0] = Some(Nanos::from_micros(if index % 100 == 7 { 100_000_000 } else { 100 }));
    times[1] = Some(Nanos::from_micros(200));
    times[NAMED_PARTS] = index.is_multiple_of(2).then(|| Nanos::from_micros(50));
    ServerParts::Told(times)
}

fn completed() -> Vec<(Sample, ServerParts)> {
    let samples = samples().into_iter().filter(|sample| sample.outcome == Outcome::Completed);
    samples
        .enumerate()
        .map(|(index, sample)| {
            let parts = parts(index).within(sample.timeline.ttfb());
            (sample, parts)
        })
        .collect()
}

fn named() -> RunMetadata {
    RunMetadata { server_parts: NAMES.map(str::to_owned).into(), ..metadata() }
}

fn summary() -> RunSummary {
    let mut recorder = Recorder::new(stage_ends());
    for (sample, parts) in completed() {
        recorder.scheduled(sample.stage, sample.scenario, sample.target);
        recorder.record(&sample, &[], &[]);
        recorder.record_parts(&sample, &parts);
    }
    let mut snapshot = Snapshot::new();
    snapshot.append(recorder.take());
    RunSummary::build(named(), InstrumentHealth::default(), &snapshot, &[]).unwrap()
}

#[test]
fn the_report_has_the_parts_of_all_and_of_each_stage() {
    let summary = summary();
    let report = text(&summary, Style::default());
    let (_, section) = report.split_once("Times reported in the target's headers").unwrap();
    let section = section.split("\n\n").next().unwrap();
    let lines: Vec<_> =
        section.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let has = |start: &str| lines.iter().any(|line| line.starts_with(start));
    // 2,000 completed turns outside of the warm-up, one in 100 of which is refused.
    let timing = summary.results.total.server_timing.as_ref().unwrap();
    assert_eq!(timing.responses + timing.refused, 2_000);
    assert_eq!(timing.refused, 20);
    assert!(has("part requests mean p50 p99"), "{section}");
    assert!(has("gw 1,980 100us 100us 100us"), "{section}");
    assert!(has("db\\u{1b}[31m 1,980 200us 200us 200us"), "{section}");
    assert!(has("8:10s gw 990 100us 100us -") && has("@100:10s gw 990"), "{section}");
    let section = lines.join(" ");
    let means = ": db\\u{1b}[31m 200us, gw 100us, other 25.3us, network";
    assert!(section.contains("Mean time to the first byte") && section.contains(means));
    assert!(section.contains("(1,980 responses)"), "{section}");
    assert!(
        section.contains("20 responses are left out, because their parts are invalid"),
        "{section}"
    );
    let wide = report.lines().find(|line| line.chars().count() > 120);
    assert_eq!(wide, None);
}

/// A killed run leaves only rows.
#[test]
fn rows_bring_the_parts_back() {
    let metadata = named();
    let mut out = Vec::new();
    for (sample, parts) in completed() {
        let names = RowNames::new(
            &metadata.scenarios[sample.scenario.index()],
            None,
            &metadata.targets[0].name,
            &metadata.stages[sample.stage.index()].name,
        );
        let all = NAMES.into_iter().map(Some).chain([None; NAMED_PARTS - 2]).chain([Some("other")]);
        let times = parts.times().copied().unwrap_or_default();
        let named = all.zip(times).filter_map(|(name, time)| Some((Arc::from(name?), time?)));
        let server_parts: Vec<(Arc<str>, Nanos)> = named.collect();
        let row = RowContext {
            conversation: "c",
            request_id: "c-0",
            names: &names,
            epoch_unix_ns: metadata.run.started_unix_ns,
            weight: 1,
            events: None,
            headers: &[],
            server_parts: &server_parts,
            error_detail: None,
            decoded_bytes: None,
            pair: None,
        };
        write_row(&sample, &row, &mut out);
    }
    let lines = out.split(|byte| *byte == b'\n');
    let rebuilt = rebuild(lines, crate::support::metadata(), &[]).unwrap().summary;
    let mut names = rebuilt.metadata.server_parts.clone();
    names.sort();
    assert_eq!(names, ["db\u{1b}[31m", "gw"]);
    let (found, whole) =
        (&rebuilt.results.total.server_timing, &summary().results.total.server_timing);
    let (found, whole) = (found.as_ref().unwrap(), whole.as_ref().unwrap());
    assert_eq!((found.responses, &found.parts), (whole.responses, &whole.parts));
    assert!((found.ttfb_sum_ms - whole.ttfb_sum_ms).abs() < 1e-6);
    // A row does not say that its parts were refused.
    assert_eq!(found.refused, 0);
}
