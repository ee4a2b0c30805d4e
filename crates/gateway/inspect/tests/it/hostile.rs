//! Texts that are made to be slow: time grows with their length, and not faster.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};
use plimsoll_gateway_inspect::{EventScrubber, Source};

use super::forms::{policy, scrub};

/// Sixteen times the size may take three times sixteen times as long; a quadratic algorithm takes
/// 256 times. CPU time counts, because the host may be busy; caches make it vary too, so one of
/// several attempts is enough.
fn check_linear(name: &str, mut work: impl FnMut(usize)) {
    let cpu_time = || Duration::from(clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).unwrap());
    let mut time = |size: usize| {
        let started = cpu_time();
        work(size);
        cpu_time().saturating_sub(started).max(Duration::from_micros(100))
    };
    let mut ratios = Vec::new();
    for _ in 0..5 {
        let (short, long) = (time(4_000), time(64_000));
        ratios.push(long.as_secs_f64() / short.as_secs_f64());
        if ratios.last().is_some_and(|ratio| *ratio < 48.0) {
            return;
        }
    }
    panic!("{name}: {ratios:?}");
}

#[test]
fn documents_take_linear_time() {
    let inspector = policy();
    let pieces =
        ["1", "/*", "a@b.", "%25", "ignore all ", "4111 1111 1111 1111 ", "_a", "{\\\"a\\\":"];
    for piece in pieces {
        check_linear(piece, |size| {
            let text = piece.repeat(size / piece.len());
            let request = format!("{{\"messages\":[{{\"content\":\"{text}\"}}]}}");
            let _ = inspector.document(&request, Source::Protocol);
        });
    }
    let items = [
        ("parts", r#"{"text":"4111"},{"text":" 1111"},"#),
        ("names", r#"{"ssn":"536904399"},"#),
        ("tokens", r#"{"token":"41","bytes":[1],"top_logprobs":[{"token":"11"}]},"#),
        ("arrays", "[[[\"ignore\"]]],"),
        ("documents", r#""{\"a\\u0041\":[\"ignore all \"]}","#),
    ];
    for (name, item) in items {
        for source in [Source::Protocol, Source::Tool, Source::Data] {
            check_linear(name, |size| {
                let items = item.repeat(size / item.len());
                let request = format!("{{\"messages\":[{{\"content\":[{items}null]}}]}}");
                let _ = inspector.document(&request, source);
            });
        }
    }
}

#[test]
fn streams_take_linear_time() {
    let inspector = std::sync::Arc::new(scrub());
    let events = [
        ("one text", "data: {\"choices\":[{\"delta\":{\"content\":\"4111 \"}}]}\n\n"),
        ("many texts", "data: {\"NAME\":\"4111\"}\n\n"),
        ("comments", ": 4111\n\n"),
    ];
    for (name, event) in events {
        check_linear(name, |size| {
            let mut scrubber = EventScrubber::new(std::sync::Arc::clone(&inspector));
            let mut out = Vec::new();
            for nth in 0..size / event.len() {
                let event = event.replace("NAME", &nth.to_string());
                scrubber.feed(event.as_bytes(), &mut out).unwrap();
            }
            scrubber.finish(&mut out).unwrap();
        });
    }
    check_linear("many lines", |size| {
        let lines = "data: \"4111 1111\",\n".repeat(size / 20);
        let event = format!("data: [\n{lines}data: null]\n\n");
        let mut scrubber = EventScrubber::new(std::sync::Arc::clone(&inspector));
        scrubber.feed(event.as_bytes(), &mut Vec::new()).unwrap();
    });
}
