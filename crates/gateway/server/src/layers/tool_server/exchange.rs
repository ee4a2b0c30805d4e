//! One exchange with a tool server: sends a message and reads its answer.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::Request;
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
};
use plimsoll_gateway_mcp::client::{Answer, AnswerReader, Head, Outgoing, Progress};
use plimsoll_gateway_mcp::version::SESSION_HEADER;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::failure::Failure;
use super::link::ServerLink;
use crate::base::memory::{MemoryBudget, MemoryReservation, UNCOUNTED};
use crate::http::decode::Decoder;
use crate::http::request_body::RequestBody;
use crate::upstream::{InFlightGuard, Pool, UpstreamConn, UpstreamError};

/// Time limit for the end of a stream after the answer, so that its connection can be reused.
const END_OF_STREAM: Duration = Duration::from_secs(1);

/// Headers that identify the client's request to a server.
pub(crate) type Trace = Vec<(HeaderName, HeaderValue)>;

/// The parts of a worker that exchanges use.
#[derive(Clone, Copy)]
pub(crate) struct Services<'a> {
    pub(crate) pool: &'a Rc<Pool>,
    pub(crate) memory: &'a Arc<MemoryBudget>,
}

/// Sends a message and reads the answer, whose bytes count as memory in use until the caller drops
/// them. The caller sets the time limit.
///
/// # Errors
/// No answer was received.
pub(super) async fn exchange(
    services: Services<'_>,
    link: &ServerLink,
    outgoing: Outgoing,
    trace: &[(HeaderName, HeaderValue)],
) -> Result<(Answer, Option<MemoryReservation>), Failure> {
    let chosen = link.upstream.choose(None);
    let in_flight = chosen.ok_or_else(Failure::unreachable)?;
    let id = outgoing.id;
    let request = Box::new(request(link, outgoing, &in_flight, trace)?);
    let sent = services.pool.send(&in_flight.endpoint, request, true).await;
    let (response, connection) = sent.map_err(|error| match error {
        UpstreamError::Connect => Failure::unreachable(),
        UpstreamError::Broken(..) => Failure::broken(),
    })?;
    let (parts, mut body) = response.into_parts();
    let head = head(parts.status.as_u16(), &parts.headers);
    let mut reader = AnswerReader::new(id, &head, link.limit);
    let mut held = None;
    let decoder = Decoder::of_body(&parts.headers).map(|decoder| (decoder, link.limit));
    let is_whole = read(&mut reader, &mut body, decoder, services.memory, &mut held).await?;
    let answer = reader.finish()?;
    if is_whole {
        services.pool.release(&in_flight.endpoint, connection);
    } else {
        spawn_local(drain(Rc::clone(services.pool), body, connection, in_flight));
    }
    Ok((answer, held))
}

/// Reads the answer; also returns whether the body was read to its end.
async fn read(
    reader: &mut AnswerReader,
    body: &mut Incoming,
    mut decoder: Option<(Decoder, usize)>,
    memory: &Arc<MemoryBudget>,
    held: &mut Option<MemoryReservation>,
) -> Result<bool, Failure> {
    let mut size = 0;
    while let Some(frame) = body.frame().await {
        let Ok(mut data) = frame.map_err(|_| Failure::broken())?.into_data() else { continue };
        if let Some((decoder, most)) = &mut decoder {
            data = decoder.decode(&data, *most).map_err(|_| Failure::broken())?.into();
        }
        size += data.len();
        if size > UNCOUNTED && !memory.hold_in(held, size) {
            return Err(Failure::NoMemory);
        }
        if reader.feed(&data)? == Progress::Complete {
            return Ok(body.is_end_stream());
        }
    }
    Ok(true)
}

/// Waits briefly for the end of a stream after the answer, so that its connection can be reused. If
/// the stream continues, its connection is closed.
async fn drain(
    pool: Rc<Pool>,
    mut body: Incoming,
    connection: UpstreamConn,
    in_flight: InFlightGuard,
) {
    let is_over = timeout(END_OF_STREAM, async {
        while let Some(frame) = body.frame().await {
            if frame.is_err() {
                return false;
            }
        }
        true
    });
    if is_over.await.unwrap_or(false) {
        pool.release(&in_flight.endpoint, connection);
    }
}

fn head(status: u16, headers: &HeaderMap) -> Head<'_> {
    let content_type = text_of(headers, CONTENT_TYPE.as_str()).unwrap_or_default();
    Head { status, content_type, session: text_of(headers, SESSION_HEADER) }
}

fn text_of<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn request(
    link: &ServerLink,
    outgoing: Outgoing,
    in_flight: &InFlightGuard,
    trace: &[(HeaderName, HeaderValue)],
) -> Result<Request<RequestBody>, Failure> {
    let mut request = Request::post(link.path.clone())
        .header(HOST, &in_flight.endpoint.host)
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"))
        .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    for (name, value) in &outgoing.headers {
        request = request.header(name, value);
    }
    if let Some(authorization) = &link.authorization {
        request = request.header(AUTHORIZATION, authorization);
    }
    for (name, value) in trace {
        request = request.header(name, value);
    }
    // The gateway made the names and values, or checked them as a session id.
    request.body(RequestBody::Full(Bytes::from(outgoing.body))).map_err(|_| Failure::broken())
}
