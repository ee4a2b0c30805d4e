//! HTTP: the normal form of requests, bodies both ways, errors. It knows nothing of the gateway.

pub(crate) mod decode;
pub(crate) mod error_response;
pub(crate) mod header_list;
pub mod normal_form;
pub(crate) mod request_body;
pub(crate) mod whole_body;

use std::error::Error;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf as _, Bytes};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, IF_RANGE, RANGE,
};
use hyper::{HeaderMap, StatusCode};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::error_response::{ErrorFormat, ErrorResponse};
use crate::http::normal_form::{WireFault, WireInspector};

/// An error that ends a body early.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// An error whose reason the caller is told: these bytes are sent before the body is aborted.
#[derive(Debug, thiserror::Error)]
#[error("{source}")]
pub(crate) struct LastWords {
    pub(crate) bytes: Bytes,
    pub(crate) source: BoxError,
}

/// Observes a response body as it passes, and may change it.
pub(crate) trait BodyFilter {
    /// Takes a chunk of the body and returns what to send on; nothing is sent for an empty chunk.
    ///
    /// # Errors
    /// The response cannot go on and is aborted.
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError>;

    /// The body is complete. Returns what the filter still held back.
    ///
    /// # Errors
    /// The body turned out to be incomplete; the response is aborted instead of ended.
    fn end(&mut self) -> Result<Bytes, BoxError> {
        Ok(Bytes::new())
    }

    /// The bytes that the filter holds in memory, beyond what is on its way.
    fn held(&self) -> usize {
        0
    }

    /// Whether the filter passes every byte unchanged, so that the body's length stays known.
    fn is_transparent(&self) -> bool {
        false
    }
}

/// Asks for a response that can be read: whole and not encoded.
pub(crate) fn ask_for_readable(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
}

/// Whether a body is encoded, such as compressed.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| !coding.trim_ascii().eq_ignore_ascii_case(b"identity"))
}

/// The type of a body, of a request or of a response: the one reader of `content-type`.
#[derive(Debug)]
pub(crate) struct MediaType {
    /// Lower case, without parameters.
    kind: String,
    charset: Charset,
}

/// The character set that a type names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// None, or UTF-8, or ASCII: the bytes are UTF-8.
    Utf8,
    /// Another one in which ASCII is ASCII.
    AsciiCompatible,
    /// Any other, several, or one that cannot be told for sure: two readers may take two.
    Other,
}

impl MediaType {
    /// The type that headers name; `None` without one.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(CONTENT_TYPE).iter();
        let value = values.next()?;
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        let (kind, parameters) = text.split_once(';').unwrap_or((&text, ""));
        // Two headers, or two types in one: servers take different ones.
        let is_one = values.next().is_none() && !text.contains(',');
        let charset = if is_one { read_charset(parameters) } else { Charset::Other };
        Some(Self { kind: kind.trim().to_owned(), charset })
    }

    /// The type without its parameters, in lower case.
    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Its character set.
    pub(crate) const fn charset(&self) -> Charset {
        self.charset
    }

    /// Whether the body is one JSON document in UTF-8, by the type that LLM APIs use.
    pub(crate) fn is_plain_json(&self) -> bool {
        self.kind == "application/json" && self.charset == Charset::Utf8
    }
}

/// The character set of the parameters of a type. Whatever looks like one counts: `charset*=`, a
/// name in quotes, a second one.
fn read_charset(parameters: &str) -> Charset {
    const UTF8: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];
    const COMPATIBLE: [&str; 3] = ["iso-8859-", "latin", "windows-125"];
    let mut found = None;
    for parameter in parameters.split(';').map(str::trim).filter(|one| !one.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let (name, value) = (name.trim(), value.trim());
        if name == "charset" && found.is_none() {
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            found = Some(quoted.unwrap_or(value));
        } else if parameter.contains("charset") || parameter.contains(['"', '\\']) {
            return Charset::Other;
        }
    }
    match found {
        None => Charset::Utf8,
        Some(name) if UTF8.contains(&name) => Charset::Utf8,
        Some(name) if COMPATIBLE.iter().any(|start| name.starts_with(start)) => {
            Charset::AsciiCompatible
        }
        Some(_) => Charset::Other,
    }
}

/// Whether a response is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().trim_ascii_start());
    kind.and_then(|kind| kind.get(..EVENTS.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENTS))
}

/// Flags shared by the byte-stream inspector and the request handler of one connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionFlags(Arc<Mutex<Flags>>);

#[derive(Debug, Default)]
struct Flags {
    /// The first head with a fault, counted from 1; all later ones count as faulty.
    first_fault: Option<(u64, WireFault)>,
    /// Heads that reached a handler.
    served: u64,
    /// The status of the last response of a handler.
    last_status: u16,
}

impl ConnectionFlags {
    fn lock(&self) -> MutexGuard<'_, Flags> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The fault of the next head in order, if it has one. Handlers get heads in the order in which
    /// they arrive.
    pub(crate) fn next_head(&self) -> Option<WireFault> {
        let mut flags = self.lock();
        flags.served += 1;
        let (number, fault) = flags.first_fault?;
        (flags.served >= number).then_some(fault)
    }

    pub(crate) fn set_last_status(&self, status: StatusCode) {
        self.lock().last_status = status.as_u16();
    }
}

/// A connection whose incoming heads are inspected. The first bytes were read before and are
/// replayed.
#[derive(Debug)]
pub(crate) struct InspectedStream<S> {
    stream: S,
    first: Bytes,
    inspector: WireInspector,
    flags: ConnectionFlags,
    /// Format of error responses; `None` for HTTP/2, which has no such heads.
    format: Option<ErrorFormat>,
    /// The rest of the response that replaces hyper's own.
    replacement: Bytes,
}

impl<S> InspectedStream<S> {
    pub(crate) fn new(
        stream: S,
        first: Bytes,
        flags: ConnectionFlags,
        format: Option<ErrorFormat>,
    ) -> Self {
        let inspector = WireInspector::default();
        Self { stream, first, inspector, flags, format, replacement: Bytes::new() }
    }

    fn inspect(&mut self, bytes: &[u8]) {
        if self.format.is_none() {
            return;
        }
        self.inspector.feed(bytes);
        if let Some(fault) = self.inspector.first_fault() {
            self.flags.lock().first_fault = Some(fault);
        }
    }

    /// The replacement for hyper's own error response; `None` for any other bytes. An empty
    /// response with such a status may also be an upstream's: then it is the last one that a
    /// handler returned.
    fn replace(&self, bytes: &[u8]) -> Option<Bytes> {
        let format = self.format?;
        let status = bytes.strip_prefix(b"HTTP/1.1 4").and_then(|rest| rest.get(..2));
        let status = 400 + std::str::from_utf8(status?).ok()?.parse::<u16>().ok()?;
        let is_hypers = self.flags.lock().last_status != status
            && memchr::memmem::find(bytes, b"content-length: 0\r\n").is_some();
        let error = is_hypers.then(|| ErrorResponse::for_malformed_head(status)).flatten();
        error.map(|error| error.to_http1_bytes(format))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for InspectedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            let part = this.first.split_to(this.first.len().min(buffer.remaining()));
            this.inspect(&part);
            buffer.put_slice(&part);
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        this.inspect(buffer.filled().get(before..).unwrap_or_default());
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for InspectedStream<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.replacement.is_empty() {
            match this.replace(bytes) {
                None => return Pin::new(&mut this.stream).poll_write(context, bytes),
                Some(replacement) => this.replacement = replacement,
            }
        }
        while !this.replacement.is_empty() {
            match ready!(Pin::new(&mut this.stream).poll_write(context, &this.replacement))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => this.replacement.advance(written),
            }
        }
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &'static str) -> MediaType {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
        MediaType::read(&headers).unwrap()
    }

    #[test]
    fn only_json_whose_bytes_are_utf_8_is_plain() {
        for (value, is_plain) in [
            ("application/json", true),
            ("Application/JSON; Charset=\"UTF-8\"", true),
            ("application/json;charset=us-ascii", true),
            ("application/json; odata=verbose", true),
            ("application/json; charset=utf-7", false),
            ("application/json; charset = utf-7", false),
            ("application/json; charset=utf-16", false),
            ("application/json; charset=utf-8-imap", false),
            ("application/json; charset=iso-8859-1", false),
            ("application/json; charset=utf-8; charset=utf-7", false),
            ("application/json; charset*=utf-7''x", false),
            ("application/json; charset*0=utf-; charset*1=7", false),
            ("application/json; x=\"; charset=utf-7\"", false),
            ("application/json; x=\"a;charset=utf-8\"; charset=utf-7", false),
            ("application/json; charset='utf-8'", false),
            ("application/json; charset=\"utf-8", false),
            ("application/json; charset", false),
            ("application/json, application/json; charset=utf-7", false),
            ("application/jsonx", false),
            ("application/json-seq", false),
            ("application/vnd.api+json", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(read(value).is_plain_json(), is_plain, "{value}");
        }
    }

    #[test]
    fn two_headers_name_no_type_for_sure() {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.append(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-7"));
        assert!(!MediaType::read(&headers).unwrap().is_plain_json());
    }
}
