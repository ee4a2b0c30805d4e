//! What is known of the present answer, whatever its dialect.

use super::json::{Raw, Unexpected};
use super::{DeltaKind, ErrorDetail, KEPT, WireEvent};
use plimsoll_measure::{ErrorClass, TokenCount, TokenSource, Usage};

/// Where events go.
pub(super) type Sink<'a> = &'a mut dyn FnMut(WireEvent<'_>);

/// The result of reading a part of the answer.
pub(super) type Reading = Result<(), Fault>;

/// Why an answer has failed.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) class: ErrorClass,
    pub(super) detail: ErrorDetail,
}

impl Fault {
    /// A fault that we found.
    pub(super) fn found(class: ErrorClass, what: &str) -> Self {
        Self { class, detail: ErrorDetail::message(what) }
    }

    /// An error that the target reports inside a success: the value of its `error` member.
    pub(super) fn reported(error: Raw<'_>) -> Self {
        Self { class: ErrorClass::StreamError, detail: ErrorDetail::of_member(error.0) }
    }

    /// An error event of a stream, in whatever shape its data has.
    pub(super) fn told(data: &str) -> Self {
        let detail = ErrorDetail::of_body(data.as_bytes()).unwrap_or_default();
        Self { class: ErrorClass::StreamError, detail }
    }
}

impl From<ErrorClass> for Fault {
    fn from(class: ErrorClass) -> Self {
        let what = match class {
            ErrorClass::BodyTooLarge => "the body, or one event of it, is larger than the limit",
            ErrorClass::MalformedBody => "the body is not UTF-8",
            ErrorClass::ClosedEarly => "there was no response head",
            other => other.name(),
        };
        Self::found(class, what)
    }
}

impl From<Unexpected> for Fault {
    fn from(error: Unexpected) -> Self {
        let what = format!("the body is not what the dialect promises: {error}");
        Self::found(ErrorClass::MalformedBody, &what)
    }
}

const NOTHING_REPORTED: Usage = {
    let unknown = TokenCount { count: 0, source: TokenSource::Unknown };
    Usage { prompt: unknown, completion: unknown, cached: 0, reasoning: 0 }
};

/// The events of one answer, added up.
#[derive(Debug)]
pub(super) struct Answer {
    keep_text: bool,
    text: String,
    /// As reported, without estimates.
    usage: Usage,
    content_events: u32,
    ended: bool,
    failure: Option<ErrorClass>,
    detail: Option<ErrorDetail>,
}

impl Answer {
    pub(super) const fn new(keep_text: bool) -> Self {
        Self {
            keep_text,
            text: String::new(),
            usage: NOTHING_REPORTED,
            content_events: 0,
            ended: false,
            failure: None,
            detail: None,
        }
    }

    pub(super) fn reset(&mut self) {
        self.text.clear();
        self.text.shrink_to(KEPT);
        *self = Self { text: std::mem::take(&mut self.text), ..Self::new(self.keep_text) };
    }

    /// Has the terminator or an error been read?
    pub(super) const fn is_over(&self) -> bool {
        self.ended || self.failure.is_some()
    }

    pub(super) const fn failure(&self) -> Option<ErrorClass> {
        self.failure
    }

    pub(super) const fn detail(&self) -> Option<&ErrorDetail> {
        self.detail.as_ref()
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) const fn usage(&self) -> Usage {
        let mut usage = self.usage;
        if usage.completion.known().is_none() && self.content_events > 0 {
            usage.completion = TokenCount::estimated(self.content_events);
        }
        usage
    }

    pub(super) const fn reported(&self) -> Usage {
        self.usage
    }

    /// A part of a stream; an empty one bears no content, and is none.
    pub(super) fn delta(&mut self, kind: DeltaKind, text: &str, sink: Sink<'_>) {
        if text.is_empty() {
            return;
        }
        self.content_events = self.content_events.saturating_add(1);
        if kind == DeltaKind::Text {
            self.write(text);
        }
        sink(WireEvent::Delta { kind, text });
    }

    /// Text of an answer, streamed or not.
    pub(super) fn write(&mut self, text: &str) {
        if self.keep_text {
            self.text.push_str(text);
        }
    }

    pub(super) fn report(&mut self, usage: Usage, sink: Sink<'_>) {
        self.usage = usage;
        sink(WireEvent::Usage(usage));
    }

    /// The reason why the model stopped; an empty one (some servers send it in every event) is none.
    #[expect(clippy::unused_self, reason = "an event of the answer like the others")]
    pub(super) fn stop(&self, reason: &str, sink: Sink<'_>) {
        if !reason.is_empty() {
            sink(WireEvent::Finish { reason });
        }
    }

    /// The stream's terminator has been read.
    pub(super) const fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn explain(&mut self, detail: Option<ErrorDetail>) {
        self.detail = detail;
    }

    pub(super) fn fail(&mut self, fault: Fault, sink: Sink<'_>) {
        self.failure = Some(fault.class);
        let detail = self.detail.insert(fault.detail);
        sink(WireEvent::Error { class: fault.class, message: &detail.message });
    }
}
