//! The beginnings of public traces (`tests/data`). Expected values were computed with a few lines
//! of Python.

use std::path::PathBuf;

use plimsoll_measure::{ConversationKey, Nanos};
use plimsoll_workload::{CacheMode, ScenarioSpec, Trace, TraceRow, TraceSpec};

use crate::support::{common, last_text, scenario, tokens, traced};

fn trace(file: &str, format: &str, time_scale: f64, to: Option<Nanos>) -> Trace {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let format = Some(format.to_owned());
    let (file, time_scale) = (file.into(), Some(time_scale));
    let spec = TraceSpec { file, format, time_scale, to, ..TraceSpec::default() };
    Trace::load(&spec, &folder).unwrap()
}

fn rows(trace: &Trace) -> Vec<TraceRow<'_>> {
    (0..).map_while(|row| trace.row(row)).collect()
}

fn sums(rows: &[TraceRow<'_>]) -> (usize, u64, u64, usize) {
    let input = rows.iter().map(|row| u64::from(row.input_tokens)).sum();
    let output = rows.iter().map(|row| u64::from(row.output_tokens)).sum();
    let ids = rows.iter().map(|row| row.hash_ids.len()).sum();
    (rows.len(), input, output, ids)
}

#[test]
fn the_azure_traces_are_read_completely() {
    for (file, expected, length) in [
        ("azure_llm_2023_conv_600s.csv", (2_867, 3_287_402, 746_194, 0), 599_971_336_000),
        ("azure_llm_2023_code_300s.csv", (781, 1_673_218, 22_389, 0), 299_957_393_000),
    ] {
        let trace = trace(file, "azure", 1.0, None);
        assert_eq!(sums(&rows(&trace)), expected, "{file}");
        assert_eq!(trace.offsets().last(), Some(&Nanos::new(length)), "{file}");
    }
}

#[test]
fn ten_minutes_of_azure_conversations_are_played_in_one() {
    let to = Some(Nanos::from_secs(600));
    let trace = trace("azure_llm_2023_conv_600s.csv", "azure", 10.0, to);
    let offsets = trace.offsets();
    assert_eq!(offsets.len(), 2_867);
    // 18:15:46.6805900, 18:15:50.9951690, and the last row 599.971336 s after the first.
    let played = [offsets[0], offsets[1], offsets[2_866]].map(Nanos::as_u64);
    assert_eq!(played, [0, 431_457_900, 59_997_133_600]);
    let spec = ScenarioSpec { cache_mode: CacheMode::Bust, ..scenario() };
    let workload = traced(&spec, &trace);
    for (row, input, output) in [(0, 374, 44), (1, 396, 109), (2_866, 1_143, 396)] {
        let talk = workload.conversation(ConversationKey::arrival(row), Some(row));
        assert_eq!(
            (tokens(&last_text(&talk)), talk.turn().unwrap().max_tokens),
            (input, Some(output))
        );
    }
}

#[test]
fn the_mooncake_trace_keeps_its_shared_prefixes() {
    let trace = trace("mooncake_conversation_180s.jsonl", "mooncake", 1.0, None);
    assert_eq!(sums(&rows(&trace)), (556, 7_698_246, 196_962, 15_312));
    assert_eq!(trace.offsets().last(), Some(&Nanos::from_millis(179_999)));
    let workload = traced(&scenario(), &trace);
    let text = |row| last_text(&workload.conversation(ConversationKey::arrival(row), Some(row)));
    // Blocks that two rows have in common at their start.
    for (one, other, blocks) in [(134, 10, 26), (177, 44, 18), (180, 41, 27), (0, 1, 1)] {
        let shared = common(&text(one), &text(other));
        assert!((blocks * 2_048..blocks * 2_048 + 64).contains(&shared), "{one} {other}: {shared}");
    }
    for row in 0..500 {
        let expected = trace.row(row).unwrap().input_tokens as usize;
        assert_eq!(tokens(&text(row)), expected, "row {row}");
    }
}
