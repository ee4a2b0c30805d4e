//! Splits bytes into pieces, as reads from a socket do.

/// Pieces of 0 to 15 bytes, or 16 times as many, depending on the seed.
pub(crate) fn pieces(bytes: &[u8], seed: u8) -> Vec<&[u8]> {
    let scale = if seed.is_multiple_of(2) { 1 } else { 16 };
    let (mut rest, mut state, mut pieces) = (bytes, u32::from(seed), Vec::new());
    while !rest.is_empty() {
        // A linear congruential generator; its upper bits are the better ones.
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let (piece, tail) = rest.split_at(rest.len().min((state >> 28) as usize * scale));
        pieces.push(piece);
        rest = tail;
    }
    pieces
}
