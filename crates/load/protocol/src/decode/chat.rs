//! `OpenAI`'s chat completions, and the variants of compatible servers. Also reads text
//! completions, whose choices have a `text` instead of a message.

use plimsoll_measure::ErrorClass;

use super::json_reader::{
    FirstElement, FromJson, Index, JsonError, Raw, Reader, Str, Tag, from_object, from_str,
};
use super::response_state::{DecodeError, DecodeResult, ResponseState, parse};
use super::sent::{DeltaKind, OnDelta};
use super::usage::UsageReport;
use crate::sse::Event;

/// One event of a stream.
#[derive(Default)]
pub(super) struct Chunk<'a> {
    choices: Option<FollowedChoice<'a>>,
    usage: Option<UsageReport<'a>>,
    x_groq: Option<Groq<'a>>,
    error: Option<Raw<'a>>,
    /// Not part of the dialect, but used by events of gateways.
    kind: Tag<'a>,
}
from_object!(Chunk<'a> { choices, usage, x_groq, error, kind = "type" });

/// Groq's extension of the dialect.
#[derive(Default)]
struct Groq<'a> {
    usage: Option<Raw<'a>>,
}
from_object!(Groq<'a> { usage });

/// The first choice, if an event has a part of it. If a request asks for several (`n`), each event
/// has a part of one, and they must not be mixed.
struct FollowedChoice<'a>(Option<Choice<'a>>);

impl<'a> FromJson<'a> for FollowedChoice<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        if json.peek() == Some(b'{') {
            return json.read_fitting().map(Self);
        }
        let mut followed = None;
        json.elements(|json| {
            let choice = json.read_fitting::<Choice<'a>>()?;
            if followed.is_none() {
                followed = choice.filter(|choice| choice.index == Index(0));
            }
            Ok(())
        })?;
        Ok(Self(followed))
    }

    fn fits(first: u8) -> bool {
        first == b'[' || first == b'{'
    }
}

#[derive(Default)]
struct Choice<'a> {
    index: Index,
    delta: Option<Message<'a>>,
    text: Str<'a>,
    finish_reason: Reason<'a>,
    /// Usage of the whole response, at Moonshot AI.
    usage: Option<Raw<'a>>,
    /// Error of the choice, at `OpenRouter`.
    error: Option<Raw<'a>>,
}
from_object!(Choice<'a> { index, delta, text, finish_reason, usage, error });

/// A non-streamed response.
#[derive(Default)]
pub(super) struct Completion<'a> {
    choices: Option<FirstElement<WholeChoice<'a>>>,
    usage: Option<UsageReport<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Completion<'a> { choices, usage, error });

#[derive(Default)]
struct WholeChoice<'a> {
    message: Option<Message<'a>>,
    text: Option<Str<'a>>,
    finish_reason: Reason<'a>,
    error: Option<Raw<'a>>,
}
from_object!(WholeChoice<'a> { message, text, finish_reason, error });

/// A message or a part of one.
#[derive(Default)]
struct Message<'a> {
    content: Content<'a>,
    refusal: Str<'a>,
    reasoning_content: Content<'a>,
    reasoning: Content<'a>,
    /// Parts of `reasoning`, at `OpenRouter`.
    reasoning_details: Option<Content<'a>>,
    /// The same, at `LiteLLM`.
    thinking_blocks: Option<Content<'a>>,
    /// A spoken answer.
    audio: Option<Audio<'a>>,
    tool_calls: Option<Vec<ToolCall<'a>>>,
    /// The predecessor of `tool_calls`.
    function_call: Option<Function<'a>>,
    /// Whether it has other members.
    extra: bool,
}
from_object!(Message<'a> {
    content,
    refusal,
    reasoning_content,
    reasoning,
    reasoning_details,
    thinking_blocks,
    audio,
    tool_calls,
    function_call;
    extra
});

impl<'a> Message<'a> {
    /// Whether it has members that the next request repeats beside text and calls.
    fn has_extra(&self) -> bool {
        let mut calls = self.tool_calls.iter().flatten();
        self.extra
            || self.reasoning_details.is_some()
            || self.thinking_blocks.is_some()
            || calls.any(|call| call.extra)
    }

    /// Takes the reasoning out of the message. Servers that send several of these members repeat
    /// the same reasoning in each.
    fn take_reasoning(&mut self) -> Str<'a> {
        let members = [
            std::mem::take(&mut self.reasoning_content),
            std::mem::take(&mut self.reasoning),
            self.reasoning_details.take().unwrap_or_default(),
            self.thinking_blocks.take().unwrap_or_default(),
        ];
        let reasoning = members.into_iter().map(Content::all);
        let reasoning = reasoning.reduce(Str::or).unwrap_or_default();
        reasoning.or(std::mem::take(&mut self.content.thinking))
    }
}

#[derive(Default)]
struct Audio<'a> {
    transcript: Str<'a>,
}
from_object!(Audio<'a> { transcript });

#[derive(Default)]
struct ToolCall<'a> {
    /// Accepts any type, because members that are not measured must not make a response malformed.
    index: Option<Raw<'a>>,
    id: Option<Raw<'a>>,
    function: Option<Function<'a>>,
    extra: bool,
}
from_object!(ToolCall<'a> { index, id, function; extra });

#[derive(Default)]
struct Function<'a> {
    name: Str<'a>,
    arguments: Arguments<'a>,
}
from_object!(Function<'a> { name, arguments });

/// Reads one event of a stream.
pub(super) fn read_event(
    state: &mut ResponseState,
    event: &Event<'_>,
    on_delta: OnDelta<'_>,
) -> DecodeResult {
    let chunk: Chunk<'_> = parse(event.data)?;
    DecodeError::check_member(chunk.error)?;
    // Some servers send the usage in an event without choices. An event with neither is malformed,
    // unless its name or `type` declares another kind, such as a gateway's ping.
    if chunk.choices.is_none() && chunk.usage.is_none() {
        let is_other = !event.name.is_empty() || !chunk.kind.is_empty();
        let error = DecodeError::missing("choices", event.data);
        let is_malformed = error.class == ErrorClass::MalformedBody;
        return if is_other && is_malformed { Ok(()) } else { Err(error) };
    }
    let mut elsewhere = chunk.x_groq.and_then(|groq| groq.usage);
    if let Some(FollowedChoice(Some(choice))) = chunk.choices {
        DecodeError::check_member(choice.error)?;
        if let Some(delta) = choice.delta {
            read_delta(state, delta, event.data, on_delta);
        }
        state.push_delta(DeltaKind::Text, &choice.text, on_delta);
        state.set_finish_reason(&choice.finish_reason.0);
        elsewhere = elsewhere.or(choice.usage);
    }
    if let Some(usage) = chunk.usage.or_else(|| from_str(elsewhere?.0).ok()) {
        state.add_usage(&usage);
    }
    Ok(())
}

fn read_delta(
    state: &mut ResponseState,
    mut delta: Message<'_>,
    json: &str,
    on_delta: OnDelta<'_>,
) {
    let has_extra = delta.has_extra();
    state.keep_reasoning("reasoning_content", &delta.reasoning_content.text);
    state.push_delta(DeltaKind::Reasoning, &delta.take_reasoning(), on_delta);
    state.push_delta(DeltaKind::Text, &delta.content.text, on_delta);
    state.push_delta(DeltaKind::Text, &delta.refusal, on_delta);
    if let Some(audio) = delta.audio {
        state.push_delta(DeltaKind::Text, &audio.transcript, on_delta);
    }
    for ToolCall { index, id, function, .. } in delta.tool_calls.into_iter().flatten() {
        let Function { name, arguments: Arguments(arguments) } = function.unwrap_or_default();
        let (index, id) = (index.and_then(|index| index.0.parse().ok()), id.map(Raw::text));
        state.push_tool_call(index, [&id.unwrap_or_default(), &name, &arguments]);
        state.push_delta(DeltaKind::ToolCall, &arguments.or(name), on_delta);
    }
    if let Some(Function { name, arguments: Arguments(arguments) }) = delta.function_call {
        state.push_delta(DeltaKind::ToolCall, &arguments.or(name), on_delta);
    }
    if has_extra {
        state.keep_members(json, "/choices/0/delta");
    }
}

/// Reads a non-streamed response.
pub(super) fn read_whole(state: &mut ResponseState, body: &str) -> DecodeResult {
    let completion: Completion<'_> = parse(body)?;
    DecodeError::check_member(completion.error)?;
    let Some(FirstElement(Some(choice))) = completion.choices else {
        return Err(DecodeError::missing("choices", body));
    };
    DecodeError::check_member(choice.error)?;
    match (choice.message, choice.text) {
        (Some(message), _) => {
            let has_extra = message.has_extra();
            state.keep_reasoning("reasoning_content", &message.reasoning_content.text);
            read_message(state, message);
            if has_extra {
                state.keep_members(body, "/choices/0/message");
            }
        }
        (None, Some(text)) => state.push_text(&text),
        (None, None) => return Err(DecodeError::missing("message", body)),
    }
    state.set_finish_reason(&choice.finish_reason.0);
    if let Some(usage) = completion.usage {
        state.add_usage(&usage);
    }
    Ok(())
}

fn read_message(state: &mut ResponseState, mut message: Message<'_>) {
    state.count(DeltaKind::Reasoning, &message.take_reasoning());
    // The content is null if the model calls a tool.
    state.push_text(&message.content.text);
    state.push_text(&message.refusal);
    if let Some(audio) = message.audio {
        state.push_text(&audio.transcript);
    }
    for call in message.tool_calls.into_iter().flatten() {
        let function = call.function.unwrap_or_default();
        let id = call.id.map(Raw::text).unwrap_or_default();
        state.push_whole_tool_call([&id, &function.name, &function.arguments.0]);
    }
}

// `OpenAI`'s embeddings.

#[derive(Default)]
struct Embeddings<'a> {
    data: Option<FirstElement<Raw<'a>>>,
    usage: Option<UsageReport<'a>>,
    error: Option<Raw<'a>>,
}
from_object!(Embeddings<'a> { data, usage, error });

/// Reads a non-streamed response.
pub(super) fn read_embeddings(state: &mut ResponseState, body: &str) -> DecodeResult {
    let embeddings: Embeddings<'_> = parse(body)?;
    DecodeError::check_member(embeddings.error)?;
    if !matches!(embeddings.data, Some(FirstElement(Some(_)))) {
        return Err(DecodeError::missing("data", body));
    }
    if let Some(usage) = embeddings.usage {
        state.add_usage(&usage);
    }
    Ok(())
}

// Members that servers write in several forms: a text or a list of parts.

/// A text, or a list of parts with texts and thoughts.
///
/// `OpenAI` writes `"text"`, Mistral `[{"type":"thinking","thinking":[..]},{"type":"text",..}]`,
/// and some servers a single part.
#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub(super) text: Str<'a>,
    pub(super) thinking: Str<'a>,
}

impl<'a> FromJson<'a> for Content<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        match json.peek() {
            Some(b'[' | b'{') => json.read_bound::<Vec<Part<'a>>>().map(Self::of_parts),
            _ => Ok(Self { text: Str::read(json)?, thinking: Str::default() }),
        }
    }
}

impl<'a> Content<'a> {
    #[cold]
    fn of_parts(parts: Vec<Part<'a>>) -> Self {
        let mut content = Self::default();
        for Part { kind, text, value, thinking, refusal } in parts {
            // `thinking`, and OpenRouter's `reasoning.text` and `reasoning.summary`.
            let is_thought = kind.starts_with("thinking") || kind.starts_with("reasoning");
            content.thinking.append(thinking.all());
            let of_text = if is_thought { &mut content.thinking } else { &mut content.text };
            of_text.append(text.all());
            of_text.append(value);
            content.text.append(refusal);
        }
        content
    }

    /// All content, for a list whose name identifies its kind.
    pub(super) fn all(self) -> Str<'a> {
        let Self { text, mut thinking } = self;
        thinking.append(text);
        thinking
    }
}

/// A part, or a text instead of one.
#[derive(Debug, Default)]
struct Part<'a> {
    kind: Tag<'a>,
    text: Content<'a>,
    /// A nested text, in the Assistants API.
    value: Str<'a>,
    thinking: Content<'a>,
    refusal: Str<'a>,
}

#[derive(Debug, Default)]
struct PartObject<'a> {
    kind: Tag<'a>,
    text: Content<'a>,
    value: Str<'a>,
    thinking: Content<'a>,
    summary: Content<'a>,
    refusal: Str<'a>,
}
from_object!(PartObject<'a> { kind = "type", text, value, thinking, summary, refusal });

impl<'a> FromJson<'a> for Part<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        if json.peek() != Some(b'{') {
            let text = Content { text: Str::read(json)?, thinking: Str::default() };
            return Ok(Self { text, ..Self::default() });
        }
        let PartObject { kind, text, value, thinking, summary, refusal } = PartObject::read(json)?;
        let mut thought = thinking.all();
        thought.append(summary.all());
        let thinking = Content { text: thought, thinking: Str::default() };
        Ok(Self { kind, text, value, thinking, refusal })
    }
}

/// The arguments of a call: JSON as a string, or the object itself.
#[derive(Debug, Default)]
pub(super) struct Arguments<'a>(pub(super) Str<'a>);

impl<'a> FromJson<'a> for Arguments<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        match json.peek() {
            Some(b'{' | b'[') => json.read_bound::<Raw<'a>>().map(|raw| Self(raw.0.into())),
            _ => Str::read(json).map(Self),
        }
    }
}

/// The finish reason: a word, or an object with a `type`.
#[derive(Debug, Default)]
pub(super) struct Reason<'a>(pub(super) Str<'a>);

#[derive(Debug, Default)]
struct ReasonObject<'a> {
    kind: Str<'a>,
}
from_object!(ReasonObject<'a> { kind = "type" });

impl<'a> FromJson<'a> for Reason<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        match json.peek() {
            Some(b'{') => json.read_bound::<ReasonObject<'a>>().map(|reason| Self(reason.kind)),
            _ => Str::read(json).map(Self),
        }
    }
}
