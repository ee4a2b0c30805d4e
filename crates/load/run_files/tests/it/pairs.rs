//! `pairs.bin`: written and read back.

use plimsoll_measure::{
    Block, ErrorClass, FinishReason, GeneratorShare, Nanos, Outcome, PairedTurn, PolicyDecision,
    ScenarioId, StageId,
};
use plimsoll_run_files::pairs::{PairsHeader, PairsWriter, read_pairs};
use proptest::option::of;
use proptest::prelude::*;

const TARGETS: usize = 3;

fn header() -> PairsHeader {
    let targets = ["direct", "direct'", "é"].map(str::to_owned).into();
    PairsHeader { targets, seed: 7, started_unix_ns: 1_763_688_225_000_000_000 }
}

fn file(blocks: &[Block], most: u64) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = PairsWriter::with_most(&mut out, header(), most).unwrap();
    for some in blocks.chunks(10) {
        writer.write(some).unwrap();
    }
    out
}

fn turn() -> impl Strategy<Value = PairedTurn> {
    let outcome = prop_oneof![
        Just(Outcome::Completed),
        (400u16..500).prop_map(Outcome::Rejected),
        (0..ErrorClass::ALL.len()).prop_map(|i| Outcome::Failed(ErrorClass::ALL[i])),
        Just(Outcome::TimedOut),
        Just(Outcome::Cancelled),
        Just(Outcome::InFlight),
        Just(Outcome::NeverSent),
    ];
    let decision = || of((0..PolicyDecision::COUNT).prop_map(|i| PolicyDecision::ALL[i]));
    let parts = prop::array::uniform7(nanos()).prop_map(GeneratorShare::from_parts);
    let times = (of(nanos()), of(nanos()), of(nanos()), of(nanos()), of(nanos()), parts);
    let counts = (any::<u8>(), any::<u32>(), any::<u32>(), any::<u32>(), any::<bool>());
    (outcome, decision(), decision(), times, counts).prop_map(
        |(outcome, expected, decision, times, counts)| {
            let (response, service, ttft, last_token, longest_gap, generator) = times;
            let (position, gaps, output_tokens, input_tokens, reused) = counts;
            PairedTurn {
                position,
                outcome,
                response,
                service,
                ttft,
                last_token,
                longest_gap,
                gaps,
                generator,
                expected,
                decision,
                output_tokens,
                input_tokens,
                status: if let Outcome::Rejected(status) = outcome { status } else { 0 },
                finish_reason: FinishReason::ALL.get(usize::from(position)).copied(),
                content_bytes: gaps ^ input_tokens,
                content_digest: input_tokens.rotate_left(7),
                model: output_tokens ^ 5,
                reasoning: position % 2 == 0,
                tool_calls: position % 3 == 0,
                reused,
            }
        },
    )
}

fn nanos() -> impl Strategy<Value = Nanos> {
    (0u64..400_000_000_000_000).prop_map(Nanos::new)
}

fn block() -> impl Strategy<Value = Block> {
    let turns = prop::collection::vec(of(turn()), TARGETS);
    let ids = (any::<u64>(), any::<u16>(), any::<u16>(), any::<u16>());
    (ids, 0u64..9_000_000_000_000, of(0u32..1_000), turns).prop_map(
        |((index, turn, stage, scenario), start, window, turns)| Block {
            index,
            turn,
            stage: StageId(stage),
            scenario: ScenarioId(scenario),
            start: Nanos::new(start),
            window,
            turns,
        },
    )
}

fn plain(start: Nanos) -> Block {
    Block {
        index: start.as_u64() / 1_000_000,
        turn: 0,
        stage: StageId(0),
        scenario: ScenarioId(0),
        start,
        window: None,
        turns: vec![None; TARGETS],
    }
}

/// The layout, byte by byte, as `docs/reference/pairs.md` has it.
#[test]
fn a_record_stands_where_the_documentation_says() {
    let turn = PairedTurn {
        position: 2,
        outcome: Outcome::Rejected(429),
        response: Some(Nanos::new(5)),
        service: None,
        ttft: None,
        last_token: None,
        longest_gap: None,
        gaps: 9,
        generator: GeneratorShare::from_parts([6, 7, 8, 9, 10, 11, 12].map(Nanos::new)),
        expected: Some(PolicyDecision::Block),
        decision: None,
        output_tokens: 10,
        input_tokens: 11,
        status: 429,
        finish_reason: Some(FinishReason::ToolCalls),
        content_bytes: 12,
        content_digest: 13,
        model: 14,
        reasoning: true,
        tool_calls: true,
        reused: true,
    };
    let block = Block {
        turn: 3,
        window: Some(4),
        turns: vec![None, Some(turn), None],
        ..plain(Nanos::from_millis(8))
    };
    let bytes = file(&[block], 10);
    let names: usize = header().targets.iter().map(|name| 2 + name.len()).sum();
    let classes: usize = ErrorClass::ALL.iter().map(|class| 2 + class.name().len()).sum();
    assert_eq!(&bytes[..8], b"plimpair");
    assert_eq!(bytes[8..16], [2, 0, 0, 0, 3, 0, 160, 1]);
    let record = &bytes[32 + names + 2 + classes..];
    assert_eq!(record.len(), 32 + 3 * 128);
    let number = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().unwrap());
    assert_eq!((number(0), number(8)), (8, 8_000_000));
    assert_eq!(record[16..32], [4, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let turn = &record[32 + 128..];
    assert_eq!(turn[..8], [15, 2, 1, 2, 0, 3, 173, 1]);
    let number = |at: usize| u64::from_le_bytes(turn[at..at + 8].try_into().unwrap());
    assert_eq!((number(8), number(16), number(48), number(96)), (5, u64::MAX, 6, 12));
    assert_eq!(turn[104..120], [9, 0, 0, 0, 10, 0, 0, 0, 11, 0, 0, 0, 12, 0, 0, 0]);
    assert_eq!(turn[120..128], [13, 0, 0, 0, 14, 0, 0, 0]);
}

#[test]
fn of_a_long_run_whole_seconds_are_kept_with_the_same_probability() {
    // 100 blocks a second for 4,000 s, and room for 50,000 of them.
    let blocks: Vec<_> = (0..400_000).map(|n| plain(Nanos::from_millis(n * 10))).collect();
    let bytes = file(&blocks, 50_000);
    let pairs = read_pairs(&mut bytes.as_slice()).unwrap();
    assert!(bytes.len() < 100_000 * (32 + 3 * 128) + 2_000, "{} bytes", bytes.len());
    assert!(pairs.one_in > 1);
    let mut seconds: Vec<_> =
        pairs.blocks.iter().map(|block| block.start.as_u64() / 1_000_000_000).collect();
    assert_eq!(pairs.blocks.len() % 100, 0);
    seconds.dedup();
    assert_eq!(seconds.len() * 100, pairs.blocks.len(), "no second is kept in part");
    let expected = 4_000.0 / f64::from(pairs.one_in);
    let spread = 4.0 * expected.sqrt();
    assert!((seconds.len() as f64 - expected).abs() < spread, "{} of {expected}", seconds.len());
    // Early seconds are not kept more often than late ones.
    let early = seconds.iter().filter(|second| **second < 2_000).count() as f64;
    assert!((early - expected / 2.0).abs() < spread, "{early} of {expected} are early");
}

#[test]
fn what_is_no_such_file_is_refused() {
    let good = file(&[plain(Nanos::ZERO)], 10);
    for (name, bytes) in [
        ("empty", Vec::new()),
        ("another file", b"{}".to_vec()),
        ("a later version", [&good[..8], &[9][..], &good[9..]].concat()),
        ("a cut header", good[..40].to_vec()),
    ] {
        let error = read_pairs(&mut bytes.as_slice()).unwrap_err().to_string();
        assert!(error.starts_with("this version cannot read it"), "{name}: {error}");
    }
}

proptest! {
    #[test]
    fn blocks_read_back_to_the_nanosecond(
        mut blocks in prop::collection::vec(block(), 0..40),
        cut in 1usize..200,
    ) {
        let mut bytes = file(&blocks, 1_000);
        blocks.sort_by_key(|block| (block.start, block.index, block.turn));
        let pairs = read_pairs(&mut bytes.as_slice()).unwrap();
        prop_assert_eq!(&pairs.header, &header());
        prop_assert_eq!((pairs.one_in, pairs.truncated), (1, false));
        prop_assert_eq!(&pairs.blocks, &blocks);
        if !blocks.is_empty() {
            bytes.truncate(bytes.len() - cut);
            let pairs = read_pairs(&mut bytes.as_slice()).unwrap();
            prop_assert!(pairs.truncated);
            prop_assert_eq!(pairs.blocks.len(), blocks.len() - 1);
        }
    }

    #[test]
    fn no_bytes_make_the_reader_panic(
        start in 0usize..200, bytes in prop::collection::vec(any::<u8>(), 0..400),
    ) {
        let good = file(&[plain(Nanos::ZERO)], 10);
        let mixed = [&good[..start.min(good.len())], bytes.as_slice()].concat();
        let _ = read_pairs(&mut mixed.as_slice());
    }
}
