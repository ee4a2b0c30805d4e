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

/// Complete headings without units; [`statistic`] parses statistics of a time.
const HEADINGS: [(&str, Quantity); 44] = [
    ("rps", Quantity::Rate),
    ("qps", Quantity::Rate),
    ("req/s", Quantity::Rate),
    ("reqs/s", Quantity::Rate),
    ("req/sec", Quantity::Rate),
    ("requests/s", Quantity::Rate),
    ("requests/sec", Quantity::Rate),
    ("requests per second", Quantity::Rate),
    ("achieved rps", Quantity::Rate),
    ("throughput", Quantity::Rate),
    ("request throughput", Quantity::Rate),
    ("requests", Quantity::Count),
    ("reqs", Quantity::Count),
    ("total requests", Quantity::Count),
    ("requests sent", Quantity::Count),
    ("samples", Quantity::Count),
    ("n", Quantity::Count),
    ("errors", Quantity::Errors),
    ("failures", Quantity::Errors),
    ("failed", Quantity::Errors),
    ("failed requests", Quantity::Errors),
    ("error rate", Quantity::ErrorShare),
    ("error %", Quantity::ErrorShare),
    ("failure rate", Quantity::ErrorShare),
    ("success", Quantity::SuccessShare),
    ("success rate", Quantity::SuccessShare),
    ("success %", Quantity::SuccessShare),
    ("ok", Quantity::SuccessShare),
    ("clients", Quantity::Clients),
    ("concurrent clients", Quantity::Clients),
    ("users", Quantity::Clients),
    ("concurrent users", Quantity::Clients),
    ("virtual users", Quantity::Clients),
    ("vus", Quantity::Clients),
    ("concurrency", Quantity::Clients),
    ("conns", Quantity::Clients),
    ("connections", Quantity::Clients),
    ("concurrent connections", Quantity::Clients),
    ("duration", Quantity::Duration),
    ("test duration", Quantity::Duration),
    ("fastest", Quantity::Minimum),
    ("slowest", Quantity::Maximum),
    ("average", Quantity::Mean),
    ("median", Quantity::Percentile(0.5)),
];

/// Names of the time from a request to the end of its response.
const WHOLE_TIMES: [&str; 9] = [
    "",
    "latency",
    "response time",
    "response",
    "request latency",
    "request time",
    "e2e",
    "e2e latency",
    "end to end latency",
];

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
        let known = HEADINGS.iter().find(|(known, _)| *known == name);
        let (quantity, of) = match known {
            Some((_, quantity)) => (*quantity, String::new()),
            None => statistic(&name)?,
        };
        // A throughput may count tokens or bytes; only a unit tells.
        let vague = name.contains("throughput")
            && figure::unit(&unit).is_none_or(|unit| unit.0 != figure::Dimension::Rate);
        (!vague).then_some(Self { quantity, of, unit })
    }

    /// Whether the column describes whole response times.
    pub(crate) fn is_whole_time(&self) -> bool {
        WHOLE_TIMES.contains(&self.of.as_str())
    }
}

impl fmt::Display for Column {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.quantity {
            Quantity::Percentile(share) => write!(f, "p{}", (share * 1e6).round() / 1e4)?,
            Quantity::Minimum => f.write_str("min")?,
            Quantity::Mean => f.write_str("mean")?,
            Quantity::Maximum => f.write_str("max")?,
            Quantity::Rate => f.write_str("requests/s")?,
            Quantity::Count => f.write_str("requests")?,
            Quantity::Errors => f.write_str("errors")?,
            Quantity::ErrorShare => f.write_str("error rate")?,
            Quantity::SuccessShare => f.write_str("success rate")?,
            Quantity::Clients => f.write_str("clients")?,
            Quantity::Duration => f.write_str("duration")?,
        }
        if !self.of.is_empty() {
            write!(f, " of {}", self.of)?;
        }
        if self.unit.is_empty() { Ok(()) } else { write!(f, " in {}", self.unit) }
    }
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
