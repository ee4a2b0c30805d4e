//! Times of pairs in milliseconds, with noise of five kinds.

use plimsoll_measure::{Rng, Seed};
use plimsoll_stats::shift::{BatchPair, Shift};
use plimsoll_stats::woodruff::Batched;

/// Batches of a run: seconds.
pub(crate) const BATCHES: usize = 60;

/// Sources of variation in times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Noise {
    /// The provider draws the same time for both targets; the way to it differs by some 20 us.
    CommonDraws,
    /// The provider draws anew for each.
    OwnDraws,
    /// Own draws of a provider that drifts over some 20 s.
    CommonDrift,
    /// Own draws of a provider that is slow or fast for half a second.
    Autoregressive,
    /// Own draws, and each target alone has bursts of some 60 slow requests.
    OwnBursts,
}

impl Noise {
    pub(crate) const ALL: [Self; 5] = [
        Self::CommonDraws,
        Self::OwnDraws,
        Self::CommonDrift,
        Self::Autoregressive,
        Self::OwnBursts,
    ];

    /// Times of the reference and of an equal target.
    pub(crate) fn pairs(self, seed: u64, run: u64, count: usize) -> Pairs {
        let rng = &mut Seed(seed).rng(&format!("{self:?}"), run);
        let mut draw = |common: &[f64]| -> Vec<f64> {
            common.iter().map(|factor| factor * provider(rng)).collect()
        };
        let same = vec![1.0; count];
        match self {
            Self::CommonDraws => {
                let drawn = draw(&same);
                let mut way = || drawn.iter().map(|time| time + gateway(rng)).collect();
                Pairs { reference: way(), target: way(), ..Pairs::default() }
            }
            Self::OwnDraws => {
                Pairs { reference: draw(&same), target: draw(&same), ..Pairs::default() }
            }
            Self::CommonDrift | Self::Autoregressive => {
                let (phi, sd) =
                    if self == Self::CommonDrift { (0.9995, 0.25) } else { (0.98, 0.3) };
                let common = autoregressive(&mut Seed(seed).rng("common", run), count, phi, sd);
                Pairs { reference: draw(&common), target: draw(&common), ..Pairs::default() }
            }
            Self::OwnBursts => {
                let mut own = |name| {
                    let bursts = bursts(&mut Seed(seed).rng(name, run), count);
                    draw(&same).iter().zip(bursts).map(|(time, burst)| time + burst).collect()
                };
                Pairs { reference: own("first"), target: own("second"), ..Pairs::default() }
            }
        }
    }
}

/// Times of the same requests on two targets, in their order.
#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) reference: Vec<f64>,
    pub(crate) target: Vec<f64>,
    /// Into how many batches they are cut; 0: into [`BATCHES`].
    pub(crate) batches: usize,
}

impl Pairs {
    /// With each time of the target changed.
    pub(crate) fn planted(mut self, change: impl Fn(f64) -> f64) -> Self {
        self.target.iter_mut().for_each(|time| *time = change(*time));
        self
    }

    fn chunks(&self) -> impl Iterator<Item = (&[f64], &[f64])> {
        let batches = if self.batches > 0 { self.batches } else { BATCHES };
        let size = self.reference.len() / batches;
        self.target.chunks(size).zip(self.reference.chunks(size))
    }

    pub(crate) fn added(&self) -> Batched {
        Batched::new(vec![
            self.chunks()
                .map(|(target, reference): (&[f64], &[f64])| {
                    target
                        .iter()
                        .zip(reference)
                        .map(|(target, reference)| target - reference)
                        .collect()
                })
                .collect(),
        ])
    }

    pub(crate) fn shift(&self) -> Shift {
        Shift::new(vec![
            self.chunks()
                .map(|(target, reference): (&[f64], &[f64])| BatchPair {
                    target: target.to_vec(),
                    reference: reference.to_vec(),
                })
                .collect(),
        ])
    }
}

/// Lognormal with a median of 20 ms.
fn provider(rng: &mut Rng) -> f64 {
    20.0 * (0.35 * rng.normal()).exp()
}

/// Gamma of shape 2 and scale 20 us.
fn gateway(rng: &mut Rng) -> f64 {
    0.02 * (rng.exponential() + rng.exponential())
}

/// Factors whose logarithms follow a first-order autoregression.
fn autoregressive(rng: &mut Rng, count: usize, phi: f64, sd: f64) -> Vec<f64> {
    let step = sd * (1.0 - phi * phi).sqrt();
    let mut x = sd * rng.normal();
    (0..count)
        .map(|_| {
            x = phi * x + step * rng.normal();
            x.exp()
        })
        .collect()
}

/// One burst in 1,500 requests on average: some 60 requests, all slower by the same time of 40 ms
/// on average.
fn bursts(rng: &mut Rng, count: usize) -> Vec<f64> {
    let mut slower = vec![0.0; count];
    for start in 0..count {
        if rng.uniform() < 1.0 / 1_500.0 {
            let by = 40.0 * rng.exponential();
            slower.iter_mut().skip(start).take(geometric(rng, 60.0)).for_each(|slow| *slow += by);
        }
    }
    slower
}

#[expect(clippy::cast_possible_truncation, reason = "not negative")]
pub(crate) fn geometric(rng: &mut Rng, mean: f64) -> usize {
    1 + (rng.exponential() / -(1.0 - 1.0 / mean).ln()) as usize
}
