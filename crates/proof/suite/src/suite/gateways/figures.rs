//! The figures of gateways: which of two is better, or whether the data do not tell them apart.

use std::cmp::Ordering;

use plimsoll_report::format::{DASH, bytes, digits, or_dash, percent, time, with_interval};
use plimsoll_stats::descriptive::{mean, variance};
use plimsoll_stats::multiple::ranks;
use plimsoll_stats::student_t::{critical_95, quantile};
use serde::{Deserialize, Serialize};

/// Unit of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    /// Milliseconds.
    #[default]
    Time,
    PerSecond,
    Bytes,
    Share,
}

/// The row of the packages' sizes.
pub(super) const SIZE: &str = "size";
/// The row of the capacities.
pub(super) const CAPACITY: &str = "capacity";

/// A figure of every gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// The table to which it belongs: a rate, or the resources.
    pub(crate) group: String,
    pub(crate) name: String,
    pub(crate) unit: Unit,
    pub(crate) more_is_better: bool,
    /// By gateway.
    pub(crate) cells: Vec<Cell>,
}

/// A figure of one gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) value: Option<f64>,
    /// Lower limit; without it, the figure is open below.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Number of starts: then the limits are the 95 % prediction interval of one more start, or of
    /// fewer than [`FEWEST_STARTS`] the smallest and the largest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) starts: Option<usize>,
    /// Degrees of freedom of the interval, which is normal without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) degrees: Option<f64>,
    /// Standard error of the value, where the ends do not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<f64>,
    /// Why there is no value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
}

impl Cell {
    pub(crate) fn new([value, low, high]: [f64; 3]) -> Self {
        Self { value: Some(value), low: Some(low), high: Some(high), ..Self::default() }
    }

    pub(crate) fn none(why: impl Into<String>) -> Self {
        Self { note: why.into(), ..Self::default() }
    }

    /// The mean of some positive values with its 95 % interval, which a single one does not have.
    pub(crate) fn mean(values: &[f64]) -> Self {
        if values.is_empty() {
            return Self::default();
        }
        let (mean, count) = (mean(values), values.len() as f64);
        let error = variance(values).map(|variance| (variance / count).sqrt());
        let error = error.filter(|error| error.is_finite());
        let half = error.map(|error| error * critical_95(count - 1.0));
        let (low, high) = (half.map(|half| (mean - half).max(0.0)), half.map(|half| mean + half));
        let degrees = half.map(|_| count - 1.0);
        Self { value: Some(mean), low, high, degrees, error, ..Self::default() }
    }

    /// The mean over some starts, with the 95 % interval of one more start (Hahn and Meeker, 1991),
    /// which is not below what differs between runs; of few starts with the smallest and the
    /// largest.
    pub(crate) fn of_starts(values: &[f64], unit: Unit) -> Self {
        let mean = Self::mean(values);
        let (Some(value), Some(high)) = (mean.value, mean.high) else { return mean };
        let finest = if unit == Unit::Bytes { equal_bytes(value) } else { EQUAL_MS };
        let half = ((high - value) * (values.len() as f64 + 1.0).sqrt()).max(finest);
        let (low, high) = if values.len() < FEWEST_STARTS {
            let all = values.iter().copied();
            (all.clone().reduce(f64::min), all.reduce(f64::max))
        } else {
            (Some((value - half).max(0.0)), Some(value + half))
        };
        Self { low, high, starts: Some(values.len()), ..mean }
    }

    /// Whether it has a value or a limit.
    pub(super) const fn is_known(&self) -> bool {
        self.value.is_some() || self.low.is_some() || self.high.is_some()
    }

    /// The standard error for the longer half of the interval, and its degrees of freedom.
    fn error(&self) -> (f64, f64) {
        let degrees = self.degrees.unwrap_or(f64::INFINITY);
        let [value, low, high] = self.measured().unwrap_or_default();
        let half = (high - value).max(value - low);
        (self.error.unwrap_or_else(|| half / critical_95(degrees)), degrees)
    }

    fn measured(&self) -> Option<[f64; 3]> {
        Some([self.value?, self.low?, self.high?])
    }
}

/// Fewer starts have no spread that tells of another one.
const FEWEST_STARTS: usize = 3;

/// A start is seen by attempts 5 ms apart.
const EQUAL_MS: f64 = 5.0;

/// Sizes that differ by less than 3 % or 1 MB count as equal.
fn equal_bytes(bytes: f64) -> f64 {
    (bytes * 0.03).max(1e6)
}

impl Row {
    /// How one gateway differs from another: `Less` is better. `None` if the data do not tell them
    /// apart, as one of `among` tests.
    pub(crate) fn told_apart(&self, one: &Cell, other: &Cell, among: usize) -> Option<Ordering> {
        let order = match (one.measured(), other.measured()) {
            (Some([one_value, ..]), Some([other_value, ..])) => {
                // A gap that is shorter than the upstream's came in a lump, which is no better than
                // a longer one.
                let is_gap = self.name.ends_with(" gap");
                let distances = [one_value, other_value].map(f64::abs);
                let [value, reference] = if is_gap { distances } else { [one_value, other_value] };
                let difference = value - reference;
                if self.unit == Unit::Bytes && difference.abs() <= equal_bytes(value) {
                    return None;
                }
                let reach = reach([one.error(), other.error()], among);
                (difference.abs() > reach).then(|| difference.total_cmp(&0.0))?
            }
            // Between two limits without a value: the figures must not overlap.
            _ if is_below(one, other) => Ordering::Less,
            _ if is_below(other, one) => Ordering::Greater,
            _ => return None,
        };
        Some(if self.more_is_better { order.reverse() } else { order })
    }

    /// Its name among the rows of all groups.
    pub(super) fn title(&self) -> String {
        format!("{}, {}", self.name, self.group).replace(", resources", "")
    }

    /// The pairs of measured gateways.
    fn pairs(&self) -> impl Iterator<Item = Pair<'_>> {
        let known = self.cells.iter().filter(|cell| cell.measured().is_some());
        let known: Vec<_> = known.collect();
        let places = (0..known.len()).flat_map(|other| (0..other).map(move |one| (one, other)));
        places.map(move |(one, other)| (self, known[one], known[other]))
    }

    /// For each gateway its best and its worst possible rank; `None` without a figure.
    pub(crate) fn ranks(&self, among: usize) -> Vec<Option<(usize, usize)>> {
        let known = self.cells.iter().enumerate().filter(|(_, cell)| cell.is_known());
        let known: Vec<_> = known.collect();
        let among_known =
            ranks(known.len(), |one, other| self.told_apart(known[one].1, known[other].1, among));
        let mut found = vec![None; self.cells.len()];
        known.iter().zip(among_known).for_each(|((at, _), rank)| found[*at] = Some(rank));
        found
    }

    /// The figure of a gateway as tables show it.
    pub(crate) fn shown(&self, at: usize) -> String {
        self.cells.get(at).map_or_else(String::new, |cell| self.text(cell))
    }

    pub(crate) fn text(&self, cell: &Cell) -> String {
        let text: fn(f64) -> String = match self.unit {
            Unit::Time => time,
            Unit::PerSecond => |per_s| format!("{}/s", digits(per_s)),
            Unit::Bytes => bytes,
            Unit::Share => percent,
        };
        let shown = match (cell.measured(), cell.low, cell.high) {
            (Some([value, low, high]), ..) if self.unit == Unit::Time => {
                with_interval(value, low, high)
            }
            (Some([value, low, high]), ..) if low < high => {
                format!("{} [{}, {}]", text(value), text(low), text(high))
            }
            (Some([value, ..]), ..) => text(value),
            _ if cell.value.is_some() => or_dash(cell.value, text),
            (None, Some(low), Some(high)) => format!("{} to {}", text(low), text(high)),
            (None, Some(low), None) => format!(">= {}", text(low)),
            (None, None, Some(high)) => format!("< {}", text(high)),
            (None, None, None) => DASH.to_owned(),
        };
        match cell.starts {
            Some(..FEWEST_STARTS) => {
                shown.replace(" [", " (").replace(", ", " to ").replace(']', ")")
            }
            _ => shown,
        }
    }
}

/// A row, and two of its figures.
pub(super) type Pair<'r> = (&'r Row, &'r Cell, &'r Cell);

/// The number of tests to correct the ranks for. Sizes are exact.
pub(super) fn tests(rows: &[Row]) -> usize {
    corrected(&rows.iter().filter(|row| row.name != SIZE).flat_map(Row::pairs).collect::<Vec<_>>())
}

/// The number of tests to correct for, so that on average 5 % of the differences between these
/// figures are false at most: with `found` differences as many as `all / found` (Benjamini and
/// Hochberg, 1995). A correction for all of them hides tenfold differences of three rounds.
pub(super) fn corrected(all: &[Pair<'_>]) -> usize {
    let mut among = 1;
    loop {
        let found =
            all.iter().filter(|(row, one, other)| row.told_apart(one, other, among).is_some());
        let enough = all.len().div_ceil(found.count().max(1)).max(1);
        if enough <= among {
            return among;
        }
        among = enough;
    }
}

/// Intervals that only touch are apart: their ends are steps of a grid, to four digits.
fn is_below(one: &Cell, other: &Cell) -> bool {
    one.high.zip(other.low).is_some_and(|(high, low)| high < low * 1.001)
}

/// How far two equal figures may be apart at 5 % divided by `among`, from their standard errors:
/// Welch (1947). A few rounds have far wider tails than the normal distribution.
fn reach(errors: [(f64, f64); 2], among: usize) -> f64 {
    let variance: f64 = errors.iter().map(|(error, _)| error.powi(2)).sum();
    let squares: f64 = errors.iter().map(|(error, degrees)| error.powi(4) / degrees).sum();
    if variance <= 0.0 {
        return 0.0;
    }
    quantile(1.0 - 0.025 / among.max(1) as f64, variance * variance / squares) * variance.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Seed;

    fn row(cells: &[[f64; 3]]) -> Row {
        let cells = cells.iter().map(|cell| Cell::new(*cell)).collect();
        Row { cells, ..Row::default() }
    }

    /// 1.0 +- 0.3 and 1.5 +- 0.4: the difference is 0.5 +- 0.5 exactly. The widening for 10 tests
    /// is z(0.9975) / z(0.975) = 2.807 / 1.960.
    #[test]
    fn two_gateways_differ_if_the_interval_of_their_difference_excludes_zero() {
        let ranks = |cells: &[[f64; 3]], among| row(cells).ranks(among);
        let [a, tied, apart] = [[1.0, 0.7, 1.3], [1.499, 1.099, 1.9], [1.51, 1.11, 1.91]];
        assert_eq!(ranks(&[a, tied], 1), [Some((1, 2)), Some((1, 2))]);
        assert_eq!(ranks(&[a, apart], 1), [Some((1, 1)), Some((2, 2))]);
        assert_eq!(ranks(&[a, apart], 10), [Some((1, 2)), Some((1, 2))]);
        assert_eq!(ranks(&[a, [1.72, 1.32, 2.12]], 10), [Some((1, 1)), Some((2, 2))]);
    }

    /// Six equal gateways in 24 rows: any rank but 1 to 6 is a false claim of the whole table.
    #[test]
    fn equal_gateways_are_tied_in_every_row_of_19_of_20_tables() {
        for rounds in [2, 3] {
            let mut rng = Seed(7).rng("tables", rounds);
            let mut cell =
                || Cell::mean(&(0..rounds).map(|_| 50.0 + rng.normal()).collect::<Vec<_>>());
            let mut false_claims = 0;
            for _ in 0..40 {
                let mut row = || Row { cells: (0..6).map(|_| cell()).collect(), ..Row::default() };
                let rows: Vec<_> = (0..24).map(|_| row()).collect();
                let among = tests(&rows);
                let mut ranks = rows.iter().flat_map(|row| row.ranks(among));
                false_claims += usize::from(ranks.any(|rank| rank != Some((1, 6))));
            }
            assert!(false_claims <= 2, "{rounds} rounds: {false_claims} of 40 tables");
        }
    }

    /// Overheads of 0.19, 0.20, 0.52, 0.49, 10.7 and 2.4 ms in three rounds, in ten rows.
    #[test]
    fn a_tenfold_difference_in_three_rounds_is_told_apart() {
        let cells = [
            [0.19, 0.17, 0.21],
            [0.20, 0.18, 0.22],
            [0.44, 0.52, 0.6],
            [0.31, 0.49, 0.67],
            [10.1, 10.7, 11.3],
            [2.3, 2.4, 2.5],
        ];
        let cells: Vec<_> = cells.iter().map(|rounds| Cell::mean(rounds)).collect();
        let rows = vec![Row { cells, ..Row::default() }; 10];
        let ranks = rows[0].ranks(tests(&rows));
        assert_eq!(ranks[4..], [Some((6, 6)), Some((5, 5))]);
        assert_eq!(ranks[0], ranks[1]);
    }

    /// t for 4 degrees of freedom is 2.776 at 5 %, and 8.610 at 0.1 %, which is 5 % for 50 tests.
    #[test]
    fn three_rounds_tell_a_difference_from_the_spread_between_them() {
        let [a, near, far] =
            [10.0, 11.9, 18.0].map(|mean: f64| Cell::mean(&[mean - 1.0, mean, mean + 1.0]));
        // The standard error of the difference is the root of 2/3: 0.8165 times 2.776 is 2.27, and
        // times 8.610 is 7.03.
        let ranks = |other: &Cell, among| {
            Row { cells: vec![a.clone(), other.clone()], ..Row::default() }.ranks(among)
        };
        assert_eq!(ranks(&near, 1), [Some((1, 2)); 2]);
        assert_eq!(ranks(&far, 50), [Some((1, 1)), Some((2, 2))]);
        let six_apart = Cell::mean(&[15.0, 16.0, 17.0]);
        assert_eq!(ranks(&six_apart, 1), [Some((1, 1)), Some((2, 2))]);
        assert_eq!(ranks(&six_apart, 50), [Some((1, 2)); 2]);
    }

    #[test]
    fn more_is_better_where_it_is_and_a_gateway_without_a_figure_has_no_rank() {
        let between = |low, high| Cell { low, high, ..Cell::default() };
        let mut rates = row(&[]);
        (rates.unit, rates.more_is_better) = (Unit::PerSecond, true);
        rates.cells = vec![
            between(Some(90.0), Some(110.0)),
            between(Some(190.0), Some(210.0)),
            Cell::none("does not start"),
            between(Some(205.0), None),
        ];
        let expected = [Some((3, 3)), Some((1, 2)), None, Some((1, 2))];
        assert_eq!(rates.ranks(1), expected);
        assert_eq!([1, 3].map(|at| rates.shown(at)), ["190/s to 210/s", ">= 205/s"]);
    }

    /// Memory differs by more than a megabyte before it counts.
    #[test]
    fn small_differences_of_memory_are_ties() {
        let megabytes = |mb: f64| [mb * 1e6, mb * 1e6, mb * 1e6];
        let mut memory = row(&[10.0, 10.9, 60.0].map(megabytes));
        memory.unit = Unit::Bytes;
        assert_eq!(memory.ranks(1), [Some((1, 2)), Some((1, 2)), Some((3, 3))]);
    }

    /// 1, 2 and 3: 2 -+ 4.303 / sqrt(3). Three starts that happen to be faster prove nothing.
    #[test]
    fn a_mean_has_the_interval_of_student() {
        let cell = Cell::mean(&[1.0, 2.0, 3.0]);
        let half = cell.high.unwrap() - 2.0;
        assert!((half - 4.302_653 / 3.0_f64.sqrt()).abs() < 1e-4, "{cell:?}");
        let starts = [Cell::mean(&[264.0, 390.0, 971.0]), Cell::mean(&[230.0, 240.0, 255.0])];
        assert_eq!(Row { cells: starts.to_vec(), ..Row::default() }.ranks(1), [Some((1, 2)); 2]);
        assert_eq!(Cell::mean(&[7.0]).low, None);
    }

    /// Events that arrive 3.7 ms closer together than they were sent came in a lump.
    #[test]
    fn a_gap_is_best_if_it_is_unchanged() {
        let mut gaps = row(&[[-3.7, -3.8, -3.6], [0.001, -0.001, 0.003], [0.5, 0.4, 0.6]]);
        gaps.name = "mean gap".to_owned();
        assert_eq!(gaps.ranks(1), [Some((3, 3)), Some((1, 1)), Some((2, 2))]);
    }

    /// Of 10, 20 and 30: 20 -+ 10 x 4.30265 x (1 + 1/3)^0.5. The mean is as certain as before: the
    /// limit of three starts at 0 does not make it more so.
    #[test]
    fn a_figure_of_starts_has_the_interval_of_one_more_start() {
        let cell = Cell::of_starts(&[10.0, 20.0, 30.0], Unit::Time);
        assert!((cell.high.unwrap() - 20.0 - 49.683).abs() < 1e-3, "{cell:?}");
        assert_eq!((cell.low, cell.starts), (Some(0.0), Some(3)));
        let (error, degrees) = cell.error();
        assert!((error - 10.0 / 3.0_f64.sqrt()).abs() < 1e-9 && (degrees - 2.0).abs() < 1e-9);
        let mut memory = Row { unit: Unit::Bytes, ..Row::default() };
        for (values, shown) in [
            // Three equal starts do not exclude another one: 3 % or 1 MB.
            (&[360.5e6, 360.6e6, 360.7e6][..], "361 MB [350 MB, 371 MB]"),
            (&[16.5e6, 16.5e6, 16.5e6], "16.5 MB [15.5 MB, 17.5 MB]"),
            (&[16.5e6, 17.1e6], "16.8 MB (16.5 MB to 17.1 MB)"),
            (&[16.5e6], "16.5 MB"),
        ] {
            memory.cells = vec![Cell::of_starts(values, Unit::Bytes)];
            assert_eq!(memory.shown(0), shown);
        }
    }

    /// Shares of 0 and 5 % in two rounds: 2.5 % -+ 32 %, although no share is below 0.
    #[test]
    fn a_limit_at_zero_does_not_make_a_mean_more_certain() {
        let failed = [Cell::mean(&[0.0, 0.05]), Cell::new([0.0, 0.0, 0.001])];
        assert_eq!(Row { cells: failed.to_vec(), ..Row::default() }.ranks(1), [Some((1, 2)); 2]);
    }
}
