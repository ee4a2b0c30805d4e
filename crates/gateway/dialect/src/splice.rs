//! Replacing pieces of bytes and leaving all others as they are.

use std::ops::Range;

use crate::error::DialectError;
use crate::wire::write_json;

/// A JSON string of a text, quotes included, that another takes the place of.
pub(crate) type Patch = (Range<usize>, String);

/// Appends `source` with the patches, which must be in order and apart.
pub(crate) fn write(
    source: &[u8],
    patches: &[Patch],
    out: &mut Vec<u8>,
) -> Result<(), DialectError> {
    let mut done = 0;
    for (at, text) in patches {
        out.extend_from_slice(source.get(done..at.start).unwrap_or_default());
        write_json(out, text)?;
        done = at.end;
    }
    out.extend_from_slice(source.get(done..).unwrap_or_default());
    Ok(())
}

/// Where a piece lies in the text that it was borrowed from.
pub(crate) fn range_in(whole: &[u8], piece: &str) -> Range<usize> {
    let start = (piece.as_ptr() as usize).wrapping_sub(whole.as_ptr() as usize);
    start..start.wrapping_add(piece.len())
}
