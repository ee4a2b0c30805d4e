//! Ids as 128 bits, so that a million of them take little memory.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// 128 bits of an id. Two different ids of a run share them with a probability below 1e-26 (a
/// million ids), unless somebody made them so on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IdHash(u128);

impl IdHash {
    /// FNV-1a of 128 bits.
    pub(crate) fn of(id: &str) -> Self {
        const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
        const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
        Self(
            id.as_bytes().iter().fold(OFFSET, |hash: u128, byte: &u8| {
                (hash ^ u128::from(*byte)).wrapping_mul(PRIME)
            }),
        )
    }
}

/// The bits are as good as a hash already.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Folded(u64);

impl Hasher for Folded {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "both halves are used")]
    fn write_u128(&mut self, bits: u128) {
        // The high bits of FNV-1a are mixed less than the low ones; tables look at both ends.
        let folded = (bits >> 64) as u64 ^ bits as u64;
        self.0 = (folded ^ folded >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Requests by the bits of their id.
pub(crate) type IdTable = HashMap<IdHash, u32, BuildHasherDefault<Folded>>;

#[cfg(test)]
mod tests {
    use super::*;

    /// The published vectors of FNV-1a.
    #[test]
    fn ids_are_hashed_by_fnv_1a() {
        assert_eq!(IdHash::of("").0, 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(IdHash::of("a").0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
