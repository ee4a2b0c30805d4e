//! Case-insensitive comparison of header names (RFC 9110, 5.1).

/// Whether a header has this lowercase name.
///
/// A name has only letters, digits and some other characters (RFC 9110, 5.6.2). Setting the
/// lowercase bit changes only letters into a lowercase letter, a digit or a hyphen.
#[inline]
pub(crate) fn is_named<const N: usize>(name: &str, lower: &[u8; N]) -> bool {
    let Ok(name) = <&[u8; N]>::try_from(name.as_bytes()) else { return false };
    name.iter().zip(lower).fold(0, |differs, (byte, lower)| differs | ((byte | 0x20) ^ lower)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_equal_in_any_case() {
        for name in ["content-length", "Content-Length", "CONTENT-LENGTH"] {
            assert!(is_named(name, b"content-length"), "{name}");
        }
        for name in ["content-lengtH1", "content-lengt", "content_length", "content.length", ""] {
            assert!(!is_named(name, b"content-length"), "{name}");
        }
    }

    #[test]
    fn no_other_character_of_a_name_passes_for_one_of_ours() {
        for byte in
            (0..=255).filter(|b: &u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(b))
        {
            for lower in (b'a'..=b'z').chain(b'0'..=b'9').chain([b'-']) {
                let name = char::from(byte).to_string();
                let same = byte.to_ascii_lowercase() == lower;
                assert_eq!(is_named(&name, &[lower]), same, "{name} {}", char::from(lower));
            }
        }
    }
}
