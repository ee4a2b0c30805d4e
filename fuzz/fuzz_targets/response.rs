//! Parses the bytes of an HTTP/1.1 connection into a comparable result.

use plimsoll_measure::ErrorClass;
use plimsoll_transport::http1::{Progress, ResponseParser, ResponsePart};

/// The complete result of parsing one response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Response {
    pub(crate) head: Option<(u16, Vec<(String, Vec<u8>)>)>,
    pub(crate) body: Vec<u8>,
    /// Whether it is complete. Whether the connection is reusable is left out, because that depends
    /// on what arrived in the same read as the end.
    pub(crate) end: Option<Result<(), ErrorClass>>,
}

impl Response {
    fn add(&mut self, part: ResponsePart<'_>) {
        match part {
            ResponsePart::Head(head) => {
                assert!(self.head.is_none(), "one final head");
                let lines = head.headers.iter();
                let lines = lines.map(|line| (line.name.to_owned(), line.value.to_owned()));
                self.head = Some((head.status, lines.collect()));
            }
            ResponsePart::Body(bytes) => {
                assert!(self.head.is_some(), "no body before its head");
                self.body.extend_from_slice(bytes);
            }
        }
    }
}

/// Parses a response that arrives in the given pieces, followed by the end of the connection.
pub(crate) fn read<'a>(to_head: bool, pieces: impl IntoIterator<Item = &'a [u8]>) -> Response {
    let mut parser = ResponseParser::new();
    parser.start(to_head);
    let mut response = Response::default();
    for piece in pieces {
        let fed = parser.feed(piece, &mut |part| response.add(part));
        if !matches!(fed, Ok(Progress::Partial)) {
            response.end = Some(fed.map(|_| ()).map_err(|failure| failure.class));
            return response;
        }
    }
    response.end = Some(parser.close().map(|_| ()).map_err(|failure| failure.class));
    response
}
