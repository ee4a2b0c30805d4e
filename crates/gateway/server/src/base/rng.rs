//! A hash of integers that serves as a random number generator.

/// Mixes the bits of a number, so that consecutive numbers give unrelated results (the finaliser of
/// `SplitMix64`, Steele et al., 2014).
pub(crate) const fn splitmix64(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
