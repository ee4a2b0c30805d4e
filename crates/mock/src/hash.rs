//! FNV-1a, 64 bits: simple enough to be computed by tests in any language.

const OFFSET: u64 = 0xCBF2_9CE4_8422_2325;
const PRIME: u64 = 0x100_0000_01B3;

/// Bytes of a block: 512 tokens of 4 bytes.
const BLOCK: usize = 2_048;

pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(OFFSET, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}

/// Hashes of a text given in pieces: one of the whole text, and one of each block.
#[derive(Debug)]
pub(crate) struct TextHash {
    whole: u64,
    block: u64,
    filled: usize,
    blocks: Vec<u64>,
}

impl TextHash {
    pub(crate) const fn new() -> Self {
        Self { whole: OFFSET, block: OFFSET, filled: 0, blocks: Vec::new() }
    }

    pub(crate) fn feed(&mut self, text: &[u8]) {
        for &byte in text {
            self.whole = (self.whole ^ u64::from(byte)).wrapping_mul(PRIME);
            self.block = (self.block ^ u64::from(byte)).wrapping_mul(PRIME);
            self.filled += 1;
            if self.filled == BLOCK {
                self.close_block();
            }
        }
    }

    fn close_block(&mut self) {
        self.blocks.push(self.block);
        (self.block, self.filled) = (OFFSET, 0);
    }

    /// The hash of the whole text and the hashes of its blocks. The last block may be shorter.
    pub(crate) fn finish(mut self) -> (u64, Vec<u64>) {
        if self.filled > 0 {
            self.close_block();
        }
        (self.whole, self.blocks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_gives_the_published_values() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn hashes_do_not_depend_on_the_pieces() {
        let text: Vec<u8> = (0..5_000u32).flat_map(u32::to_le_bytes).take(5_000).collect();
        let mut pieces = TextHash::new();
        text.chunks(7).for_each(|piece| pieces.feed(piece));
        let expected: Vec<u64> = text.chunks(2_048).map(fnv1a).collect();
        assert_eq!(pieces.finish(), (fnv1a(&text), expected));
    }
}
