//! Any bytes as blocks of HPACK: no panic, and tables that stay in step as long as no block is refused.
//!
//! Input: blocks, each after a byte with its length. What one of them says is encoded again and must be decoded to the
//! same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_transport::http2::hpack::{Decoder, Encoder, Indexing};

const WAYS: [Indexing; 4] = [Indexing::Whole, Indexing::Name, Indexing::None, Indexing::Never];

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<Lines> {
    let mut lines = Vec::new();
    let mut keep = |field: plimsoll_transport::http2::hpack::Field<'_>| {
        lines.push((field.name.to_vec(), field.value.to_vec()));
    };
    decoder.decode(block, &mut keep).ok().map(|()| lines)
}

fuzz_target!(|input: &[u8]| {
    let (mut foreign, mut encoder, mut ours) = (Decoder::default(), Encoder::default(), Decoder::default());
    let mut rest = input;
    while let Some((&length, tail)) = rest.split_first() {
        let (block, tail) = tail.split_at(tail.len().min(usize::from(length)));
        rest = tail;
        let Some(lines) = decode(&mut foreign, block) else { return };
        if length % 7 == 0 {
            encoder.limit(usize::from(length) * 16);
        }
        let mut again = Vec::new();
        encoder.begin(&mut again);
        for (index, (name, value)) in lines.iter().enumerate() {
            encoder.field(name, value, WAYS[(index + usize::from(length)) % WAYS.len()], &mut again);
        }
        assert_eq!(decode(&mut ours, &again), Some(lines));
    }
});
