//! Figures about one and the same measurement, and the tables that they stand in.

use crate::document::Tool;
use crate::heading::{Quantity, Stat};
use crate::number::Number;

/// One figure in base units: seconds, per second, parts of one, bytes.
#[derive(Clone, Debug)]
pub(crate) struct Value {
    pub(crate) quantity: Quantity,
    /// What was measured, if not simply requests.
    pub(crate) of: String,
    pub(crate) number: Number,
    /// Whether the unit is known; without, it is compared with its like only.
    pub(crate) has_unit: bool,
    pub(crate) sure: bool,
    pub(crate) line: usize,
    pub(crate) cell: String,
}

impl Value {
    /// The figure as printed, with its name: `p99 4.59ms`.
    pub(crate) fn says(&self) -> String {
        format!("{} {}", self.quantity.name(), self.number.text)
    }
}

/// Figures about one measurement: a row, or a column.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) label: String,
    pub(crate) line: usize,
    pub(crate) values: Vec<Value>,
    /// Cells that are no figures, with their headings.
    pub(crate) words: Vec<(String, String)>,
}

impl Record {
    /// The only figure of this kind; `None` if there are several, or if it is a bound.
    pub(crate) fn get(&self, quantity: Quantity, of: &str) -> Option<&Value> {
        let mut found =
            self.values.iter().filter(|value| value.quantity == quantity && value.of == of);
        let value = found.next()?;
        (found.next().is_none() && value.number.is_plain()).then_some(value)
    }

    /// The only figure of this kind about whatever.
    pub(crate) fn only(&self, quantity: Quantity) -> Option<&Value> {
        let mut found = self.values.iter().filter(|value| value.quantity == quantity);
        let value = found.next()?;
        (found.next().is_none() && value.number.is_plain()).then_some(value)
    }

    /// What its times are of.
    pub(crate) fn subjects(&self) -> Vec<&str> {
        let times = self.values.iter().filter(|value| matches!(value.quantity, Quantity::Time(_)));
        let mut subjects: Vec<&str> = times.map(|value| value.of.as_str()).collect();
        subjects.sort_unstable();
        subjects.dedup();
        subjects
    }

    /// Order statistics of one subject with their shares, plain ones of known rank, rising.
    pub(crate) fn quantiles(&self, of: &str) -> Vec<(f64, &Value)> {
        let ranked = self.values.iter().filter_map(|value| match value.quantity {
            Quantity::Time(stat) => Some((stat.share()?, self.get(value.quantity, of)?)),
            _ => None,
        });
        let mut ranked: Vec<(f64, &Value)> = ranked.collect();
        ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
        ranked.dedup_by(|one, other| std::ptr::eq(one.1, other.1));
        ranked
    }

    pub(crate) fn mean(&self, of: &str) -> Option<&Value> {
        self.get(Quantity::Time(Stat::Mean), of)
    }
}

/// A cell that compares others.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) number: Number,
    pub(crate) line: usize,
    pub(crate) cell: String,
    /// The figures of which it may be a comparison: two of one group, in either order.
    pub(crate) groups: Vec<Vec<Number>>,
}

/// A result beside its limit.
#[derive(Clone, Debug)]
pub(crate) struct Check {
    pub(crate) result: Value,
    pub(crate) limit: Number,
    /// What the status cell says.
    pub(crate) status: String,
}

/// A metric with limits of its own for good, bad and very bad.
#[derive(Clone, Debug)]
pub(crate) struct Band {
    pub(crate) quantity: Quantity,
    pub(crate) of: String,
    /// The limit of the worst band, in base units.
    pub(crate) critical: Number,
    pub(crate) name: String,
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// A table that was understood.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) line: usize,
    pub(crate) section: usize,
    pub(crate) tool: Option<Tool>,
    pub(crate) records: Vec<Record>,
    pub(crate) changes: Vec<Change>,
    pub(crate) checks: Vec<Check>,
    pub(crate) bands: Vec<Band>,
    /// `heading: meaning`, as the report lists them.
    pub(crate) read: Vec<String>,
    pub(crate) not_read: Vec<String>,
}
