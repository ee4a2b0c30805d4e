//! A value of a log as it came, and what is made of it.

use std::borrow::Cow;

use plimsoll_measure::CacheState;

use crate::time::{self, Unit};

/// A value of a column.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Cell<'a> {
    /// No such column, or nothing in it.
    #[default]
    Missing,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A text.
    Text(Cow<'a, str>),
}

/// A value that is not what its field needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bad;

/// What a field needs, `None` where the log has nothing.
pub(crate) type Read<T> = Result<Option<T>, Bad>;

impl<'a> Cell<'a> {
    /// A text, where nothing, `-` and `null` mean that there is none.
    pub(crate) fn of_text(text: impl Into<Cow<'a, str>>) -> Self {
        let text = text.into();
        match text.trim() {
            "" | "-" | "null" | "NULL" | "\\N" => Self::Missing,
            _ => Self::Text(text),
        }
    }

    /// As an id.
    pub(crate) fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::Missing => None,
            Self::Bool(value) => Some(value.to_string().into()),
            Self::Int(value) => Some(value.to_string().into()),
            Self::Float(value) => Some(value.to_string().into()),
            Self::Text(text) => Some(text.trim().into()),
        }
    }

    /// As a count.
    pub(crate) fn count(&self) -> Read<u32> {
        let found = match self {
            Self::Missing => return Ok(None),
            Self::Bool(_) => None,
            Self::Int(value) => u32::try_from(*value).ok(),
            Self::Float(value) => whole(*value),
            Self::Text(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| whole(text.parse().ok()?))
            }
        };
        found.map(Some).ok_or(Bad)
    }

    /// As the state of a cache.
    pub(crate) fn cache(&self) -> Read<CacheState> {
        match self {
            Self::Missing => Ok(None),
            Self::Bool(true) | Self::Int(1) => Ok(Some(CacheState::Hit)),
            Self::Bool(false) | Self::Int(0) => Ok(Some(CacheState::Miss)),
            Self::Int(_) | Self::Float(_) => Err(Bad),
            Self::Text(text) => CacheState::from_words(text.as_bytes()).map(Some).ok_or(Bad),
        }
    }

    /// As yes or no.
    pub(crate) fn flag(&self) -> Read<bool> {
        let found = match self {
            Self::Missing => return Ok(None),
            Self::Bool(value) => Some(*value),
            Self::Int(0) => Some(false),
            Self::Int(1) => Some(true),
            Self::Int(_) | Self::Float(_) => None,
            Self::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
                "true" | "t" | "1" | "yes" => Some(true),
                "false" | "f" | "0" | "no" => Some(false),
                _ => None,
            },
        };
        found.map(Some).ok_or(Bad)
    }

    /// As a time or a length in nanoseconds.
    pub(crate) fn nanos(&self, unit: Unit) -> Read<i64> {
        let found = match self {
            Self::Missing => return Ok(None),
            Self::Bool(_) => None,
            Self::Int(value) => unit.nanos_of_int(*value),
            Self::Float(value) => unit.nanos_of_float(*value),
            Self::Text(text) => time::parse(text.trim(), unit),
        };
        found.map(Some).ok_or(Bad)
    }

    /// The sum of lengths: a proxy that asked several servers lists them, like `0.010, 0.020`.
    pub(crate) fn sum_of_nanos(&self, unit: Unit) -> Read<i64> {
        let Self::Text(text) = self else { return self.nanos(unit) };
        let parts = text.split([',', ':']).map(str::trim).filter(|part| !matches!(*part, "" | "-"));
        let mut sum = None;
        for part in parts {
            let length = time::parse(part, unit).ok_or(Bad)?;
            sum = Some(sum.unwrap_or(0_i64).checked_add(length).ok_or(Bad)?);
        }
        Ok(sum)
    }

    /// The smallest step of this time, as it is written: of what is between two steps nothing is
    /// known.
    pub(crate) fn step(&self, unit: Unit) -> Option<i64> {
        match self {
            Self::Missing | Self::Bool(_) => None,
            Self::Int(_) => unit.nanos_of_int(1),
            // Without zeros at its end, which other rows of the log make up for.
            Self::Float(value) => Some(time::step(&value.to_string(), unit)),
            Self::Text(text) => Some(time::step(text.trim(), unit)),
        }
    }

    /// For a message.
    pub(crate) fn shown(&self) -> String {
        crate::error::quoted(&self.text().unwrap_or_default())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::float_cmp,
    reason = "checked to be a whole number within the range"
)]
fn whole(value: f64) -> Option<u32> {
    let fits = value >= 0.0 && value <= f64::from(u32::MAX) && value.trunc() == value;
    fits.then_some(value as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_logs_write_them() {
        let text = |text: &'static str| Cell::of_text(text);
        assert_eq!(text(" - "), Cell::Missing);
        assert_eq!(text("12").count(), Ok(Some(12)));
        assert_eq!(text("12.0").count(), Ok(Some(12)));
        // As nginx writes it without quotes, in milliseconds; and a double in full.
        for (value, step) in [(0.012, 1_000_000), (0.5, 100_000_000), (0.012_345_678, 1_i64)] {
            assert_eq!(Cell::Float(value).step(Unit::S), Some(step), "{value}");
        }
        assert_eq!((Cell::Float(2.5).count(), text("many").count()), (Err(Bad), Err(Bad)));
        assert_eq!((text("T").flag(), Cell::Int(0).flag()), (Ok(Some(true)), Ok(Some(false))));
        assert_eq!(Cell::Int(1500).nanos(Unit::Us), Ok(Some(1_500_000)));
        assert_eq!(text("0.010, 0.020 : -").sum_of_nanos(Unit::S), Ok(Some(30_000_000)));
        assert_eq!(text("-").sum_of_nanos(Unit::S), Ok(None));
        assert_eq!(text("0.01, x").sum_of_nanos(Unit::S), Err(Bad));
    }

    #[test]
    fn the_step_of_a_time_is_its_last_digit() {
        assert_eq!(Cell::Int(5).step(Unit::Ms), Some(1_000_000));
        assert_eq!(Cell::of_text("1763700000.123").step(Unit::S), Some(1_000_000));
        assert_eq!(Cell::of_text("2026-01-02T03:04:05Z").step(Unit::Iso), Some(1_000_000_000));
        assert_eq!(Cell::of_text("2026-01-02 03:04:05.123456").step(Unit::Iso), Some(1_000));
    }
}
