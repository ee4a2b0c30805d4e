//! The cost of a line of `results.jsonl`, for the thread that writes it during the load.
//!
//! `cargo bench -p plimsoll-report`. The target is 600 ns: at 150,000 requests/s a tenth of a core.

use divan::{Bencher, black_box};
use plimsoll_measure::{
    ConnectPhases, ConversationKey, FinishReason, FlowControl, GapSummary, Moment, Nanos, Outcome,
    PolicyDecision, Sample, ScenarioId, ServerReport, StageId, StreamShape, TargetId, Timeline,
    TokenCount, Usage,
};
use plimsoll_run_files::{RowContext, RowNames, write_row};

fn main() {
    divan::main();
}

fn at(ns: u64) -> Moment {
    Moment::from_nanos(1_234_567_890_123 + ns)
}

/// A streamed chat turn, with the keys of most rows.
fn streamed() -> Sample {
    Sample {
        stage: StageId(1),
        scenario: ScenarioId(0),
        target: TargetId(0),
        conversation: ConversationKey::arrival(77),
        position: 0,
        turn: 1,
        operation: None,
        stream: true,
        warmup: false,
        reused: true,
        timeline: Timeline {
            intended: at(0),
            dispatched: Some(at(3_210)),
            connected: Some(at(3_210)),
            sent: Some(at(9_876)),
            first_byte: Some(at(12_345_678)),
            first_token: Some(at(20_123_456)),
            first_output_token: Some(at(20_123_456)),
            last_token: Some(at(1_300_123_457)),
            finished: Some(at(1_300_223_459)),
        },
        connect: ConnectPhases::default(),
        retried_after: None,
        status: 200,
        outcome: Outcome::Completed,
        policy_decision: Some(PolicyDecision::Allow),
        expected: None,
        usage: Usage {
            prompt: TokenCount::reported(512),
            completion: TokenCount::reported(129),
            cached: 0,
            reasoning: 0,
            after_first: Some(128),
        },
        events: 129,
        gaps: GapSummary {
            count: 128,
            sum: Nanos::new(1_280_000_001),
            max: Nanos::new(57_123_456),
            largest_burst: 2,
            late_together: 0,
            ..GapSummary::default()
        },
        shape: Some(StreamShape::Intact),
        finish_reason: Some(FinishReason::Stop),
        content: plimsoll_measure::AnswerContent::default(),
        repeated_tokens: 0,
        usage_refused: false,
        affected: false,
        rpc: plimsoll_measure::RpcReport::default(),
        bytes_out: 2_345,
        bytes_in: 34_567,
        flow: FlowControl::default(),
        server: ServerReport::default(),
        read_lag: Some(Nanos::new(17_123)),
        generator: plimsoll_measure::GeneratorShare::default(),
    }
}

/// A plain HTTP request.
fn plain() -> Sample {
    let streamed = streamed();
    Sample {
        stream: false,
        timeline: Timeline {
            first_token: None,
            first_output_token: None,
            last_token: None,
            ..streamed.timeline
        },
        usage: Usage::default(),
        events: 0,
        gaps: GapSummary::default(),
        ..streamed
    }
}

fn write(bencher: Bencher<'_, '_>, sample: &Sample) {
    let names = RowNames::new("simple", None, "gateway", "@1000:60s");
    let context = RowContext {
        conversation: "ea37c206-3356-465e-928f-ed7f7da5b171",
        request_id: "ea37c206-3356-465e-928f-ed7f7da5b171-1",
        names: &names,
        epoch_unix_ns: 1_763_688_225_000_000_000,
        weight: 1,
        events: None,
        headers: &[],
        server_parts: &[],
        error_detail: None,
        decoded_bytes: None,
        pair: None,
    };
    let mut out = Vec::with_capacity(64 * 1024);
    bencher.bench_local(|| {
        out.clear();
        write_row(black_box(sample), black_box(&context), &mut out);
        out.len()
    });
}

#[divan::bench]
fn streamed_turn(bencher: Bencher<'_, '_>) {
    write(bencher, &streamed());
}

#[divan::bench]
fn plain_request(bencher: Bencher<'_, '_>) {
    write(bencher, &plain());
}
