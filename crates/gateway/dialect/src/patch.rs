//! Replaces JSON strings in a body and copies every other byte unchanged.

use std::ops::Range;

use crate::error::DialectError;
use crate::wire::write_json;

/// The range of a JSON string, quotes included, and the text that replaces it.
pub(crate) type Patch = (Range<usize>, String);

/// Appends `source` with the patches applied. They must be sorted and must not overlap.
pub(crate) fn apply(
    source: &[u8],
    patches: &[Patch],
    out: &mut Vec<u8>,
) -> Result<(), DialectError> {
    let mut copied = 0;
    for (range, text) in patches {
        out.extend_from_slice(source.get(copied..range.start).unwrap_or_default());
        write_json(out, text)?;
        copied = range.end;
    }
    out.extend_from_slice(source.get(copied..).unwrap_or_default());
    Ok(())
}

/// The position of a slice in the buffer that it was borrowed from.
pub(crate) fn range_in(whole: &[u8], part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    start..start.wrapping_add(part.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_replace_their_ranges_and_nothing_else() {
        let source = br#"{ "a":"one", "b" : "two" }"#;
        let apply = |patches: &[Patch]| {
            let mut out = b"> ".to_vec();
            apply(source, patches, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(apply(&[]), r#"> { "a":"one", "b" : "two" }"#);
        let patches = [(6..11, "\"1\"".to_owned()), (19..24, String::new())];
        assert_eq!(apply(&patches), r#"> { "a":"\"1\"", "b" : "" }"#);
    }

    #[test]
    fn the_range_of_a_slice_is_its_position_in_the_buffer() {
        let whole = "abcdef";
        assert_eq!(range_in(whole.as_bytes(), &whole[2..4]), 2..4);
        assert_eq!(range_in(whole.as_bytes(), whole), 0..6);
    }
}
