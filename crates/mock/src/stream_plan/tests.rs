//! The steps of streams, in virtual time.

use std::sync::Arc;

use super::*;
use crate::dialect::Dialect;
use crate::distribution::Distribution;
use crate::duration::HumanDuration;
use crate::overrides::{FaultOverride, RequestOverrides};
use crate::request::ApiRequest;
use crate::rng::RequestRng;
use crate::spec::ModelSpec;

const MS: u64 = 1_000_000;

/// A chat of 6 tokens: head after 2 ms, content after 20 ms, gaps of 5 ms.
fn plan(fault: Option<&str>, tokens_per_event: u32) -> StreamPlan {
    let body = br#"{"model":"m","messages":[],"max_tokens":6}"#;
    let request = ApiRequest::parse(Dialect::OpenaiChat, body).unwrap();
    let model = Arc::new(ModelSpec {
        preamble: Some(Distribution::Constant(HumanDuration::from_millis(2))),
        ttft: Distribution::Constant(HumanDuration::from_millis(20)),
        gap: Distribution::Constant(HumanDuration::from_millis(5)),
        tokens_per_event,
        ..ModelSpec::default()
    });
    let fault =
        fault.map_or(FaultOverride::Unset, |text| FaultOverride::Inject(text.parse().unwrap()));
    let overrides = RequestOverrides { fault, ..RequestOverrides::default() };
    let plan = ResponsePlan::new(&request, &model, &overrides, RequestRng::new(1, None, 1), 1);
    StreamPlan::new(plan, Dialect::OpenaiChat.stream_encoder().unwrap())
}

/// Due time in ms and tokens of each step, and the end.
fn run(mut plan: StreamPlan) -> (Vec<(u64, u32)>, StreamEnd) {
    let mut steps = Vec::new();
    loop {
        let (due, before) = (plan.due().unwrap(), plan.tokens_sent());
        let end = plan.advance(1, &mut Vec::new());
        steps.push((due / MS, plan.tokens_sent() - before));
        if let Some(end) = end {
            assert_eq!(plan.due(), None);
            return (steps, end);
        }
    }
}

#[test]
fn steps_are_due_at_the_sums_of_the_waits_before_them() {
    let (steps, end) = run(plan(None, 1));
    let expected = [(2, 0), (20, 1), (25, 1), (30, 1), (35, 1), (40, 1), (45, 1), (45, 0)];
    assert_eq!((steps.as_slice(), end), (expected.as_slice(), StreamEnd::Complete));
}

/// Bytes of each step, by dialect, of an answer that is a tool call.
#[test]
fn a_tool_call_begins_with_the_first_token() {
    for (dialect, word) in [
        (Dialect::OpenaiChat, "tool_calls"),
        (Dialect::OpenaiResponses, "function_call"),
        (Dialect::AnthropicMessages, "tool_use"),
    ] {
        let body = br#"{"model":"m","messages":[],"input":"x","max_tokens":6}"#;
        let request = ApiRequest::parse(dialect, body).unwrap();
        let overrides = RequestOverrides {
            tool_call: Some(true),
            ttft: Some(HumanDuration::from_millis(20)),
            ..RequestOverrides::default()
        };
        let preamble = Some(Distribution::Constant(HumanDuration::from_millis(2)));
        let model = Arc::new(ModelSpec { preamble, ..ModelSpec::default() });
        let rng = RequestRng::new(1, None, 1);
        let plan = ResponsePlan::new(&request, &model, &overrides, rng, 1);
        let mut plan = StreamPlan::new(plan, dialect.stream_encoder().unwrap());
        let (mut head, mut first) = (Vec::new(), Vec::new());
        assert_eq!(plan.due(), Some(2 * MS));
        plan.advance(1, &mut head);
        assert_eq!(plan.due(), Some(20 * MS));
        plan.advance(1, &mut first);
        let (head, first) = (String::from_utf8(head).unwrap(), String::from_utf8(first).unwrap());
        assert!(!head.contains(word), "{dialect:?}: {head}");
        assert!(first.contains(word) && first.contains("lookup"), "{dialect:?}: {first}");
    }
}

#[test]
fn tokens_in_one_event_share_one_gap() {
    let (steps, _) = run(plan(None, 4));
    assert_eq!(steps, [(2, 0), (20, 4), (25, 2), (25, 0)]);
}

#[test]
fn a_fault_replaces_the_event_after_its_token() {
    let disconnected = |reset| StreamEnd::Disconnected { reset };
    for (fault, sent, at, end) in [
        ("error@0", 0, 20, StreamEnd::Error),
        ("error@2", 2, 30, StreamEnd::Error),
        ("truncate@3", 3, 35, StreamEnd::Truncated),
        ("cut@5", 5, 45, disconnected(false)),
        ("reset@1", 1, 25, disconnected(true)),
        // At the end if the output is shorter.
        ("cut@99", 6, 45, disconnected(false)),
    ] {
        let (steps, found) = run(plan(Some(fault), 1));
        let tokens: u32 = steps.iter().map(|(_, tokens)| tokens).sum();
        let last = steps.last().unwrap().0;
        assert_eq!((tokens, last, found), (sent, at, end), "{fault}");
    }
}

#[test]
fn a_stall_delays_later_events_and_loses_none() {
    for (fault, dues) in [
        ("stall@0:100ms", [2, 120, 125, 130, 135, 140, 145, 145]),
        ("stall@3:100ms", [2, 20, 25, 30, 135, 140, 145, 145]),
        ("stall@6:100ms", [2, 20, 25, 30, 35, 40, 45, 145]),
    ] {
        let (steps, end) = run(plan(Some(fault), 1));
        let found: Vec<u64> = steps.iter().map(|(due, _)| *due).collect();
        assert_eq!((found.as_slice(), end), (dues.as_slice(), StreamEnd::Complete), "{fault}");
    }
}

#[test]
fn run_to_end_ends_when_the_stream_does() {
    for (fault, per_event) in [(None, 1), (None, 4), (Some("error@2"), 1), (Some("stall@3:1s"), 1)]
    {
        let (steps, end) = run(plan(fault, per_event));
        let (due, found) = plan(fault, per_event).run_to_end(1);
        assert_eq!((due / MS, found), (steps.last().unwrap().0, end), "{fault:?}");
    }
}
