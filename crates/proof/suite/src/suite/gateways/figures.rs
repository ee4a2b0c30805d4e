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
    /// Differences of gateways that got the same requests at the same moments: index of one and of
    /// the other, and the difference.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pairs: Vec<(usize, usize, Cell)>,
}

/// A figure of one gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) value: Option<f64>,
    /// Lower limit; without it, the figure is open below.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Degrees of freedom of the interval, which is normal without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) degrees: Option<f64>,
    /// Why there is no value, or another figure than the row's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    /// The lower percentile in place of one with too few samples.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) instead: String,
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
        let half = variance(values)
            .map(|variance| critical_95(count - 1.0) * (variance / count).sqrt())
            .filter(|half| half.is_finite());
        let (low, high) = (half.map(|half| (mean - half).max(0.0)), half.map(|half| mean + half));
        let degrees = half.map(|_| count - 1.0);
        Self { value: Some(mean), low, high, degrees, ..Self::default() }
    }

    /// Whether it has a value or a limit.
    pub(super) const fn is_known(&self) -> bool {
        self.value.is_some() || self.low.is_some() || self.high.is_some()
    }

    /// The standard error for half of the interval, and its degrees of freedom.
    fn error(&self, half: f64) -> (f64, f64) {
        let degrees = self.degrees.unwrap_or(f64::INFINITY);
        (half / critical_95(degrees), degrees)
    }

    fn measured(&self) -> Option<[f64; 3]> {
        Some([self.value?, self.low?, self.high?])
    }
}

/// Sizes that differ by less than this share or by fewer bytes count as equal.
const EQUAL_SHARE: f64 = 0.03;
const EQUAL_BYTES: f64 = 1e6;

impl Row {
    /// How gateway `one` differs from `other`: `Less` is better. `None` if the data do not tell
    /// them apart, as one of `among` tests.
    fn order(&self, one: usize, other: usize, among: usize) -> Option<Ordering> {
        let exact = Cell::new([0.0; 3]);
        let found = self.pairs.iter().find_map(|(a, b, found)| match (*a, *b) {
            pair if pair == (one, other) => Some((found, &exact)),
            pair if pair == (other, one) => Some((&exact, found)),
            _ => None,
        });
        let (one, other) = found.or_else(|| self.cells.get(one).zip(self.cells.get(other)))?;
        self.told_apart(one, other, among)
    }

    /// The same of two independent figures.
    pub(crate) fn told_apart(&self, one: &Cell, other: &Cell, among: usize) -> Option<Ordering> {
        if one.instead != other.instead {
            return None;
        }
        let order = match (one.measured(), other.measured()) {
            (Some(measured), Some(others)) => {
                let value = measured[0] - others[0];
                let equal = (measured[0] * EQUAL_SHARE).max(EQUAL_BYTES);
                if self.unit == Unit::Bytes && value.abs() <= equal {
                    return None;
                }
                let errors = if value > 0.0 {
                    [one.error(measured[0] - measured[1]), other.error(others[2] - others[0])]
                } else {
                    [one.error(measured[2] - measured[0]), other.error(others[0] - others[1])]
                };
                (value.abs() > reach(errors, among)).then(|| value.total_cmp(&0.0))?
            }
            // Between two limits without a value: the figures must not overlap.
            _ if is_below(one, other) => Ordering::Less,
            _ if is_below(other, one) => Ordering::Greater,
            _ => return None,
        };
        Some(self.better(order))
    }

    /// Number of pairs of measured gateways for which this holds.
    fn pairs_of(&self, is_meant: impl Fn(usize, usize) -> bool) -> usize {
        let known = (0..self.cells.len()).filter(|at| self.cells[*at].measured().is_some());
        let known: Vec<_> = known.collect();
        let others = known.iter().enumerate().map(|(at, one)| {
            known[at + 1..].iter().filter(|other| is_meant(*one, **other)).count()
        });
        others.sum()
    }

    fn better(&self, order: Ordering) -> Ordering {
        if self.more_is_better { order.reverse() } else { order }
    }

    /// For each gateway its best and its worst possible rank; `None` without a figure.
    pub(crate) fn ranks(&self, among: usize) -> Vec<Option<(usize, usize)>> {
        let all = 0..self.cells.len();
        let known: Vec<_> = all.filter(|at| self.cells[*at].is_known()).collect();
        let among_known =
            ranks(known.len(), |one, other| self.order(known[one], known[other], among));
        let mut found = vec![None; self.cells.len()];
        known.iter().zip(among_known).for_each(|(at, rank)| found[*at] = Some(rank));
        found
    }

    /// The figure of a gateway as tables show it.
    pub(crate) fn shown(&self, at: usize) -> String {
        self.cells.get(at).map_or_else(String::new, |cell| self.text(cell))
    }

    pub(crate) fn text(&self, cell: &Cell) -> String {
        let text = match self.unit {
            Unit::Time => time,
            Unit::PerSecond => rate,
            Unit::Bytes => bytes,
            Unit::Share => percent,
        };
        let before = if cell.instead.is_empty() { "" } else { &format!("{} ", cell.instead) };
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
        format!("{before}{shown}")
    }
}

/// The number of tests to correct for, so that on average 5 % of the differences that ranks show
/// are false at most: with `found` differences in `all` tests, as many as `all / found` (Benjamini
/// and Hochberg, 1995). A correction for all of them hides tenfold differences of three rounds.
pub(super) fn tests(rows: &[Row]) -> usize {
    // Sizes are exact.
    let rows: Vec<_> = rows.iter().filter(|row| row.name != SIZE).collect();
    corrected(rows.iter().map(|row| row.pairs_of(|_, _| true)).sum(), |among| {
        let found = rows
            .iter()
            .map(|row| row.pairs_of(|one, other| row.order(one, other, among).is_some()));
        found.sum()
    })
}

/// The same, with the number of tests whose difference is found if they are corrected for so many.
pub(super) fn corrected(all: usize, found: impl Fn(usize) -> usize) -> usize {
    let mut among = 1;
    loop {
        let enough = all.div_ceil(found(among).max(1)).max(1);
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

fn rate(per_s: f64) -> String {
    format!("{}/s", digits(per_s))
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

    #[test]
    fn gateways_that_got_the_same_requests_are_compared_by_their_pairs() {
        let mut same = row(&[[1.0, 0.0, 2.0], [1.1, 0.1, 2.1]]);
        same.pairs.push((1, 0, Cell::new([0.1, 0.05, 0.15])));
        assert_eq!(same.ranks(1), [Some((1, 1)), Some((2, 2))]);
    }

    #[test]
    fn percentiles_of_other_ranks_are_not_compared() {
        let mut tails = row(&[[1.0, 0.9, 1.1], [5.0, 4.9, 5.1]]);
        tails.cells[0].instead = "p95".to_owned();
        assert_eq!(tails.ranks(1), [Some((1, 2)), Some((1, 2))]);
        assert_eq!(tails.shown(0), "p95 1.00ms [0.90, 1.10]");
    }
}
