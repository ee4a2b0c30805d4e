//! Failures and refusals that only one side of a pair has.

use crate::looks::Looks;
use crate::special::ln_gamma;
use crate::tails::binomial_at_least;

/// The minimum number of batches for a test by batches; and with fewer batches
/// than this nothing is known about clusters.
const BATCHES_KNOWN: usize = 8;

/// Discordant pairs count as clustered if the variance of their number per batch exceeds its mean
/// by this factor. Independent pairs have 1.
const CLUSTERED: f64 = 1.5;

/// Pairs of a batch in which only one side is affected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Discordant {
    /// Only the target.
    pub target: u64,
    /// Only the reference.
    pub reference: u64,
}

/// A comparison of how often two targets are affected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SignTest {
    /// All discordant pairs.
    pub pairs: Discordant,
    /// Two-sided p value of "both are affected equally often".
    pub p: f64,
    /// Whether whole batches were counted, because the pairs come in clusters.
    pub by_batch: bool,
}

impl SignTest {
    /// From the batches in any order: the exact test of McNemar on all pairs; or, if discordant
    /// pairs come in clusters, the sign test on the batches.
    pub fn new(batches: &[Discordant], looks: Looks) -> Self {
        let pairs = Discordant {
            target: batches.iter().map(|batch| batch.target).sum(),
            reference: batches.iter().map(|batch| batch.reference).sum(),
        };
        let by_batch = clustered(batches);
        let p = if by_batch {
            let more = batches.iter().filter(|b| b.target > b.reference).count();
            let fewer = batches.iter().filter(|b| b.target < b.reference).count();
            sign_p(more as u64, fewer as u64, looks)
        } else {
            sign_p(pairs.target, pairs.reference, looks)
        };
        Self { pairs, p, by_batch }
    }
}

/// Exact two-sided p value of these numbers of signs, if both signs are equally likely; 1 without
/// any.
pub fn sign_p(positive: u64, negative: u64, looks: Looks) -> f64 {
    let (most, all) = (positive.max(negative), positive + negative);
    match looks {
        Looks::Once if all > 0 => (2.0 * binomial_at_least(most, all, 0.5)).min(1.0),
        Looks::Once => 1.0,
        Looks::Always => always_valid(positive, negative),
    }
}

/// A p value that is valid at every look: the inverse of a likelihood ratio, the signs under a
/// share with a uniform prior against a share of one half. If the share is one half the ratio is a
/// martingale, and exceeds 1/p with probability p at most (Ville, 1939; Robbins, 1970).
fn always_valid(positive: u64, negative: u64) -> f64 {
    let (k, n) = (positive as f64, (positive + negative) as f64);
    // (n + 1) * n! / (k! (n - k)!) / 2^n
    let choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
    ((n + 1.0).ln() + choose - n * std::f64::consts::LN_2).exp().min(1.0)
}

fn clustered(batches: &[Discordant]) -> bool {
    let counts: Vec<f64> = batches.iter().map(|b| (b.target + b.reference) as f64).collect();
    let mean = crate::descriptive::mean(&counts);
    let Some(variance) = crate::descriptive::variance(&counts) else { return true };
    counts.len() < BATCHES_KNOWN || (mean > 0.0 && variance / mean > CLUSTERED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batches(target: &[u64]) -> Vec<Discordant> {
        target.iter().map(|&target| Discordant { target, reference: 0 }).collect()
    }

    /// By hand: 2 (1/2)^5, 2 (1/2)^6, 2 (1 + 8) / 2^8, all equal.
    #[test]
    fn p_values_are_those_of_coin_tosses() {
        for (positive, negative, expected) in
            [(5, 0, 0.0625), (0, 6, 0.03125), (1, 7, 18.0 / 256.0), (4, 4, 1.0), (0, 0, 1.0)]
        {
            let found = sign_p(positive, negative, Looks::Once);
            assert!((found - expected).abs() < 1e-12, "{positive} {negative}: {found}");
        }
    }

    /// By hand: 6 / 2^5 and 9 / 2^8; 8 * 7 / 2^7 with one of seven; 5 * 6 / 2^4 is more than 1.
    #[test]
    fn p_values_for_all_looks_are_those_of_the_mixture() {
        for (positive, negative, expected) in [
            (5, 0, 6.0 / 32.0),
            (0, 8, 9.0 / 256.0),
            (1, 6, 56.0 / 128.0),
            (2, 2, 1.0),
            (0, 0, 1.0),
        ] {
            let found = sign_p(positive, negative, Looks::Always);
            assert!((found - expected).abs() < 1e-9, "{positive} {negative}: {found}");
        }
    }

    #[test]
    fn single_failures_are_counted_as_pairs_and_a_burst_as_one() {
        let mut single = vec![0; 60];
        for batch in [1, 7, 13, 20, 31, 44, 58] {
            single[batch] = 1;
        }
        let found = SignTest::new(&batches(&single), Looks::Once);
        assert!(!found.by_batch && found.pairs.target == 7);
        assert!((found.p - 2.0 / 128.0).abs() < 1e-12);
        let mut burst = vec![0; 60];
        burst[17] = 12;
        let found = SignTest::new(&batches(&burst), Looks::Once);
        assert!(found.by_batch && (found.p - 1.0).abs() < 1e-12);
        // Seven batches are too few to see whether failures come in bursts.
        assert!(SignTest::new(&batches(&[1; 7]), Looks::Once).by_batch);
        assert!(SignTest::new(&[], Looks::Once).by_batch);
    }
}
