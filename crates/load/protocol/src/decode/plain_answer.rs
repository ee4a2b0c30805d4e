//! Extracts results of tools and approvals for an agent.
//!
//! A tool result has the format of the Model Context Protocol (`content`, `isError`,
//! `structuredContent`), in the member `result` of an object. Gateways use it over REST, and
//! JSON-RPC does too, whose own rules [`super::rpc_answer`] has checked. Source: the MCP
//! specification, revision 2026-07-28, "Tools".

use plimsoll_measure::ErrorClass;

use super::error_detail::{ErrorDetail, PlainAnswer, PlainReading};
use super::json_reader::{Raw, Str, from_object, from_str};
use super::response_state::DecodeError;

/// Maximum length of an approval's id in bytes, because it becomes part of a path.
const MAX_ID: usize = 256;

/// The object around a tool result.
#[derive(Default)]
struct Message<'a> {
    result: Option<Raw<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Message<'a> { result, error });

#[derive(Default)]
struct ToolResult<'a> {
    content: Option<Vec<Block<'a>>>,
    structured: Option<Raw<'a>>,
    is_error: Option<Raw<'a>>,
    result_type: Str<'a>,
}
from_object!(ToolResult<'a> {
    content,
    structured = "structuredContent",
    is_error = "isError",
    result_type = "resultType"
});

/// One part of a result.
#[derive(Default)]
struct Block<'a> {
    kind: Str<'a>,
    text: Option<Raw<'a>>,
}
from_object!(Block<'a> { kind = "type", text });

#[derive(Default)]
struct Approval<'a> {
    id: Option<Raw<'a>>,
    state: Str<'a>,
    error: Option<Raw<'a>>,
}
from_object!(Approval<'a> { id, state, error });

/// Extracts from the whole body of a successful response, or from the whole JSON-RPC response.
pub(super) fn read(reading: PlainReading, body: &[u8]) -> Result<Option<PlainAnswer>, DecodeError> {
    let text = || simdutf8::basic::from_utf8(body).map_err(|_| ErrorClass::MalformedBody);
    match reading {
        PlainReading::Nothing => Ok(None),
        PlainReading::ToolResult => tool_result(&from_str(text()?)?).map(Some),
        PlainReading::Approval => approval(&from_str(text()?)?).map(Some),
    }
}

fn tool_result(message: &Message<'_>) -> Result<PlainAnswer, DecodeError> {
    if let Some(error) = message.error {
        return Err(reported(error));
    }
    let Some(Raw(result)) = message.result else { return Err(malformed("there is no `result`")) };
    let result: ToolResult<'_> = from_str(result)?;
    if !matches!(&*result.result_type, "" | "complete") {
        let problem = format!("the result is `{}`, and not complete", &*result.result_type);
        return Err(DecodeError::new(ErrorClass::StreamError, &problem));
    }
    let is_error = result.is_error.is_some_and(|value| value.0 == "true");
    let mut text = String::new();
    for block in result.content.iter().flatten() {
        if !text.is_empty() {
            text.push('\n');
        }
        match (&*block.kind, block.text) {
            ("text", Some(part)) => text.push_str(&part.text()),
            (kind, _) => text.extend(["[", kind, "]"]),
        }
    }
    if text.is_empty()
        && let Some(Raw(structured)) = result.structured
    {
        text.push_str(structured);
    }
    Ok(PlainAnswer::Tool { text, is_error })
}

fn approval(read: &Approval<'_>) -> Result<PlainAnswer, DecodeError> {
    if let Some(error) = read.error {
        return Err(reported(error));
    }
    // Some services number their approvals.
    let id = match read.id {
        Some(id) if id.0.starts_with('"') => id.text().to_string(),
        Some(number) => number.0.to_owned(),
        None => String::new(),
    };
    if id.len() > MAX_ID {
        return Err(malformed("the id of the approval is longer than 256 bytes"));
    }
    Ok(PlainAnswer::Approval { id, state: read.state.to_string() })
}

/// An error inside a successful response, with its code before the message.
fn reported(error: Raw<'_>) -> DecodeError {
    let mut detail = ErrorDetail::from_member(error.0);
    if let Some(code) = &detail.code {
        detail.message = format!("{code}: {}", detail.message);
    }
    DecodeError { class: ErrorClass::StreamError, detail }
}

fn malformed(problem: &str) -> DecodeError {
    DecodeError::new(ErrorClass::MalformedBody, problem)
}
