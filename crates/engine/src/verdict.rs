//! Reading a verdict from an answer, as it arrives.

use memchr::memmem::Finder;
use plimsoll_measure::{Outcome, Side, Verdict};
use plimsoll_transport::ResponseHead;
use plimsoll_workload::{Sign, VerdictSpec};

/// What a scenario expects, and how its verdicts are read.
#[derive(Debug)]
pub(crate) struct VerdictReader {
    /// The verdict that every turn is expected to have.
    pub(crate) expected: Option<Verdict>,
    /// In the order in which they are looked at.
    signs: Vec<Mark>,
    /// Bytes of the longest text that is looked for.
    longest: usize,
}

/// A sign, ready to be looked for.
#[derive(Debug)]
struct Mark {
    verdict: Verdict,
    sign: Sign,
    text: Option<Finder<'static>>,
}

/// What has been seen of one answer.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// By sign: does the answer bear it, as far as it has been read?
    marks: Vec<Seen>,
    /// The end of the body so far, in which a text may have begun; and room to look at a seam.
    tail: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    No,
    /// But for its text.
    Head,
    Yes,
}

impl VerdictReader {
    pub(crate) fn new(expected: Option<Verdict>, spec: &VerdictSpec) -> Self {
        let mark = |(verdict, sign): (Verdict, &Sign)| {
            let text = sign.body_contains.as_deref().filter(|text| !text.is_empty());
            let text = text.map(|text| Finder::new(text).into_owned());
            Mark { verdict, sign: sign.clone(), text }
        };
        let signs: Vec<_> = spec.signs().map(mark).collect();
        let length = |mark: &Mark| mark.text.as_ref().map(|text| text.needle().len());
        let longest = signs.iter().filter_map(length).max().unwrap_or_default();
        Self { expected, signs, longest }
    }

    /// Is more than the status needed?
    pub(crate) const fn needs_reading(&self) -> bool {
        !self.signs.is_empty()
    }

    /// Looks at the head of an answer, the first of it.
    pub(crate) fn head(&self, reading: &mut Reading, head: &ResponseHead<'_>) {
        reading.tail.clear();
        reading.marks.clear();
        reading.marks.extend(self.signs.iter().map(|mark| mark.seen_in(head)));
    }

    /// Looks at a piece of the body.
    pub(crate) fn body(&self, reading: &mut Reading, bytes: &[u8]) {
        let Reading { marks, tail } = reading;
        if !marks.contains(&Seen::Head) {
            return;
        }
        let keep = self.longest.saturating_sub(1);
        tail.extend_from_slice(&bytes[..bytes.len().min(keep)]);
        for (mark, seen) in self.signs.iter().zip(marks.iter_mut()) {
            let found = |text: &Finder<'_>| text.find(bytes).or_else(|| text.find(tail)).is_some();
            if *seen == Seen::Head && mark.text.as_ref().is_some_and(found) {
                *seen = Seen::Yes;
            }
        }
        if bytes.len() > keep {
            tail.clear();
            tail.extend_from_slice(&bytes[bytes.len() - keep..]);
        } else {
            tail.drain(..tail.len().saturating_sub(keep));
        }
    }

    /// The verdict of an answer that has ended; `None` where the target has not answered.
    pub(crate) fn verdict(
        &self,
        reading: Option<&Reading>,
        outcome: Outcome,
        status: u16,
    ) -> Option<Verdict> {
        let by_status = match outcome {
            _ if status == 0 => return None,
            Outcome::Completed | Outcome::Rejected(_) => Verdict::of_status(status),
            Outcome::Failed(class) if class.side() == Side::Target => Verdict::Unexpected,
            _ => return None,
        };
        let seen = reading.into_iter().flat_map(|reading| &reading.marks);
        let borne = self.signs.iter().zip(seen).find(|(_, seen)| **seen == Seen::Yes);
        Some(match borne {
            Some((mark, _)) => mark.verdict,
            None if self.signs.iter().any(|mark| mark.verdict == by_status) => Verdict::Unexpected,
            None => by_status,
        })
    }
}

impl Mark {
    fn seen_in(&self, head: &ResponseHead<'_>) -> Seen {
        let Sign { status, header, .. } = &self.sign;
        let status = status.is_empty() || status.contains(&head.status);
        let headers = header.iter().all(|(name, value)| head.header(name) == Some(value));
        match (status && headers, &self.text) {
            (false, _) => Seen::No,
            (true, Some(_)) => Seen::Head,
            (true, None) => Seen::Yes,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::ErrorClass;

    use super::*;

    fn sign(status: &[u16], header: &[(&str, &str)], text: Option<&str>) -> Sign {
        let header = header.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let body_contains = text.map(str::to_owned);
        Sign { status: status.to_vec(), header: header.collect(), body_contains }
    }

    fn reader() -> VerdictReader {
        let spec = VerdictSpec {
            block: Some(sign(&[403, 400], &[], Some("\"blocked\":true"))),
            redact: Some(sign(&[], &[], Some("[REDACTED"))),
            rate_limited: Some(sign(&[], &[("x-limited", "yes")], None)),
            allow: None,
        };
        VerdictReader::new(Some(Verdict::Block), &spec)
    }

    /// Reads an answer in pieces of `piece` bytes.
    fn read(status: u16, header: &str, body: &str, piece: usize) -> Option<Verdict> {
        let (reader, mut reading) = (reader(), Reading::default());
        let headers = [header_line("X-Limited", header)];
        reader.head(&mut reading, &ResponseHead { status, headers: &headers });
        for piece in body.as_bytes().chunks(piece) {
            reader.body(&mut reading, piece);
        }
        let outcome = if status < 300 { Outcome::Completed } else { Outcome::Rejected(status) };
        reader.verdict(Some(&reading), outcome, status)
    }

    fn header_line<'a>(name: &'a str, value: &'a str) -> httparse::Header<'a> {
        httparse::Header { name, value: value.as_bytes() }
    }

    #[test]
    fn the_first_sign_in_the_fixed_order_decides_however_the_body_is_cut() {
        use Verdict::{Allow, Block, RateLimited, Redact, Unexpected};
        for (status, header, body, expected) in [
            (200, "no", r#"{"data":"fine"}"#, Allow),
            (200, "no", r#"{"data":"[REDACTED:card]"}"#, Redact),
            (403, "no", r#"{"success":false,"blocked":true,"x":"[REDACTED"}"#, Block),
            (400, "no", r#"{"blocked":true}"#, Block),
            // Not by policy: a wrong token. The sign of a block is declared, and not there.
            (403, "no", r#"{"error":"token"}"#, Unexpected),
            // The text without the status is no block.
            (200, "no", r#"{"blocked":true}"#, Allow),
            (200, "yes", "", RateLimited),
            (429, "no", "", Unexpected),
            (404, "no", "", Unexpected),
            (200, "no", "almost [REDACTE", Allow),
            (200, "no", "[[REDACTED", Redact),
        ] {
            for piece in 1..20 {
                let seen = read(status, header, body, piece);
                assert_eq!(seen, Some(expected), "{status} {header} {body} in pieces of {piece}");
            }
        }
    }

    #[test]
    fn without_an_answer_there_is_no_verdict() {
        let plain = VerdictReader::new(None, &VerdictSpec::default());
        for (outcome, status, verdict) in [
            (Outcome::TimedOut, 200, None),
            (Outcome::Failed(ErrorClass::Reset), 200, None),
            (Outcome::Failed(ErrorClass::ConnectRefused), 0, None),
            (Outcome::Failed(ErrorClass::ServerError), 503, Some(Verdict::Unexpected)),
            (Outcome::Failed(ErrorClass::StreamTruncated), 200, Some(Verdict::Unexpected)),
            (Outcome::Rejected(403), 403, Some(Verdict::Block)),
            (Outcome::Rejected(429), 429, Some(Verdict::RateLimited)),
            (Outcome::Completed, 204, Some(Verdict::Allow)),
        ] {
            assert_eq!(plain.verdict(None, outcome, status), verdict, "{outcome:?} {status}");
        }
    }
}
