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

/// A header that overrides a value.
pub(crate) struct OverrideHeader {
    /// The name after the prefix.
    pub(crate) key: &'static str,
    /// An example of a value.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reference page"))]
    pub(crate) example: &'static str,
    #[cfg_attr(not(test), expect(dead_code, reason = "for the reference page"))]
    pub(crate) meaning: &'static str,
    /// Reads a value.
    set: fn(&mut RequestOverrides, &str) -> Result<(), String>,
}

/// All headers.
pub(crate) const HEADERS: [OverrideHeader; 6] = [
    header(
        "ttft",
        "120ms",
        "time to the first content event; of a page: to the response",
        |to, text| parse_into(&mut to.ttft, text),
    ),
    header("gap", "2ms", "time between content events", |to, text| parse_into(&mut to.gap, text)),
    header("output-tokens", "10", "output tokens", |to, text| {
        parse_into(&mut to.output_tokens, text)
    }),
    header(
        "tool-call",
        "true",
        "whether the output is a tool call in place of text",
        |to, text| parse_into(&mut to.tool_call, text),
    ),
    header(
        "status",
        "503",
        "this error status; `200` for none of the model's faults",
        |to, text| set_fault(to, text, "200"),
    ),
    header(
        "fault",
        "cut@5",
        "a fault, as in the table above; `none` for none of the model's faults",
        |to, text| set_fault(to, text, "none"),
    ),
];

const fn header(
    key: &'static str,
    example: &'static str,
    meaning: &'static str,
    set: fn(&mut RequestOverrides, &str) -> Result<(), String>,
) -> OverrideHeader {
    OverrideHeader { key, example, meaning, set }
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
        match HEADERS.iter().find(|header| header.key == key) {
            Some(header) => (header.set)(self, text),
            None => Err("the mock knows no such header".to_owned()),
        }
    }
}

fn set_fault(overrides: &mut RequestOverrides, text: &str, none: &str) -> Result<(), String> {
    overrides.fault =
        if text == none { FaultOverride::NoFault } else { FaultOverride::Inject(parse(text)?) };
    Ok(())
}

fn parse_into<T: FromStr<Err: Display>>(value: &mut Option<T>, text: &str) -> Result<(), String> {
    *value = Some(parse(text)?);
    Ok(())
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
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

    #[test]
    fn every_header_accepts_its_example() {
        for header in HEADERS {
            let mut overrides = RequestOverrides::default();
            assert_eq!(overrides.set(header.key, header.example), Ok(()), "{}", header.key);
            assert_ne!(overrides, RequestOverrides::default(), "{}", header.key);
        }
    }
}
