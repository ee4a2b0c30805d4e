//! What a single request asks of the mock, in headers of its own.

use std::str::FromStr;

use hyper::HeaderMap;

use crate::fault::Fault;
use crate::span::HumanDuration;

/// All such headers begin with this.
const PREFIX: &str = "x-mock-";

/// Values that stand in the place of the model's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Overrides {
    pub(crate) preamble: Option<HumanDuration>,
    pub(crate) ttft: Option<HumanDuration>,
    pub(crate) gap: Option<HumanDuration>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) reasoning_tokens: Option<u32>,
    pub(crate) tokens_per_event: Option<u32>,
    pub(crate) tool_call: Option<bool>,
    pub(crate) fault: Wish,
}

/// What a request says about faults.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Nothing: the model's own may strike.
    #[default]
    Unsaid,
    /// There shall be none.
    NoFault,
    /// This one.
    Exactly(Fault),
}

impl Wish {
    /// The fault, where the model's own would be the given one.
    pub(crate) fn or(self, own: impl FnOnce() -> Option<Fault>) -> Option<Fault> {
        match self {
            Self::Unsaid => own(),
            Self::NoFault => None,
            Self::Exactly(fault) => Some(fault),
        }
    }
}

impl Overrides {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// What is wrong with a header, for the client to read. Unknown names are errors too: a misspelt
    /// one would otherwise bend a measurement in silence.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Result<Self, String> {
        let mut overrides = Self::default();
        for (name, value) in headers {
            if let Some(key) = name.as_str().strip_prefix(PREFIX) {
                let text = value.to_str().map_err(|_| format!("{name}: not a text"))?;
                overrides.set(key, text).map_err(|problem| format!("{name}: {problem}"))?;
            }
        }
        Ok(overrides)
    }

    fn set(&mut self, key: &str, text: &str) -> Result<(), String> {
        match key {
            "preamble" => self.preamble = Some(read(text)?),
            "ttft" => self.ttft = Some(read(text)?),
            "gap" => self.gap = Some(read(text)?),
            "output-tokens" => self.output_tokens = Some(read(text)?),
            "reasoning-tokens" => self.reasoning_tokens = Some(read(text)?),
            "tokens-per-event" => self.tokens_per_event = Some(read::<u32>(text)?.max(1)),
            "tool-call" => self.tool_call = Some(read(text)?),
            "status" if text == "200" => self.fault = Wish::NoFault,
            "fault" if text == "none" => self.fault = Wish::NoFault,
            "status" | "fault" => self.fault = Wish::Exactly(read(text)?),
            _ => return Err("the mock knows no such header".to_owned()),
        }
        Ok(())
    }
}

fn read<T: FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn parse(headers: &[(&str, &str)]) -> Result<Overrides, String> {
        let pair = |(name, value): &(&str, &str)| {
            (HeaderName::from_str(name).unwrap(), HeaderValue::from_str(value).unwrap())
        };
        Overrides::from_headers(&headers.iter().map(pair).collect())
    }

    #[test]
    fn each_header_sets_its_own_value() {
        let found = parse(&[
            ("content-type", "application/json"),
            ("x-mock-preamble", "1ms"),
            ("x-mock-ttft", "5ms"),
            ("x-mock-gap", "250us"),
            ("x-mock-output-tokens", "10"),
            ("x-mock-reasoning-tokens", "3"),
            ("x-mock-tokens-per-event", "2"),
            ("x-mock-tool-call", "true"),
            ("x-mock-fault", "cut@5"),
        ]);
        let expected = Overrides {
            preamble: Some(HumanDuration::from_millis(1)),
            ttft: Some(HumanDuration::from_millis(5)),
            gap: Some(HumanDuration::from_nanos(250_000)),
            output_tokens: Some(10),
            reasoning_tokens: Some(3),
            tokens_per_event: Some(2),
            tool_call: Some(true),
            fault: Wish::Exactly(Fault::Cut { at: 5 }),
        };
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_status_is_a_fault_and_200_and_none_switch_faults_off() {
        let fault = |name, value| parse(&[(name, value)]).unwrap().fault;
        assert_eq!(
            fault("x-mock-status", "503"),
            Wish::Exactly(Fault::Status { code: 503, retry_after: None })
        );
        assert_eq!(fault("x-mock-status", "200"), Wish::NoFault);
        assert_eq!(fault("x-mock-fault", "none"), Wish::NoFault);
        assert_eq!(parse(&[("accept", "*/*")]).unwrap().fault, Wish::Unsaid);
    }

    #[test]
    fn unknown_names_and_bad_values_are_refused() {
        for (name, value) in [
            ("x-mock-tfft", "5ms"),
            ("x-mock-ttft", "5"),
            ("x-mock-fault", "melt"),
            ("x-mock-status", "204"),
            ("x-mock-tool-call", "yes"),
            ("x-mock-output-tokens", "-1"),
        ] {
            let problem = parse(&[(name, value)]).unwrap_err();
            assert!(problem.starts_with(name), "{problem}");
        }
    }

    #[test]
    fn the_documentation_names_every_header() {
        let table = include_str!("../README.md");
        for key in [
            "preamble",
            "ttft",
            "gap",
            "output-tokens",
            "reasoning-tokens",
            "tokens-per-event",
            "tool-call",
            "status",
            "fault",
        ] {
            assert!(table.contains(&format!("| `x-mock-{key}` |")), "{key}");
        }
    }
}
