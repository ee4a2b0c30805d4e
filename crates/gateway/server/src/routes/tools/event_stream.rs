//! Answers of MCP that are streams of events: what a client is told of its call before the answer.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Response;
use hyper::body::{Body, Frame};
use hyper::header::{CONTENT_TYPE, HeaderValue};

use crate::http::body_filter::BoxError;
use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::respond::{HandlerResult, respond};
use crate::http::response_body::ResponseBody;
use crate::request_context::RequestContext;

/// A request that is being handled, with its context. All that the client is told meanwhile is in
/// the [`Events`] that it was made with.
pub(super) type Work = Pin<Box<dyn Future<Output = (Box<RequestContext>, HandlerResult)>>>;

/// What a client is told before the answer to its request.
#[derive(Debug, Default)]
pub(super) struct Events {
    waiting: RefCell<VecDeque<Bytes>>,
    begun: Cell<bool>,
}

impl Events {
    /// Tells the client something: from then on the answer is an event, too.
    pub(super) fn push(&self, message: Vec<u8>) {
        self.begun.set(true);
        self.waiting.borrow_mut().push_back(event(message).into());
    }

    /// Whether the client was told something.
    pub(super) fn have_begun(&self) -> bool {
        self.begun.get()
    }

    fn pop(&self) -> Option<Bytes> {
        self.waiting.borrow_mut().pop_front()
    }
}

/// A message as an event.
pub(super) fn event(message: Vec<u8>) -> Vec<u8> {
    let mut event = b"event: message\ndata: ".to_vec();
    for byte in message {
        match byte {
            // JSON has line breaks only between its tokens.
            b'\n' | b'\r' => event.push(b' '),
            other => event.push(other),
        }
    }
    event.extend_from_slice(b"\n\n");
    event
}

/// The head of a stream of events.
pub(super) fn response(body: ResponseBody) -> Response<ResponseBody> {
    let mut response = Response::new(body);
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// The response to a request: a stream of events if the client is told something before the answer.
pub(super) async fn answer(
    mut work: Work,
    events: Rc<Events>,
    format: ErrorFormat,
) -> Response<ResponseBody> {
    let done = poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(Some(done)),
        Poll::Pending if events.have_begun() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    });
    let state = match done.await {
        Some((context, result)) if !events.have_begun() => return respond(context, result, format),
        Some((context, result)) => State::Done(Box::new((context, result))),
        None => State::Working(work),
    };
    response(ResponseBody::Made(Box::pin(EventBody { events, state, sent: 0 })))
}

/// A stream of events. Dropped before its end, it drops the request.
struct EventBody {
    events: Rc<Events>,
    state: State,
    /// Bytes of the events before the answer.
    sent: usize,
}

enum State {
    Working(Work),
    Done(Box<(Box<RequestContext>, HandlerResult)>),
    Over,
}

impl EventBody {
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        if let State::Working(work) = &mut self.state
            && let Poll::Ready(done) = work.as_mut().poll(context)
        {
            self.state = State::Done(Box::new(done));
        }
        if let Some(event) = self.events.pop() {
            self.sent += event.len();
            return Poll::Ready(Some(Ok(event)));
        }
        match std::mem::replace(&mut self.state, State::Over) {
            State::Over => Poll::Ready(None),
            State::Done(done) => {
                let (context, result) = *done;
                Poll::Ready(Some(self.finish(context, result)))
            }
            working @ State::Working(_) => {
                self.state = working;
                Poll::Pending
            }
        }
    }

    /// The answer, and the end of the request.
    fn finish(
        &self,
        mut context: Box<RequestContext>,
        result: HandlerResult,
    ) -> Result<Bytes, BoxError> {
        let answer = match result
            .map_err(|error: ErrorResponse| {
                context.worker.metrics().count_error(error.kind);
                BoxError::from(error.message)
            })?
            .into_body()
        {
            ResponseBody::Full(answer) => answer,
            // Answers of MCP are in memory.
            _ => Bytes::new(),
        };
        context.count_sent(self.sent + answer.len());
        context.finish(true);
        Ok(answer)
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.get_mut().poll_event(context).map(|event| event.map(|event| event.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }
}
