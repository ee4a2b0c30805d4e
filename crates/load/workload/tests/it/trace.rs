//! Small traces, good and bad.

use std::io::Cursor;
use std::sync::Arc;

use plimsoll_measure::{ConversationKey, IdSeed, Moment, Nanos, Seed};
use plimsoll_protocol::{Dialect, Encoder, EncoderOptions, RequestContent, Turn};
use plimsoll_workload::{
    CacheMode, PrefixPool, ScenarioSpec, SystemPrompt, Trace, TraceRow, TraceSpec, Workload,
    WorkloadError,
};
use proptest::prelude::*;

use crate::support::{chat, common, last_text, scenario, tokens, traced};

const HEADER: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

fn spec(format: &str) -> TraceSpec {
    TraceSpec { file: "some.trace".into(), format: Some(format.to_owned()), ..TraceSpec::default() }
}

/// A trace of this text.
fn parse(spec: &TraceSpec, text: &[u8]) -> Result<Trace, WorkloadError> {
    Trace::parse(spec, Cursor::new(text.to_vec()))
}

fn azure(rows: &[&str]) -> Result<Trace, WorkloadError> {
    let text = format!("{HEADER}\n{}", rows.join("\n"));
    parse(&spec("azure"), text.as_bytes())
}

fn mooncake(lines: &[&str]) -> Result<Trace, WorkloadError> {
    parse(&spec("mooncake"), lines.join("\n").as_bytes())
}

fn offsets(trace: &Trace) -> Vec<u64> {
    trace.offsets().iter().map(|offset| offset.as_u64()).collect()
}

fn lengths(trace: &Trace) -> Vec<(u32, u32)> {
    (0..).map_while(|row| trace.row(row).map(|row| (row.input_tokens, row.output_tokens))).collect()
}

#[test]
fn times_count_from_the_first_row_across_midnights_and_months() {
    let trace = azure(&[
        "2023-12-31 23:59:59.9999990,1,2",
        "2024-01-01 00:00:00.0000000,3,4",
        "2024-02-29 12:00:00.5000000,5,6",
        "2024-03-01 00:00:00.0000000,7,8",
    ])
    .unwrap();
    let day = 86_400_000_000_000;
    assert_eq!(
        offsets(&trace),
        [0, 1_000, 59 * day + day / 2 + 500_001_000, 60 * day + 1_000],
        "31 days of January and 29 of February, to the microsecond"
    );
    assert_eq!(lengths(&trace), [(1, 2), (3, 4), (5, 6), (7, 8)]);
}

#[test]
fn line_ends_byte_order_marks_and_blank_lines_are_ignored() {
    let text = format!(
        "\u{feff}{HEADER}\r\n2023-01-01 00:00:00.0,1,2\r\n2023-01-01 00:00:01.0,3,4\r\n\r\n"
    );
    let trace = parse(&spec("azure"), text.as_bytes()).unwrap();
    assert_eq!(lengths(&trace), [(1, 2), (3, 4)]);
}

#[test]
fn rows_are_sorted_by_time_and_equal_times_keep_their_order() {
    let trace = azure(&[
        "2023-01-01 00:00:05,3,1",
        "2023-01-01 00:00:01,1,1",
        "2023-01-01 00:00:05,4,1",
        "2023-01-01 00:00:02,2,1",
    ])
    .unwrap();
    assert_eq!(lengths(&trace), [(1, 1), (2, 1), (3, 1), (4, 1)]);
    assert_eq!(offsets(&trace), [0, 1_000_000_000, 4_000_000_000, 4_000_000_000]);
}

#[test]
fn a_window_is_cut_out_in_recorded_time_and_then_sped_up() {
    let rows: Vec<_> = (0..60).map(|s| format!("2023-01-01 00:00:{s:02}.5,{},1", s + 1)).collect();
    let text = format!("{HEADER}\n{}", rows.join("\n"));
    let secs = |secs| Some(Nanos::from_secs(secs));
    let ms = 1_000_000;
    for (sentence, from, to, time_scale, first, count, start, last) in [
        ("all of it", None, None, 1.0, 1, 60, 0, 59_000),
        ("ten times as fast", None, None, 10.0, 1, 60, 0, 5_900),
        ("half as fast", None, None, 0.5, 1, 60, 0, 118_000),
        ("from a row on", secs(20), None, 1.0, 21, 40, 0, 39_000),
        ("up to a row, without it", None, secs(20), 2.0, 1, 20, 0, 9_500),
        ("a part", secs(10), secs(20), 10.0, 11, 10, 0, 900),
        ("between two rows", Some(Nanos::from_millis(9_500)), secs(20), 1.0, 11, 10, 500, 9_500),
        ("beyond the end", secs(50), secs(90), 1.0, 51, 10, 0, 9_000),
    ] {
        let spec = TraceSpec { from, to, time_scale: Some(time_scale), ..spec("azure") };
        let trace = parse(&spec, text.as_bytes()).unwrap();
        let seen = offsets(&trace);
        assert_eq!((lengths(&trace)[0].0, seen.len()), (first, count), "{sentence}");
        assert_eq!((seen[0], seen[count - 1]), (start * ms, last * ms), "{sentence}");
    }
}

#[test]
fn windows_that_cannot_be_played_are_refused() {
    let secs = |secs| Some(Nanos::from_secs(secs));
    let base = spec("azure");
    for (spec, part) in [
        (TraceSpec { time_scale: Some(0.0), ..base.clone() }, "invalid time_scale 0"),
        (TraceSpec { time_scale: Some(-2.0), ..base.clone() }, "invalid time_scale -2"),
        (TraceSpec { time_scale: Some(f64::NAN), ..base.clone() }, "invalid time_scale NaN"),
        (
            TraceSpec { from: secs(5), to: secs(5), ..base.clone() },
            "the window from 5s to 5s is empty",
        ),
        (
            TraceSpec { from: secs(5), ..base },
            "no session starts in the window from 5s: the recording lasts 1s",
        ),
    ] {
        let text = format!("{HEADER}\n2023-01-01 00:00:00,1,1\n2023-01-01 00:00:01,1,1");
        let message = parse(&spec, text.as_bytes()).unwrap_err().to_string();
        assert!(message.starts_with("some.trace: ") && message.contains(part), "{message}");
    }
    let message = azure(&[]).unwrap_err().to_string();
    assert!(message.starts_with("some.trace: has no request to send"), "{message}");
}

#[test]
fn bad_lines_are_reported_with_number_cause_and_fix() {
    let good = "2023-01-01 00:00:00,1,1";
    for (row, part) in [
        ("2023-01-01 00:00:00,1", "found record with 2 fields"),
        ("2023-01-01 00:00:00,1,1,1", "found record with 4 fields"),
        ("yesterday,1,1", "`TIMESTAMP` is \"yesterday\", not a time"),
        ("2023-02-30 00:00:00,1,1", "`TIMESTAMP` is \"2023-02-30 00:00:00\", not a time"),
        ("2023-01-01 00:00:00,a,1", "`ContextTokens` is \"a\", not a count"),
        ("2023-01-01 00:00:00,1,1.5", "`GeneratedTokens` is \"1.5\", not a count"),
    ] {
        let message = azure(&[good, row, good]).unwrap_err().to_string();
        assert!(message.starts_with("some.trace: line 3: "), "{message}");
        assert!(message.contains(part) && message.contains("--skip-broken"), "{row}: {message}");
    }
    let large = azure(&[good, "2023-01-01 00:00:00,10000001,1"]).unwrap_err().to_string();
    assert!(large.contains("10000001 tokens; at most 10000000"), "{large}");
    let line =
        "{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 1, \"hash_ids\": [1, 2]}";
    for (row, part) in [
        ("{", "is not valid JSON"),
        ("{\"timestamp\": 0}", "has neither messages, a body, a URL nor a length"),
        (&line.replace("600", "-1"), "`input_length` is -1, not a count"),
    ] {
        let message = mooncake(&[line, row, line]).unwrap_err().to_string();
        assert!(message.starts_with("some.trace: line 2: "), "{message}");
        assert!(message.contains(part), "{row}: {message}");
    }
}

#[test]
fn mooncake_may_lack_ids_have_fractions_and_blocks_of_any_usual_size() {
    let row = |time: &str, input: u32, ids: &str| {
        format!("{{\"timestamp\": {time}, \"input_length\": {input}, \"output_length\": 3.0{ids}}}")
    };
    let plain = row("1.5", 900, "");
    let trace = mooncake(&[&row("0", 300, ""), &plain]).unwrap();
    assert_eq!(offsets(&trace), [0, 1_500_000]);
    assert_eq!(trace.row(1).map(|row| (row.output_tokens, row.hash_ids.len())), Some((3, 0)));
    let small =
        [row("0", 48, ", \"hash_ids\": [1, 2, 3]"), row("0", 40, ", \"hash_ids\": [1, 2, 4]")];
    let trace = mooncake(&[&small[0], &small[1]]).unwrap();
    let row_of = |index| trace.row(index).map(|row| (row.hash_ids.to_vec(), row.block_tokens));
    assert_eq!(row_of(0), Some((vec![1, 2, 3], 16)));
    // Two blocks of 16 tokens are 128 bytes, and the cut third one is another.
    let spec = ScenarioSpec { cache_mode: CacheMode::Allow, ..scenario() };
    let workload = traced(&spec, &trace);
    let text = |row| last_text(&workload.conversation(ConversationKey::arrival(row), Some(row)));
    let [one, other] = [0, 1].map(text);
    assert_eq!([&one, &other].map(|text| tokens(text)), [48, 40]);
    assert!((128..160).contains(&common(&one, &other)), "{}", common(&one, &other));
    // Three ids for 600 tokens, and three for 2,000, are of no usual size.
    let odd =
        [row("0", 600, ", \"hash_ids\": [1, 2, 4]"), row("0", 2_000, ", \"hash_ids\": [1, 2, 3]")];
    let message = mooncake(&[&odd[0], &odd[1]]).unwrap_err().to_string();
    assert!(message.contains("write `block_size` of the trace"), "{message}");
    let mooncake = crate::trace::spec("mooncake");
    let sized = TraceSpec { block_size: Some(300), ..mooncake };
    let text = format!("{}\n{}\n", odd[0], odd[1]);
    let trace = parse(&sized, text.as_bytes()).unwrap();
    assert_eq!(trace.row(1).map(|row| (row.hash_ids.len(), row.block_tokens)), Some((7, 300)));
}

/// As `AIPerf` reads them: the prompt itself, which goes out as it is.
#[test]
fn a_row_may_have_its_prompt_in_place_of_a_length() {
    let trace = mooncake(&[
        r#"{"timestamp": 0, "text_input": "Why is the sky blue? \u00e4", "output_length": 9}"#,
        r#"{"timestamp": 5, "input_length": 7, "output_length": 3}"#,
        r#"{"timestamp": 6, "text_input": "x", "hash_ids": [1, 2], "output_length": 3}"#,
    ])
    .unwrap();
    assert_eq!(lengths(&trace), [(6, 9), (7, 3), (1, 3)]);
    let spec = ScenarioSpec { cache_mode: CacheMode::Allow, ..scenario() };
    let workload = traced(&spec, &trace);
    let text = |row| last_text(&workload.conversation(ConversationKey::arrival(row), Some(row)));
    assert_eq!([text(0), text(2)], ["Why is the sky blue? \u{e4}", "x"]);
}

/// The published example of the Qwen-Bailian usage traces: seconds, and 16 tokens for each id.
#[test]
fn bailian_traces_have_seconds_and_small_blocks() {
    let rows = [
        r#"{"chat_id": 159, "parent_chat_id": -1, "timestamp": 61.114, "input_length": 33, "output_length": 132, "type": "text", "turn": 1, "hash_ids": [1089, 1090, 1091]}"#,
        r#"{"chat_id": 160, "parent_chat_id": -1, "timestamp": 61.5, "input_length": 40, "output_length": 1, "type": "search", "turn": 2, "hash_ids": [1089, 1090]}"#,
    ];
    let spec = spec("bailian");
    let trace = parse(&spec, rows.join("\n").as_bytes()).unwrap();
    assert_eq!(offsets(&trace), [0, 386_000_000]);
    assert_eq!(lengths(&trace), [(33, 132), (40, 1)]);
    let [one, other] = [0, 1].map(|row| trace.row(row).unwrap());
    assert_eq!((one.block_tokens, one.hash_ids), (16, &[1089, 1090, 1091][..]));
    // Text without an id belongs to one row only.
    assert_eq!((other.hash_ids.len(), &other.hash_ids[..2]), (3, &[1089, 1090][..]));
    assert_ne!(other.hash_ids[2], 1091);
}

#[test]
fn burstgpt_has_its_columns_in_any_order() {
    let header = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type";
    let text =
        format!("{header}\n5,ChatGPT,472,18,490,Conversation log\n45.25,GPT-4,9,0,9,API log\n");
    let trace = parse(&spec("burstgpt"), text.as_bytes()).unwrap();
    assert_eq!(offsets(&trace), [0, 40_250_000_000]);
    assert_eq!(lengths(&trace), [(472, 18), (9, 0)]);
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let missing = TraceSpec { file: "missing.csv".into(), ..spec("azure") };
    let folder = tempfile::tempdir().unwrap();
    let message = Trace::load(&missing, folder.path()).unwrap_err().to_string();
    assert!(message.contains("missing.csv: cannot be read"), "{message}");
}

#[test]
fn a_row_sets_the_lengths_of_one_turn() {
    let trace = azure(&["2023-01-01 00:00:00,374,44", "2023-01-01 00:00:01,0,0"]).unwrap();
    let spec = ScenarioSpec {
        turns: 5,
        system: Some(SystemPrompt::Synthetic { approx_tokens: 100 }),
        prefix_pool: Some(PrefixPool { share: 1.0, count: 2, approx_tokens: 100 }),
        cache_mode: CacheMode::Bust,
        ..scenario()
    };
    let workload = traced(&spec, &trace);
    let talk = workload.conversation(ConversationKey::arrival(5), Some(0));
    let (system, lines) = chat(&talk);
    assert_eq!((system, lines.len(), talk.turns()), (None, 1, Some(1)));
    assert_eq!(tokens(&lines[0].1), 374);
    assert_eq!(lines[0].1[20..24], *"--- ");
    assert_eq!(talk.turn().unwrap().max_tokens, Some(44));
    assert!(talk.turn().unwrap().stream);
    let empty = workload.conversation(ConversationKey::arrival(6), Some(1));
    assert_eq!((tokens(&last_text(&empty)), empty.turn().unwrap().max_tokens), (1, Some(1)));
}

#[test]
fn without_a_row_the_lengths_are_those_of_the_scenario() {
    let trace = azure(&["2023-01-01 00:00:00,374,44"]).unwrap();
    let workload = traced(&scenario(), &trace);
    for row in [None, Some(1)] {
        let talk = workload.conversation(ConversationKey::arrival(0), row);
        assert_eq!(
            (last_text(&talk).as_str(), talk.turn().unwrap().max_tokens),
            ("hello", Some(64))
        );
    }
}

#[test]
fn several_scenarios_share_a_trace_by_weight() {
    let trace = azure(&["2023-01-01 00:00:00,50,5"]).unwrap();
    let quiet = ScenarioSpec { stream: false, weight: 3.0, ..scenario() };
    let embed = ScenarioSpec { protocol: Dialect::OpenaiEmbeddings, ..scenario() };
    let specs = [scenario(), quiet, embed];
    let workload =
        Workload::new(&specs, Some(Arc::new(trace)), None, Seed(1), IdSeed::default()).unwrap();
    let mut counts = [0; 3];
    for seq in 0..5_000 {
        let talk = workload.conversation(ConversationKey::arrival(seq), Some(0));
        counts[talk.scenario().index()] += 1;
        let turn = talk.turn().unwrap();
        let length = match turn.content {
            RequestContent::Chat { messages, .. } => messages[0].text.len(),
            RequestContent::Embed { inputs } => inputs[0].len(),
            _ => 0,
        };
        assert_eq!(length, 199);
    }
    assert!(
        [1_000, 3_000, 1_000].iter().zip(counts).all(|(n, c)| i32::abs(n - c) < 140),
        "{counts:?}"
    );
}

#[test]
fn equal_block_ids_are_equal_text_and_others_are_not() {
    let trace = mooncake(&[
        r#"{"timestamp": 0, "input_length": 1300, "output_length": 9, "hash_ids": [7, 8, 9]}"#,
        r#"{"timestamp": 5, "input_length": 1536, "output_length": 9, "hash_ids": [7, 8, 10]}"#,
        r#"{"timestamp": 5, "input_length": 1400, "output_length": 9, "hash_ids": [11, 8, 9]}"#,
    ])
    .unwrap();
    assert_eq!(offsets(&trace), [0, 5_000_000, 5_000_000]);
    let ids: &[u64] = &[7, 8, 9];
    let row = TraceRow { input_tokens: 1_300, output_tokens: 9, hash_ids: ids, block_tokens: 512 };
    assert_eq!(trace.row(0), Some(row));
    let spec = ScenarioSpec { cache_mode: CacheMode::Bust, ..scenario() };
    let workload = traced(&spec, &trace);
    let text = |row| last_text(&workload.conversation(ConversationKey::arrival(row), Some(row)));
    let [one, other, third] = [0, 1, 2].map(text);
    assert_eq!([&one, &other, &third].map(|text| tokens(text)), [1_300, 1_536, 1_400]);
    let shared = common(&one, &other);
    assert!((4_096..4_160).contains(&shared), "two blocks of 2048 bytes: {shared}");
    assert!((24..80).contains(&common(&one, &third)), "the marker of the run, and chance");
    assert_eq!(one[2_048..], third[2_048..5_199], "block 8, and the part of 9");
}

#[test]
fn blocks_are_shared_within_a_run_and_not_with_another_unless_caches_are_allowed() {
    let row =
        r#"{"timestamp": 0, "input_length": 1300, "output_length": 9, "hash_ids": [7, 8, 9]}"#;
    let trace = mooncake(&[row, row]).unwrap();
    for (cache_mode, is_shared) in [(CacheMode::Bust, false), (CacheMode::Allow, true)] {
        let spec = ScenarioSpec { cache_mode, ..scenario() };
        let text = |run: &str, row| {
            let ids = IdSeed::new(Seed(42), run);
            let workload = Workload::new(
                std::slice::from_ref(&spec),
                Some(Arc::new(trace.clone())),
                None,
                Seed(42),
                ids,
            )
            .unwrap();
            last_text(&workload.conversation(ConversationKey::arrival(row), Some(row)))
        };
        assert_eq!(text("a", 0), text("a", 1));
        let (one, other) = (text("a", 0), text("b", 0));
        assert_eq!((tokens(&one), tokens(&other)), (1_300, 1_300));
        assert_eq!(common(&one, &other) < 24, !is_shared, "{cache_mode:?}");
        assert_eq!(one[24..], other[24..], "the text follows from the seed");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_is_refused_or_read_without_a_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        lines in "(TIMESTAMP,ContextTokens,GeneratedTokens\n)?([0-9 :.,-]{0,40}\n){0,5}",
    ) {
        for format in ["azure", "mooncake", "burstgpt"] {
            for text in [bytes.as_slice(), lines.as_bytes()] {
                let trace = parse(&spec(format), text);
                prop_assert!(trace.map_or(true, |trace| trace.row(0).is_some()));
            }
        }
    }

    #[test]
    fn any_order_of_the_rows_gives_the_same_trace(
        rows in Just((0..40u32).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let lines: Vec<_> = rows.iter().map(|n: &u32| {
            format!("{{\"timestamp\": {}, \"input_length\": {n}, \"output_length\": 1, \"hash_ids\": {:?}}}",
                n * 3, vec![n; n.div_ceil(512) as usize])
        }).collect();
        let trace = mooncake(&lines.iter().map(String::as_str).collect::<Vec<_>>()).unwrap();
        prop_assert!(lengths(&trace).iter().map(|(input, _)| *input).eq(0..40));
        prop_assert!(offsets(&trace).iter().copied().eq((0..40).map(|n| n * 3_000_000)));
        let ids = |row| trace.row(row).map(|row| row.hash_ids.to_vec());
        prop_assert!((1..40).all(|n| ids(n) == Some(vec![n])), "ids stay with their row");
    }
}

/// The body of a conversation's current turn.
fn body_of(turn: &Turn<'_>, dialect: Dialect) -> serde_json::Value {
    let mut body = Vec::new();
    let encoder = Encoder::new(dialect, &EncoderOptions::default()).unwrap();
    encoder.encode_body(turn, &mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_turn_that_continues_a_bare_text_repeats_it() {
    let text = r#"{"plimsoll_traffic": 1}
        {"id": "a", "session": "s", "dialect": "openai-chat", "messages": [{"role": "user", "content": "One."}]}
        {"id": "b", "session": "s", "continues": "a", "messages": [{"role": "user", "content": "Three."}]}"#;
    let trace = parse(&spec("plimsoll"), text.as_bytes()).unwrap();
    let workload = traced(&scenario(), &trace);
    let mut talk = workload.conversation(ConversationKey::arrival(0), Some(0));
    talk.note_end(Moment::default(), "Two.", &[]);
    talk.advance(Some("Two."));
    talk.restore_text();
    let body = body_of(&talk.turn().unwrap(), Dialect::OpenaiChat);
    let contents: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|one| &one["content"]).collect();
    assert_eq!(contents, ["One.", "Two.", "Three."]);
}

#[test]
fn requests_of_another_protocol_are_counted_by_a_scenario_of_their_own() {
    let text = r#"{"plimsoll_traffic": 1}
        {"id": "a", "session": "s", "dialect": "openai-chat", "model": "m", "messages": [{"role": "user", "content": "One."}]}
        {"id": "b", "session": "s", "after": [{"id": "a"}], "dialect": "openai-embeddings", "model": "e", "body": {"input": "Two."}}"#;
    let trace = parse(&spec("plimsoll"), text.as_bytes()).unwrap();
    let scenarios = plimsoll_workload::with_parts(vec![scenario()], Some(&trace));
    let names: Vec<_> = scenarios.iter().map(|spec| (&*spec.name, spec.protocol)).collect();
    let own = scenario().name;
    let other = format!("{own}/openai-embeddings");
    let expected = [(&*own, Dialect::OpenaiChat), (&*other, Dialect::OpenaiEmbeddings)];
    assert_eq!(names, expected);
    let workload =
        Workload::new(&scenarios, Some(Arc::new(trace)), None, Seed(1), IdSeed::default()).unwrap();
    let mut talk = workload.conversation(ConversationKey::arrival(0), Some(0));
    assert_eq!(talk.scenario_of_turn().index(), 0);
    talk.note_end(Moment::default(), "", &[]);
    talk.advance(None);
    talk.restore_text();
    assert_eq!(talk.scenario_of_turn().index(), 1);
    let body = body_of(&talk.turn().unwrap(), Dialect::OpenaiEmbeddings);
    assert_eq!(body, serde_json::json!({ "model": "e", "input": "Two." }));
    // No request has the protocol of the scenario.
    let messages = ScenarioSpec { protocol: Dialect::AnthropicMessages, ..scenario() };
    let trace = parse(&spec("plimsoll"), text.as_bytes()).unwrap();
    let refused =
        Workload::new(&[messages], Some(Arc::new(trace)), None, Seed(1), IdSeed::default());
    let why = refused.unwrap_err().to_string();
    assert!(why.contains("but none for anthropic-messages"), "{why}");
}
