//! The result of an experiment: figures, each with its bound.

use std::fmt;

use plimsoll_runner::Bound;
use serde::{Deserialize, Serialize};

/// One measured figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// Name of the figure.
    pub what: String,
    /// Its value.
    pub measured: f64,
    /// Unit of the value and the bound; empty for counts and shares.
    pub unit: String,
    /// Its bound.
    pub bound: Bound,
}

impl Check {
    /// A figure whose true value is known.
    pub fn within(
        what: impl Into<String>,
        unit: &str,
        measured: f64,
        truth: f64,
        tolerance: f64,
    ) -> Self {
        let bound = Bound::Within { truth, tolerance };
        Self { what: what.into(), measured, unit: unit.to_owned(), bound }
    }

    /// A count that must be exactly right.
    pub fn exact(what: impl Into<String>, measured: usize, truth: usize) -> Self {
        Self::within(what, "", measured as f64, truth as f64, 0.0)
    }

    /// An error that must be small.
    pub fn at_most(what: impl Into<String>, unit: &str, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, unit: unit.to_owned(), bound: Bound::AtMost(bound) }
    }

    /// A figure that must be large.
    pub fn at_least(what: impl Into<String>, unit: &str, measured: f64, bound: f64) -> Self {
        Self { what: what.into(), measured, unit: unit.to_owned(), bound: Bound::AtLeast(bound) }
    }

    /// A condition that must be true.
    pub fn holds(what: impl Into<String>, is_true: bool) -> Self {
        Self::exact(what, usize::from(is_true), 1)
    }

    /// Whether the bound is kept.
    pub fn passes(&self) -> bool {
        self.bound.holds(self.measured)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, measured, unit, bound } = self;
        let gap = if unit.is_empty() || unit == "%" { "" } else { " " };
        write!(f, "{what} {}{gap}{unit}", Short(*measured))?;
        let (word, bound) = match bound {
            Bound::Within { truth, tolerance: 0.0 } => ("must be", truth),
            Bound::Within { truth, tolerance } => {
                let error = Short((measured - truth).abs());
                write!(f, " for {}, error {error}{gap}{unit}", Short(*truth))?;
                ("at most", tolerance)
            }
            Bound::Below(bound) => ("below", bound),
            Bound::AtMost(bound) => ("at most", bound),
            Bound::AtLeast(bound) => ("at least", bound),
        };
        write!(f, " ({word} {}{gap}{unit})", Short(*bound))
    }
}

/// A number with four significant digits.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = self.0.abs();
        let decimals = match size {
            _ if self.0.fract() == 0.0 || size >= 1_000.0 => 0,
            _ if size >= 100.0 => 1,
            _ if size >= 10.0 => 2,
            _ if size >= 0.1 => 3,
            _ => 4,
        };
        write!(f, "{:.decimals$}", self.0)
    }
}

/// The outcome of an experiment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", content = "why", rename_all = "snake_case")]
pub enum ExperimentResult {
    /// Every bound was kept.
    Pass,
    /// A bound was broken.
    Fail,
    /// The experiment could not run and proves nothing; the text is the reason.
    NotRun(String),
}

/// An experiment's outcome and figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// `T1` to `T29`.
    #[serde(rename = "test")]
    pub experiment: String,
    /// Its subject.
    pub title: String,
    /// Its outcome.
    pub result: ExperimentResult,
    /// The figures.
    pub checks: Vec<Check>,
    /// Further facts, such as parts that could not be carried out here.
    pub notes: Vec<String>,
    /// Its length, in seconds.
    pub seconds: f64,
}

impl Finding {
    /// The figure that is nearest to its bound, or breaks it most.
    pub fn worst(&self) -> Option<&Check> {
        self.checks.iter().max_by(|a, b| usage_of_bound(a).total_cmp(&usage_of_bound(b)))
    }
}

fn usage_of_bound(check: &Check) -> f64 {
    check.bound.usage(check.measured)
}

/// The line of an experiment; below it, indented, every broken bound and every note.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (word, why) = match &self.result {
            ExperimentResult::Pass => ("pass", None),
            ExperimentResult::Fail => ("FAIL", None),
            ExperimentResult::NotRun(why) => ("not run", Some(why)),
        };
        write!(f, "{:4} {word:9} {:22}", self.experiment, self.title)?;
        match (why, self.worst()) {
            (Some(why), _) => write!(f, " {why}")?,
            (None, Some(worst)) => write!(f, " {worst}")?,
            (None, None) => {}
        }
        if self.checks.len() > 1 {
            let passed = self.checks.iter().filter(|check| check.passes()).count();
            write!(f, "; {passed} of {} figures in bounds", self.checks.len())?;
        }
        let shown = self.worst();
        let broken = self.checks.iter().filter(|check| !check.passes() && Some(*check) != shown);
        for check in broken.take(MOST_BROKEN) {
            write!(f, "\n{:15}{check}", "")?;
        }
        self.notes.iter().try_for_each(|note| write!(f, "\n{:15}note: {note}", ""))
    }
}

/// Further broken bounds that are printed; all of them are in the record.
const MOST_BROKEN: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_kept_or_broken() {
        for (check, passes) in [
            (Check::within("at the edge", "us", 110.0, 100.0, 10.0), true),
            (Check::within("over the edge", "us", 110.1, 100.0, 10.0), false),
            (Check::at_most("small", "us", 5.0, 5.0), true),
            (Check::at_most("not a number", "us", f64::NAN, 5.0), false),
            (Check::at_least("too small", "", 0.009, 0.01), false),
            (Check::exact("off by one", 999, 1_000), false),
            (Check::holds("so", true), true),
        ] {
            assert_eq!(check.passes(), passes, "{check}");
        }
    }

    #[test]
    fn the_line_shows_the_figure_nearest_to_its_bound_and_every_broken_one() {
        let finding = Finding {
            experiment: "T4".to_owned(),
            title: "known stall".to_owned(),
            result: ExperimentResult::Fail,
            checks: vec![
                Check::within("p99", "ms", 899.3, 900.0, 9.0),
                Check::within("mean", "ms", 62.0, 50.0, 1.0),
                Check::exact("count", 999, 1_000),
            ],
            notes: vec!["the host was busy".to_owned()],
            seconds: 10.0,
        };
        assert_eq!(
            finding.to_string(),
            "T4   FAIL      known stall            mean 62 ms for 50, error 12 ms (at most 1 ms); 1 of 3 figures in bounds\n               \
             count 999 (must be 1000)\n               note: the host was busy"
        );
    }

    #[test]
    fn numbers_have_four_digits() {
        for (number, text) in [
            (0.0, "0"),
            (1_000.0, "1000"),
            (1_234.56, "1235"),
            (123.456, "123.5"),
            (12.345_6, "12.35"),
            (0.123_45, "0.123"),
            (0.012_345, "0.0123"),
            (-1.5, "-1.500"),
        ] {
            assert_eq!(Short(number).to_string(), text);
        }
    }

    #[test]
    fn a_broken_bound_outranks_every_kept_one() {
        let finding = |checks| Finding {
            experiment: "T0".to_owned(),
            title: "x".to_owned(),
            result: ExperimentResult::Fail,
            checks,
            notes: Vec::new(),
            seconds: 0.0,
        };
        let nearly = Check::at_most("nearly", "us", 4.99, 5.0);
        for broken in [
            Check::exact("count", 999, 1_000),
            Check::at_least("too small", "", 0.0, 1.0),
            Check::at_most("not a number", "us", f64::NAN, 5.0),
        ] {
            let name = broken.what.clone();
            assert_eq!(finding(vec![nearly.clone(), broken]).worst().unwrap().what, name);
        }
        assert_eq!(finding(Vec::new()).worst(), None);
    }
}
