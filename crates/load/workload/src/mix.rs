//! The scenario mix: chooses the scenario of a conversation.

use plimsoll_measure::{Rng, ScenarioId};

/// Weighted choice among scenarios.
#[derive(Debug)]
pub(crate) struct ScenarioMix {
    /// Scenarios of positive weight, each with the sum of the weights up to and including its own.
    sums: Vec<(f64, ScenarioId)>,
}

impl ScenarioMix {
    /// Weights must be finite and not negative.
    pub(crate) fn new(weights: impl Iterator<Item = f64>) -> Self {
        let mut sum = 0.0;
        let positive = weights.zip(0u16..).filter(|(weight, _)| *weight > 0.0);
        let sums = positive.map(|(weight, position)| {
            sum += weight;
            (sum, ScenarioId(position))
        });
        Self { sums: sums.collect() }
    }

    /// Chooses by the first number of `rng`, which is created only if a choice exists.
    pub(crate) fn pick(&self, rng: impl FnOnce() -> Rng) -> ScenarioId {
        let (total, last) = match self.sums.as_slice() {
            [] => return ScenarioId::default(),
            [(_, only)] => return *only,
            [.., last] => last,
        };
        let point = rng().uniform() * total;
        let position = self.sums.partition_point(|(sum, _)| *sum <= point);
        // Rounding may carry the point to the end.
        self.sums.get(position).map_or(*last, |(_, scenario)| *scenario)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Seed;

    #[test]
    fn scenarios_are_chosen_by_weight_and_those_without_weight_never() {
        let weights = [55.0, 0.0, 30.0, 15.0, 0.0];
        let mix = ScenarioMix::new(weights.into_iter());
        let mut counts = [0u32; 5];
        for key in 0..100_000 {
            counts[mix.pick(|| Seed(1).rng("mix", key)).index()] += 1;
        }
        for (count, weight) in counts.into_iter().zip(weights) {
            let share = weight / 100.0;
            // Four standard deviations of a binomial count.
            let bound = 4.0 * (100_000.0 * share * (1.0 - share)).sqrt();
            assert!((f64::from(count) - 100_000.0 * share).abs() <= bound, "{counts:?}");
        }
    }
}
