//! A distribution that takes little memory.

use plimsoll_measure::Nanos;
use serde::{Deserialize, Serialize};

use crate::distribution::{Distribution, ExactFigures};
use crate::sparse_histogram::SparseHistogram;

/// A distribution to full resolution, with exact sum and extremes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CompactDistribution {
    histogram: SparseHistogram,
    sum: u128,
    min: u64,
    max: u64,
}

impl CompactDistribution {
    pub(super) fn from_distribution(distribution: &Distribution) -> Self {
        Self {
            histogram: SparseHistogram::from_distribution(Some(distribution)),
            sum: distribution.sum(),
            min: distribution.min().map_or(u64::MAX, Nanos::as_u64),
            max: distribution.max().map_or(0, Nanos::as_u64),
        }
    }

    pub(super) fn merge(&mut self, other: &Self) {
        self.histogram.merge(&other.histogram);
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    pub(super) fn restore(&self) -> Distribution {
        let exact = ExactFigures { sum: self.sum, min: self.min, max: self.max };
        let buckets = self.histogram.buckets();
        Distribution::from_buckets(buckets.map(|(bucket, n)| (bucket, u64::from(n))), &exact)
    }
}

/// Adds `other` to `mine`.
pub(super) fn add(mine: &mut Option<CompactDistribution>, other: Option<&CompactDistribution>) {
    match (mine, other) {
        (_, None) => {}
        (Some(mine), Some(other)) => mine.merge(other),
        (mine @ None, Some(other)) => *mine = Some(other.clone()),
    }
}
