//! Translates streams event by event.

use super::stream_to_anthropic::{self, ToAnthropic};
use super::stream_to_openai::{self, ToOpenAi};
use crate::dialect::Dialect;
use crate::error::DialectError;
use crate::error_body::ErrorBody;
use crate::sse::{EventSplitter, SseEvent};

/// The settings of a stream translation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamSettings {
    /// For OpenAI callers: the creation time of every chunk, in seconds since 1970.
    pub created: u64,
    /// For OpenAI callers: whether the request asks for usage
    /// ([`Streaming::WithUsage`](crate::Streaming::WithUsage)).
    pub include_usage: bool,
    /// For Anthropic callers: the prompt tokens to report in the first event, before OpenAI reports
    /// any. The exact number follows at the end.
    pub prompt_tokens: u64,
}

/// The progress of a stream translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Open,
    /// The last event was translated. Later events are ignored.
    Finished,
    /// An error event was translated, or an event could not be translated.
    Failed,
}

/// Translates an upstream's stream into the caller's dialect as it passes.
///
/// Every complete event is translated at once. Pings become comments and vice versa. An error event
/// becomes an error event of the caller's dialect and ends the stream.
#[derive(Debug)]
pub struct StreamTranslator {
    splitter: EventSplitter,
    translation: Translation,
    progress: Progress,
}

#[derive(Debug)]
enum Translation {
    OpenAi(ToOpenAi),
    Anthropic(Box<ToAnthropic>),
}

impl StreamTranslator {
    pub(super) fn new(caller: Dialect, settings: StreamSettings) -> Self {
        let translation = match caller {
            Dialect::OpenAi => Translation::OpenAi(ToOpenAi::new(settings)),
            Dialect::Anthropic => Translation::Anthropic(Box::new(ToAnthropic::new(settings))),
        };
        Self { splitter: EventSplitter::default(), translation, progress: Progress::Open }
    }

    /// Takes the next bytes of the upstream's stream and appends their translation to `out`.
    ///
    /// # Errors
    /// An event is invalid, cannot be translated, or is too long. The output so far stays valid;
    /// send the caller the error and stop.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), DialectError> {
        let Self { splitter, translation, progress } = self;
        let fed = splitter.feed(chunk, |event| translation.translate(progress, event, out));
        if fed.is_err() {
            self.progress = Progress::Failed;
        }
        fed
    }

    /// The bytes of an incomplete event, and of events that wait for others.
    pub fn buffered(&self) -> usize {
        let waiting = match &self.translation {
            Translation::OpenAi(_) => 0,
            Translation::Anthropic(stream) => stream.buffered(),
        };
        self.splitter.incomplete().len() + waiting
    }

    /// Appends an event that reports why the stream ends here, in the caller's dialect.
    pub fn write_error(&self, error: &DialectError, out: &mut Vec<u8>) {
        let error = ErrorBody::from(error);
        match self.translation {
            Translation::OpenAi(_) => stream_to_openai::write_error(&error, out),
            Translation::Anthropic(_) => stream_to_anthropic::write_error(&error, out),
        }
    }

    /// Ends the stream. A stream that lacks only its end mark, which some servers omit, gets one;
    /// nothing else is appended, because a truncated stream must not look complete.
    ///
    /// # Errors
    /// [`DialectError::Truncated`] if the answer's reason, its usage or an error has not arrived.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), DialectError> {
        let Self { splitter, translation, progress } = self;
        let last = splitter.finish(|event| translation.translate(progress, event, out));
        // An incomplete event is dropped.
        if self.progress == Progress::Open && last.is_ok() {
            self.progress = self.translation.end(out);
        }
        if self.progress == Progress::Open { Err(DialectError::Truncated) } else { Ok(()) }
    }

    /// Whether the last event has been translated.
    pub fn is_finished(&self) -> bool {
        self.progress == Progress::Finished
    }
}

impl Translation {
    /// Translates an event of a stream that is still open.
    fn translate(
        &mut self,
        progress: &mut Progress,
        event: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), DialectError> {
        if *progress == Progress::Open
            && let Some(event) = SseEvent::parse(event)
        {
            *progress = self.translate_event(&event, out)?;
        }
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Progress {
        match self {
            Self::OpenAi(stream) => stream.end(out),
            Self::Anthropic(stream) => stream.end(out),
        }
    }

    fn translate_event(
        &mut self,
        event: &SseEvent<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Progress, DialectError> {
        match self {
            Self::OpenAi(stream) if !event.comment => stream.translate_event(&event.data, out),
            Self::Anthropic(stream) if !event.comment => stream.translate_event(&event.data, out),
            Self::OpenAi(_) => {
                out.extend_from_slice(b": ping\n\n");
                Ok(Progress::Open)
            }
            Self::Anthropic(_) => {
                out.extend_from_slice(b"event: ping\ndata: {\"type\":\"ping\"}\n\n");
                Ok(Progress::Open)
            }
        }
    }
}
