//! The figures of gateways: which of two is better, or whether the data do not tell them apart.

use std::cmp::Ordering;

use plimsoll_metrics::widened;
use plimsoll_report::format::{DASH, bytes, digits, or_dash, percent, time, with_interval};
use plimsoll_stats::descriptive::{mean, variance};
use plimsoll_stats::multiple::ranks;
use plimsoll_stats::student_t::critical_95;
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
    /// the other, and the difference with its interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) pairs: Vec<(usize, usize, [f64; 3])>,
}

/// A figure of one gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) value: Option<f64>,
    /// Lower limit; without it, the figure is open below.
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
    /// Why there is no value, or another figure than the row's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) note: String,
    /// The percentile that stands for one with too few samples.
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
        let low = half.map(|half| (mean - half).max(0.0));
        Self { value: Some(mean), low, high: half.map(|half| mean + half), ..Self::default() }
    }

    /// Whether it has a value or a limit.
    pub(super) const fn is_known(&self) -> bool {
        self.value.is_some() || self.low.is_some() || self.high.is_some()
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
        let found = self.pairs.iter().find_map(|(a, b, difference)| match (*a, *b) {
            pair if pair == (one, other) => Some(*difference),
            pair if pair == (other, one) => Some(reversed(*difference)),
            _ => None,
        });
        match found {
            Some(difference) => sign(difference, among).map(|order| self.better(order)),
            None => self.told_apart(self.cells.get(one)?, self.cells.get(other)?, among),
        }
    }

    /// The same of two independent figures.
    pub(crate) fn told_apart(&self, one: &Cell, other: &Cell, among: usize) -> Option<Ordering> {
        if one.instead != other.instead {
            return None;
        }
        let order = match (one.measured(), other.measured()) {
            (Some(one), Some(other)) => {
                let difference = difference(one, other);
                let equal = (one[0] * EQUAL_SHARE).max(EQUAL_BYTES);
                if self.unit == Unit::Bytes && difference[0].abs() <= equal {
                    return None;
                }
                sign(difference, among)?
            }
            // Between two limits without a value: the figures must not overlap.
            _ if is_below(one, other) => Ordering::Less,
            _ if is_below(other, one) => Ordering::Greater,
            _ => return None,
        };
        Some(self.better(order))
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

fn is_below(one: &Cell, other: &Cell) -> bool {
    one.high.zip(other.low).is_some_and(|(high, low)| high < low)
}

fn rate(per_s: f64) -> String {
    format!("{}/s", digits(per_s))
}

fn reversed([value, low, high]: [f64; 3]) -> [f64; 3] {
    [-value, -high, -low]
}

/// The difference of two independent figures: its interval has the root of the squares of the two
/// half-widths on each side.
fn difference(one: [f64; 3], other: [f64; 3]) -> [f64; 3] {
    let value = one[0] - other[0];
    let low = (one[0] - one[1]).hypot(other[2] - other[0]);
    let high = (one[2] - one[0]).hypot(other[0] - other[1]);
    [value, value - low, value + high]
}

fn sign([value, low, high]: [f64; 3], among: usize) -> Option<Ordering> {
    let [low, high] = widened(value, [low, high], among);
    match (low > 0.0, high < 0.0) {
        (true, _) => Some(Ordering::Greater),
        (_, true) => Some(Ordering::Less),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        same.pairs.push((1, 0, [0.1, 0.05, 0.15]));
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
