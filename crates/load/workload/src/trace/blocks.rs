//! The blocks of a trace whose prompts share text: their size, and their ids.
//!
//! Text is made in blocks of at most [`CACHE_BLOCK`] tokens. A larger block of a trace becomes
//! several, and the rest of a prompt gets unique ids.

use super::Record;
use crate::synthetic_text::CACHE_BLOCK;

/// Sizes that servers use, the most frequent first.
const USUAL: [u32; 10] = [512, 16, 32, 64, 128, 256, 1_024, 2_048, 4_096, 8];

/// Infers the tokens per block from the rows with ids. `stated` is the size of the format.
///
/// # Errors
/// No size matches the ids of all rows.
pub(super) fn size<'r>(
    records: impl Iterator<Item = &'r Record>,
    stated: u32,
) -> Result<u32, String> {
    let rows = records.filter(|record| !record.hash_ids.is_empty());
    let rows: Vec<_> = rows.map(|row| (row.hash_ids.len(), row.input_tokens)).collect();
    let sizes = [stated].into_iter().chain(USUAL).filter(|size| *size > 0);
    // Either every block has an id, even a partial last one, or only complete blocks do.
    let usual = sizes
        .clone()
        .find(|size| rows.iter().all(|(ids, input)| *ids == input.div_ceil(*size) as usize));
    let usual = usual.or_else(|| {
        sizes.clone().find(|size| rows.iter().all(|(ids, input)| *ids == (input / size) as usize))
    });
    // Rows may have fewer ids. The rest of such a prompt is unique.
    let too_many = rows.iter().find(|(ids, input)| *ids > input.div_ceil(stated.max(1)) as usize);
    match (usual, too_many) {
        (Some(size), _) => Ok(size),
        (None, None) => Ok(stated),
        (None, Some((ids, input))) => Err(format!(
            "no size of blocks explains the hash_ids of all rows (one has {ids} ids for an \
             input_length of {input}): write `block_size` of the trace"
        )),
    }
}

/// Completes the ids of every row, and returns the tokens per block of text.
pub(super) fn complete<'r>(
    records: impl Iterator<Item = &'r mut Record>,
    ids: &mut Vec<u64>,
    size: u32,
) -> u32 {
    let most = u32::try_from(CACHE_BLOCK).unwrap_or(u32::MAX);
    let parts = u64::from(size.div_ceil(most));
    let part = size.div_ceil(u32::try_from(parts).unwrap_or(1)).max(1);
    let known = std::mem::take(ids);
    // A row without ids needs none, because it shares no text.
    let sharing = (0u64..).zip(records).filter(|(_, record)| !record.hash_ids.is_empty());
    for (row, record) in sharing {
        let own = &known[record.hash_ids.clone()];
        let needed = record.input_tokens.div_ceil(part) as usize;
        let start = ids.len();
        let of_blocks = own.iter().flat_map(|id| {
            (0..parts).map(move |index| if parts == 1 { *id } else { spread(*id, index) })
        });
        ids.extend(of_blocks.take(needed));
        // Unique text.
        let missing = (0u64..).take(needed - (ids.len() - start));
        ids.extend(missing.map(|index| spread(!row, index ^ (1 << 63))));
        record.hash_ids = start..ids.len();
    }
    part
}

/// Derives a number that is unlikely to be an id of the trace (`SplitMix64`).
const fn spread(id: u64, index: u64) -> u64 {
    let mut mixed = id.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(&[u64], u32)]) -> (Vec<Record>, Vec<u64>) {
        let mut ids = Vec::new();
        let records = of.iter().map(|(own, input_tokens)| {
            let start = ids.len();
            ids.extend_from_slice(own);
            let hash_ids = start..ids.len();
            Record { input_tokens: *input_tokens, hash_ids, ..Record::default() }
        });
        (records.collect(), ids)
    }

    #[test]
    fn the_size_of_a_block_follows_from_the_rows() {
        for (of, expected) in [
            (&[(&[1, 2][..], 1_000), (&[1], 300)][..], Ok(512)),
            (&[(&[1, 2, 3], 48), (&[1], 9)], Ok(16)),
            (&[(&[1, 2], 1_500)], Ok(1_024)),
            // Whole blocks alone.
            (&[(&[1, 2, 3], 1_600), (&[], 300)], Ok(512)),
            // Fewer than the stated size needs.
            (&[(&[1, 2], 600), (&[1, 2, 3], 2_000)], Ok(512)),
            // A size of nobody has to be named.
            (&[(&[1, 2, 3], 900), (&[1], 2_000)], Err("3 ids for an input_length of 900")),
        ] {
            let found = size(rows(of).0.iter(), 512);
            match expected {
                Ok(size) => assert_eq!(found, Ok(size), "{of:?}"),
                Err(part) => assert!(found.unwrap_err().contains(part), "{of:?}"),
            }
        }
    }

    #[test]
    fn every_block_gets_an_id_and_equal_ids_stay_equal() {
        let (mut records, mut ids) = rows(&[(&[7, 8], 2_048), (&[7, 9], 1_500), (&[], 600)]);
        assert_eq!(complete(records.iter_mut(), &mut ids, 1_024), 512);
        let of = |row: usize| ids[records[row].hash_ids.clone()].to_vec();
        let (one, other, alone) = (of(0), of(1), of(2));
        assert_eq!((one.len(), other.len(), alone.len()), (4, 3, 0));
        assert_eq!(one[..2], other[..2]);
        let all: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(all.len(), 5, "nothing else is shared: {ids:?}");
    }
}
