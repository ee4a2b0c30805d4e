//! Streams that cross, event by event.

use super::stream_to_anthropic::ToAnthropic;
use super::stream_to_openai::ToOpenAi;
use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::sse::{Event, Splitter};

/// What a stream needs to know that its events do not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSettings {
    /// For callers of OpenAI's dialect: seconds since 1970, as each chunk carries them.
    pub created: u64,
    /// For callers of OpenAI's dialect: did they ask for usage
    /// ([`Streaming::WithUsage`](crate::Streaming::WithUsage))?
    pub include_usage: bool,
    /// For callers of Anthropic's dialect: the prompt's tokens to say at the start, where OpenAI has not
    /// said anything yet. The exact number follows at the end.
    pub prompt_tokens: u64,
}

/// Translates an upstream's stream into the caller's dialect while it passes.
///
/// Every event gives its counterparts at once; nothing but an unfinished event is held back. Pings
/// become comments and the other way round. An error in the stream becomes an error of the caller's
/// dialect, and ends it.
#[derive(Debug)]
pub struct StreamTranslator {
    splitter: Splitter,
    target: Target,
    state: State,
}

#[derive(Debug)]
enum Target {
    OpenAi(ToOpenAi),
    Anthropic(Box<ToAnthropic>),
}

/// How far a stream is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    /// The last event was translated. What follows is not looked at.
    Finished,
    /// An error was passed on, or something could not be translated.
    Failed,
}

impl StreamTranslator {
    pub(super) fn new(caller: Dialect, settings: StreamSettings) -> Self {
        let target = match caller {
            Dialect::OpenAi => Target::OpenAi(ToOpenAi::new(settings)),
            Dialect::Anthropic => Target::Anthropic(Box::new(ToAnthropic::new(settings))),
        };
        Self { splitter: Splitter::default(), target, state: State::Open }
    }

    /// Takes the next bytes of the upstream's stream and appends to `out` what the caller gets for them.
    ///
    /// # Errors
    /// An event is not of the upstream's dialect, cannot be said in the caller's, or is too long. What
    /// was appended before stands; the caller should get the error in its envelope and nothing more.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), DialectError> {
        let Self { splitter, target, state } = self;
        let fed = splitter.feed(chunk, |event| {
            if *state == State::Open
                && let Some(event) = Event::read(event)
            {
                *state = target.event(&event, out)?;
            }
            Ok(())
        });
        if fed.is_err() {
            self.state = State::Failed;
        }
        fed
    }

    /// No more bytes will come. Nothing is appended: a stream that was cut short must not look whole.
    ///
    /// # Errors
    /// [`DialectError::Truncated`] where neither the last event nor an error has been seen.
    pub fn finish(&self) -> Result<(), DialectError> {
        if self.state == State::Open { Err(DialectError::Truncated) } else { Ok(()) }
    }

    /// Has the last event been translated?
    pub fn is_finished(&self) -> bool {
        self.state == State::Finished
    }
}

impl Target {
    fn event(&mut self, event: &Event<'_>, out: &mut Vec<u8>) -> Result<State, DialectError> {
        match self {
            Self::OpenAi(target) if !event.comment => target.event(&event.data, out),
            Self::Anthropic(target) if !event.comment => target.event(&event.data, out),
            Self::OpenAi(_) => {
                out.extend_from_slice(b": ping\n\n");
                Ok(State::Open)
            }
            Self::Anthropic(_) => {
                out.extend_from_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
                Ok(State::Open)
            }
        }
    }
}
