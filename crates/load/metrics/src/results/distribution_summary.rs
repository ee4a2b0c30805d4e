//! The figures of one distribution, as `summary.json` holds them.

use std::collections::BTreeMap;

use plimsoll_measure::Nanos;
use plimsoll_stats::batches::independent_shares;
use plimsoll_stats::{NoIntervalReason, lower_rank};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bounded_figure::{
    Bias, BoundedFigure, HalfInterval, Refusal, by_censoring, by_generator, mean_half_interval,
};
use crate::catalog::Metric;
use crate::confidence::Interval;
use crate::distribution::{Distribution, ExactFigures, QUANTILES, Quantile};
use crate::error::MetricsError;

/// A distribution of times, in milliseconds. A percentile is `null` if fewer than 10 samples lie
/// beyond it.
// Some figures must not be used (docs/adr/0007), so they are private: `figure`, `mean_figure` and
// so on check that, `raw_...` do not. Not a documentation comment, because the JSON Schema would
// show it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionSummary {
    /// Number of values.
    pub count: u64,
    /// Exact sum.
    sum: f64,
    /// Exact mean.
    mean: f64,
    /// Exact smallest value.
    min: f64,
    /// Median.
    p50: Option<f64>,
    /// 90th percentile.
    p90: Option<f64>,
    /// 95th percentile.
    p95: Option<f64>,
    /// 99th percentile.
    p99: Option<f64>,
    /// 99.9th percentile.
    p99_9: Option<f64>,
    /// Exact largest value.
    max: f64,
    /// 95 % confidence intervals by percentile, like `p99`, which allow for autocorrelation; only
    /// for some metrics.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ci: BTreeMap<String, Interval>,
    /// Why a percentile that is given has no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci_note: Option<String>,
    /// Measurement error in milliseconds, by figure: `mean`, `min`, `max`, or a percentile like
    /// `p99`. Figures without an error are left out.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bound_ms: BTreeMap<String, f64>,
    /// Upper bound of a figure of gaps, if the generator read late.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub most_ms: BTreeMap<String, f64>,
    /// The figures whose value alone proves nothing, with the reason: `generator` (it may have
    /// added more than 5 % and half of the 95 % interval: see `bound_ms`) or `censored` (too many
    /// requests had no end, and may be longer).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, Refusal>,
    /// Requests without an end (in flight, timed out and, if counted from the intended start, never
    /// sent), which may be longer than all of these.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// HDR histogram in nanoseconds: V2 encoding, deflated, base64.
    pub histogram: String,
    /// The histogram without the measurement error, or the lower bounds of gaps; left out if equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undisturbed_histogram: Option<String>,
    /// The upper bounds of gaps; left out if equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prolonged_histogram: Option<String>,
}

/// Both limits of a distribution without the generator, if they differ from the measured values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) least: Option<Distribution>,
    /// Upper limit, for gaps. Other times have symmetric limits, or the measured value as the upper
    /// limit.
    pub(crate) most: Option<Distribution>,
}

/// The median of any number of values, with its interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Middle {
    /// The median.
    pub figure: BoundedFigure,
    /// Its 95 % interval; of fewer than [`Middle::LEAST`] values the smallest and the largest.
    pub ends: [f64; 2],
    /// Number of values.
    pub count: u64,
}

impl Middle {
    /// Values without which a median has no interval.
    pub const LEAST: u64 = 6;
}

const fn is_zero(count: &u64) -> bool {
    *count == 0
}

const NANOS_PER_MILLI: f64 = 1e6;

impl DistributionSummary {
    pub(crate) fn from_distribution(distribution: &Distribution) -> Result<Self, MetricsError> {
        let sum = distribution.sum() as f64 / NANOS_PER_MILLI;
        Ok(Self {
            count: distribution.count(),
            sum,
            mean: mean_of(distribution),
            min: millis(distribution.min()),
            p50: distribution.quantile(0.5).map(Nanos::as_millis_f64),
            p90: distribution.quantile(0.9).map(Nanos::as_millis_f64),
            p95: distribution.quantile(0.95).map(Nanos::as_millis_f64),
            p99: distribution.quantile(0.99).map(Nanos::as_millis_f64),
            p99_9: distribution.quantile(0.999).map(Nanos::as_millis_f64),
            max: millis(distribution.max()),
            histogram: distribution.encode()?,
            ..Self::default()
        })
    }

    /// One of [`QUANTILES`] as it was measured, in milliseconds, **whether or not it may be used**:
    /// for files that say elsewhere which figures are refused. `None` if there are too few samples
    /// for it.
    pub fn raw_quantile(&self, quantile: &Quantile) -> Option<f64> {
        match quantile.key {
            "p50" => self.p50,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p99_9" => self.p99_9,
            _ => None,
        }
    }

    /// Mean, smallest and largest value as they were measured, in milliseconds, **whether or not
    /// they may be used**; for the same files.
    pub const fn raw_mean_min_max(&self) -> [f64; 3] {
        [self.mean, self.min, self.max]
    }

    /// Exact sum of all values, in milliseconds. No figure of it is refused: who divides it by the
    /// count must ask [`DistributionSummary::mean_figure`].
    pub const fn raw_sum(&self) -> f64 {
        self.sum
    }

    /// A percentile with its bound, and whether it may be used; `None` if there are too few samples
    /// for it.
    pub fn figure(&self, quantile: &Quantile) -> Option<BoundedFigure> {
        Some(self.bounded(quantile.key, self.raw_quantile(quantile)?))
    }

    /// The median with its interval, of any number of values; `None` of a damaged histogram.
    pub fn middle(&self) -> Option<Middle> {
        let (median, count) = (&QUANTILES[0], self.count);
        if let (Some(figure), Some(ci)) = (self.figure(median), self.interval(median)) {
            return Some(Middle { figure, ends: [ci.low, ci.high], count });
        }
        let whole = self.restore().ok()?;
        let value = millis(Some(whole.nearest_rank(median.q)?));
        let ends = match lower_rank(median.q, count) {
            Some(_) if self.p50.is_some() => {
                let (low, high) = independent_shares(median.q, count);
                [low, high].map(|share| millis(whole.nearest_rank(share)))
            }
            Some(rank) => [rank, count + 1 - rank].map(|rank| millis(of_rank(&whole, rank))),
            None => [self.min, self.max],
        };
        let half = HalfInterval::new(value, ends[0], ends[1]);
        Some(Middle {
            figure: self.figure(median).unwrap_or_else(|| {
                percentile(
                    &whole,
                    &self.ends().unwrap_or_default(),
                    median.q,
                    &half,
                    self.unfinished,
                )
            }),
            ends,
            count,
        })
    }

    /// Where there are too few values for a percentile: what it exceeds with 97.5 % confidence.
    pub fn lower_limit(&self, quantile: &Quantile) -> Option<f64> {
        let rank = lower_rank(quantile.q, self.count)?;
        of_rank(&self.restore().ok()?, rank).map(Nanos::as_millis_f64)
    }

    /// The mean with its bound, and whether it may be used.
    pub fn mean_figure(&self) -> BoundedFigure {
        self.bounded("mean", self.mean)
    }

    /// The smallest value with its bound, and whether it may be used.
    pub fn min_figure(&self) -> BoundedFigure {
        self.bounded("min", self.min)
    }

    /// The largest value with its bound, and whether it may be used.
    pub fn max_figure(&self) -> BoundedFigure {
        self.bounded("max", self.max)
    }

    /// Any percentile with its bound, and whether it may be used; `None` if there are too few
    /// samples for it.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] if a histogram was damaged.
    pub fn figure_at(&self, q: f64) -> Result<Option<BoundedFigure>, MetricsError> {
        Ok(self.figures_at(&[q])?.into_iter().next().flatten())
    }

    /// [`DistributionSummary::figure_at`] of several percentiles, for which histograms are read
    /// only once.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] if a histogram was damaged.
    pub fn figures_at(
        &self,
        quantiles: &[f64],
    ) -> Result<Vec<Option<BoundedFigure>>, MetricsError> {
        let printed: Vec<Option<&Quantile>> = quantiles
            .iter()
            .map(|q| QUANTILES.iter().find(|known| (known.q - q).abs() < 1e-9))
            .collect();
        if printed.iter().all(Option::is_some) {
            return Ok(printed.iter().map(|known| self.figure((*known)?)).collect());
        }
        let (whole, ends) = (self.restore()?, self.ends()?);
        Ok(quantiles
            .iter()
            .zip(printed)
            .map(|(q, printed)| {
                if let Some(known) = printed {
                    return self.figure(known);
                }
                whole.quantile(*q)?;
                let interval = HalfInterval::independent(&whole, *q);
                Some(percentile(&whole, &ends, *q, &interval, self.unfinished))
            })
            .collect())
    }

    fn bounded(&self, key: &str, value: f64) -> BoundedFigure {
        let bound = self.bound_ms.get(key).copied().unwrap_or_default();
        let interval = self.most_ms.get(key).map(|most| [value, *most]);
        BoundedFigure { value, bound, interval, refused: self.refused.get(key).copied() }
    }

    /// Adds the bound of each figure, and decides which of them are refused. `ends`: the
    /// distribution without the generator's part; `unfinished`: the requests without an end, if
    /// they are missing in this distribution.
    pub(crate) fn add_bounds(
        &mut self,
        metric: Metric,
        whole: &Distribution,
        ends: &Ends,
        unfinished: u64,
    ) -> Result<(), MetricsError> {
        self.unfinished = unfinished;
        self.undisturbed_histogram = ends.least.as_ref().map(Distribution::encode).transpose()?;
        self.prolonged_histogram = ends.most.as_ref().map(Distribution::encode).transpose()?;
        for quantile in &QUANTILES {
            let Some(value) = whole.quantile(quantile.q) else { continue };
            let half = self.interval(quantile).map_or_else(
                || HalfInterval::independent(whole, quantile.q),
                |ci| HalfInterval::new(value.as_millis_f64(), ci.low, ci.high),
            );
            let figure = percentile(whole, ends, quantile.q, &half, unfinished);
            self.note(quantile.key, figure);
        }
        // An unfinished request is longer than all, but its parts need not be.
        let is_whole = matches!(metric, Metric::ResponseTime | Metric::ServiceTime);
        let unknown = (unfinished > 0 && is_whole).then_some(Refusal::Censored);
        self.add_exact_bounds(whole, ends, unknown);
        Ok(())
    }

    /// The bounds of mean, smallest and largest value. `unknown`: an unfinished request may be
    /// longer than all others, so a single one opens the upper bound of mean and maximum. For a
    /// part of a request, unfinished ones are assumed to be as long as the longest.
    fn add_exact_bounds(&mut self, whole: &Distribution, ends: &Ends, unknown: Option<Refusal>) {
        let (unfinished, all) = (self.unfinished as f64, (self.count + self.unfinished) as f64);
        let half = mean_half_interval(whole);
        let longer = (self.sum + self.max * unfinished) / all.max(1.0) - self.mean;
        let moved = by_generator(self.mean, longer, half).map(|_| Refusal::Censored);
        let (least, most) = (ends.least.as_ref(), ends.most.as_ref());
        // However the gaps of a window came, they add up to its length.
        let least_mean = least.map(|least| match most {
            Some(_) => self.sum / least.count().max(1) as f64,
            None => mean_of(least),
        });
        let figures = [
            ("mean", self.mean, least_mean, None, half, unknown.or(moved)),
            ("min", self.min, least.map(|w| millis(w.min())), None, 0.0, None),
            (
                "max",
                self.max,
                least.map(|w| millis(w.max())),
                most.map(|w| millis(w.max())),
                0.0,
                unknown,
            ),
        ];
        for (key, value, least, most, half, censored) in figures {
            self.note(key, bounded(value, least, most, half, censored));
        }
    }

    fn note(&mut self, key: &str, figure: BoundedFigure) {
        if figure.bound > 0.0 {
            self.bound_ms.insert(key.to_owned(), figure.bound);
        }
        if let Some([_, most]) = figure.interval {
            self.most_ms.insert(key.to_owned(), most);
        }
        if let Some(why) = figure.refused {
            self.refused.insert(key.to_owned(), why);
        }
    }

    /// The confidence interval of a percentile, if it has one.
    pub fn interval(&self, quantile: &Quantile) -> Option<&Interval> {
        self.ci.get(quantile.key)
    }

    /// Merges these times and those of other requests into one distribution of `metric`. It has no
    /// intervals, so its figures are judged by the narrowest possible ones.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] if a histogram was damaged.
    pub fn merged(&self, other: &Self, metric: Metric) -> Result<Self, MetricsError> {
        let (mut whole, theirs) = (self.restore()?, other.restore()?);
        let (mine, other_ends) = (self.ends()?, other.ends()?);
        let merged = |mine: Option<Distribution>, other: Option<Distribution>| {
            if mine.is_none() && other.is_none() {
                return None;
            }
            let mut merged = mine.unwrap_or_else(|| whole.clone());
            merged.merge(other.as_ref().unwrap_or(&theirs));
            Some(merged)
        };
        let ends = Ends {
            least: merged(mine.least, other_ends.least),
            most: merged(mine.most, other_ends.most),
        };
        whole.merge(&theirs);
        let mut merged = Self::from_distribution(&whole)?;
        merged.add_bounds(metric, &whole, &ends, self.unfinished + other.unfinished)?;
        Ok(merged)
    }

    /// The distribution without the generator's part, as far as it differs.
    fn ends(&self) -> Result<Ends, MetricsError> {
        let max = self.max_figure();
        let least = nanos(max.without_generator());
        let exact = ExactFigures {
            sum: nanos(self.mean_figure().without_generator() * self.count as f64).into(),
            // Each bound applies to its own figure: the smallest value may have a larger one.
            min: nanos(self.min_figure().without_generator()).min(least),
            max: least,
        };
        let longest = ExactFigures { max: nanos(max.limits(Bias::Both)[1]), ..exact };
        Ok(Ends {
            least: decode(self.undisturbed_histogram.as_ref(), &exact)?,
            most: decode(self.prolonged_histogram.as_ref(), &longest)?,
        })
    }

    /// Adds an interval, or the reason why it is missing, to every reported percentile.
    pub(super) fn add_intervals(
        &mut self,
        interval: impl Fn(f64) -> Result<Interval, NoIntervalReason>,
    ) {
        for quantile in &QUANTILES {
            match self.raw_quantile(quantile).map(|_| interval(quantile.q)) {
                None => {}
                Some(Ok(interval)) => drop(self.ci.insert(quantile.key.to_owned(), interval)),
                Some(Err(reason)) => {
                    self.ci_note
                        .get_or_insert_with(|| format!("{}: {}", quantile.label, reason.words()));
                }
            }
        }
    }

    /// The distribution that was summed up, bucket by bucket.
    ///
    /// # Errors
    /// [`MetricsError::DecodeHistogram`] if the histogram was damaged.
    pub fn restore(&self) -> Result<Distribution, MetricsError> {
        let exact = ExactFigures {
            sum: nanos(self.sum).into(),
            min: nanos(self.min),
            max: nanos(self.max),
        };
        Distribution::decode(&self.histogram, &exact)
    }
}

/// The value with this rank, from 1.
fn of_rank(whole: &Distribution, rank: u64) -> Option<Nanos> {
    whole.nearest_rank((rank as f64 - 0.5) / whole.count() as f64)
}

fn decode(
    histogram: Option<&String>,
    exact: &ExactFigures,
) -> Result<Option<Distribution>, MetricsError> {
    histogram.map(|text| Distribution::decode(text, exact)).transpose()
}

/// A percentile (its share and value) with its bound, and whether it may be used.
fn percentile(
    whole: &Distribution,
    ends: &Ends,
    q: f64,
    interval: &HalfInterval,
    unfinished: u64,
) -> BoundedFigure {
    let least = ends.least.as_ref().map(|times| millis(times.nearest_rank(q)));
    let most = ends.most.as_ref().map(|times| millis(times.nearest_rank(q)));
    // Requests without an end leave the figure open upwards, independent of the measurement error.
    let censored = by_censoring(whole, q, unfinished, interval);
    bounded(millis(whole.nearest_rank(q)), least, most, interval.half, censored)
}

/// A figure whose value would be `least` without the generator, or between these.
fn bounded(
    value: f64,
    least: Option<f64>,
    most: Option<f64>,
    half_interval: f64,
    censored: Option<Refusal>,
) -> BoundedFigure {
    let most = most.map(|most| most.max(value));
    let least = least.map(|least| if most.is_some() { least.min(value) } else { least });
    let bound = least.map_or(0.0, |least| (value - least).abs());
    let largest = most.map_or(bound, |most| bound.max(most - value));
    let refused = censored.or_else(|| by_generator(value, largest, half_interval));
    BoundedFigure { value, bound, interval: most.map(|most| [value, most]), refused }
}

fn millis(value: Option<Nanos>) -> f64 {
    value.map_or(0.0, Nanos::as_millis_f64)
}

fn mean_of(distribution: &Distribution) -> f64 {
    distribution.sum() as f64 / NANOS_PER_MILLI / distribution.count().max(1) as f64
}

fn nanos(millis: f64) -> u64 {
    Nanos::from_secs_f64(millis / 1e3).as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quantile_of_the_table_has_its_value() {
        let summary = DistributionSummary {
            p50: Some(50.0),
            p90: Some(90.0),
            p95: Some(95.0),
            p99: Some(99.0),
            p99_9: Some(99.9),
            ..DistributionSummary::default()
        };
        for quantile in &QUANTILES {
            let value = summary.raw_quantile(quantile).map(|value| value / 100.0);
            assert!(value.is_some_and(|value| (value - quantile.q).abs() < 1e-9), "{quantile:?}");
        }
    }

    /// 10, 20 ... ms: the ends are the values with the ranks of order statistics.
    #[test]
    fn a_median_of_few_values_has_its_interval() {
        let of = |count: u64| {
            let mut times = Distribution::default();
            (1..=count).for_each(|n| times.record(Nanos::from_millis(10 * n)));
            DistributionSummary::from_distribution(&times).unwrap()
        };
        for (count, median, ends) in [
            (1, 10.0, [10.0, 10.0]),
            (5, 30.0, [10.0, 50.0]),
            (6, 30.0, [10.0, 60.0]),
            (12, 60.0, [30.0, 100.0]),
        ] {
            let middle = of(count).middle().unwrap();
            let found = [middle.figure.value, middle.ends[0], middle.ends[1]];
            let close = found
                .iter()
                .zip([median, ends[0], ends[1]])
                .all(|(a, b)| (a - b).abs() < b * 0.002);
            assert!(close && middle.count == count, "{count}: {found:?}");
        }
        assert!((of(50).lower_limit(&QUANTILES[1]).unwrap() - 410.0).abs() < 1.0);
        assert!(
            of(50).lower_limit(&QUANTILES[3]).is_some()
                && of(1).lower_limit(&QUANTILES[1]).is_none()
        );
        assert!(
            DistributionSummary::from_distribution(&Distribution::default())
                .unwrap()
                .middle()
                .is_none()
        );
    }

    /// The smallest value may have more of its bound than the largest one has.
    #[test]
    fn without_the_generators_part_the_smallest_value_is_not_above_the_largest() {
        let mut times = Distribution::default();
        times.record(Nanos::from_micros(100));
        let mut summary = DistributionSummary::from_distribution(&times).unwrap();
        summary.undisturbed_histogram = Some(times.encode().unwrap());
        let bound = BTreeMap::from([("max".to_owned(), 0.04)]);
        summary.bound_ms = bound;
        let without = summary.ends().unwrap().least.unwrap();
        assert_eq!(without.min(), without.max());
        assert_eq!(without.nearest_rank(0.5), without.max());
    }
}
