//! Derives the meaning of a column from its heading.

use std::fmt;

use crate::error::AuditError;
use crate::figure;

/// The quantity that a column measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Quantity {
    Minimum,
    /// The quantile, between 0 and 1.
    Percentile(f64),
    Mean,
    Maximum,
    Rate,
    Count,
    Errors,
    ErrorShare,
    SuccessShare,
    Clients,
    Duration,
}

/// Quantities with a fixed name.
const NAMES: [(&str, Quantity); 10] = [
    ("min", Quantity::Minimum),
    ("mean", Quantity::Mean),
    ("max", Quantity::Maximum),
    ("requests/s", Quantity::Rate),
    ("requests", Quantity::Count),
    ("errors", Quantity::Errors),
    ("error rate", Quantity::ErrorShare),
    ("success rate", Quantity::SuccessShare),
    ("clients", Quantity::Clients),
    ("duration", Quantity::Duration),
];

/// Complete headings without units, behind the name of their quantity; [`statistic`] parses
/// statistics of a time.
const HEADINGS: &str = include_str!("headings.txt");

/// Names of the time from a request to the end of its response.
const WHOLE_TIMES: &str = include_str!("whole_times.txt");

/// A column with a known meaning.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Column {
    pub(crate) quantity: Quantity,
    /// Time that the statistic describes, such as `ttft`; empty if the heading names none.
    pub(crate) of: String,
    pub(crate) unit: String,
}

impl Column {
    /// Finds the meaning of a heading, by a mapping or by its words.
    pub(crate) fn of(heading: &str, mappings: &[Mapping]) -> Option<Self> {
        match mappings.iter().find(|mapping| mapping.heading == heading.to_lowercase()) {
            Some(mapping) => mapping.column.clone(),
            None => Self::read(heading),
        }
    }

    fn read(heading: &str) -> Option<Self> {
        let (name, unit) = split_unit(&heading.to_lowercase());
        let (quantity, of) = match quantity_of(&name) {
            Some(quantity) => (quantity, String::new()),
            None => statistic(&name)?,
        };
        // A throughput may count tokens or bytes; only a unit tells.
        let vague = name.contains("throughput")
            && figure::unit(&unit).is_none_or(|unit| unit.0 != figure::Dimension::Rate);
        (!vague).then_some(Self { quantity, of, unit })
    }

    /// Whether the column describes whole response times.
    pub(crate) fn is_whole_time(&self) -> bool {
        self.of.is_empty() || WHOLE_TIMES.lines().any(|name| name == self.of)
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quantity {
            Quantity::Percentile(share) => write!(f, "p{}", (share * 1e6).round() / 1e4)?,
            named => {
                let known = NAMES.iter().find(|(_, quantity)| *quantity == named);
                f.write_str(known.map_or("", |(name, _)| name))?;
            }
        }
        if !self.of.is_empty() {
            write!(f, " of {}", self.of)?;
        }
        if self.unit.is_empty() { Ok(()) } else { write!(f, " in {}", self.unit) }
    }
}

/// The quantity of a complete heading.
fn quantity_of(name: &str) -> Option<Quantity> {
    let quantity = HEADINGS.lines().find_map(|line| {
        let (quantity, headings) = line.split_once(": ")?;
        headings.split(", ").any(|known| known == name).then_some(quantity)
    })?;
    NAMES.iter().find(|(known, _)| *known == quantity).map(|(_, quantity)| *quantity)
}

/// Splits the unit `ms` off `p99 (ms)`, `p99 [ms]`, `p99, ms` and `p99 ms`.
fn split_unit(heading: &str) -> (String, String) {
    let heading = heading.replace(['_', '-'], " ");
    let spaced = heading.replace(['(', ')', '[', ']', ','], " ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    match words.split_last() {
        Some((last, name)) if !name.is_empty() && is_unit(last) => {
            (name.join(" "), (*last).to_owned())
        }
        _ => (words.join(" "), String::new()),
    }
}

/// Whether a last word is a unit, unlike `error %`, which is a name, and `latency min`, where `min`
/// is a statistic.
fn is_unit(word: &str) -> bool {
    word != "min" && word != "%" && figure::unit(word).is_some()
}

/// Splits `ttft p99`, `p99 latency`, `mean response time` or `max` into the statistic and its time.
fn statistic(name: &str) -> Option<(Quantity, String)> {
    let words: Vec<&str> = name.split(' ').collect();
    let at = words.iter().position(|word| statistic_word(word).is_some())?;
    let quantity = statistic_word(words[at])?;
    let of: Vec<&str> = words[..at]
        .iter()
        .chain(&words[at + 1..])
        .copied()
        .filter(|word| *word != "percentile")
        .collect();
    Some((quantity, of.join(" ")))
}

fn statistic_word(word: &str) -> Option<Quantity> {
    match word {
        "min" | "minimum" => Some(Quantity::Minimum),
        "mean" | "avg" | "average" => Some(Quantity::Mean),
        "max" | "maximum" => Some(Quantity::Maximum),
        "median" => Some(Quantity::Percentile(0.5)),
        _ => {
            let digits = word.strip_prefix('p').or_else(|| word.strip_suffix("th"))?;
            let percent: f64 = digits.parse().ok()?;
            (percent > 0.0 && percent < 100.0).then_some(Quantity::Percentile(percent / 100.0))
        }
    }
}

/// A heading and its meaning, given by the user; without a meaning the column is ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Mapping {
    heading: String,
    column: Option<Column>,
}

impl Mapping {
    /// Parses `HEADING=MEANING` or `HEADING=MEANING:UNIT`.
    ///
    /// # Errors
    ///
    /// A mapping without `=`, or with an unknown meaning or unit.
    pub fn parse(text: &str) -> Result<Self, AuditError> {
        let refused = || AuditError::Mapping(text.to_owned());
        let (heading, meaning) = text.rsplit_once('=').ok_or_else(refused)?;
        let (name, unit) = meaning.split_once(':').unwrap_or((meaning, ""));
        let known = Column::read(&format!("{name} {unit}"));
        if known.is_none() && !meaning.is_empty() {
            return Err(refused());
        }
        Ok(Self { heading: heading.to_lowercase(), column: known })
    }
}
