//! The result of a search.

use plimsoll_measure::named_enum;
use plimsoll_report::format::{digits, seconds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named_enum! {
    /// Unit of the load.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Load {
        /// Arrivals per second, independent of the target's speed.
        RequestsPerSecond => "requests_per_second",
        /// Virtual users, each waiting for its response.
        VirtualUsers => "virtual_users",
    }
}

impl Load {
    /// Formats a load with its unit.
    pub fn text(self, load: f64) -> String {
        match self {
            Self::RequestsPerSecond => format!("{}/s", digits(load)),
            Self::VirtualUsers if load < 1.5 => "1 user".to_owned(),
            Self::VirtualUsers => format!("{load:.0} users"),
        }
    }
}

named_enum! {
    /// Which ends of a capacity are proven.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Kind {
        /// Both: a load met the objective, and a higher one missed it.
        Between => "between",
        /// Only the lower end: a load met the objective.
        AtLeast => "at_least",
        /// Only the upper end: a load missed the objective.
        Below => "below",
        /// Neither end.
        Unknown => "unknown",
    }
}

/// The capacity: the highest load that meets the objective.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Found {
    /// Which ends are proven.
    pub kind: Kind,
    /// Lower end: half a step below `kept`.
    pub low: Option<f64>,
    /// Upper end: half a step above `missed`.
    pub high: Option<f64>,
    /// Highest load that was proven to meet the objective.
    pub kept: Option<f64>,
    /// Lowest load that was proven to miss it.
    pub missed: Option<f64>,
    /// Total length of the probes at `kept` in seconds, if they were too short to show a steady
    /// state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept_only_s: Option<f64>,
}

impl Found {
    /// Computes the ends from the proven loads; `half` is half a step between loads, as a factor.
    pub(crate) fn new(kept: Option<f64>, missed: Option<f64>, half: f64, is_whole: bool) -> Self {
        let whole = |load: f64| if is_whole { load.round().max(1.0) } else { load };
        let kind = match (kept, missed) {
            (Some(_), Some(_)) => Kind::Between,
            (Some(_), None) => Kind::AtLeast,
            (None, Some(_)) => Kind::Below,
            (None, None) => Kind::Unknown,
        };
        let low = kept.map(|kept| whole(kept / half));
        let high = missed.map(|missed| whole(missed * half));
        Self { kind, low, high, kept, missed, kept_only_s: None }
    }

    /// `between 61.2/s and 77.8/s`, `at least 477/s`, `below 10.5/s`, `unknown`;
    /// `at least 32.9/s (for 10s only)` after short probes.
    pub fn text(&self, text: impl Fn(f64) -> String) -> String {
        let only = self.kept_only_s.map(|only| format!(" (for {} only)", seconds(only.round())));
        let low = self.low.map(|low| text(low) + &only.unwrap_or_default());
        match (low, self.high.map(&text)) {
            (Some(low), Some(high)) => format!("between {low} and {high}"),
            (Some(low), None) => format!("at least {low}"),
            (None, Some(high)) => format!("below {high}"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

named_enum! {
    /// Verdict of a search.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Verdict {
        /// A lower end was found, at or above the required load if there is one.
        Pass => "pass",
        /// The lowest load missed, the target stopped, or the required load is above the upper end.
        Fail => "fail",
        /// Neither pass nor fail is proven.
        Inconclusive => "inconclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_words_of_files() {
        let word = |json: Result<serde_json::Value, _>| json.unwrap().as_str().unwrap().to_owned();
        for load in Load::ALL {
            assert_eq!(word(serde_json::to_value(load)), load.name());
        }
        for phase in crate::Phase::ALL {
            assert_eq!(word(serde_json::to_value(phase)), phase.name());
        }
        for kind in Kind::ALL {
            assert_eq!(word(serde_json::to_value(kind)), kind.name());
        }
        for verdict in Verdict::ALL {
            assert_eq!(word(serde_json::to_value(verdict)), verdict.name());
        }
    }

    #[test]
    fn ends_are_half_a_step_outside_of_what_was_proven() {
        let text = |kept, missed, whole| {
            Found::new(kept, missed, 1.1_f64.sqrt(), whole).text(|load| format!("{load:.1}"))
        };
        assert_eq!(text(Some(64.0), Some(70.4), false), "between 61.0 and 73.8");
        assert_eq!(text(Some(500.0), None, false), "at least 476.7");
        assert_eq!(text(None, Some(10.0), false), "below 10.5");
        assert_eq!(text(None, None, false), "unknown");
        assert_eq!(text(Some(3.0), Some(4.0), true), "between 3.0 and 4.0");
        assert_eq!(text(Some(40.0), Some(44.0), true), "between 38.0 and 46.0");
        assert_eq!(text(Some(1.0), None, true), "at least 1.0");
    }
}
