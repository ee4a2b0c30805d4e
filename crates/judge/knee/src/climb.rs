//! Doubling and bisection: finds the lowest of ascending loads that fails.

/// Factor from which a load counts as doubled, because loads are steps of a grid.
const DOUBLED: f64 = 1.9;

/// A search over ascending loads: doubles until one fails, then bisects between the last that held
/// and the first that failed.
#[derive(Clone, Debug)]
pub struct Climb {
    loads: Vec<f64>,
    held: Option<usize>,
    failed: Option<usize>,
    next: Option<usize>,
}

impl Climb {
    /// Creates a search from `from` to `to`; each load is a relative `step` above the previous one,
    /// and an integer if `is_whole`. A step of 1 doubles and never bisects.
    pub fn new(from: f64, to: f64, step: f64, is_whole: bool) -> Self {
        let mut loads = vec![from];
        let (mut last, mut exact) = (from, from);
        while last < to {
            exact *= 1.0 + step;
            if is_whole {
                exact = exact.round().max(last + 1.0);
            }
            last = significant(exact).min(to);
            loads.push(last);
        }
        Self { loads, held: None, failed: None, next: Some(0) }
    }

    /// Loads in ascending order.
    pub fn loads(&self) -> &[f64] {
        &self.loads
    }

    /// Index of the next load to try; `None` at the end.
    pub const fn next(&self) -> Option<usize> {
        self.next
    }

    /// Highest index that held so far.
    pub const fn held(&self) -> Option<usize> {
        self.held
    }

    /// Records whether the next load held.
    pub fn record(&mut self, has_held: bool) {
        let Some(at) = self.next else { return };
        *(if has_held { &mut self.held } else { &mut self.failed }) = Some(at);
        self.next = match (self.held, self.failed) {
            (Some(held), None) => self.doubled(held),
            (Some(held), Some(failed)) if failed - held > 1 => Some(usize::midpoint(held, failed)),
            _ => None,
        };
    }

    fn doubled(&self, at: usize) -> Option<usize> {
        let last = self.loads.len() - 1;
        let least = self.loads[at] * DOUBLED;
        (at < last).then(|| self.loads.partition_point(|load| *load < least).clamp(at + 1, last))
    }
}

/// Rounds to four significant digits.
fn significant(load: f64) -> f64 {
    let scale = 10f64.powf(3.0 - load.log10().floor());
    (load * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(mut climb: Climb, first_failing: f64) -> (Vec<f64>, Option<f64>) {
        let mut tried = Vec::new();
        while let Some(at) = climb.next() {
            tried.push(climb.loads()[at]);
            climb.record(climb.loads()[at] < first_failing);
        }
        (tried, climb.held().map(|held| climb.loads()[held]))
    }

    #[test]
    fn loads_double_and_are_then_bisected() {
        let rates = || Climb::new(10.0, 1e7, 0.1, false);
        let (loads, held) = tried(rates(), 33.0);
        assert_eq!(loads[..3], [10.0, 19.49, 37.97]);
        assert_eq!((loads.len(), held), (6, Some(31.38)));
        assert_eq!(tried(rates(), 5.0), (vec![10.0], None));
        let (to_the_top, held) = tried(Climb::new(10.0, 50.0, 0.1, false), 1e9);
        assert_eq!((to_the_top, held), (vec![10.0, 19.49, 37.97, 50.0], Some(50.0)));
        // Users are integers, and each number is a level while the step is below one.
        assert_eq!(tried(Climb::new(1.0, 64.0, 0.1, true), 6.0).1, Some(5.0));
        // A step of one doubles only.
        let doubled = tried(Climb::new(1.0, 1_024.0, 1.0, true), 20.0);
        assert_eq!(doubled, (vec![1.0, 2.0, 4.0, 8.0, 16.0, 32.0], Some(16.0)));
    }
}
