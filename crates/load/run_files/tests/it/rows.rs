//! Rows: written and read back.

use plimsoll_measure::{
    CacheState, ConnectPhases, ConversationKey, ErrorClass, FinishReason, FlowControl, GapSummary,
    GeneratorShare, Moment, Nanos, Operation, Outcome, PolicyDecision, RpcReport, Sample,
    ScenarioId, ServerReport, StageId, StreamShape, Timeline, TokenCount, Usage,
};
use plimsoll_run_files::row::{COLUMNS, row_time};
use plimsoll_run_files::{RowContext, RowNames, parse_row, write_row};
use proptest::option::of;
use proptest::prelude::*;

use crate::support::{ended, metadata, sample};

const EPOCH: u64 = 1_763_688_225_000_000_000;

fn names(stage: &str) -> RowNames {
    RowNames::new("complex", None, "gateway", stage)
}

fn context<'a>(conversation: &'a str, names: &'a RowNames) -> RowContext<'a> {
    RowContext {
        conversation,
        request_id: "c1-0",
        names,
        epoch_unix_ns: EPOCH,
        weight: 1,
        events: None,
        headers: &[],
        server_parts: &[],
        error_detail: None,
        decoded_bytes: None,
        pair: None,
    }
}

fn line(sample: &Sample) -> String {
    let mut out = Vec::new();
    write_row(sample, &context("c1", &names("8:10s")), &mut out);
    String::from_utf8(out).unwrap()
}

#[test]
fn a_completed_turn_is_written_like_this() {
    let mut turn = sample(1, 1, 1_000_000, 50_000);
    turn.timeline.finished = Some(Moment::from_nanos(1_050_200_007));
    assert_eq!(
        line(&turn),
        concat!(
            r#"{"conversation":"c1","request_id":"c1-0","scenario":"complex","target":"gateway","#,
            r#""stage":"8:10s","turn":0,"stream":true,"warmup":false,"reused":true,"#,
            r#""intended_unix_ns":1763688226000000000,"dispatch_lag_ms":0.2,"#,
            r#""response_time_ms":50.200007,"service_time_ms":50.000007,"ttfb_ms":2.5,"ttft_ms":5,"#,
            r#""ttfot_ms":5,"last_token_ms":49.9,"transfer_ms":47.500007,"read_lag_ms":0.02,"#,
            r#""tpot_ms":4.49,"events":11,"gap_count":10,"gap_mean_ms":2.5,"gap_max_ms":10,"#,
            r#""largest_burst":2,"stream_shape":"intact","status":200,"outcome":"completed","#,
            r#""finish_reason":"stop","policy_decision":"allow","#,
            r#""prompt_tokens":120,"prompt_tokens_source":"reported","completion_tokens":11,"#,
            r#""completion_tokens_source":"reported","tokens_after_first":10,"bytes_out":840,"bytes_in":4200}"#,
            "\n"
        )
    );
}

#[test]
fn what_the_generator_added_is_written_where_it_matters() {
    let turn = sample(1, 1, 1_000_000, 50_000);
    let generator = GeneratorShare {
        dispatch: Nanos::from_micros(150),
        send: Nanos::from_micros(5),
        first_token: Nanos::from_millis(1),
        ..GeneratorShare::default()
    };
    let late = line(&Sample { generator, ..turn });
    assert!(
        late.contains(r#","generator_ms":0.155,"generator_parts_ms":[0.15,0.005,0,1],"#),
        "{late}"
    );
    // 1 us is less than 0.5 % of the 2.5 ms to the first byte.
    let dispatch = Nanos::from_micros(1);
    let early = Sample { generator: GeneratorShare { dispatch, ..turn.generator }, ..turn };
    assert_eq!(line(&early), line(&turn));
}

#[test]
fn a_turn_that_was_never_sent_has_no_times() {
    let mut turn = ended(sample(1, 1, 1_000_000, 50_000), Outcome::NeverSent, 0);
    turn.timeline = Timeline::intended(turn.timeline.intended);
    turn.read_lag = None;
    let line = line(&turn);
    assert!(!line.contains("_ms"), "{line}");
    assert!(line.contains(r#""outcome":"never_sent""#), "{line}");
}

#[test]
fn event_times_count_from_the_dispatch_to_the_nanosecond() {
    let turn = sample(1, 1, 1_000_000, 50_000);
    let from = turn.timeline.dispatched.unwrap();
    let events = [5_000_000, 5_000_000, 17_000_001].map(|ns| from + Nanos::new(ns));
    let names = names("8:10s");
    let context = RowContext { events: Some(&events), ..context("c1", &names) };
    let mut out = Vec::new();
    write_row(&turn, &context, &mut out);
    let line = String::from_utf8(out).unwrap();
    assert!(line.contains(r#","event_ms":[5,5,17.000001],"#), "{line}");
    let row = parse_row(line.trim_end().as_bytes()).unwrap();
    assert_eq!(row.event_ms, Some(vec![5.0, 5.0, 17.000_001]));
}

#[test]
fn damaged_rows_are_refused() {
    let whole = line(&sample(1, 1, 1_000_000, 50_000));
    for bad in [
        "",
        "{}",
        "nonsense",
        &whole[..whole.len() / 2],
        &whole.replace("completed", "finished"),
        &whole.replace("completed", "failed"),
        &whole.replace("50.2", "\"50.2\""),
    ] {
        assert!(parse_row(bad.as_bytes()).is_err(), "{bad}");
    }
}

/// A row in which every key occurs that can occur in the row of a completed turn.
fn full_row() -> String {
    let turn = sample(1, 1, 1_000_000, 50_000);
    let phase = Some(Nanos::from_millis(1));
    let turn = Sample {
        connect: ConnectPhases {
            wait: phase,
            dns: phase,
            tcp: phase,
            tls: phase,
            resumed: true,
            upgrade: phase,
            ahead: true,
        },
        retried_after: phase,
        expected: Some(PolicyDecision::Allow),
        usage: Usage { cached: 1, reasoning: 1, ..turn.usage },
        gaps: GapSummary { late_together: 1, ..turn.gaps },
        flow: FlowControl { send_stall: phase, receive_stall: true },
        server: ServerReport {
            cache: Some(CacheState::Hit),
            retries: 2,
            time: phase,
            ..ServerReport::default()
        },
        repeated_tokens: 40,
        usage_refused: true,
        affected: false,
        operation: Some(Operation::CallTool),
        rpc: RpcReport { code: Some(-32_602), tool_error: true, notifications: 3 },
        generator: GeneratorShare { dispatch: Nanos::from_micros(200), ..turn.generator },
        ..turn
    };
    let names = RowNames::new("complex", Some("normal"), "gateway", "8:10s");
    let events = [turn.timeline.first_token.unwrap()];
    let headers = [("x-served-by".into(), "node \"7\"".to_owned())];
    let server_parts = [("gw".into(), Nanos::from_micros(250)), ("db".into(), Nanos::new(7))];
    let context = RowContext {
        weight: 2,
        events: Some(&events),
        headers: &headers,
        server_parts: &server_parts,
        pair: Some(7),
        decoded_bytes: Some(70),
        ..context("c1", &names)
    };
    let mut out = Vec::new();
    write_row(&turn, &context, &mut out);
    String::from_utf8(out).unwrap()
}

/// The keys of a row, in their order.
fn keys(row: &str) -> Vec<String> {
    let members: serde_json::Map<_, _> = serde_json::from_str(row).unwrap();
    let mut keys: Vec<_> = members.keys().cloned().collect();
    keys.sort_by_key(|key| row.find(&format!("\"{key}\":")));
    keys
}

#[test]
fn recorded_headers_are_an_object_of_texts() {
    let row = full_row();
    let part = r#""cache":"hit","upstream_retries":2,"server_time_ms":1,"server_parts_ms":{"gw":0.25,"db":0.000007},"response_headers":{"x-served-by":"node \"7\""},"#;
    assert!(row.contains(part), "{row}");
    let parsed = parse_row(row.trim_end().as_bytes()).unwrap();
    assert_eq!(parsed.response_headers["x-served-by"], "node \"7\"");
    assert_eq!(parsed.server_parts_ms.get("gw"), Some(&0.25));
}

#[test]
fn what_a_tool_server_says_is_in_its_row() {
    let row = full_row();
    for part in [
        r#","turn":0,"operation":"tools/call","stream":true,"#,
        r#","outcome":"completed","rpc_code":-32602,"tool_error":true,"notifications":3,"#,
    ] {
        assert!(row.contains(part), "{part}: {row}");
    }
}

#[test]
fn every_key_of_the_table_occurs_in_a_row() {
    let failed = Outcome::Failed(ErrorClass::Reset);
    let names = names("8:10s");
    let context = RowContext { error_detail: Some("closed"), ..context("c1", &names) };
    let mut of_failed = Vec::new();
    write_row(&ended(sample(1, 1, 0, 1_000), failed, 0), &context, &mut of_failed);
    let rows = [full_row(), String::from_utf8(of_failed).unwrap()];
    for column in COLUMNS.iter() {
        let occurs = rows.iter().any(|row| keys(row).iter().any(|key| key == column.key));
        assert!(occurs, "{}", column.key);
    }
}

#[test]
fn a_turn_that_was_never_sent_has_the_keys_that_are_never_left_out() {
    let mut turn = ended(sample(1, 1, 1_000_000, 50_000), Outcome::NeverSent, 0);
    turn.timeline = Timeline::intended(turn.timeline.intended);
    turn.read_lag = None;
    let always: Vec<_> = COLUMNS.iter().filter(|column| column.absent.is_empty()).collect();
    let always: Vec<_> = always.into_iter().map(|column| column.key).collect();
    assert_eq!(keys(&line(&turn)), always);
}

fn nanos() -> impl Strategy<Value = Nanos> {
    (0u64..400_000_000_000_000).prop_map(Nanos::new)
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![
        Just(Outcome::Completed),
        (400u16..500).prop_map(Outcome::Rejected),
        (0..ErrorClass::ALL.len()).prop_map(|i| Outcome::Failed(ErrorClass::ALL[i])),
        Just(Outcome::TimedOut),
        Just(Outcome::Cancelled),
        Just(Outcome::InFlight),
    ]
}

fn timeline() -> impl Strategy<Value = Timeline> {
    let rest = (of(nanos()), of(nanos()), of(nanos()), of(nanos()));
    (nanos(), nanos(), of(nanos()), rest).prop_map(|(intended, lag, finished, rest)| {
        let intended = Moment::EPOCH + intended;
        let dispatched = intended + lag;
        Timeline {
            intended,
            dispatched: Some(dispatched),
            first_byte: after(dispatched, rest.0),
            first_token: after(dispatched, rest.1),
            first_output_token: after(dispatched, rest.2),
            last_token: after(dispatched, rest.3),
            finished: after(dispatched, finished),
            ..Timeline::default()
        }
    })
}

fn after(dispatched: Moment, length: Option<Nanos>) -> Option<Moment> {
    Some(dispatched + length?)
}

fn usage() -> impl Strategy<Value = Usage> {
    let tokens = prop_oneof![
        Just(TokenCount::default()),
        any::<u32>().prop_map(TokenCount::reported),
        any::<u32>().prop_map(TokenCount::estimated),
    ];
    (tokens.clone(), tokens, any::<[u32; 2]>(), any::<Option<u32>>()).prop_map(
        |(prompt, completion, [cached, reasoning], after_first)| Usage {
            prompt,
            completion,
            cached,
            reasoning,
            after_first,
        },
    )
}

fn gaps() -> impl Strategy<Value = GapSummary> {
    // The mean is kept to the nanosecond, so that a sum is exact where it divides.
    (0u32..100, 0u64..1_000_000_000, nanos(), 0u32..50).prop_map(|(count, mean, max, burst)| {
        if count == 0 {
            return GapSummary::default();
        }
        let sum = Nanos::new(mean * u64::from(count));
        let burst =
            GapSummary { largest_burst: burst, late_together: burst, ..GapSummary::default() };
        GapSummary { count, sum, max, ..burst }
    })
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<u16>());
    let connect = (of(nanos()), of(nanos()), of(nanos()), of(nanos()));
    let sizes = (any::<u64>(), any::<u64>(), any::<u32>());
    let policy_decision =
        of(prop_oneof![Just(PolicyDecision::Redact), Just(PolicyDecision::RateLimited)]);
    (timeline(), outcome(), usage(), gaps(), (flags, connect, sizes, policy_decision)).prop_map(
        |(timeline, outcome, usage, gaps, (flags, connect, sizes, policy_decision))| Sample {
            stage: StageId(1),
            scenario: ScenarioId(1),
            conversation: ConversationKey::iteration(0, 0),
            turn: flags.3,
            stream: flags.0,
            warmup: flags.1,
            reused: flags.2,
            timeline,
            retried_after: connect.2,
            connect: ConnectPhases {
                wait: connect.1,
                ahead: flags.1,
                dns: connect.0,
                tcp: connect.1,
                tls: connect.2,
                resumed: connect.2.is_some() && flags.0,
                upgrade: connect.0,
            },
            status: if let Outcome::Rejected(status) = outcome { status } else { 200 },
            outcome,
            policy_decision,
            expected: policy_decision.map(|_| PolicyDecision::Block),
            usage,
            events: sizes.2,
            gaps,
            shape: StreamShape::ALL.get(usize::from(flags.3) % 9).copied(),
            finish_reason: FinishReason::ALL.get(usize::from(flags.3) % 17).copied(),
            usage_refused: flags.2,
            affected: false,
            operation: Operation::ALL.get(usize::from(flags.3) % 30).copied(),
            rpc: RpcReport {
                code: flags.0.then_some(-i32::from(flags.3)),
                tool_error: flags.1,
                notifications: flags.3.into(),
            },
            bytes_out: sizes.0,
            bytes_in: sizes.1,
            flow: FlowControl { send_stall: connect.0, receive_stall: flags.1 },
            server: ServerReport {
                cache: flags.2.then_some(CacheState::Miss),
                retries: flags.3.into(),
                time: connect.1,
                retry_after: false,
            },
            read_lag: connect.3,
            // A part that does not matter is left out of the row.
            generator: connect.3.map_or_else(GeneratorShare::default, |late| GeneratorShare {
                dispatch: connect.0.unwrap_or_default(),
                last_token: late + Nanos::new(1),
                ..GeneratorShare::default()
            }),
            ..sample(1, 1, 0, 1_000)
        },
    )
}

proptest! {
    #[test]
    fn the_keys_of_a_row_are_in_the_table_and_in_its_order(turn in any_sample()) {
        let mut table = COLUMNS.iter().map(|column| column.key);
        for key in keys(&line(&turn)) {
            prop_assert!(table.any(|known| known == key), "{key} is missing or in another place");
        }
    }

    #[test]
    fn a_row_reads_back_to_the_nanosecond(turn in any_sample(), name in ".*", weight in 1u32..5_000) {
        let mut metadata = metadata();
        metadata.stages[1].name.clone_from(&name);
        let mut out = Vec::new();
        let names = names(&name);
        let context = RowContext { weight, ..context(&name, &names) };
        write_row(&turn, &context, &mut out);
        let (newline, line) = out.split_last().unwrap();
        prop_assert_eq!(*newline, b'\n');
        prop_assert!(!line.contains(&b'\n'));
        let row = parse_row(line).unwrap();
        prop_assert_eq!(&row.conversation, &name);
        prop_assert_eq!(row.weight, weight);
        prop_assert_eq!(row_time(row.service_time_ms), turn.timeline.service_time());
        prop_assert_eq!(row_time(row.transfer_ms), turn.timeline.transfer_time());
        prop_assert_eq!(row.sample(&metadata).unwrap(), turn);
    }
}
