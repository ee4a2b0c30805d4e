//! A compact histogram, for the many batches and intervals of a long run.

use plimsoll_stats::LimitCount;
use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, MAX_BUCKET};

/// A compact histogram: indices of the buckets that hold values, ascending, and their counts.
///
/// Batches and intervals are kept until the end of the run, and take most of the memory that grows
/// with its length. So a bucket is stored as its distance from the one before and its count, both
/// as variable-length integers: mostly two or three bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>")]
pub(crate) struct SparseHistogram(Vec<u8>);

impl SparseHistogram {
    /// Buckets in ascending order.
    #[cfg(test)]
    pub(crate) fn from_counts(counts: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut writer = SparseWriter::default();
        counts.into_iter().for_each(|(bucket, count)| writer.push(bucket, count));
        writer.finish()
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn from_distribution(distribution: Option<&Distribution>) -> Self {
        let mut writer = SparseWriter::default();
        if let Some(distribution) = distribution {
            distribution.for_each_bucket(&mut |bucket, n| {
                writer.push(bucket, u32::try_from(n).unwrap_or(u32::MAX));
            });
        }
        writer.finish()
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        let (mut mine, mut theirs) = (self.buckets().peekable(), other.buckets().peekable());
        let mut both = SparseWriter::default();
        loop {
            let next = match (mine.peek(), theirs.peek()) {
                (Some(&(a, n)), Some(&(b, m))) if a == b => {
                    mine.next();
                    theirs.next();
                    Some((a, n.saturating_add(m)))
                }
                (Some((a, _)), Some((b, _))) if b < a => theirs.next(),
                (Some(_), _) => mine.next(),
                (None, _) => theirs.next(),
            };
            let Some((bucket, count)) = next else { break };
            both.push(bucket, count);
        }
        *self = both.finish();
    }

    /// Counts the values up to the bucket `limit`, and all values.
    pub(crate) fn count_within(&self, limit: u32) -> LimitCount {
        self.buckets().fold(LimitCount { within: 0, all: 0 }, |sum, (bucket, n)| LimitCount {
            within: sum.within + if bucket <= limit { u64::from(n) } else { 0 },
            all: sum.all + u64::from(n),
        })
    }

    /// The buckets that hold values, ascending: index and count.
    pub(crate) const fn buckets(&self) -> SparseBuckets<'_> {
        SparseBuckets { rest: self.0.as_slice(), bucket: 0 }
    }
}

/// Reads stored bytes; rejects invalid histograms.
impl TryFrom<Vec<u8>> for SparseHistogram {
    type Error = &'static str;

    fn try_from(bytes: Vec<u8>) -> Result<Self, Self::Error> {
        let mut read = SparseBuckets { rest: &bytes, bucket: 0 };
        while !read.rest.is_empty() {
            let next = read.number().and_then(|by| read.bucket.checked_add(by));
            let next = next.filter(|bucket| *bucket <= MAX_BUCKET).zip(read.number());
            (read.bucket, _) = next.ok_or("a list of buckets is damaged")?;
        }
        Ok(Self(bytes))
    }
}

/// Writes buckets in ascending order.
#[derive(Default)]
struct SparseWriter {
    bytes: Vec<u8>,
    last: u32,
}

impl SparseWriter {
    fn push(&mut self, bucket: u32, count: u32) {
        let last = std::mem::replace(&mut self.last, bucket);
        self.put_varint(bucket - last);
        self.put_varint(count);
    }

    /// Appends seven bits in each byte, the lowest first; the top bit is set if more bytes follow.
    #[expect(clippy::cast_possible_truncation, reason = "only the lowest bits are wanted")]
    fn put_varint(&mut self, mut number: u32) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Drops the spare capacity: the histogram does not grow any more.
    fn finish(mut self) -> SparseHistogram {
        self.bytes.shrink_to_fit();
        SparseHistogram(self.bytes)
    }
}

/// Iterates over the buckets of a [`SparseHistogram`] and their counts.
pub(crate) struct SparseBuckets<'a> {
    rest: &'a [u8],
    bucket: u32,
}

impl SparseBuckets<'_> {
    fn number(&mut self) -> Option<u32> {
        let mut number = 0;
        for shift in (0..u32::BITS).step_by(7) {
            let (byte, rest) = self.rest.split_first()?;
            self.rest = rest;
            number |= u32::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        Some(number)
    }
}

impl Iterator for SparseBuckets<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<Self::Item> {
        self.bucket += self.number()?;
        Some((self.bucket, self.number()?))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    fn sparse(values: &[u8]) -> SparseHistogram {
        let mut counts = BTreeMap::new();
        for value in values {
            *counts.entry(u32::from(*value)).or_default() += 1;
        }
        SparseHistogram::from_counts(counts)
    }

    proptest! {
        #[test]
        fn buckets_are_read_as_they_were_written(
            counts in proptest::collection::btree_map(0u32..70_000, any::<u32>(), 0..50),
        ) {
            let read: Vec<_> = SparseHistogram::from_counts(counts.clone()).buckets().collect();
            prop_assert_eq!(read, counts.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn merging_sparse_counts_is_counting_together(
            a in proptest::collection::vec(0u8..20, 0..40),
            b in proptest::collection::vec(0u8..20, 0..40),
            limit in 0u32..20,
        ) {
            let mut merged = sparse(&a);
            merged.merge(&sparse(&b));
            let both = [a, b].concat();
            prop_assert_eq!(&merged, &sparse(&both));
            let within = both.iter().filter(|value| u32::from(**value) <= limit).count() as u64;
            prop_assert_eq!(merged.count_within(limit), LimitCount { within, all: both.len() as u64 });
        }
    }
}
