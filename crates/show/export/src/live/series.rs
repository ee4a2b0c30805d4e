//! Commands of many short runs: which part of the work goes on, and what came of all.

/// Parts of a command that are told apart; further ones are `other`.
const MOST_PARTS: usize = 100;
/// The name of all further parts.
const OTHER: &str = "other";

/// What a command of many runs found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Conclusion {
    /// In a word, by its exit code: `pass`, `fail`, `inconclusive` or `interrupted`.
    pub outcome: &'static str,
    /// The knees that were searched.
    pub knees: Vec<LiveKnee>,
}

/// A knee that was searched.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LiveKnee {
    /// The target; empty where there is one without a name.
    pub target: String,
    /// How well it is known, as `knee.json` has it.
    pub kind: &'static str,
    /// What the load is counted in: `requests_per_second` or `virtual_users`.
    pub unit: &'static str,
    /// The lower and the upper end, as far as they are known.
    pub load: [Option<f64>; 2],
}

/// A search or a suite.
#[derive(Debug, Default)]
pub(super) struct Series {
    /// Its parts so far, each with its target.
    pub(super) parts: Vec<(String, String)>,
    /// The present one.
    pub(super) present: Option<usize>,
    pub(super) conclusion: Option<Conclusion>,
}

impl Series {
    /// A part begins, perhaps once more.
    pub(super) fn begin(&mut self, name: &str, target: &str) {
        let is_full = self.parts.len() + 1 >= MOST_PARTS && self.position(name, target).is_none();
        let (name, target) = if is_full { (OTHER, "") } else { (name, target) };
        self.present = Some(self.position(name, target).unwrap_or_else(|| {
            self.parts.push((name.to_owned(), target.to_owned()));
            self.parts.len() - 1
        }));
    }

    fn position(&self, name: &str, target: &str) -> Option<usize> {
        self.parts.iter().position(|part| part.0 == name && part.1 == target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_back_and_are_bounded() {
        let mut series = Series::default();
        for name in ["floor", "bracket", "floor"] {
            series.begin(name, "a");
        }
        assert_eq!((series.parts.len(), series.present), (2, Some(0)));
        series.begin("floor", "b");
        assert_eq!((series.parts.len(), series.present), (3, Some(2)));
        for number in 0..500 {
            series.begin(&number.to_string(), "a");
        }
        assert_eq!(series.parts.len(), MOST_PARTS);
        assert_eq!(series.present, Some(MOST_PARTS - 1));
        assert_eq!(series.parts[MOST_PARTS - 1].0, OTHER);
        series.begin("bracket", "a");
        assert_eq!(series.present, Some(1));
    }
}
