//! Request headers that override the configuration for one request.

use std::fmt::Display;
use std::str::FromStr;

use hyper::HeaderMap;

use crate::duration::HumanDuration;
use crate::fault::Fault;

/// The prefix of these headers.
const PREFIX: &str = "x-mock-";

/// Values that override the model's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestOverrides {
    pub(crate) ttft: Option<HumanDuration>,
    pub(crate) gap: Option<HumanDuration>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) tool_call: Option<bool>,
    pub(crate) fault: FaultOverride,
}

/// The requested fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FaultOverride {
    /// Not given: the model's faults apply.
    #[default]
    Unset,
    /// No fault.
    NoFault,
    /// This fault.
    Inject(Fault),
}

impl FaultOverride {
    /// The fault to inject; `configured` draws one of the model's.
    pub(crate) fn or(self, configured: impl FnOnce() -> Option<Fault>) -> Option<Fault> {
        match self {
            Self::Unset => configured(),
            Self::NoFault => None,
            Self::Inject(fault) => Some(fault),
        }
    }
}

impl RequestOverrides {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// The problem with a header, as a message for the client. Unknown names are errors, too,
    /// because a misspelt header would silently distort a measurement.
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
            "ttft" => self.ttft = Some(parse(text)?),
            "gap" => self.gap = Some(parse(text)?),
            "output-tokens" => self.output_tokens = Some(parse(text)?),
            "tool-call" => self.tool_call = Some(parse(text)?),
            "status" if text == "200" => self.fault = FaultOverride::NoFault,
            "fault" if text == "none" => self.fault = FaultOverride::NoFault,
            "status" | "fault" => self.fault = FaultOverride::Inject(parse(text)?),
            _ => return Err("unknown header of the mock".to_owned()),
        }
        Ok(())
    }
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// An accepted handshake of a WebSocket: the data that its turns take from it.
#[derive(Debug)]
pub(crate) struct Accepted {
    /// Its `x-request-id`.
    pub(crate) request_id: Option<String>,
    /// Values that override the model's in every turn.
    pub(crate) overrides: RequestOverrides,
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::{HeaderName, HeaderValue};

    fn read(headers: &[(&str, &str)]) -> Result<RequestOverrides, String> {
        RequestOverrides::from_headers(
            &headers
                .iter()
                .map(|(name, value)| {
                    (HeaderName::from_str(name).unwrap(), HeaderValue::from_str(value).unwrap())
                })
                .collect(),
        )
    }

    #[test]
    fn each_header_sets_its_value() {
        let found = read(&[
            ("content-type", "application/json"),
            ("x-mock-ttft", "5ms"),
            ("x-mock-gap", "250us"),
            ("x-mock-output-tokens", "10"),
            ("x-mock-tool-call", "true"),
            ("x-mock-fault", "cut@5"),
        ]);
        let expected = RequestOverrides {
            ttft: Some(HumanDuration::from_millis(5)),
            gap: "250us".parse().ok(),
            output_tokens: Some(10),
            tool_call: Some(true),
            fault: FaultOverride::Inject("cut@5".parse().unwrap()),
        };
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_status_is_a_fault_and_200_and_none_switch_faults_off() {
        let fault = |name, value| read(&[(name, value)]).unwrap().fault;
        assert_eq!(
            fault("x-mock-status", "503"),
            FaultOverride::Inject(Fault::Status { code: 503, retry_after: None })
        );
        assert_eq!(fault("x-mock-status", "200"), FaultOverride::NoFault);
        assert_eq!(fault("x-mock-fault", "none"), FaultOverride::NoFault);
        assert_eq!(read(&[("accept", "*/*")]).unwrap().fault, FaultOverride::Unset);
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
            let problem = read(&[(name, value)]).unwrap_err();
            assert!(problem.starts_with(name), "{problem}");
        }
    }
}
