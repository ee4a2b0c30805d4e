//! State of the current response, shared by all dialects.

use memchr::memmem::find_iter;
use plimsoll_measure::{AnswerContent, ErrorClass, Usage};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use super::error_detail::{self, ErrorDetail, PlainAnswer};
use super::json_reader::{FromJson, JsonError, Raw, from_str, is_not_kept};
use super::sent::{Delta, DeltaKind, OnDelta, Sent};
use super::usage::{Counts, RefusedUsage, UsageBounds, UsageReport};
use crate::turn::{Kept, ToolCall};

/// Buffer capacity kept between responses. The excess after a huge body is freed.
pub(super) const KEPT_CAPACITY: usize = 64 * 1024;

/// Maximum length of a kept finish reason, in bytes.
const MAX_FINISH_REASON: usize = 64;

/// Finish reasons that report a failure: `error` of `vLLM` and `OpenRouter`, `abort` of `vLLM` and
/// `SGLang`, the reasons of `DeepSeek` and Zhipu, and the statuses of the Responses API.
const FAILURE_REASONS: [&str; 9] = [
    "error",
    "abort",
    "aborted",
    "failed",
    "cancelled",
    "canceled",
    "insufficient_system_resource",
    "network_error",
    "server_error",
];

/// Maximum number of tool calls kept per response.
pub const MAX_TOOL_CALLS: usize = 128;

/// The result of decoding a part of the response.
pub(super) type DecodeResult = Result<(), DecodeError>;

/// The failure of a response.
#[derive(Debug)]
pub(super) struct DecodeError {
    pub(super) class: ErrorClass,
    pub(super) detail: ErrorDetail,
}

impl DecodeError {
    /// An error that the decoder found.
    pub(super) fn new(class: ErrorClass, message: &str) -> Self {
        Self { class, detail: ErrorDetail::message(message) }
    }

    /// An error that the target reports inside a success: the value of its `error` member.
    pub(super) fn from_error_member(error: Raw<'_>) -> Self {
        Self { class: ErrorClass::StreamError, detail: ErrorDetail::from_member(error.0) }
    }

    /// Fails if there is a nonempty member; some servers send an empty one with every response.
    pub(super) fn check_member(error: Option<Raw<'_>>) -> DecodeResult {
        error
            .filter(|error| !matches!(error.0, "\"\"" | "false" | "{}" | "[]" | "0"))
            .map_or(Ok(()), |error| Err(Self::from_error_member(error)))
    }

    /// The error for a missing required member of `received`.
    pub(super) fn without_member(member: &str, received: &str) -> Self {
        let message = format!("there is no `{member}` in {}", error_detail::quote(received));
        Self::new(ErrorClass::MalformedBody, &message)
    }

    /// The same, unless `received` reports an error without an `error` member: `{"object":"error",
    /// "message":..}`, `{"code":500,"msg":..}`.
    pub(super) fn missing(member: &str, received: &str) -> Self {
        ErrorDetail::in_place_of_answer(received).map_or_else(
            || Self::without_member(member, received),
            |detail| Self { class: ErrorClass::StreamError, detail },
        )
    }

    /// The error for a text that does not match the dialect.
    pub(super) fn unreadable(error: JsonError, received: &str) -> Self {
        let message = if received.trim().is_empty() {
            "the body is empty".to_owned()
        } else {
            let quoted = error_detail::quote(received);
            if has_several_documents(received) {
                format!(
                    "expected one JSON text, found several without the blank line that ends an event: {quoted}"
                )
            } else {
                format!("the body does not match the protocol: {error} of {quoted}")
            }
        };
        Self::new(ErrorClass::MalformedBody, &message)
    }

    /// The error for a body that is not UTF-8.
    #[cold]
    pub(super) fn no_text(body: &[u8]) -> Self {
        let at = str::from_utf8(body).map_or_else(|error| error.valid_up_to(), str::len);
        let quoted = error_detail::quote(&String::from_utf8_lossy(body));
        let message = format!("the body is not UTF-8 at byte {at} of {quoted}");
        Self::new(ErrorClass::MalformedBody, &message)
    }

    /// An error event of a stream. Its data can have any shape.
    pub(super) fn from_error_event(data: &str) -> Self {
        let detail = ErrorDetail::from_body(data.as_bytes()).unwrap_or_default();
        Self { class: ErrorClass::StreamError, detail }
    }
}

impl From<ErrorClass> for DecodeError {
    fn from(class: ErrorClass) -> Self {
        let message = match class {
            ErrorClass::BodyTooLarge => {
                "the body is larger than the limit (`max_body` of the profile)"
            }
            ErrorClass::MalformedBody => "the body is not UTF-8",
            ErrorClass::ClosedEarly => "there was no response head",
            other => other.name(),
        };
        Self::new(class, message)
    }
}

impl From<JsonError> for DecodeError {
    fn from(error: JsonError) -> Self {
        let message = format!("the body does not match the protocol: {error}");
        Self::new(ErrorClass::MalformedBody, &message)
    }
}

/// Whether the first of several lines is a complete document: NDJSON, or events without separators.
fn has_several_documents(text: &str) -> bool {
    let first = text.trim().split_once('\n').map(|(first, _)| first);
    first.is_some_and(|first| serde_json::from_str::<IgnoredAny>(first).is_ok())
}

/// Parses a text of the dialect.
pub(super) fn parse<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, DecodeError> {
    from_str(text).map_err(|error| DecodeError::unreadable(error, text))
}

/// Whether a part with a tool's name begins a new call: it has another id, or neither has an id and
/// the arguments of this call are complete.
fn begins_another(call: &ToolCall, id: &str, name: &str) -> bool {
    if name.is_empty() || call.name.is_empty() {
        return false;
    }
    if id.is_empty() && call.id.is_empty() {
        return serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
    }
    !id.is_empty() && !call.id.is_empty() && id != call.id
}

fn member_at(json: &str, place: &str) -> Value {
    let mut value = serde_json::from_str::<Value>(json).unwrap_or_default();
    value.pointer_mut(place).map(Value::take).unwrap_or_default()
}

/// Adds the members that the next request repeats.
fn add_all(to: &mut Map<String, Value>, from: &Value) {
    for (name, value) in from.as_object().into_iter().flatten() {
        if !is_not_kept(name) && !value.is_null() {
            add(to, name, value.clone());
        }
    }
}

/// Adds a member, or the next part of it.
fn add(to: &mut Map<String, Value>, name: &str, value: Value) {
    match (to.get_mut(name), value) {
        (Some(Value::String(text)), Value::String(more)) => text.push_str(&more),
        (Some(Value::Array(list)), Value::Array(more)) => list.extend(more),
        (_, value) => drop(to.insert(name.to_owned(), value)),
    }
}

/// Adds a part to a call. Id and name are sent once, but some servers repeat them with every part.
fn extend_call(call: &mut ToolCall, [id, name, arguments]: [&str; 3]) {
    for (kept, part) in [(&mut call.id, id), (&mut call.name, name)] {
        if kept.is_empty() {
            kept.push_str(part);
        }
    }
    call.arguments.push_str(arguments);
}

/// Everything decoded so far from one response.
#[derive(Debug)]
pub(super) struct ResponseState {
    pub(super) keep_text: bool,
    text: String,
    pub(super) counts: Counts,
    /// The first implausible count, which `counts` excludes.
    refused: RefusedUsage,
    pub(super) sent: Sent,
    /// Filled if the text is kept.
    tool_calls: Vec<ToolCall>,
    /// Positions of the tool calls, as sent by the target.
    tool_positions: Vec<Option<u64>>,
    /// Further parts of the message, if the text is kept. Boxed, because most have none.
    kept: Option<Box<Kept>>,
    content: AnswerContent,
    /// Whether the last event had content.
    pub(super) after_content: bool,
    /// Empty until the target sends one.
    finish_reason: String,
    ended: bool,
    failure: Option<ErrorClass>,
    /// Boxed, because most responses have none and each open response has a state.
    detail: Option<Box<ErrorDetail>>,
    /// Extracted content for an agent; boxed, because chats have none.
    plain_answer: Option<Box<PlainAnswer>>,
}

impl ResponseState {
    pub(super) fn new(keep_text: bool) -> Self {
        Self {
            keep_text,
            text: String::new(),
            counts: Counts::default(),
            refused: RefusedUsage::default(),
            sent: Sent::default(),
            tool_calls: Vec::new(),
            tool_positions: Vec::new(),
            kept: None,
            content: AnswerContent::default(),
            after_content: false,
            finish_reason: String::new(),
            ended: false,
            failure: None,
            detail: None,
            plain_answer: None,
        }
    }

    pub(super) fn reset(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT_CAPACITY);
        self.finish_reason.clear();
        *self = Self {
            text: std::mem::take(&mut self.text),
            finish_reason: std::mem::take(&mut self.finish_reason),
            ..Self::new(self.keep_text)
        };
    }

    /// Whether the terminator or an error has been read.
    pub(super) const fn is_over(&self) -> bool {
        self.ended || self.failure.is_some()
    }

    pub(super) const fn failure(&self) -> Option<ErrorClass> {
        self.failure
    }

    pub(super) fn detail(&self) -> Option<&ErrorDetail> {
        self.detail.as_deref()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn tool_calls(&self) -> &[ToolCall] {
        &self.tool_calls
    }

    pub(super) fn kept(&self) -> Option<&Kept> {
        self.kept.as_deref()
    }

    /// The kept parts to add to; `None` unless the text is kept.
    fn keep(&mut self) -> Option<&mut Kept> {
        self.keep_text.then(|| &mut **self.kept.get_or_insert_with(Box::default))
    }

    /// Appends to a text member of the message.
    pub(super) fn keep_reasoning(&mut self, name: &str, text: &str) {
        if !text.is_empty()
            && let Some(kept) = self.keep()
        {
            add(&mut kept.members, name, text.into());
        }
    }

    /// Keeps the members of a message and its tool calls that have no place in text and calls.
    /// `place` leads to the message in the JSON text, which has been read.
    #[cold]
    pub(super) fn keep_members(&mut self, json: &str, place: &str) {
        let message = member_at(json, place);
        let calls = message["tool_calls"].as_array().map(Vec::as_slice).unwrap_or_default();
        // Several calls in one message are new ones.
        let first = self.tool_calls.len().saturating_sub(calls.len());
        let own = calls.first().map(|call| call["index"].as_u64()).filter(|_| calls.len() == 1);
        let known = own.and_then(|own| self.tool_positions.iter().rposition(|known| *known == own));
        let Some(kept) = self.keep() else { return };
        for (place, call) in (known.unwrap_or(first)..).zip(calls) {
            add_all(kept.calls.entry(place).or_default(), call);
        }
        add_all(&mut kept.members, &message);
    }

    /// Keeps a block or an item; `place` leads to it in the JSON text.
    #[cold]
    pub(super) fn keep_item(&mut self, json: &str, place: &str) {
        if let Some(kept) = self.keep() {
            kept.items.push(member_at(json, place));
        }
    }

    /// Appends to a text member of the last block.
    pub(super) fn keep_in_item(&mut self, name: &str, text: &str) {
        let kept = if text.is_empty() { None } else { self.keep() };
        let Some(kept) = kept else { return };
        if kept.items.is_empty() {
            kept.items.push(json!({ "type": "thinking" }));
        }
        if let Some(Value::Object(block)) = kept.items.last_mut() {
            add(block, name, text.into());
        }
    }

    /// Keeps a tool call, or its start.
    pub(super) fn begin_tool_call(&mut self, part: [&str; 3]) {
        self.begin_tool_call_at(None, part);
    }

    /// Keeps a tool call of a non-streamed response.
    pub(super) fn push_whole_tool_call(&mut self, part: [&str; 3]) {
        part[1..].iter().for_each(|text| self.count(DeltaKind::ToolCall, text));
        self.begin_tool_call(part);
    }

    fn begin_tool_call_at(&mut self, position: Option<u64>, part: [&str; 3]) {
        if self.keep_text && self.tool_calls.len() < MAX_TOOL_CALLS {
            let mut call = ToolCall::default();
            extend_call(&mut call, part);
            self.tool_calls.push(call);
            self.tool_positions.push(position);
        }
    }

    /// Keeps a tool call or a part of one. `position` is the target's index of the call.
    ///
    /// A part belongs to the call at its position, or to the last one if it has no position. A part
    /// with a tool's name and another id begins a new call, because Google's servers give every
    /// call the position 0, or none. Positions may begin at 1, and have gaps.
    pub(super) fn push_tool_call(&mut self, position: Option<u64>, part: [&str; 3]) {
        if !self.keep_text {
            return;
        }
        let known = match position {
            None => self.tool_calls.len().checked_sub(1),
            _ => self.tool_positions.iter().rposition(|known| *known == position),
        };
        let [id, name, arguments] = part;
        match known.filter(|&at| !begins_another(&self.tool_calls[at], id, name)) {
            Some(at) => extend_call(&mut self.tool_calls[at], part),
            None if id.is_empty() && name.is_empty() && arguments.is_empty() => {}
            None => self.begin_tool_call_at(position, part),
        }
    }

    pub(super) fn finish_reason(&self) -> Option<&str> {
        Some(self.finish_reason.as_str()).filter(|reason| !reason.is_empty())
    }

    /// Tokens as reported; unreported output tokens are estimated from content events.
    pub(super) fn usage(&self) -> Usage {
        self.counts.usage(&self.sent)
    }

    /// Removes implausible counts.
    pub(super) fn check_usage(&mut self, bounds: UsageBounds) {
        self.refused.check(&mut self.counts, bounds);
    }

    /// The first implausible count.
    pub(super) fn refused_usage(&self) -> Option<&str> {
        self.refused.first()
    }

    /// Begins an event. It has no content until a delta arrives.
    pub(super) const fn begin_event(&mut self) {
        self.after_content = false;
    }

    /// Handles a part of a stream. An empty part has no content and is ignored.
    pub(super) fn push_delta(&mut self, kind: DeltaKind, text: &str, on_delta: OnDelta<'_>) {
        if text.is_empty() {
            return;
        }
        let kind = self.sent.kind_of(kind, text);
        self.sent.add(kind, text);
        self.after_content = true;
        if kind == DeltaKind::Text {
            self.push_text(text);
        } else {
            self.count(kind, text);
        }
        on_delta(Delta { kind, text });
    }

    /// Appends text of the response, streamed or not.
    pub(super) fn push_text(&mut self, text: &str) {
        self.count(DeltaKind::Text, text);
        if self.keep_text {
            self.text.push_str(text);
        }
    }

    /// Counts a part of the response, streamed or not.
    pub(super) fn count(&mut self, kind: DeltaKind, text: &str) {
        let bytes = match kind {
            DeltaKind::Text => &mut self.content.text,
            DeltaKind::Reasoning => &mut self.content.reasoning,
            DeltaKind::ToolCall => &mut self.content.tool_calls,
        };
        *bytes = bytes.saturating_add(u32::try_from(text.len()).unwrap_or(u32::MAX));
        let mut hasher = crc32fast::Hasher::new_with_initial(self.content.digest);
        hasher.update(text.as_bytes());
        self.content.digest = hasher.finalize();
    }

    /// Records the model of an event or a body, unless a model is known or content has arrived.
    pub(super) fn note_model(&mut self, json: &str) {
        if self.content.model == 0 && self.is_silent() {
            self.content.model = digest(json);
        }
    }

    /// Bytes of content so far by kind.
    pub(super) const fn content(&self) -> AnswerContent {
        self.content
    }

    /// Whether there is neither content nor a finish reason.
    pub(super) const fn is_silent(&self) -> bool {
        self.sent.events() == 0 && self.finish_reason.is_empty()
    }

    /// The failure of a response that ended normally: its finish reason reports one, or it is
    /// empty.
    pub(super) fn hidden_failure(&self) -> Option<DecodeError> {
        if FAILURE_REASONS.iter().any(|reason| self.finish_reason.eq_ignore_ascii_case(reason)) {
            let message =
                format!("the target ended the answer with the reason `{}`", self.finish_reason);
            return Some(DecodeError::new(ErrorClass::StreamError, &message));
        }
        let is_empty = self.is_silent() && self.usage().completion.known().unwrap_or(0) == 0;
        is_empty.then(|| {
            let message = "the stream is empty: it ended without content, finish reason or tokens";
            DecodeError::new(ErrorClass::EmptyAnswer, message)
        })
    }

    /// Adds a usage report to the earlier ones.
    pub(super) fn add_usage(&mut self, report: &UsageReport<'_>) {
        self.refused.merge(&mut self.counts, report);
    }

    /// Adds counts to the earlier ones.
    pub(super) fn add_counts(&mut self, later: Counts) {
        self.counts.merge(later);
    }

    /// Sets the finish reason. An empty one, which some servers send in every event, is ignored.
    pub(super) fn set_finish_reason(&mut self, reason: &str) {
        if !reason.is_empty() {
            self.finish_reason.clear();
            self.finish_reason.push_str(&reason[..reason.floor_char_boundary(MAX_FINISH_REASON)]);
        }
    }

    /// Records that the stream's terminator has been read.
    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    /// Keeps extracted content for an agent.
    pub(super) fn set_plain_answer(&mut self, answer: Option<PlainAnswer>) {
        self.plain_answer = answer.map(Box::new);
    }

    pub(super) const fn take_plain_answer(&mut self) -> Option<Box<PlainAnswer>> {
        self.plain_answer.take()
    }

    /// Keeps the error details of a rejection.
    pub(super) fn set_detail(&mut self, detail: Option<ErrorDetail>) {
        self.detail = detail.map(Box::new);
    }

    pub(super) fn fail(&mut self, error: DecodeError) {
        self.failure = Some(error.class);
        self.detail = Some(Box::new(error.detail));
    }
}

// The model named in a response.

/// Digest of the model in the first member `model` of a JSON text, or `modelVersion` at Google; 0
/// without one. The searched bytes cannot occur inside a string, because its quotes are escaped.
pub(super) fn digest(json: &str) -> u32 {
    let mut values = find_iter(json.as_bytes(), "\"model").filter_map(|at| {
        let rest = &json[at + "\"model".len()..];
        let rest = rest.strip_prefix("Version").unwrap_or(rest).strip_prefix('"')?;
        let value = rest.trim_start().strip_prefix(':')?.trim_start().strip_prefix('"')?;
        value.split('"').next().filter(|name| !name.is_empty())
    });
    values.next().map_or(0, |name| crc32fast::hash(common_name(name).as_bytes()).max(1))
}

/// Strips the provider prefix (`openai/`) and the snapshot date from a name, because gateways add
/// or remove them.
fn common_name(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let name = name.trim_end_matches("latest").trim_end_matches([':', '-']);
    let (base, digits) =
        name.split_at(name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-').len());
    let is_date = digits.starts_with('-') && digits.bytes().filter(u8::is_ascii_digit).count() == 8;
    if is_date { base.to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::digest;

    #[test]
    fn a_model_is_known_by_its_common_name() {
        let plain = digest(r#"{"id":"1","model":"gpt-4o-mini","choices":[]}"#);
        for same in [
            r#"{"model" : "openai/gpt-4o-mini"}"#,
            r#"{"type":"message_start","message":{"model":"gpt-4o-mini-2024-07-18"}}"#,
            r#"{"candidates":[{"content":{"role":"model"}}],"modelVersion":"gpt-4o-mini-20240718"}"#,
            r#"{"text":"say \"model\":\"other\"","model":"GPT-4o-mini-latest"}"#,
        ] {
            assert_eq!(digest(same), plain, "{same}");
        }
        for other in
            [r#"{"model":"gpt-4o"}"#, r#"{"model":"gpt-4o-mini-2"}"#, r#"{"model":"mini"}"#]
        {
            assert!(![0, plain].contains(&digest(other)), "{other}");
        }
        for none in ["{}", r#"{"model":null}"#, r#"{"model":""}"#, r#"{"role":"model"}"#, "\"model"]
        {
            assert_eq!(digest(none), 0, "{none}");
        }
    }
}
