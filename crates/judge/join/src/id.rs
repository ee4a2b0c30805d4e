//! Ids hashed to 128 bits, so that a million of them need little memory.

use std::collections::HashMap;

/// 128-bit hash of an id. A collision within a run has a probability below 1e-26 (for a million
/// ids), unless somebody constructs one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct IdHash(u128);

impl IdHash {
    /// 128-bit FNV-1a.
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

/// Requests by the hash of their id.
pub(crate) type IdTable = HashMap<IdHash, u32>;

#[cfg(test)]
mod tests {
    use super::*;

    /// Test vectors published with FNV-1a.
    #[test]
    fn ids_are_hashed_by_fnv_1a() {
        assert_eq!(IdHash::of("").0, 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(IdHash::of("a").0, 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964);
    }
}
