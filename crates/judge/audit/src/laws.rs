//! The five laws, each applied to one row.

use schemars::JsonSchema;
use serde::Serialize;

use crate::column::{Column, Dimension, Figure, Quantity};
use crate::table::Row;

/// Tolerance factor for true rows: requests may start before the window or end after it, and the
/// duration may be planned rather than measured.
const EDGE: f64 = 1.25;

/// A law: returns the text of each contradiction in a row.
type Law = fn(&[Cell<'_>]) -> Vec<String>;

const LITTLE: &str = "Little's law";

/// A parsed cell with its column.
struct Cell<'a> {
    column: &'a Column,
    figure: Figure,
    text: &'a str,
}

impl Cell<'_> {
    fn named(&self) -> String {
        format!("{} {}", self.column, self.text)
    }

    /// Rank of a statistic of a time, from the lowest to the highest.
    fn rank(&self) -> Option<f64> {
        match self.column.quantity {
            Quantity::Minimum => Some(0.0),
            Quantity::Percentile(share) => Some(share),
            Quantity::Maximum => Some(1.0),
            _ => None,
        }
    }

    fn is_count(&self) -> bool {
        self.figure.dimension == Dimension::Number
    }
}

/// Adds the laws that `row` violates to `findings`. Little's law needs clients with one request at
/// a time.
pub(crate) fn check(
    row: &Row,
    columns: &[Option<Column>],
    one_at_a_time: bool,
    findings: &mut Vec<Finding>,
) {
    let cells: Vec<Cell<'_>> = row.cells.iter().zip(columns).filter_map(read).collect();
    let laws: [(&str, Level, Law); 5] = [
        ("percentile order", Level::Impossible, order),
        (LITTLE, Level::Impossible, little),
        ("rate x duration = count", Level::Impossible, total),
        ("shares of a whole", Level::Impossible, shares),
        ("samples behind a percentile", Level::Unsupported, samples),
    ];
    for (law, level, broken) in laws {
        if law == LITTLE && !one_at_a_time {
            continue;
        }
        let texts = broken(&cells).into_iter();
        findings.extend(texts.map(|text| Finding { line: row.line, level, law, text }));
    }
}

fn read<'a>(pair: (&'a String, &'a Option<Column>)) -> Option<Cell<'a>> {
    let column = pair.1.as_ref()?;
    Some(Cell { column, figure: Figure::read(pair.0, &column.unit)?, text: pair.0 })
}

fn only<'a>(cells: &'a [Cell<'a>], quantity: Quantity) -> Option<&'a Cell<'a>> {
    let mut found = cells.iter().filter(|cell| cell.column.quantity == quantity);
    let first = found.next();
    if found.next().is_some() { None } else { first }
}

/// Checks min <= p50 <= p99 <= max of one time, and its mean between min and max.
fn order(cells: &[Cell<'_>]) -> Vec<String> {
    let mut broken = Vec::new();
    for high in cells {
        for low in cells {
            let alike =
                low.column.of == high.column.of && low.figure.dimension == high.figure.dimension;
            let ordered = match (low.column.quantity, high.column.quantity) {
                (Quantity::Minimum, Quantity::Mean) | (Quantity::Mean, Quantity::Maximum) => true,
                _ => low.rank() < high.rank() && low.rank().is_some(),
            };
            if alike && ordered && low.figure.exceeds(high.figure) {
                broken.push(format!("{} exceeds {}", low.named(), high.named()));
            }
        }
    }
    broken
}

/// Checks Little's law: the mean number of requests in flight is the rate times the mean response
/// time. It cannot exceed the number of clients that each wait for a response before the next
/// request.
///
/// Rate and times must cover the same requests, so rows with errors are skipped.
fn little(cells: &[Cell<'_>]) -> Vec<String> {
    let (Some(rate), Some(clients)) = (only(cells, Quantity::Rate), only(cells, Quantity::Clients))
    else {
        return Vec::new();
    };
    if !clients.is_count() || has_errors(cells) {
        return Vec::new();
    }
    let times: Vec<&Cell<'_>> = cells
        .iter()
        .filter(|cell| cell.column.is_whole_time() && cell.figure.dimension == Dimension::Time)
        .collect();
    let (mean, from) = match times.iter().find(|cell| cell.column.quantity == Quantity::Mean) {
        Some(mean) => (mean.figure.least(), mean.named()),
        None => least_mean(&times),
    };
    let in_flight = rate.figure.least() * mean;
    if in_flight <= clients.figure.most() * EDGE {
        return Vec::new();
    }
    vec![format!(
        "{} and {from} need at least {in_flight:.1} requests in flight, more than {}",
        rate.named(),
        clients.named()
    )]
}

fn has_errors(cells: &[Cell<'_>]) -> bool {
    cells.iter().any(|cell| match cell.column.quantity {
        Quantity::Errors | Quantity::ErrorShare => {
            !cell.text.trim_matches(['0', '.', '%', ' ']).is_empty()
        }
        Quantity::SuccessShare => {
            !matches!(cell.text.trim_end_matches([' ', '%']), "100" | "100.0" | "100.00")
        }
        _ => false,
    })
}

/// The smallest mean that the percentiles allow, if every value between two of them equals the
/// lower one.
fn least_mean(times: &[&Cell<'_>]) -> (f64, String) {
    let mut ranked: Vec<_> = times
        .iter()
        .filter_map(|cell| Some((cell.rank()?, cell)))
        .filter(|(rank, _)| *rank < 1.0)
        .collect();
    ranked.sort_by(|one, other| one.0.total_cmp(&other.0));
    let ends = ranked.iter().skip(1).map(|(rank, _)| *rank).chain([1.0]);
    let mean =
        ranked.iter().zip(ends).map(|((rank, cell), end)| (end - rank) * cell.figure.least()).sum();
    let names: Vec<_> = ranked.iter().map(|(_, cell)| cell.named()).collect();
    (mean, names.join(", "))
}

/// Checks that the number of requests is the rate times the duration, with or without failed
/// requests.
fn total(cells: &[Cell<'_>]) -> Vec<String> {
    let found = (
        only(cells, Quantity::Rate),
        only(cells, Quantity::Duration),
        only(cells, Quantity::Count),
    );
    let (Some(rate), Some(duration), Some(count)) = found else { return Vec::new() };
    if duration.figure.dimension != Dimension::Time || !count.is_count() {
        return Vec::new();
    }
    let failed = only(cells, Quantity::Errors).map_or(0.0, |errors| errors.figure.most());
    let least = rate.figure.least() * duration.figure.least() / EDGE;
    let most = rate.figure.most() * duration.figure.most() * EDGE;
    if count.figure.most() >= least && count.figure.least() - failed <= most {
        return Vec::new();
    }
    let product = rate.figure.value * duration.figure.value;
    vec![format!(
        "{} for {} are {product:.0}, not {}",
        rate.named(),
        duration.named(),
        count.named()
    )]
}

/// Checks that no share exceeds 100 %, and neither does the sum of two exclusive ones.
fn shares(cells: &[Cell<'_>]) -> Vec<String> {
    let mut broken = Vec::new();
    let (success, error) = (only(cells, Quantity::SuccessShare), only(cells, Quantity::ErrorShare));
    for share in [success, error].into_iter().flatten() {
        if percent(share) > 100.0 {
            broken.push(format!("{} exceeds 100 %", share.named()));
        }
    }
    if let (Some(success), Some(error)) = (success, error)
        && success.figure.dimension == Dimension::Share
        && error.figure.dimension == Dimension::Share
        && broken.is_empty()
        && success.figure.least() + error.figure.least() > 1.0
    {
        broken.push(format!("{} and {} exceed 100 %", success.named(), error.named()));
    }
    if let (Some(errors), Some(count)) =
        (only(cells, Quantity::Errors), only(cells, Quantity::Count))
        && errors.is_count()
        && count.is_count()
        && errors.figure.least() > count.figure.most()
    {
        broken.push(format!("{} exceed {}", errors.named(), count.named()));
    }
    broken
}

/// A number without a unit may be a fraction or a percentage.
fn percent(share: &Cell<'_>) -> f64 {
    let scale = if share.figure.dimension == Dimension::Share { 100.0 } else { 1.0 };
    share.figure.least() * scale
}

/// Checks that there is at least one sample beyond a percentile; otherwise it equals the maximum.
fn samples(cells: &[Cell<'_>]) -> Vec<String> {
    let Some(count) = only(cells, Quantity::Count).filter(|cell| cell.is_count()) else {
        return Vec::new();
    };
    let percentiles = cells.iter().filter_map(|cell| match cell.column.quantity {
        Quantity::Percentile(share) if count.figure.most() * (1.0 - share) < 1.0 => {
            Some((share, cell))
        }
        _ => None,
    });
    let lowest = percentiles.min_by(|one, other| one.0.total_cmp(&other.0));
    let text = lowest.map(|(share, cell)| {
        format!("{} rests on {}; it needs {:.0}", cell.named(), count.named(), 1.0 / (1.0 - share))
    });
    text.into_iter().collect()
}

// A violated law.

/// A law that a row violates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// Line of the row.
    pub line: usize,
    /// Whether the figures are impossible, or only unsupported.
    pub level: Level,
    /// Name of the law.
    pub law: &'static str,
    /// The contradicting figures and the arithmetic.
    pub text: String,
}

/// Severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No measurement can produce these figures together.
    Impossible,
    /// The figures may be true, but the samples do not support them.
    Unsupported,
}
