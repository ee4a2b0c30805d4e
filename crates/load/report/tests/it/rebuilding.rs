//! A summary from the rows of a killed run.

use plimsoll_metrics::{InstrumentHealth, Metric, RunEnd, RunSummary};
use plimsoll_report::{ReportError, RowContext, RowNames, Style, rebuild, text, write_row};

use crate::example::{facts, health, samples, summary};

/// The file that the example run would have left.
fn file() -> Vec<u8> {
    file_of_rows_that_stand_for(1)
}

fn file_of_rows_that_stand_for(weight: u32) -> Vec<u8> {
    let facts = facts();
    let mut out = Vec::new();
    for sample in samples() {
        let names = RowNames::new(
            &facts.scenarios[sample.scenario.index()],
            None,
            &facts.targets[sample.target.index()].name,
            &facts.stages[sample.stage.index()].name,
        );
        let context = RowContext {
            conversation: "c",
            request_id: "c-0",
            names: &names,
            epoch_unix_ns: facts.run.started_unix_ns,
            weight,
            events: None,
        };
        write_row(&sample, &context, &mut out);
    }
    out
}

fn rebuilt(file: &[u8]) -> RunSummary {
    rebuild(file.split(|byte| *byte == b'\n'), facts(), &[]).unwrap()
}

#[test]
fn the_rows_give_the_numbers_of_the_run() {
    let (rebuilt, whole) = (rebuilt(&file()), summary(facts(), health()));
    assert_eq!(rebuilt.total.counters, whole.total.counters);
    assert_eq!(rebuilt.total.errors, whole.total.errors);
    for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::Itl) {
        assert_eq!(
            rebuilt.total.distribution(metric),
            whole.total.distribution(metric),
            "{metric:?}"
        );
    }
    assert_eq!(rebuilt.total.distribution(Metric::Itl), None);
}

#[test]
fn a_rebuilt_summary_says_so_and_is_never_valid() {
    let rebuilt = rebuilt(&file());
    assert_eq!(rebuilt.run.ended, RunEnd::Unfinished);
    assert!(!rebuilt.validity.is_valid());
    let report = text(&rebuilt, Style::default());
    assert!(report.contains("rebuilt from results.jsonl (the run did not finish)"), "{report}");
    assert!(report.contains("ITL is not available"), "{report}");
}

#[test]
fn a_cut_last_line_is_left_out_and_other_bad_lines_are_counted() {
    let mut bytes = file();
    bytes.truncate(bytes.len() - 20);
    let cut = rebuilt(&bytes);
    assert_eq!(cut.accounting().scheduled, samples().len() as u64 - 1);
    assert!(cut.notes.iter().any(|note| note.starts_with("the last line")), "{:?}", cut.notes);
    assert!(!cut.notes.iter().any(|note| note.contains("other lines")), "{:?}", cut.notes);

    let mangled = [b"garbage\n{\"half\":\n".as_slice(), &bytes].concat();
    let notes = rebuilt(&mangled).notes;
    assert!(notes.iter().any(|note| note.starts_with("2 other lines")), "{notes:?}");
}

#[test]
fn a_stage_that_was_cut_off_lasted_until_its_last_answer() {
    let bytes = file();
    // 50 warm-up turns, and half of the stage that begins after a second.
    let early = bytes.split(|byte| *byte == b'\n').take(550);
    let last = samples()[..550].iter().filter_map(|sample| sample.timeline.finished).max().unwrap();
    let cut = rebuild(early, facts(), &[]).unwrap();
    let lengths: Vec<_> = cut.stages.iter().map(|stage| stage.duration_s).collect();
    assert!((lengths[1] - (last.as_nanos() as f64 / 1e9 - 1.0)).abs() < 1e-9, "{lengths:?}");
    assert_eq!(lengths[2].to_string(), "0");
}

#[test]
fn rows_of_a_sample_count_as_many_turns_as_they_stand_for() {
    let (one, four) = (rebuilt(&file()), rebuilt(&file_of_rows_that_stand_for(4)));
    assert_eq!(four.accounting().scheduled, 4 * one.accounting().scheduled);
    assert_eq!(four.accounting().rejected, 80);
    let told = |summary: &RunSummary| summary.notes.iter().any(|note| note.contains("estimates"));
    assert!(told(&four) && !told(&one), "{:?}", four.notes);
}

#[test]
fn rows_of_another_run_are_refused() {
    let mut other = facts();
    other.scenarios[0] = "other".to_owned();
    let bytes = file();
    let error = rebuild(bytes.split(|byte| *byte == b'\n'), other, &[]).unwrap_err();
    assert!(matches!(error, ReportError::UnknownName { kind: "scenario", .. }), "{error}");
}

#[test]
fn an_empty_file_is_a_summary_of_nothing() {
    let nothing = rebuilt(b"");
    assert_eq!(nothing.accounting().scheduled, 0);
    assert_eq!(nothing.health.sink_written, InstrumentHealth::default().sink_written);
}
