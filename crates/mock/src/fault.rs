//! Faults that the mock injects on purpose.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::duration::HumanDuration;
use crate::timed_plan::StreamEnd;

/// An injected fault. Written as in the `x-mock-fault` header: `503`, `429:2s`, `error@5`, `cut@5`,
/// `truncate@5`, `reset@5`, `stall@5:500ms`, `reset`, `hang`.
///
/// `@5` replaces the event after output token 5, or the last event if the output has fewer tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
pub enum Fault {
    /// An error status in place of the response, in the dialect's shape.
    Status {
        /// 400 to 599.
        code: u16,
        /// The `Retry-After` header, in whole seconds. A 429 without it gets 1 s.
        retry_after: Option<HumanDuration>,
    },
    /// The response ends early: with an error event (not streamed: status 500), in the middle of
    /// the body, or properly but without the dialect's final events.
    Break {
        /// Tokens sent before it.
        at: u32,
        /// The kind of the end, never a regular one.
        end: StreamEnd,
    },
    /// A pause.
    Stall {
        /// Tokens sent before it.
        at: u32,
        /// Its duration, added to the regular gap.
        pause: HumanDuration,
    },
    /// The connection is reset (RST) in place of the response.
    Reset,
    /// No response.
    Hang,
}

/// The ways in which a response ends early.
const BREAKS: [(&str, StreamEnd); 4] = [
    ("error", StreamEnd::Error),
    ("cut", StreamEnd::Disconnected { reset: false }),
    ("truncate", StreamEnd::Truncated),
    ("reset", StreamEnd::Disconnected { reset: true }),
];

impl Fault {
    /// Tokens sent before it; 0 for faults that replace the response.
    pub(crate) const fn at_token(self) -> u32 {
        match self {
            Self::Break { at, .. } | Self::Stall { at, .. } => at,
            Self::Status { .. } | Self::Reset | Self::Hang => 0,
        }
    }

    /// The effect on a response at its place: a pause in nanoseconds, and the resulting end.
    pub(crate) const fn effect(self) -> (u64, Option<StreamEnd>) {
        match self {
            Self::Break { end, .. } => (0, Some(end)),
            Self::Stall { pause, .. } => (pause.as_nanos(), None),
            Self::Status { .. } | Self::Reset | Self::Hang => (0, None),
        }
    }

    pub(crate) fn is_error(self) -> bool {
        self.effect().1 == Some(StreamEnd::Error)
    }

    /// Moves the fault to the end of an output of `tokens` tokens if it would lie beyond it, so
    /// that a planned fault always happens.
    pub(crate) fn clamped_to(mut self, tokens: u32) -> Self {
        if let Self::Break { at, .. } | Self::Stall { at, .. } = &mut self {
            *at = tokens.min(*at);
        }
        self
    }
}

/// A fault and its frequency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FaultShare {
    /// The fault, such as `503` or `cut@5`.
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
        "reset" => Some(Fault::Reset),
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
    let (_, end) = BREAKS.into_iter().find(|(name, _)| *name == kind)?;
    Some(Fault::Break { at: place.parse().ok()?, end })
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status { code, retry_after: Some(pause) } => write!(f, "{code}:{pause}"),
            Self::Status { code, retry_after: None } => write!(f, "{code}"),
            Self::Break { at, end } => {
                let name = BREAKS.iter().find(|(_, known)| known == end).map(|(name, _)| *name);
                write!(f, "{}@{at}", name.unwrap_or_default())
            }
            Self::Stall { at, pause } => write!(f, "stall@{at}:{pause}"),
            Self::Reset => f.write_str("reset"),
            Self::Hang => f.write_str("hang"),
        }
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
            ("error@0", Fault::Break { at: 0, end: StreamEnd::Error }),
            ("cut@5", Fault::Break { at: 5, end: StreamEnd::Disconnected { reset: false } }),
            ("truncate@7", Fault::Break { at: 7, end: StreamEnd::Truncated }),
            ("stall@5:500ms", Fault::Stall { at: 5, pause: HumanDuration::from_millis(500) }),
            ("reset", Fault::Reset),
            ("reset@2", Fault::Break { at: 2, end: StreamEnd::Disconnected { reset: true } }),
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
