//! A printed number with its unit.

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
pub(crate) fn unit(name: &str) -> Option<(Dimension, f64)> {
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
        let (dimension, factor) = unit(if rest.is_empty() { heading_unit } else { rest })?;
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
