use std::sync::Arc;

use super::*;
use crate::ask::Ask;
use crate::dialect::Dialect;
use crate::draw::Draws;
use crate::law::Distribution;
use crate::overrides::{Overrides, Wish};
use crate::span::HumanDuration;
use crate::spec::ModelSpec;

const MS: u64 = 1_000_000;

/// A chat of 6 tokens: head after 2 ms, content after 20 ms, gaps of 5 ms.
fn script(fault: Option<&str>, tokens_per_event: u32) -> Script {
    let body = br#"{"model":"m","messages":[],"max_tokens":6}"#;
    let ask = Ask::parse(Dialect::OpenaiChat, body).unwrap();
    let model = Arc::new(ModelSpec {
        preamble: Distribution::Constant(HumanDuration::from_millis(2)),
        ttft: Distribution::Constant(HumanDuration::from_millis(20)),
        gap: Distribution::Constant(HumanDuration::from_millis(5)),
        tokens_per_event,
        ..ModelSpec::default()
    });
    let fault = fault.map_or(Wish::Unsaid, |text| Wish::Exactly(text.parse().unwrap()));
    let overrides = Overrides { fault, ..Overrides::default() };
    let plan = Plan::new(&ask, &model, &overrides, Draws::new(1, None, 1), 1);
    Script::new(plan, Dialect::OpenaiChat.voice().unwrap())
}

/// Due time in ms and tokens of each beat, and the ending.
fn course(mut script: Script) -> (Vec<(u64, u32)>, Ending) {
    let mut beats = Vec::new();
    loop {
        let (due, before) = (script.due().unwrap(), script.said());
        let ending = script.play(1, &mut Vec::new());
        beats.push((due / MS, script.said() - before));
        if let Some(ending) = ending {
            assert_eq!(script.due(), None);
            return (beats, ending);
        }
    }
}

#[test]
fn beats_come_at_the_sums_of_the_waits_before_them() {
    let (beats, ending) = course(script(None, 1));
    let expected = [(2, 0), (20, 1), (25, 1), (30, 1), (35, 1), (40, 1), (45, 1), (45, 0)];
    assert_eq!((beats.as_slice(), ending), (expected.as_slice(), Ending::Closed));
}

#[test]
fn tokens_in_one_event_share_one_gap() {
    let (beats, _) = course(script(None, 4));
    assert_eq!(beats, [(2, 0), (20, 4), (25, 2), (25, 0)]);
}

#[test]
fn a_fault_takes_the_place_of_the_event_after_its_token() {
    let broken = |reset| Ending::Broken { reset };
    for (fault, said, at, ending) in [
        ("error@0", 0, 20, Ending::Error),
        ("error@2", 2, 30, Ending::Error),
        ("truncate@3", 3, 35, Ending::Truncated),
        ("cut@5", 5, 45, broken(false)),
        ("reset@1", 1, 25, broken(true)),
        // At the end where the answer is shorter.
        ("cut@99", 6, 45, broken(false)),
    ] {
        let (beats, found) = course(script(Some(fault), 1));
        let tokens: u32 = beats.iter().map(|(_, tokens)| tokens).sum();
        let last = beats.last().unwrap().0;
        assert_eq!((tokens, last, found), (said, at, ending), "{fault}");
    }
}

#[test]
fn a_stall_moves_all_that_follows_and_loses_nothing() {
    for (fault, dues) in [
        ("stall@0:100ms", [2, 120, 125, 130, 135, 140, 145, 145]),
        ("stall@3:100ms", [2, 20, 25, 30, 135, 140, 145, 145]),
        ("stall@6:100ms", [2, 20, 25, 30, 35, 40, 45, 145]),
    ] {
        let (beats, ending) = course(script(Some(fault), 1));
        let found: Vec<u64> = beats.iter().map(|(due, _)| *due).collect();
        assert_eq!((found.as_slice(), ending), (dues.as_slice(), Ending::Closed), "{fault}");
    }
}

#[test]
fn a_rehearsal_ends_when_the_play_does() {
    for (fault, per_event) in [(None, 1), (None, 4), (Some("error@2"), 1), (Some("stall@3:1s"), 1)]
    {
        let (beats, ending) = course(script(fault, per_event));
        let (lasts, rehearsed) = script(fault, per_event).rehearse(1);
        assert_eq!((lasts / MS, rehearsed), (beats.last().unwrap().0, ending), "{fault:?}");
    }
}
