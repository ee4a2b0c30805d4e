//! The blocks of a trace whose prompts share text: of what size they are, and ids for all of them.
//!
//! Text is made in blocks of at most [`CACHE_BLOCK`] tokens. A larger block of a trace becomes
//! several, and what no id covers gets ids of its own.

use super::TraceRecord;
use crate::error::TraceFault;
use crate::synthetic_text::CACHE_BLOCK;

/// Sizes that servers use, the most frequent first.
const USUAL: [u32; 10] = [512, 16, 32, 64, 128, 256, 1_024, 2_048, 4_096, 8];

/// Tokens of a block, by the rows that have ids; `None` where there are none.
///
/// # Errors
/// No size explains the ids of all rows.
pub(crate) fn size(records: &[TraceRecord]) -> Result<Option<u32>, TraceFault> {
    let rows = records.iter().filter(|record| !record.hash_ids.is_empty());
    let rows: Vec<_> = rows.map(|row| (row.hash_ids.len(), row.input_tokens)).collect();
    if rows.is_empty() {
        return Ok(None);
    }
    // An id for every block, the last of which may be cut; else for whole blocks alone.
    let usual = USUAL
        .into_iter()
        .find(|size| rows.iter().all(|(ids, input)| *ids == input.div_ceil(*size) as usize));
    let usual = usual.or_else(|| {
        let mut sizes = USUAL.into_iter();
        sizes.find(|size| rows.iter().all(|(ids, input)| *ids == (input / size) as usize))
    });
    usual.map(Some).ok_or_else(|| {
        let wrong = rows.iter().find(|(ids, input)| *ids != input.div_ceil(512) as usize);
        let (found, input) = wrong.copied().unwrap_or_default();
        TraceFault::Blocks { found, input }
    })
}

/// Gives every row an id for each of its blocks, and the ids in a list; returns the tokens of a
/// block of text.
pub(crate) fn complete(records: &mut [TraceRecord], ids: &mut Vec<u64>, size: u32) -> u32 {
    let most = u32::try_from(CACHE_BLOCK).unwrap_or(u32::MAX);
    let parts = u64::from(size.div_ceil(most));
    let part = size.div_ceil(u32::try_from(parts).unwrap_or(1)).max(1);
    let known = std::mem::take(ids);
    // A row without ids shares nothing, and needs none.
    let sharing = (0u64..).zip(records).filter(|(_, record)| !record.hash_ids.is_empty());
    for (row, record) in sharing {
        let own = &known[record.hash_ids.clone()];
        let needed = record.input_tokens.div_ceil(part) as usize;
        let start = ids.len();
        let of_blocks = own.iter().flat_map(|id| {
            (0..parts).map(move |index| if parts == 1 { *id } else { spread(*id, index) })
        });
        ids.extend(of_blocks.take(needed));
        // Text that no other row has.
        let missing = (0u64..).take(needed - (ids.len() - start));
        ids.extend(missing.map(|index| spread(!row, index ^ (1 << 63))));
        record.hash_ids = start..ids.len();
    }
    part
}

/// A number that no id of a trace is likely to be (`SplitMix64`).
const fn spread(id: u64, index: u64) -> u64 {
    let mut mixed = id.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(&[u64], u32)]) -> (Vec<TraceRecord>, Vec<u64>) {
        let mut ids = Vec::new();
        let records = of.iter().map(|(own, input_tokens)| {
            let start = ids.len();
            ids.extend_from_slice(own);
            let hash_ids = start..ids.len();
            TraceRecord {
                at: 0,
                input_tokens: *input_tokens,
                output_tokens: 1,
                hash_ids,
                text: None,
            }
        });
        (records.collect(), ids)
    }

    #[test]
    fn the_size_of_a_block_follows_from_the_rows() {
        for (of, expected) in [
            (&[(&[1, 2][..], 1_000), (&[1], 300)][..], Ok(Some(512))),
            (&[(&[1, 2, 3], 48), (&[1], 9)], Ok(Some(16))),
            (&[(&[1, 2], 1_500)], Ok(Some(1_024))),
            // Whole blocks alone.
            (&[(&[1, 2, 3], 1_600), (&[], 300)], Ok(Some(512))),
            // A size of nobody has to be named.
            (
                &[(&[1, 2], 600), (&[1, 2, 3], 2_000)],
                Err(TraceFault::Blocks { found: 3, input: 2_000 }),
            ),
            (&[(&[], 5)], Ok(None)),
            (&[(&[1, 2, 3], 900), (&[1], 2_000)], Err(TraceFault::Blocks { found: 3, input: 900 })),
        ] {
            assert_eq!(size(&rows(of).0), expected, "{of:?}");
        }
    }

    #[test]
    fn every_block_gets_an_id_and_equal_ids_stay_equal() {
        let (mut records, mut ids) = rows(&[(&[7, 8], 2_048), (&[7, 9], 1_500), (&[], 600)]);
        assert_eq!(complete(&mut records, &mut ids, 1_024), 512);
        let of = |row: usize| ids[records[row].hash_ids.clone()].to_vec();
        let (one, other, alone) = (of(0), of(1), of(2));
        assert_eq!((one.len(), other.len(), alone.len()), (4, 3, 0));
        assert_eq!(one[..2], other[..2]);
        let all: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(all.len(), 5, "nothing else is shared: {ids:?}");
    }
}
