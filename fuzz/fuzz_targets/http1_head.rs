//! Any bytes as an HTTP/1.1 response: no panic, and any split gives the same head and body.
//!
//! Input: one byte for the split, whose lowest bit says whether the request was a HEAD; then the
//! bytes of the connection before it is closed.

#![no_main]

mod pieces;
mod response;

use libfuzzer_sys::fuzz_target;

use pieces::pieces;
use response::read;

fuzz_target!(|input: &[u8]| {
    let Some((&seed, wire)) = input.split_first() else { return };
    let to_head = seed % 2 == 1;
    assert_eq!(read(to_head, pieces(wire, seed)), read(to_head, [wire]));
});
