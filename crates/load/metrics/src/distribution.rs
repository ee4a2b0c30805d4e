//! A distribution of times: an HDR histogram, with exact count, sum, minimum and maximum.

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use plimsoll_measure::Nanos;
use plimsoll_stats::descriptive::rank;
use plimsoll_stats::samples_needed;
use serde::de::Error as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::error::MetricsError;

/// Values up to about 1 ms are resolved in steps of 512 ns; larger ones by 3 significant digits.
const LOWEST: u64 = 1_000;
/// The range before the histogram grows by itself; no value is clipped.
const HOUR: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// A distribution of times in nanoseconds.
///
/// The list of counters is as long as the largest value needs: 16 KiB up to 1 ms, 96 KiB up to 1 s.
#[derive(Clone, Debug)]
pub struct Distribution {
    buckets: Buckets,
    count: u64,
    sum: u128,
    min: u64,
    max: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self { buckets: Buckets::default(), count: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Distribution {
    /// Adds one value.
    pub fn record(&mut self, value: Nanos) {
        let nanos = value.as_u64();
        self.count += 1;
        self.sum += u128::from(nanos);
        self.min = self.min.min(nanos);
        self.max = self.max.max(nanos);
        self.buckets.add_n(bucket_index(nanos), 1);
    }

    /// Adds all values of another distribution, bucket by bucket.
    pub fn merge(&mut self, other: &Self) {
        self.buckets.merge(&other.buckets);
        self.count += other.count;
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of values.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of all values, in nanoseconds.
    pub const fn sum(&self) -> u128 {
        self.sum
    }

    /// Exact mean; `None` without values.
    pub fn mean(&self) -> Option<Nanos> {
        let mean = self.sum.checked_div(u128::from(self.count))?;
        Some(Nanos::new(u64::try_from(mean).unwrap_or(u64::MAX)))
    }

    /// Exact smallest value; `None` without values.
    pub const fn min(&self) -> Option<Nanos> {
        if self.count > 0 { Some(Nanos::new(self.min)) } else { None }
    }

    /// Exact largest value; `None` without values.
    pub const fn max(&self) -> Option<Nanos> {
        if self.count > 0 { Some(Nanos::new(self.max)) } else { None }
    }

    /// The value that a share `q` of all values do not exceed, to the histogram's resolution;
    /// `None` if there are fewer than [`samples_needed`].
    pub fn quantile(&self, q: f64) -> Option<Nanos> {
        if self.count < samples_needed(q) { None } else { self.nearest_rank(q) }
    }

    /// [`Distribution::quantile`] of any number of values except none. For judging the instrument,
    /// where one bad value of few matters; not for reporting the target.
    pub fn nearest_rank(&self, q: f64) -> Option<Nanos> {
        if self.count == 0 {
            return None;
        }
        let rank = rank(q, usize::try_from(self.count).unwrap_or(usize::MAX));
        let bucket = self.buckets.of_rank(rank as u64);
        // A bucket's upper edge may lie beyond the largest value that is in it.
        let value = bucket.map_or(self.max, upper_edge);
        Some(Nanos::new(value.clamp(self.min, self.max)))
    }

    /// These values with the values `from`, which must be among them, replaced by the values `to`.
    /// Smallest and largest are exact to the histogram's resolution.
    pub(crate) fn replaced(&self, from: &Self, to: &Self) -> Self {
        let mut buckets = self.buckets.clone();
        from.for_each_bucket(&mut |bucket, n| buckets.take(bucket, n));
        to.for_each_bucket(&mut |bucket, n| buckets.add_n(bucket, n));
        let (mut count, mut largest) = (0, 0);
        for (bucket, n) in buckets.filled() {
            (count, largest) = (count + n, upper_edge(bucket));
        }
        Self {
            buckets,
            count,
            sum: (self.sum + to.sum).saturating_sub(from.sum),
            min: self.min.min(to.min),
            max: largest.min(self.max.max(to.max)),
        }
    }

    /// Standard deviation in nanoseconds, to the histogram's resolution.
    pub(crate) fn standard_deviation(&self) -> f64 {
        let count = self.count.max(1) as f64;
        let mean = self.sum as f64 / count;
        let mut squares = 0.0;
        self.for_each_bucket(&mut |bucket, n| {
            squares += (upper_edge(bucket) as f64 - mean).powi(2) * n as f64;
        });
        (squares / count).sqrt()
    }

    /// Calls `visit` with the [`bucket_index`] and the count of every bucket that holds values,
    /// ascending.
    pub(crate) fn for_each_bucket(&self, visit: &mut dyn FnMut(u32, u64)) {
        self.buckets.filled().for_each(|(bucket, count)| visit(bucket, count));
    }

    /// Calls `visit` with the upper edge in nanoseconds and the count of every non-empty bucket,
    /// ascending. The last bucket is reported with the largest value instead of its edge.
    pub(crate) fn for_each_value(&self, visit: &mut dyn FnMut(u64, u64)) {
        self.for_each_bucket(&mut |bucket, n| visit(upper_edge(bucket).min(self.max), n));
    }

    /// The number of values in each class: up to each of the ascending `limits`, in nanoseconds,
    /// and above the last. A value counts as the upper edge of its bucket (at most 0.1 % above it),
    /// independent of the other values, so the counts of parts add up to the counts of the whole.
    pub fn classes<const N: usize>(&self, limits: &[u64; N]) -> ([u64; N], u64) {
        let (mut counts, mut above) = ([0; N], 0);
        self.for_each_bucket(&mut |bucket, n| {
            let edge = upper_edge(bucket);
            let class = limits.partition_point(|limit| *limit < edge);
            *counts.get_mut(class).unwrap_or(&mut above) += n;
        });
        (counts, above)
    }

    /// The histogram in nanoseconds, as every HdrHistogram tool reads it: V2 encoding, deflated,
    /// base64.
    ///
    /// # Errors
    /// [`MetricsError::EncodeHistogram`], which only an exhausted memory can cause.
    pub fn encode(&self) -> Result<String, MetricsError> {
        let mut bytes = Vec::new();
        V2DeflateSerializer::new()
            .serialize(&self.to_histogram(), &mut bytes)
            .map_err(|error| MetricsError::EncodeHistogram(error.to_string()))?;
        Ok(STANDARD.encode(bytes))
    }

    /// Reads what [`Distribution::encode`] wrote, and restores the exact figures.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] if the text is not such a histogram.
    pub(crate) fn decode(text: &str, exact: &ExactFigures) -> Result<Self, MetricsError> {
        let bytes = STANDARD
            .decode(text)
            .map_err(|error| MetricsError::DecodeHistogram(error.to_string()))?;
        check_claims(&bytes).map_err(|cause| MetricsError::DecodeHistogram(cause.to_owned()))?;
        let histogram: Histogram<u64> = Deserializer::new()
            .deserialize(&mut bytes.as_slice())
            .map_err(|error| MetricsError::DecodeHistogram(error.to_string()))?;
        let counts = histogram.iter_recorded().map(|entry| {
            (bucket_index(entry.value_iterated_to()), entry.count_since_last_iteration())
        });
        Ok(Self::from_buckets(counts, exact))
    }

    /// The values of these buckets, each with its [`bucket_index`] and count.
    pub(crate) fn from_buckets(
        counts: impl Iterator<Item = (u32, u64)>,
        exact: &ExactFigures,
    ) -> Self {
        let (mut buckets, mut count) = (Buckets::default(), 0);
        for (bucket, n) in counts {
            buckets.add_n(bucket, n);
            count += n;
        }
        let ExactFigures { sum, min, max } = *exact;
        Self { buckets, count, sum, min, max }
    }

    /// Every value is recorded at the upper edge of its bucket, which lies in the same bucket of
    /// the histogram.
    fn to_histogram(&self) -> Histogram<u64> {
        let mut histogram = empty();
        self.for_each_bucket(&mut |bucket, count| {
            let fits = histogram.record_n(upper_edge(bucket), count);
            // The only cause of failure is an address space too small for the grown histogram.
            debug_assert!(fits.is_ok(), "an auto-resizing histogram takes every value");
        });
        histogram
    }
}

/// The figures that a histogram does not keep exactly, in nanoseconds.
pub(crate) struct ExactFigures {
    pub(crate) sum: u128,
    pub(crate) min: u64,
    pub(crate) max: u64,
}

/// Checks the head of an encoded histogram before memory is reserved: it must have the resolution
/// of our histograms and no more counters than they have.
fn check_claims(bytes: &[u8]) -> Result<(), &'static str> {
    /// V2 encoding: cookie, length of the counters, offset, digits, lowest, highest, ratio.
    const HEAD: usize = 40;
    /// More than the bytes of all counters: the first 2,048 and 54 doublings, 9 bytes for each.
    const MOST_COUNTERS: u32 = (2_048 + 54 * 1_024) * 9;
    let mut head = [0; HEAD];
    let deflated = bytes.get(8..).ok_or("it is too short")?;
    let read = ZlibDecoder::new(deflated).read_exact(&mut head);
    read.map_err(|_| "its header is missing")?;
    if number_at(&head, 4) > MOST_COUNTERS {
        return Err("it claims more counters than there are");
    }
    let lowest = u64::from(number_at(&head, 16)) << 32 | u64::from(number_at(&head, 20));
    if (number_at(&head, 12), lowest) != (u32::from(DIGITS), LOWEST) {
        return Err("it has another resolution");
    }
    Ok(())
}

fn number_at(head: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]])
}

fn empty() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(LOWEST, HOUR, DIGITS)
        .unwrap_or_else(|_| unreachable!("the bounds are constants that the constructor accepts"));
    histogram.auto(true);
    histogram
}

// The buckets of a worker's histogram: a list of counters, as long as the largest value needs.

/// Values are resolved in units of 512 ns up to about a thousand units, and above by 3 significant
/// digits.
const UNIT_BITS: u32 = LOWEST.ilog2();
/// Buckets per power of two: 3 digits need 1,024.
const SUB_BITS: u32 = 10;
/// The list grows by this number of buckets: one power of two.
const STEP: usize = 1 << SUB_BITS;

/// The number of values in each bucket of an HDR histogram ("High Dynamic Range": buckets of equal
/// width within each power of two), by [`bucket_index`].
#[derive(Clone, Debug, Default)]
struct Buckets(Vec<u64>);

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
fn upper_edge(bucket: u32) -> u64 {
    let shift = (bucket >> SUB_BITS).saturating_sub(1);
    let units = u64::from(bucket - (shift << SUB_BITS)) + 1;
    // The edge of the last bucket is 2^64.
    (units << (shift + UNIT_BITS)).wrapping_sub(1)
}

// A distribution in a file of counts: the buckets that hold values, and the exact figures.

#[derive(Serialize, Deserialize)]
struct Stored {
    sum: u128,
    min: u64,
    max: u64,
    /// Index and count of each bucket that holds values, ascending.
    buckets: Vec<(u32, u64)>,
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buckets = Vec::new();
        self.for_each_bucket(&mut |bucket, count| buckets.push((bucket, count)));
        Stored { sum: self.sum, min: self.min, max: self.max, buckets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { sum, min, max, buckets } = Stored::deserialize(deserializer)?;
        let total = buckets.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        if total.is_none() || buckets.iter().any(|(bucket, _)| *bucket > MAX_BUCKET) {
            return Err(D::Error::custom("a histogram is damaged"));
        }
        Ok(Self::from_buckets(buckets.into_iter(), &ExactFigures { sum, min, max }))
    }
}

// The quantiles that reports show.

/// One quantile that reports show.
#[derive(Clone, Copy, Debug)]
pub struct Quantile {
    /// Key in JSON and CSV.
    pub key: &'static str,
    /// Heading in tables.
    pub label: &'static str,
    /// The quantile, from 0 to 1.
    pub q: f64,
}

/// The quantiles that reports show.
pub const QUANTILES: [Quantile; 5] = [
    Quantile { key: "p50", label: "p50", q: 0.5 },
    Quantile { key: "p90", label: "p90", q: 0.9 },
    Quantile { key: "p95", label: "p95", q: 0.95 },
    Quantile { key: "p99", label: "p99", q: 0.99 },
    Quantile { key: "p99_9", label: "p99.9", q: 0.999 },
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn distribution_of(values: &[u64]) -> Distribution {
        let mut distribution = Distribution::default();
        for &nanos in values {
            distribution.record(Nanos::new(nanos));
        }
        distribution
    }

    fn merged(parts: &[Distribution]) -> Distribution {
        let mut whole = Distribution::default();
        for part in parts {
            whole.merge(part);
        }
        whole
    }

    fn buckets(d: &Distribution) -> Vec<(u32, u64)> {
        let mut buckets = Vec::new();
        d.for_each_bucket(&mut |bucket, count| buckets.push((bucket, count)));
        buckets
    }

    /// Everything that is visible of a distribution.
    fn visible(d: &Distribution) -> String {
        let buckets = buckets(d);
        format!("{} {} {:?} {:?} {buckets:?}", d.count(), d.sum(), d.min(), d.max())
    }

    #[test]
    fn quantiles_of_a_known_sequence_are_within_the_resolution() {
        // 1 us, 2 us, ... 100 ms: quantile q is q * 100 ms.
        let values: Vec<u64> = (1..=100_000).map(|i| i * 1_000).collect();
        let distribution = distribution_of(&values);
        for q in [0.5, 0.9, 0.95, 0.99, 0.999] {
            let measured = distribution.quantile(q).unwrap().as_u64() as f64;
            assert!((measured / (q * 1e8) - 1.0).abs() < 0.001, "{q}: {measured}");
        }
        assert_eq!(distribution.mean(), Some(Nanos::new(50_000_500)));
        assert_eq!(distribution.min(), Some(Nanos::from_micros(1)));
        assert_eq!(distribution.max(), Some(Nanos::from_millis(100)));
    }

    #[test]
    fn the_rank_of_a_quantile_does_not_depend_on_how_it_was_rounded() {
        let values: Vec<u64> = (1..=1_000).map(|i| i * 1_000_000).collect();
        let rank =
            |q| distribution_of(&values).nearest_rank(q).map(|value| value.as_u64() / 1_000_000);
        for (q, expected) in [(0.999, 999), (99.9 / 100.0, 999), (0.55, 550), (0.5, 500)] {
            // A bucket is up to 0.1 % wide.
            assert!(rank(q).unwrap().abs_diff(expected) == 0, "{q}: {:?}", rank(q));
        }
    }

    #[test]
    fn nothing_is_clipped_however_long_it_took() {
        let day = 86_400_000_000_000;
        let distribution = distribution_of(&[0, day, u64::MAX]);
        assert_eq!(distribution.max(), Some(Nanos::MAX));
        let median = distribution.nearest_rank(0.5).unwrap().as_u64();
        assert!(median.abs_diff(day) < day / 1_000, "{median}");
    }

    #[test]
    fn a_quantile_is_refused_where_the_samples_are_too_few() {
        assert_eq!(distribution_of(&[5_000; 99]).quantile(0.9), None);
        assert_eq!(distribution_of(&[5_000; 100]).quantile(0.9), Some(Nanos::from_micros(5)));
        assert_eq!(distribution_of(&[]).nearest_rank(0.5), None);
        assert_eq!(distribution_of(&[]).mean(), None);
    }

    #[test]
    fn classes_hold_what_is_up_to_their_limit_and_those_of_parts_add_up() {
        let (ms, limits) = (1_000_000, [1_000_000, 10_000_000]);
        let parts =
            [distribution_of(&[ms / 2, 2 * ms, 9 * ms]), distribution_of(&[20 * ms, 9 * ms])];
        assert_eq!(parts[0].classes(&limits), ([1, 2], 0));
        assert_eq!(parts[1].classes(&limits), ([0, 1], 1));
        assert_eq!(merged(&parts).classes(&limits), ([1, 3], 1));
        assert_eq!(distribution_of(&[]).classes(&limits), ([0, 0], 0));
    }

    #[test]
    fn replaced_values_are_those_of_a_recording_without_them() {
        let all = distribution_of(&[1_000_000, 20_000_000, 20_000_000, 90_000_000]);
        let (from, to) = (
            distribution_of(&[20_000_000, 90_000_000]),
            distribution_of(&[5_000_000, 30_000_000, 1_000_000]),
        );
        let expected = distribution_of(&[1_000_000, 20_000_000, 5_000_000, 30_000_000, 1_000_000]);
        let found = all.replaced(&from, &to);
        assert_eq!((found.count(), found.sum(), found.min()), (5, expected.sum(), expected.min()));
        assert_eq!(buckets(&found), buckets(&expected));
        let max = found.max().unwrap().as_u64();
        assert!(max.abs_diff(30_000_000) < 30_000, "{max}");
        // 10, 10, 40 and 40 ms: 15 ms to each side of 25 ms.
        let deviation =
            distribution_of(&[10_000_000, 10_000_000, 40_000_000, 40_000_000]).standard_deviation();
        assert!((deviation / 15e6 - 1.0).abs() < 0.001, "{deviation}");
    }

    #[test]
    fn an_encoded_histogram_reads_back_bucket_by_bucket() {
        let distribution = distribution_of(&[700, 1_500_000, 1_500_000, 40_000_000_000]);
        let exact =
            ExactFigures { sum: distribution.sum, min: distribution.min, max: distribution.max };
        let back = Distribution::decode(&distribution.encode().unwrap(), &exact).unwrap();
        assert_eq!(visible(&back), visible(&distribution));
        assert!(Distribution::decode("no histogram", &exact).is_err());
    }

    /// A head of the V2 encoding, deflated, with these claims and one counter.
    fn claiming(length: u32, digits: u32, lowest: u64) -> String {
        let mut inner = Vec::new();
        for number in [0x1c84_9313, length, 0, digits] {
            inner.extend(number.to_be_bytes());
        }
        for number in [lowest, u64::MAX >> 1, 1.0_f64.to_bits()] {
            inner.extend(number.to_be_bytes());
        }
        inner.push(2);
        let mut deflater = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut deflater, &inner).unwrap();
        let deflated = deflater.finish().unwrap();
        let head = [0x1c84_9314, u32::try_from(deflated.len()).unwrap()].map(u32::to_be_bytes);
        STANDARD.encode([head.concat(), deflated].concat())
    }

    #[test]
    fn a_histogram_reserves_no_more_memory_than_its_resolution_needs() {
        let exact = ExactFigures { sum: 0, min: 0, max: 0 };
        assert!(Distribution::decode(&claiming(1, 3, 1_000), &exact).is_ok());
        for (length, digits, lowest) in [
            (0x7fff_ffff, 3, 1_000),
            (u32::MAX, 3, 1_000),
            (1, 5, 1_000),
            (1, 255, 1_000),
            (1, 3, 1),
        ] {
            let found = Distribution::decode(&claiming(length, digits, lowest), &exact);
            assert!(found.is_err(), "{length} {digits} {lowest}");
        }
    }

    proptest! {
        /// The reference is the histogram of the library.
        #[test]
        fn quantiles_are_those_of_the_histogram(
            values in proptest::collection::vec(0u64..20_000_000_000_000, 1..60),
            bits in 0u32..40,
            q in 0.0..=1.0,
        ) {
            let values: Vec<_> = values.iter().map(|value| value >> bits).collect();
            let narrow = distribution_of(&values);
            let mut wide = Distribution::default();
            wide.merge(&narrow);
            let expected = narrow.to_histogram().value_at_quantile(q * (1.0 - 1e-12));
            let expected = Nanos::new(expected.clamp(narrow.min, narrow.max));
            prop_assert_eq!(narrow.nearest_rank(q), Some(expected));
            prop_assert_eq!(wide.nearest_rank(q), Some(expected));
        }

        #[test]
        fn merging_is_recording_in_one_whatever_the_grouping_and_order(
            values in proptest::collection::vec(0u64..20_000_000_000_000, 0..60),
            cuts in (0usize..60, 0usize..60),
        ) {
            let (low, high) = (cuts.0.min(cuts.1).min(values.len()), cuts.0.max(cuts.1).min(values.len()));
            let parts = [distribution_of(&values[..low]), distribution_of(&values[low..high]), distribution_of(&values[high..])];
            let one = visible(&distribution_of(&values));
            prop_assert_eq!(&visible(&merged(&parts)), &one);
            let [a, b, c] = parts;
            prop_assert_eq!(&visible(&merged(&[c, merged(&[b, a])])), &one);
        }
    }
}

#[cfg(test)]
mod buckets_tests {
    use proptest::prelude::*;

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
