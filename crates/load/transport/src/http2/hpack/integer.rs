//! Integers with a prefix (RFC 7541, section 5.1).

use super::HpackError;

/// Maximum number of bytes after the prefix. Four give 28 bits, more than any length or index that
/// fits a block.
const MAX_CONTINUATION_BYTES: u32 = 4;

/// Removes an integer from the front of `input`. Its first byte has `prefix` bits of it (1 to 8).
pub(super) fn decode(input: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let (&first, mut rest) = input.split_first().ok_or(HpackError("a field is cut off"))?;
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, tail) = rest.split_first().ok_or(HpackError("an integer is cut off"))?;
            rest = tail;
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift >= 7 * MAX_CONTINUATION_BYTES {
                return Err(HpackError("an integer is too large"));
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Appends an integer. `pattern` has the bits above the prefix.
#[expect(clippy::cast_possible_truncation, reason = "each byte is masked or compared before")]
pub(super) fn encode(mut value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    value -= most;
    while value >= 0x80 {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfc_are_encoded_and_decoded() {
        for (sentence, value, prefix, bytes) in [
            ("C.1.1: 10 with a prefix of 5 bits", 10, 5, &[0x0a][..]),
            ("C.1.2: 1337 with a prefix of 5 bits", 1337, 5, &[0x1f, 0x9a, 0x0a]),
            ("C.1.3: 42 at the start of a byte", 42, 8, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes, "{sentence}");
            assert_eq!(decode(&mut &*bytes, prefix), Ok(value), "{sentence}");
        }
    }

    #[test]
    fn endless_and_cut_off_integers_are_rejected() {
        for bytes in [&[][..], &[0x1f], &[0x1f, 0x80], &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x01]] {
            assert!(decode(&mut &*bytes, 5).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn encoded_integers_are_decoded(value in 0_usize..1 << 27, prefix in 4_u32..8) {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            out.push(7);
            let mut input = &out[..];
            prop_assert_eq!(decode(&mut input, prefix), Ok(value));
            prop_assert_eq!(input, &[7]);
        }
    }
}
