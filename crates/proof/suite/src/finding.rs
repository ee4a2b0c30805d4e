//! Sentences derived from the figures by rules. Insufficient figures produce no sentence.

mod bottleneck;
mod quality;
mod scaling;

use serde::{Deserialize, Serialize};

pub(crate) use bottleneck::{full_load_core, limiter};
pub(crate) use quality::{busy_host, by_reason, errors, is_limited, unusable};
pub(crate) use scaling::scaling;

/// The importance of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tone {
    /// The result is as expected.
    Good,
    /// For information.
    Note,
    /// The reader should look into it, or it limits the figures.
    Warning,
}

/// A sentence that follows from the figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its importance.
    pub tone: Tone,
    /// The sentence, with its numbers.
    pub text: String,
}

impl Finding {
    pub(crate) fn good(text: impl Into<String>) -> Self {
        Self { tone: Tone::Good, text: text.into() }
    }

    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self { tone: Tone::Note, text: text.into() }
    }

    pub(crate) fn warning(text: impl Into<String>) -> Self {
        Self { tone: Tone::Warning, text: text.into() }
    }
}

#[cfg(test)]
mod fixtures {
    use plimsoll_metrics::BoundedFigure;

    use crate::result::{Figures, MeasurementResult};

    /// A result of one pass.
    pub(crate) fn result(label: &str, clients: u32, figures: Figures) -> MeasurementResult {
        MeasurementResult {
            label: label.to_owned(),
            clients: Some(clients),
            passes: vec![figures],
            ..MeasurementResult::default()
        }
    }

    pub(crate) fn figures(rate: f64, p99: f64) -> Figures {
        Figures {
            requests: 10_000,
            requests_per_s: Some(BoundedFigure::exact(rate)),
            p50_ms: Some(BoundedFigure::exact(p99 / 2.0)),
            p99_ms: Some(BoundedFigure::exact(p99)),
            max_ms: Some(BoundedFigure::exact(p99 * 3.0)),
            ..Figures::default()
        }
    }
}
