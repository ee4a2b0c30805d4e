//! Notifications about calls under way: that a client gives one up, and how far one is.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use crate::object::{quoted, read_object};
use crate::rpc::{read_envelope, request, spelled};

/// The notification of how far a call is.
const PROGRESS: &str = "notifications/progress";

/// The notification that a request is cancelled, in the versions with sessions.
pub const CANCELLED: &str = "notifications/cancelled";

/// The member of `_meta` with the token of a call.
const TOKEN: &str = "progressToken";

/// Longest token of a call, in bytes of its JSON: it is repeated in every notification.
const MAX_TOKEN: usize = 256;

/// The token under which the client of `tools/call` wants to be told how far the call is, as JSON.
pub fn progress_token(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "_meta")]
        meta: &'a RawValue,
    }
    #[derive(Deserialize)]
    struct Meta {
        #[serde(rename = "progressToken")]
        token: Value,
    }
    // Most calls name none. What has escapes may spell its name with them.
    if !params.contains(TOKEN) && !params.contains('\\') {
        return None;
    }
    let params: Params<'_> = read_object(params).ok()?;
    let Meta { token } = read_object(params.meta.get()).ok()?;
    let token = (token.is_string() || token.is_number()).then(|| token.to_string());
    token.filter(|token| token.len() <= MAX_TOKEN)
}

/// The id of the request that a notification [`CANCELLED`] with these parameters names, as
/// [`spelled`] writes it.
pub fn cancelled_request(params: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Params<'a> {
        #[serde(borrow, rename = "requestId")]
        id: &'a RawValue,
    }
    read_object::<Params<'_>>(params).ok().map(|params| spelled(params.id.get()))
}

/// How far a call is, as its server says. What it also says in words is left out: nobody has judged
/// them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallProgress {
    /// So much is done.
    pub done: Number,
    /// Of so much, if that is known.
    pub total: Option<Number>,
}

/// Reads a message of a server that says how far the call with this token is; `None` for others.
pub fn read_progress(message: &[u8], token: u64) -> Option<CallProgress> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "progressToken")]
        token: Value,
        progress: Number,
        #[serde(default)]
        total: Option<Number>,
    }
    let envelope = read_envelope(message).ok()?;
    let is_progress = envelope.id.is_none() && envelope.method?.get() == quoted(PROGRESS);
    let params = envelope.params.filter(|_| is_progress)?;
    let Params { token: found, progress: done, total } = read_object(params.get()).ok()?;
    (found == token).then_some(CallProgress { done, total })
}

/// Tells a client how far its call is; the token is JSON.
pub fn progress(token: &str, CallProgress { done, total }: &CallProgress) -> Vec<u8> {
    let total = total.as_ref().map(|total| format!(",\"total\":{total}")).unwrap_or_default();
    let params = format!("{{\"progressToken\":{token},\"progress\":{done}{total}}}");
    request(None, PROGRESS, &params).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_text_or_a_number() {
        let long = format!(r#"{{"_meta":{{"progressToken":"{}"}}}}"#, "t".repeat(255));
        for (params, expected) in [
            (r#"{"name":"a","_meta":{"progressToken":"t 1"}}"#, Some(r#""t 1""#)),
            (r#"{"_meta":{"progressToken":7}}"#, Some("7")),
            (r#"{"_meta":{"progressToken":{}}}"#, None),
            (r#"{"_meta":{"progress\u0054oken":7}}"#, Some("7")),
            (r#"{"_meta":{}}"#, None),
            (r#"{"_meta":["t"]}"#, None),
            (r#"{"_meta":{"progressToken":7,"progressToken":8}}"#, None),
            ("{}", None),
            (long.as_str(), None),
        ] {
            assert_eq!(progress_token(params).as_deref(), expected, "{params}");
        }
    }

    #[test]
    fn a_cancelled_request_is_named_in_any_spelling() {
        for (params, expected) in [
            (r#"{"requestId":"a b","reason":"x"}"#, Some(r#""a b""#)),
            (r#"{"requestId":"\u0061 b"}"#, Some(r#""a b""#)),
            (r#"{"requestId":"7"}"#, Some(r#""7""#)),
            (r#"{"requestId": 7}"#, Some("7")),
            ("{}", None),
            (r#"{"requestId":1,"requestId":2}"#, None),
        ] {
            assert_eq!(cancelled_request(params).as_deref(), expected, "{params}");
        }
    }

    #[test]
    fn progress_is_passed_on_in_numbers() {
        let said = |token: &str, rest: &str| {
            format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token}{rest}}}}}"#
            )
        };
        for (message, expected) in [
            (
                said("7", r#","progress":1,"total":4,"message":"my card""#),
                Some(r#""progressToken":"t","progress":1,"total":4}"#),
            ),
            (said("7", r#","progress":0.5"#), Some(r#""progressToken":"t","progress":0.5}"#)),
            (said("8", r#","progress":1"#), None),
            (said(r#""7""#, r#","progress":1"#), None),
            (said("7", r#","progress":"1""#), None),
            (said("7", ""), None),
            (said("7", r#","progress":1"#).replace("progress\"", "message\""), None),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#.to_owned(), None),
        ] {
            let found = read_progress(message.as_bytes(), 7);
            let told = found.map(|found| String::from_utf8(progress(r#""t""#, &found)).unwrap());
            let expected = expected.map(|params| {
                [r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"#, params, "}"]
                    .concat()
            });
            assert_eq!(told, expected, "{message}");
        }
    }
}
