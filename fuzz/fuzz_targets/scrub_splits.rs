//! Any bytes as an event stream under the scrubber: any split gives the same output. So does the
//! scrubber of plain text.
//!
//! Input: one byte for the split, then the stream.

#![no_main]

mod pieces;

use std::sync::{Arc, LazyLock};

use libfuzzer_sys::fuzz_target;
use plimsoll_gateway_inspect::{EventScrubber, FileRule, Inspector, Unread, Unreadable};
use plimsoll_gateway_policy::{Policy, Scrubber};

use pieces::pieces;

static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(Policy::builtin().unwrap()));

static INSPECTORS: LazyLock<[Arc<Inspector>; 2]> = LazyLock::new(|| {
    [Unread::Refuse, Unread::Pass].map(|unreadable| {
        let files = FileRule { unreadable, ..FileRule::default() };
        Arc::new(Inspector::personal_data(Arc::clone(&POLICY), files))
    })
});

fn events(inspector: &Arc<Inspector>, pieces: &[&[u8]]) -> (Vec<u8>, Result<(), Unreadable>) {
    let mut scrubber = EventScrubber::new(Arc::clone(inspector));
    let mut out = Vec::new();
    let fed = pieces.iter().try_for_each(|piece| scrubber.feed(piece, &mut out));
    let ended = fed.and_then(|()| scrubber.finish(&mut out));
    (out, ended)
}

fn text(pieces: &[&[u8]]) -> Vec<u8> {
    let mut scrubber = Scrubber::new(Arc::clone(&POLICY));
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&scrubber.feed(piece));
    }
    out.extend_from_slice(&scrubber.finish());
    out
}

fuzz_target!(|input: &[u8]| {
    let Some((&seed, stream)) = input.split_first() else { return };
    let split = pieces(stream, seed);
    for inspector in &*INSPECTORS {
        assert_eq!(events(inspector, &split), events(inspector, &[stream]));
    }
    assert_eq!(text(&split), text(&[stream]));
});
