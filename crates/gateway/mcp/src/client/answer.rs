//! Reads the answer of a server to one message: JSON, or a stream of events.

use super::event_stream::EventStream;
use crate::rpc::{NoReply, Reply, RpcError, read_refusal, read_reply};

/// The head of an HTTP response, as far as MCP looks at it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Head<'a> {
    /// Its status.
    pub status: u16,
    /// Its `content-type`.
    pub content_type: &'a str,
    /// The session that it names.
    pub session: Option<&'a str>,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The session that its head names.
    pub session: Option<String>,
    /// What it says.
    pub said: Said,
}

/// What an answer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// The result, an object as JSON.
    Result(String),
    /// An error of JSON-RPC.
    Error(RpcError),
    /// A notification was taken.
    Accepted,
    /// Nothing but its status, which is no success.
    Status,
}

/// Whether more of an answer must be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More may come.
    More,
    /// All that matters is read; the rest, if there is one, is not needed.
    Complete,
}

/// Why an answer is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It is larger than allowed.
    #[error("its answer is larger than allowed")]
    TooLarge,
    /// It is no message, or none for this request.
    #[error("its answer is none: {0}")]
    NoReply(NoReply),
    /// It ended before the answer came.
    #[error("its answer ended early")]
    Ended,
    /// A request was only taken.
    #[error("it took the request and did not answer it")]
    OnlyAccepted,
    /// It is neither JSON nor a stream of events.
    #[error("its answer is neither JSON nor a stream of events")]
    Type,
}

/// Reads one answer from the pieces of its body.
#[derive(Debug)]
pub struct AnswerReader {
    /// The id of the request; `None` for a notification.
    id: Option<u64>,
    status: u16,
    session: Option<String>,
    body: Body,
    /// Bytes that may still come.
    left: usize,
    found: Option<Reply>,
}

#[derive(Debug)]
enum Body {
    Json(Vec<u8>),
    Events(EventStream),
    /// Of any other type, or of a status that says all.
    Ignored,
}

impl AnswerReader {
    /// The answer to a request with this id, or to a notification. At most `limit` bytes are read,
    /// also of a stream.
    pub fn new(id: Option<u64>, head: &Head<'_>, limit: usize) -> Self {
        let kind = head.content_type.split(';').next().unwrap_or_default().trim();
        let body = if kind.eq_ignore_ascii_case("application/json") {
            Body::Json(Vec::new())
        } else if kind.eq_ignore_ascii_case("text/event-stream") && is_success(head.status) {
            Body::Events(EventStream::default())
        } else {
            Body::Ignored
        };
        let session = head.session.map(str::to_owned);
        Self { id, status: head.status, session, body, left: limit, found: None }
    }

    /// Takes a piece of the body.
    ///
    /// # Errors
    /// It can no longer be an answer.
    pub fn feed(&mut self, piece: &[u8]) -> Result<Progress, Fault> {
        self.left = self.left.checked_sub(piece.len()).ok_or(Fault::TooLarge)?;
        let Some(id) = self.id else { return Ok(Progress::More) };
        match &mut self.body {
            Body::Ignored => {}
            Body::Json(bytes) => bytes.extend_from_slice(piece),
            Body::Events(stream) => {
                let events = stream.feed(piece);
                self.read_events(events, id)?;
            }
        }
        Ok(if self.found.is_some() { Progress::Complete } else { Progress::More })
    }

    fn read_events(&mut self, events: Vec<Vec<u8>>, id: u64) -> Result<(), Fault> {
        for data in events {
            // What comes behind the answer is not looked at.
            if self.found.is_some() {
                break;
            }
            self.found = read_reply(&data, id).map_err(Fault::NoReply)?;
        }
        Ok(())
    }

    /// Ends the answer.
    ///
    /// # Errors
    /// It is none.
    pub fn finish(mut self) -> Result<Answer, Fault> {
        let (status, session) = (self.status, self.session.take());
        let said = self.said()?;
        Ok(Answer { status, session, said })
    }

    fn said(self) -> Result<Said, Fault> {
        let Some(id) = self.id else {
            return Ok(if is_success(self.status) { Said::Accepted } else { Said::Status });
        };
        if !is_success(self.status) {
            let error = match &self.body {
                Body::Json(bytes) => read_refusal(bytes),
                _ => None,
            };
            return Ok(error.map_or(Said::Status, Said::Error));
        }
        let reply = match self.body {
            Body::Json(bytes) => read_reply(&bytes, id).map_err(Fault::NoReply)?,
            Body::Events(_) => self.found,
            Body::Ignored if self.status == 202 => return Err(Fault::OnlyAccepted),
            Body::Ignored => return Err(Fault::Type),
        };
        match reply {
            Some(Reply::Result(result)) => Ok(Said::Result(result)),
            Some(Reply::Error(error)) => Ok(Said::Error(error)),
            None => Err(Fault::Ended),
        }
    }
}

const fn is_success(status: u16) -> bool {
    status >= 200 && status < 300
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = "application/json; charset=utf-8";
    const EVENTS: &str = "text/event-stream";

    fn read(status: u16, content_type: &str, pieces: &[&str]) -> Result<Said, Fault> {
        let head = Head { status, content_type, session: None };
        let mut reader = AnswerReader::new(Some(1), &head, 1_000);
        for piece in pieces {
            reader.feed(piece.as_bytes())?;
        }
        reader.finish().map(|answer| answer.said)
    }

    #[test]
    fn answers_are_read_as_json_and_as_events() {
        let result = Ok(Said::Result("{}".to_owned()));
        let good = r#"{"jsonrpc":"2.0","id":1,"result":{}}"#;
        let progress = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"}\n\n";
        let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
        let refused = Ok(Said::Error(RpcError::new(-32_600, "no")));
        let event = format!("event: message\ndata: {good}\n\n");
        for (status, kind, pieces, expected) in [
            (200, JSON, vec![&good[..10], &good[10..]], result.clone()),
            (200, EVENTS, vec![progress, &event[..20], &event[20..]], result.clone()),
            (200, EVENTS, vec![&*event, "data: garbage\n\n"], result),
            (200, EVENTS, vec![progress], Err(Fault::Ended)),
            (200, EVENTS, vec!["data: garbage\n\n"], Err(Fault::NoReply(NoReply::NotAMessage))),
            (200, JSON, vec!["<html>"], Err(Fault::NoReply(NoReply::NotAMessage))),
            (200, JSON, vec![], Err(Fault::NoReply(NoReply::NotAMessage))),
            (200, "text/html", vec![good], Err(Fault::Type)),
            (202, "", vec![], Err(Fault::OnlyAccepted)),
            (404, JSON, vec![refusal], refused.clone()),
            (500, JSON, vec![refusal], refused),
            (500, JSON, vec!["{}"], Ok(Said::Status)),
            (302, "text/html", vec!["moved"], Ok(Said::Status)),
            (503, EVENTS, vec![&*event], Ok(Said::Status)),
        ] {
            assert_eq!(read(status, kind, &pieces), expected, "{status} {kind} {pieces:?}");
        }
    }

    #[test]
    fn a_large_answer_is_given_up_also_if_it_is_a_stream() {
        let comments = ": x\n\n".repeat(100);
        for kind in [JSON, EVENTS, "text/html"] {
            assert_eq!(read(200, kind, &[comments.as_str(); 3]), Err(Fault::TooLarge), "{kind}");
        }
    }

    #[test]
    fn a_notification_is_taken_or_refused() {
        for (status, said) in [(202, Said::Accepted), (200, Said::Accepted), (400, Said::Status)] {
            let head = Head { status, ..Head::default() };
            let answer = AnswerReader::new(None, &head, 10).finish().unwrap();
            assert_eq!(answer.said, said, "{status}");
        }
    }
}
