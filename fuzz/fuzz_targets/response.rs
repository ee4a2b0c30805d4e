//! An HTTP/1.1 connection's bytes read into what a caller sees.

use plimsoll_measure::ErrorClass;
use plimsoll_transport::http1::{Part, Progress, ResponseParser};

/// All that the parser says about one response.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Response {
    pub(crate) head: Option<(u16, Vec<(String, Vec<u8>)>)>,
    pub(crate) body: Vec<u8>,
    /// Is it whole? Whether the connection may be used again depends on what came in the same read
    /// as the end, so it is left out.
    pub(crate) end: Option<Result<(), ErrorClass>>,
}

impl Response {
    fn add(&mut self, part: Part<'_>) {
        match part {
            Part::Head(head) => {
                assert!(self.head.is_none(), "one final head");
                let lines = head.headers.iter();
                let lines = lines.map(|line| (line.name.to_owned(), line.value.to_owned()));
                self.head = Some((head.status, lines.collect()));
            }
            Part::Body(bytes) => {
                assert!(self.head.is_some(), "no body before its head");
                self.body.extend_from_slice(bytes);
            }
        }
    }
}

/// Reads a response that comes in the given pieces, and then the end of the connection.
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
