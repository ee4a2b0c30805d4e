//! The two versions of A2A: their method names, state names and error details.

use serde_json::json;

use crate::rpc::{INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError};

/// The task is unknown.
pub(super) const TASK_NOT_FOUND: i64 = -32_001;
/// The task has ended.
pub(super) const TASK_NOT_CANCELABLE: i64 = -32_002;
/// Push notifications are not supported.
const PUSH_NOT_SUPPORTED: i64 = -32_003;
/// The task's state does not allow the operation.
pub(super) const UNSUPPORTED_OPERATION: i64 = -32_004;
/// The request's version differs from the version of its method.
const VERSION_NOT_SUPPORTED: i64 = -32_009;

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// 0.3: methods like `message/send`, members named `kind`.
    V03,
    /// 1.0: methods like `SendMessage`.
    V1,
}

/// The operation of a method, with its names in both versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::EnumString)]
pub(super) enum Method {
    #[strum(serialize = "SendMessage", serialize = "message/send")]
    Send,
    #[strum(serialize = "SendStreamingMessage", serialize = "message/stream")]
    Stream,
    #[strum(serialize = "GetTask", serialize = "tasks/get")]
    Get,
    #[strum(serialize = "CancelTask", serialize = "tasks/cancel")]
    Cancel,
}

impl Version {
    /// The version of a method: names with a slash belong to 0.3.
    pub(super) fn of_method(method: &str) -> Self {
        if method.contains('/') { Self::V03 } else { Self::V1 }
    }

    /// The version of a header; missing or empty means 0.3.
    pub(super) fn of_header(header: Option<&str>) -> Option<Self> {
        let text = header.filter(|text| !text.is_empty()).unwrap_or("0.3");
        let mut numbers = text.split('.').map(str::parse::<u16>);
        let major = numbers.next()?;
        match (major, numbers.all(|number| number.is_ok())) {
            (Ok(0), true) => Some(Self::V03),
            (Ok(1), true) => Some(Self::V1),
            _ => None,
        }
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::V03 => "0.3",
            Self::V1 => "1.0",
        }
    }

    /// The operation of a request.
    ///
    /// # Errors
    /// The method is unknown, or the header names another version.
    pub(super) fn method(self, header: Option<&str>, method: &str) -> Result<Method, RpcError> {
        let Ok(found) = method.parse() else {
            let is_push = method.to_ascii_lowercase().contains("pushnotificationconfig");
            let code = if is_push { PUSH_NOT_SUPPORTED } else { METHOD_NOT_FOUND };
            return Err(RpcError::new(code, format!("Unknown method {method}")));
        };
        if Self::of_header(header) == Some(self) {
            return Ok(found);
        }
        // Clients of 0.3 do not know this code.
        let code = if self == Self::V1 { VERSION_NOT_SUPPORTED } else { INTERNAL_ERROR };
        let (given, own) = (header.unwrap_or("0.3"), self.name());
        let problem = format!("A2A version '{given}' has no {method}, which is of version '{own}'");
        Err(RpcError::new(code, problem))
    }

    /// The error with the details of this version.
    pub(super) fn complete(self, error: RpcError) -> RpcError {
        let reason = reason(error.code);
        match reason.filter(|_| self == Self::V1 && error.data.is_none()) {
            Some(reason) => error.with_data(json!([{
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason, "domain": "a2a-protocol.org", "metadata": {},
            }])),
            None => error,
        }
    }
}

const fn reason(code: i64) -> Option<&'static str> {
    Some(match code {
        TASK_NOT_FOUND => "TASK_NOT_FOUND",
        TASK_NOT_CANCELABLE => "TASK_NOT_CANCELABLE",
        PUSH_NOT_SUPPORTED => "PUSH_NOTIFICATION_NOT_SUPPORTED",
        UNSUPPORTED_OPERATION => "UNSUPPORTED_OPERATION",
        VERSION_NOT_SUPPORTED => "VERSION_NOT_SUPPORTED",
        INVALID_PARAMS => "INVALID_PARAMS",
        METHOD_NOT_FOUND => "METHOD_NOT_FOUND",
        INTERNAL_ERROR => "INTERNAL_ERROR",
        _ => return None,
    })
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case", const_into_str)]
pub(super) enum State {
    Submitted,
    Working,
    InputRequired,
    Completed,
    Failed,
    Canceled,
}

impl State {
    pub(super) fn name(self, version: Version) -> String {
        let name = self.into_str();
        match version {
            Version::V1 => format!("TASK_STATE_{}", name.to_uppercase().replace('-', "_")),
            Version::V03 => name.to_owned(),
        }
    }

    /// Whether the task has ended.
    pub(super) const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Canceled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_and_the_method_must_be_of_one_version() {
        use Version::{V1, V03};
        for (header, method, expected) in [
            (None, "message/send", Ok((V03, Method::Send))),
            (Some(""), "message/stream", Ok((V03, Method::Stream))),
            (Some("0.3"), "tasks/get", Ok((V03, Method::Get))),
            (Some("0.3.0"), "tasks/cancel", Ok((V03, Method::Cancel))),
            (Some("1.0"), "SendMessage", Ok((V1, Method::Send))),
            (Some("1.1"), "CancelTask", Ok((V1, Method::Cancel))),
            (None, "SendMessage", Err(-32_009)),
            (Some("0.3"), "GetTask", Err(-32_009)),
            (Some("2.0"), "GetTask", Err(-32_009)),
            (Some("1"), "GetTask", Ok((V1, Method::Get))),
            (Some("1.x"), "GetTask", Err(-32_009)),
            (Some("one"), "GetTask", Err(-32_009)),
            (Some("1.0"), "message/send", Err(-32_603)),
            (Some("1.0"), "tasks/list", Err(-32_601)),
            (None, "sendMessage", Err(-32_601)),
            (Some("9.9"), "", Err(-32_601)),
        ] {
            let version = Version::of_method(method);
            let found = version.method(header, method);
            let found = found.map(|method| (version, method)).map_err(|error| error.code);
            assert_eq!(found, expected, "{header:?} {method}");
        }
    }

    #[test]
    fn errors_of_version_1_say_their_reason() {
        let error = || RpcError::new(TASK_NOT_FOUND, "x");
        let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "TASK_NOT_FOUND", "domain": "a2a-protocol.org", "metadata": {}}]);
        assert_eq!(Version::V1.complete(error()).data, Some(info));
        assert_eq!(Version::V03.complete(error()).data, None);
        assert_eq!(Version::V1.complete(RpcError::new(-32_050, "x")).data, None);
    }
}
