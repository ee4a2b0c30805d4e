//! Any bytes as HPACK blocks: no panic, and tables that stay in step until a block is rejected.
//!
//! Input: blocks, each after a byte with its length. The decoded fields are encoded again and must
//! decode to the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_transport::http2::hpack::{Decoder, Encoder, Indexing};

const INDEXING: [Indexing; 4] =
    [Indexing::NameAndValue, Indexing::NameOnly, Indexing::None, Indexing::Never];

type Lines = Vec<(Vec<u8>, Vec<u8>)>;

fn decode(decoder: &mut Decoder, block: &[u8]) -> Option<Lines> {
    let mut lines = Vec::new();
    let mut keep = |field: plimsoll_transport::http2::hpack::HeaderField<'_>| {
        lines.push((field.name.to_vec(), field.value.to_vec()));
    };
    decoder.decode(block, &mut keep).ok().map(|()| lines)
}

fuzz_target!(|input: &[u8]| {
    let (mut foreign, mut encoder, mut ours) =
        (Decoder::default(), Encoder::default(), Decoder::default());
    let mut rest = input;
    while let Some((&length, tail)) = rest.split_first() {
        let (block, tail) = tail.split_at(tail.len().min(usize::from(length)));
        rest = tail;
        let Some(lines) = decode(&mut foreign, block) else { return };
        if length % 7 == 0 {
            encoder.set_max_table_size(usize::from(length) * 16);
        }
        let mut again = Vec::new();
        encoder.begin_block(&mut again);
        for (index, (name, value)) in lines.iter().enumerate() {
            encoder.field(
                name,
                value,
                INDEXING[(index + usize::from(length)) % INDEXING.len()],
                &mut again,
            );
        }
        assert_eq!(decode(&mut ours, &again), Some(lines));
    }
});
