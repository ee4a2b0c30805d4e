//! Derives the meaning of a column from its heading.

use std::fmt;

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
            && find_unit(&unit).is_none_or(|unit| unit.0 != Dimension::Rate);
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
    word != "min" && word != "%" && find_unit(word).is_some()
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

// Errors for rejected files and mappings.

/// Why a file cannot be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// Remedy: convert the file to UTF-8.
    #[error("is not UTF-8 text")]
    NotText,
    /// Remedy: split the file.
    #[error("is larger than 8 MiB")]
    TooLarge,
    /// Remedy: write the figures as a Markdown or CSV table with a heading for each column, or
    /// explain its headings with `--map`.
    #[error("has no table with known columns{0}")]
    NoTable(String),
    /// Remedy: see `plimsoll audit --help` for the meanings.
    #[error("invalid mapping `{0}`: expected HEADING=MEANING, such as `Antwortzeit=mean:ms`")]
    Mapping(String),
}

// A printed number with its unit.

/// Dimension of a figure; values are in the base unit: seconds, per second, or a share of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    Time,
    Rate,
    Share,
    Number,
}

/// Units of headings and cells, with dimension and factor to the base unit.
const UNITS: &str = include_str!("units.tsv");

/// The unit with this name.
pub(crate) fn find_unit(name: &str) -> Option<(Dimension, f64)> {
    let mut rows = UNITS.lines().filter_map(|row| row.split_once('\t'));
    let (dimension, factor) = rows.find(|(known, _)| *known == name)?.1.split_once('\t')?;
    let dimension = match dimension {
        "time" => Dimension::Time,
        "rate" => Dimension::Rate,
        "share" => Dimension::Share,
        _ => Dimension::Number,
    };
    Some((dimension, factor.parse().ok()?))
}

/// A printed number; `step` is one unit of its last digit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) value: f64,
    pub(crate) step: f64,
    pub(crate) dimension: Dimension,
}

impl Figure {
    /// Parses `4.59`, `1,234`, `61 ms`, `31k` or `99.8%`; the cell's own unit overrides the
    /// heading's. Returns `None` for other cells, such as bounds, ranges and decimal commas.
    pub(crate) fn read(cell: &str, heading_unit: &str) -> Option<Self> {
        let cell = cell.trim().to_lowercase();
        let end = cell.find(|c: char| !c.is_ascii_digit() && c != '.' && c != ',');
        let (digits, rest) = cell.split_at(end.unwrap_or(cell.len()));
        let digits = without_groups(digits)?;
        let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let value: f64 = digits.parse().ok()?;
        let (scale, rest) = match rest.trim() {
            "k" => (1e3, ""),
            "million" => (1e6, ""),
            other => (1.0, other),
        };
        let (dimension, factor) = find_unit(if rest.is_empty() { heading_unit } else { rest })?;
        let step = 0.1_f64.powi(i32::try_from(decimals).ok()?);
        let factor = factor * scale;
        Some(Self { value: value * factor, step: step * factor, dimension })
    }

    /// Whether every possible value of this figure is above every possible value of the other, if
    /// both are rounded alike.
    pub(crate) fn exceeds(self, other: Self) -> bool {
        self.value - other.value >= self.step.midpoint(other.step) * (1.0 - 1e-9)
    }

    /// The smallest possible value, whether it was rounded to nearest, down or up.
    pub(crate) fn least(self) -> f64 {
        self.value - self.step
    }

    /// The largest possible value, whether it was rounded to nearest, down or up.
    pub(crate) fn most(self) -> f64 {
        self.value + self.step
    }
}

/// Removes commas, which may only separate groups of three digits.
fn without_groups(digits: &str) -> Option<String> {
    let whole = digits.split('.').next().unwrap_or_default();
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let grouped = !whole.contains(',') || (1..=3).contains(&first.len());
    let even = grouped && groups.all(|group| group.len() == 3);
    (even && !first.is_empty() && digits.matches('.').count() <= 1).then(|| digits.replace(',', ""))
}
