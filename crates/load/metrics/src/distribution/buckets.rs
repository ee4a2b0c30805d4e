//! The buckets of a worker's histogram: a list of counters, as long as the largest value needs.

/// Values are resolved in units of 512 ns up to about a thousand units, and above by 3 significant
/// digits.
const UNIT_BITS: u32 = super::LOWEST.ilog2();
/// Buckets per power of two: 3 digits need 1,024.
const SUB_BITS: u32 = 10;
/// The list grows by this number of buckets: one power of two.
const STEP: usize = 1 << SUB_BITS;

/// The number of values in each bucket of an HDR histogram ("High Dynamic Range": buckets of equal
/// width within each power of two), by [`bucket_index`].
#[derive(Clone, Debug, Default)]
pub(super) struct Buckets(Vec<u64>);

impl Buckets {
    /// Counts values of one bucket, which most often has others already.
    #[inline]
    pub(super) fn add_n(&mut self, bucket: u32, values: u64) {
        let index = bucket as usize;
        if index >= self.0.len() {
            self.grow(index + 1);
        }
        self.0[index] = self.0[index].saturating_add(values);
    }

    /// Takes values out of a bucket, at most those that it has.
    pub(super) fn take(&mut self, bucket: u32, values: u64) {
        if let Some(count) = self.0.get_mut(bucket as usize) {
            *count = count.saturating_sub(values);
        }
    }

    /// Adds all values of another list.
    pub(super) fn merge(&mut self, other: &Self) {
        if other.0.len() > self.0.len() {
            self.grow(other.0.len());
        }
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = mine.saturating_add(*theirs);
        }
    }

    /// The bucket of the value with this rank, counted from 1 in ascending order; `None` beyond the
    /// last value.
    pub(super) fn of_rank(&self, rank: u64) -> Option<u32> {
        let mut up_to = 0;
        self.0
            .iter()
            .position(|count: &u64| {
                up_to += count;
                up_to >= rank
            })
            .and_then(|index| u32::try_from(index).ok())
    }

    /// The buckets that hold values, ascending: index and count.
    pub(super) fn filled(&self) -> impl Iterator<Item = (u32, u64)> {
        (0..).zip(self.0.iter().copied()).filter(|(_, count)| *count > 0)
    }

    #[cold]
    fn grow(&mut self, len: usize) {
        self.0.resize(len.next_multiple_of(STEP), 0);
    }
}

/// The index of the bucket of the largest value.
pub(crate) const MAX_BUCKET: u32 = bucket_index(u64::MAX);

/// The index of the bucket of a value. It never falls with a higher value, and two values have the
/// same one exactly if the histogram counts them in the same bucket.
#[expect(
    clippy::cast_possible_truncation,
    reason = "at most 11 bits are left after the shift, which is at most 44"
)]
pub(crate) const fn bucket_index(nanos: u64) -> u32 {
    let units = nanos >> UNIT_BITS;
    let shift = (u64::BITS - units.leading_zeros()).saturating_sub(SUB_BITS + 1);
    (shift << SUB_BITS) + (units >> shift) as u32
}

/// The largest value of a bucket, in nanoseconds.
pub(crate) fn upper_edge(bucket: u32) -> u64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let units = u64::from(bucket - (shift << SUB_BITS)) + 1;
    // The edge of the last bucket is 2^64.
    (units << (shift + UNIT_BITS)).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::empty;
    use super::*;

    proptest! {
        #[test]
        fn bucket_numbers_are_the_histograms_buckets(bits in 0u32..64, a in any::<u64>(), near in 0u64..4_096) {
            let a = a >> bits;
            let b = a.saturating_add(near);
            let histogram = empty();
            prop_assert_eq!(bucket_index(a) == bucket_index(b), histogram.equivalent(a, b));
            prop_assert!(bucket_index(a) <= bucket_index(b));
        }

        #[test]
        fn the_upper_edge_is_the_last_value_of_its_bucket(bits in 0u32..64, value in any::<u64>()) {
            let (value, number) = (value >> bits, bucket_index(value >> bits));
            let edge = upper_edge(number);
            prop_assert!(value <= edge && bucket_index(edge) == number);
            prop_assert!(edge == u64::MAX || bucket_index(edge + 1) > number);
        }

        #[test]
        fn every_value_is_counted_in_its_bucket(values in proptest::collection::vec(any::<u64>(), 0..50), bits in 0u32..64) {
            let mut buckets = Buckets::default();
            let mut expected = std::collections::BTreeMap::new();
            for value in values.iter().map(|value| value >> bits) {
                buckets.add_n(bucket_index(value), 1);
                *expected.entry(bucket_index(value)).or_insert(0) += 1;
            }
            prop_assert_eq!(buckets.filled().collect::<Vec<_>>(), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
