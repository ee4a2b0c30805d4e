//! Faults that the mock injects on purpose.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::duration::HumanDuration;
use crate::timed_plan::StreamEnd;

/// An injected fault. Written as in the `x-mock-fault` header: `503`, `429:2s`, `error@5`, `cut@5`,
/// `truncate@5`, `reset@5`, `stall@5:500ms`, `reset`, `hang`.
///
/// `@5` means: in place of the event that would follow output token 5, or of the last event if the
/// output has fewer tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// An error status in place of the response, in the dialect's shape.
    Status {
        /// 400 to 599.
        code: u16,
        /// The `Retry-After` header, in whole seconds. A 429 without it gets 1 s.
        retry_after: Option<HumanDuration>,
    },
    /// An error event, then the end of the stream. Not streamed: status 500.
    Error {
        /// Tokens sent before.
        at: u32,
    },
    /// The connection is closed in the middle of the body.
    Cut {
        /// Tokens sent before.
        at: u32,
    },
    /// The body ends properly, but without the dialect's final events.
    Truncate {
        /// Tokens sent before.
        at: u32,
    },
    /// A pause.
    Stall {
        /// Tokens sent before.
        at: u32,
        /// Its duration, added to the gap at that place.
        pause: HumanDuration,
    },
    /// The connection is reset (RST).
    Reset {
        /// Tokens sent before; `None` for a reset in place of the response.
        at: Option<u32>,
    },
    /// No response, ever.
    Hang,
}

impl Fault {
    /// Tokens that are sent before it; 0 for faults in place of the response.
    pub(crate) const fn at_token(self) -> u32 {
        match self {
            Self::Error { at }
            | Self::Cut { at }
            | Self::Truncate { at }
            | Self::Stall { at, .. }
            | Self::Reset { at: Some(at) } => at,
            Self::Status { .. } | Self::Reset { at: None } | Self::Hang => 0,
        }
    }

    pub(crate) const fn is_error(self) -> bool {
        matches!(self, Self::Error { .. })
    }

    /// What it does to a response at its place: a pause in nanoseconds, and the end that it brings.
    pub(crate) const fn effect(self) -> (u64, Option<StreamEnd>) {
        match self {
            Self::Error { .. } => (0, Some(StreamEnd::Error)),
            Self::Cut { .. } => (0, Some(StreamEnd::Disconnected { reset: false })),
            Self::Truncate { .. } => (0, Some(StreamEnd::Truncated)),
            Self::Reset { .. } => (0, Some(StreamEnd::Disconnected { reset: true })),
            Self::Stall { pause, .. } => (pause.as_nanos(), None),
            Self::Status { .. } | Self::Hang => (0, None),
        }
    }

    /// The same fault in an output of `tokens` tokens: at its end at the latest, so that a planned
    /// fault always happens.
    pub(crate) fn clamped_to(self, tokens: u32) -> Self {
        match self {
            Self::Error { at } => Self::Error { at: at.min(tokens) },
            Self::Cut { at } => Self::Cut { at: at.min(tokens) },
            Self::Truncate { at } => Self::Truncate { at: at.min(tokens) },
            Self::Stall { at, pause } => Self::Stall { at: at.min(tokens), pause },
            Self::Reset { at } => Self::Reset { at: at.map(|at| at.min(tokens)) },
            other @ (Self::Status { .. } | Self::Hang) => other,
        }
    }
}

/// A fault and its frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FaultShare {
    /// The fault, like `503` or `cut@5`.
    pub fault: Fault,
    /// Share of the requests, 0 to 1; the shares of one model or tool add up to at most 1.
    pub share: f64,
}

/// The text is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a fault: write a status (`503`, `429:2s`), `error@5`, `cut@5`, `truncate@5`, `reset@5`, `stall@5:500ms`, `reset` or `hang`"
)]
pub struct ParseFaultError(String);

impl FromStr for Fault {
    type Err = ParseFaultError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let text = text.trim();
        let fault = match text.split_once('@') {
            Some((kind, place)) => parse_at_token(kind, place),
            None => parse_without_place(text),
        };
        fault.ok_or_else(|| ParseFaultError(text.to_owned()))
    }
}

fn parse_without_place(text: &str) -> Option<Fault> {
    match text {
        "hang" => Some(Fault::Hang),
        "reset" => Some(Fault::Reset { at: None }),
        _ => parse_status(text),
    }
}

fn parse_status(text: &str) -> Option<Fault> {
    let (code, pause) = match text.split_once(':') {
        Some((code, pause)) => (code, Some(pause.parse().ok()?)),
        None => (text, None),
    };
    let code = code.parse().ok().filter(|code| (400..=599).contains(code))?;
    let retry_after = pause.or_else(|| (code == 429).then_some(HumanDuration::from_millis(1_000)));
    Some(Fault::Status { code, retry_after })
}

fn parse_at_token(kind: &str, place: &str) -> Option<Fault> {
    if kind == "stall" {
        let (at, pause) = place.split_once(':')?;
        return Some(Fault::Stall { at: at.parse().ok()?, pause: pause.parse().ok()? });
    }
    let at = place.parse().ok()?;
    match kind {
        "error" => Some(Fault::Error { at }),
        "cut" => Some(Fault::Cut { at }),
        "truncate" => Some(Fault::Truncate { at }),
        "reset" => Some(Fault::Reset { at: Some(at) }),
        _ => None,
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { code, retry_after: Some(pause) } => write!(f, "{code}:{pause}"),
            Self::Status { code, retry_after: None } => write!(f, "{code}"),
            Self::Error { at } => write!(f, "error@{at}"),
            Self::Cut { at } => write!(f, "cut@{at}"),
            Self::Truncate { at } => write!(f, "truncate@{at}"),
            Self::Stall { at, pause } => write!(f, "stall@{at}:{pause}"),
            Self::Reset { at: Some(at) } => write!(f, "reset@{at}"),
            Self::Reset { at: None } => f.write_str("reset"),
            Self::Hang => f.write_str("hang"),
        }
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fault {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_read_back_as_they_are_written() {
        let second = Some(HumanDuration::from_millis(1_000));
        for (text, fault) in [
            ("503", Fault::Status { code: 503, retry_after: None }),
            ("429:1s", Fault::Status { code: 429, retry_after: second }),
            ("error@0", Fault::Error { at: 0 }),
            ("cut@5", Fault::Cut { at: 5 }),
            ("truncate@7", Fault::Truncate { at: 7 }),
            ("stall@5:500ms", Fault::Stall { at: 5, pause: HumanDuration::from_millis(500) }),
            ("reset", Fault::Reset { at: None }),
            ("reset@2", Fault::Reset { at: Some(2) }),
            ("hang", Fault::Hang),
        ] {
            assert_eq!(text.parse::<Fault>().unwrap(), fault, "{text}");
            assert_eq!(fault.to_string(), text);
        }
        assert_eq!("429".parse::<Fault>(), "429:1s".parse());
    }

    #[test]
    fn text_that_is_not_a_fault_is_refused() {
        for text in ["", "200", "600", "cut", "cut@", "stall@5", "stall@5:7", "hang@1", "melt@3"] {
            assert!(text.parse::<Fault>().is_err(), "{text}");
        }
    }
}
