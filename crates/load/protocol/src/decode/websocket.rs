//! The messages of a chat over a WebSocket.
//!
//! `{"type":"delta","text":"..."}`, the same with the type `reasoning`, then `{"type":"done"}` with
//! a `usage` in the form of chat completions; or `{"type":"error","error":{...}}`. Messages of
//! other types are skipped, because gateways send their own pings.

use plimsoll_measure::ErrorClass;

use super::json_reader::{Raw, Str, Tag, from_object};
use super::response_state::{DecodeError, DecodeResult, ResponseState, parse};
use super::sent::{DeltaKind, OnDelta};
use super::usage::UsageReport;

#[derive(Default)]
struct Message<'a> {
    kind: Tag<'a>,
    text: Str<'a>,
    usage: Option<UsageReport<'a>>,
    finish_reason: Str<'a>,
    error: Option<Raw<'a>>,
}
from_object!(Message<'a> { kind = "type", text, usage, finish_reason, error });

/// Reads a message; `None` is a binary one.
pub(super) fn read_message(
    state: &mut ResponseState,
    text: Option<&str>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    state.begin_event();
    let Some(text) = text else {
        let problem = "a message is binary, but a text was expected";
        return Err(DecodeError::new(ErrorClass::MalformedBody, problem));
    };
    let message: Message<'_> = parse(text)?;
    match &*message.kind {
        "" => return Err(DecodeError::without_member("type", text)),
        "delta" => state.push_delta(DeltaKind::Text, &message.text, on_delta),
        "reasoning" => state.push_delta(DeltaKind::Reasoning, &message.text, on_delta),
        "done" => {
            state.set_finish_reason(&message.finish_reason);
            if let Some(usage) = message.usage {
                state.add_usage(&usage);
            }
            state.end();
        }
        "error" => {
            return Err(message.error.map_or_else(
                || DecodeError::from_error_event(text),
                DecodeError::from_error_member,
            ));
        }
        _ => {}
    }
    Ok(())
}
