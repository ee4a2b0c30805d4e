//! A summary from the rows of a killed run.

use plimsoll_metrics::{InstrumentHealth, Metric, RunEnd, RunSummary};
use plimsoll_run_files::{Rebuilt, RowContext, RowNames, RunFileError, rebuild, write_row};

use crate::support::{health, metadata, samples, summary};

/// The `results.jsonl` of the example run.
fn file() -> Vec<u8> {
    file_with_weight(1)
}

fn file_with_weight(weight: u32) -> Vec<u8> {
    file_of(weight, 0)
}

/// Each row counts `weight` times, and lies `later_ns` after the moment of its sample.
fn file_of(weight: u32, later_ns: u64) -> Vec<u8> {
    let metadata = metadata();
    let mut out = Vec::new();
    for sample in samples() {
        let names = RowNames::new(
            &metadata.scenarios[sample.scenario.index()],
            None,
            &metadata.targets[sample.target.index()].name,
            &metadata.stages[sample.stage.index()].name,
        );
        let context = RowContext {
            conversation: "c",
            request_id: "c-0",
            names: &names,
            epoch_unix_ns: metadata.run.started_unix_ns + later_ns,
            weight,
            events: None,
            headers: &[],
            server_parts: &[],
            error_detail: None,
            decoded_bytes: None,
            pair: None,
        };
        write_row(&sample, &context, &mut out);
    }
    out
}

fn rebuilt(file: &[u8]) -> RunSummary {
    rebuild(file.split(|byte| *byte == b'\n'), metadata(), &[]).unwrap().summary
}

#[test]
fn the_rows_give_the_numbers_of_the_run() {
    let (rebuilt, whole) = (rebuilt(&file()), summary(metadata(), health()));
    assert_eq!(rebuilt.results.total.counters, whole.results.total.counters);
    assert_eq!(rebuilt.results.total.errors, whole.results.total.errors);
    for metric in Metric::ALL.into_iter().filter(|metric| *metric != Metric::Itl) {
        assert_eq!(
            rebuilt.results.total.distribution(metric),
            whole.results.total.distribution(metric),
            "{metric:?}"
        );
    }
    assert_eq!(rebuilt.results.total.distribution(Metric::Itl), None);
}

/// The load begins some time after the run's clock, as connections are opened first.
#[test]
fn rates_count_over_the_time_of_the_load_wherever_it_began() {
    let rows = file_of(1, 270_000_000);
    let (mut began, whole) = (metadata(), summary(metadata(), health()));
    began.stages.iter_mut().for_each(|stage| stage.start_s += 0.27);
    let rows = rows.split(|byte| *byte == b'\n');
    let rates = |found: &RunSummary| {
        found.results.by_stage.iter().map(|stage| stage.rates).collect::<Vec<_>>()
    };
    let Rebuilt { summary: known, record } = rebuild(rows.clone(), began, &[]).unwrap();
    assert_eq!(rates(&known), rates(&whole));
    assert_eq!(record.timeline.stages[1].start_s.to_string(), "1");
    // Without the start, requests slip into the next stage.
    let unknown = rebuild(rows, metadata(), &[]).unwrap().summary;
    assert_ne!(rates(&unknown), rates(&whole));
}

/// Answers of a stage that come in the next one are no evidence of how much was sent in that.
#[test]
fn a_stage_without_rows_of_its_own_has_no_rates() {
    let bytes = file();
    let rows = bytes.split(|byte| *byte == b'\n').take(550);
    let mut began = metadata();
    // The second stage ends 1 ms before the last answer.
    let last = samples()[..550].iter().filter_map(|sample| sample.timeline.finished).max().unwrap();
    began.stages[1].duration_s = last.as_nanos() as f64 / 1e9 - 1.001;
    began.stages[2].start_s = began.stages[1].duration_s + 1.0;
    let found = rebuild(rows, began, &[]).unwrap().summary;
    let third = &found.results.by_stage[2];
    assert!(third.counters.completed_in_stage > 0, "{:?}", third.counters);
    assert_eq!(third.rates.throughput_per_s, None);
    assert_eq!(third.token_rate(), None);
}

#[test]
fn a_rebuilt_summary_has_a_note_and_is_never_valid() {
    let rebuilt = rebuilt(&file());
    assert_eq!(rebuilt.metadata.run.ended, RunEnd::Unfinished);
    assert!(!rebuilt.is_valid());
    let notes = rebuilt.metadata.notes.join("\n");
    assert!(notes.contains("rebuilt from results.jsonl (the run did not finish)"), "{notes}");
    assert!(notes.contains("ITL is not available"), "{notes}");
}

#[test]
fn a_cut_last_line_is_left_out_and_other_bad_lines_are_counted() {
    let mut bytes = file();
    bytes.truncate(bytes.len() - 20);
    let cut = rebuilt(&bytes);
    assert_eq!(cut.results.accounting().scheduled, samples().len() as u64 - 1);
    assert!(
        cut.metadata.notes.iter().any(|note| note.starts_with("the last line")),
        "{:?}",
        cut.metadata.notes
    );
    assert!(
        !cut.metadata.notes.iter().any(|note| note.contains("other lines")),
        "{:?}",
        cut.metadata.notes
    );

    let mangled = [b"garbage\n{\"half\":\n".as_slice(), &bytes].concat();
    let notes = rebuilt(&mangled).metadata.notes;
    assert!(notes.iter().any(|note| note.starts_with("2 other lines")), "{notes:?}");
}

#[test]
fn a_stage_that_was_cut_off_lasts_until_its_last_response() {
    let bytes = file();
    // 50 warm-up turns, and half of the stage that begins after a second.
    let early = bytes.split(|byte| *byte == b'\n').take(550);
    let last = samples()[..550].iter().filter_map(|sample| sample.timeline.finished).max().unwrap();
    let cut = rebuild(early, metadata(), &[]).unwrap().summary;
    let lengths: Vec<_> = cut.metadata.stages.iter().map(|stage| stage.duration_s).collect();
    assert!((lengths[1] - (last.as_nanos() as f64 / 1e9 - 1.0)).abs() < 1e-9, "{lengths:?}");
    assert_eq!(lengths[2].to_string(), "0");
}

#[test]
fn rows_of_a_sample_count_by_their_weight() {
    let (one, four) = (rebuilt(&file()), rebuilt(&file_with_weight(4)));
    assert_eq!(four.results.accounting().scheduled, 4 * one.results.accounting().scheduled);
    assert_eq!(four.results.accounting().rejected, 80);
    let estimated =
        |summary: &RunSummary| summary.metadata.notes.iter().any(|note| note.contains("estimates"));
    assert!(estimated(&four) && !estimated(&one), "{:?}", four.metadata.notes);
}

#[test]
fn rows_of_another_run_are_refused() {
    let mut other = metadata();
    other.scenarios[0] = "other".to_owned();
    let bytes = file();
    let error = rebuild(bytes.split(|byte| *byte == b'\n'), other, &[]).unwrap_err();
    assert!(matches!(error, RunFileError::UnknownName { kind: "scenario", .. }), "{error}");
}

#[test]
fn an_empty_file_is_a_summary_of_nothing() {
    let nothing = rebuilt(b"");
    assert_eq!(nothing.results.accounting().scheduled, 0);
    assert_eq!(nothing.health.sink_written, InstrumentHealth::default().sink_written);
}
