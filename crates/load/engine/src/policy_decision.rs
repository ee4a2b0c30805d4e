//! Reading a policy decision from an answer, as it arrives.

use memchr::memmem::Finder;
use plimsoll_measure::{Outcome, PolicyDecision, Side};
use plimsoll_transport::ResponseHead;
use plimsoll_workload::{PolicyDecisionSpec, ResponseMatch};

/// What a scenario expects, and how its policy decisions are read.
#[derive(Debug)]
pub(crate) struct PolicyDecisionReader {
    /// The policy decision that every turn is expected to have.
    pub(crate) expected: Option<PolicyDecision>,
    /// In the order in which they are looked at.
    signs: Vec<Mark>,
    /// Bytes of the longest text that is looked for.
    longest: usize,
}

/// A sign, ready to be looked for.
#[derive(Debug)]
struct Mark {
    policy_decision: PolicyDecision,
    sign: ResponseMatch,
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

impl PolicyDecisionReader {
    pub(crate) fn new(expected: Option<PolicyDecision>, spec: &PolicyDecisionSpec) -> Self {
        let mark = |(policy_decision, sign): (PolicyDecision, &ResponseMatch)| {
            let text = sign.body_contains.as_deref().filter(|text| !text.is_empty());
            let text = text.map(|text| Finder::new(text).into_owned());
            Mark { policy_decision, sign: sign.clone(), text }
        };
        let signs: Vec<_> = spec.matches_in_order().map(mark).collect();
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

    /// The policy decision of an answer that has ended; `None` where the target has not answered.
    pub(crate) fn policy_decision(
        &self,
        reading: Option<&Reading>,
        outcome: Outcome,
        status: u16,
    ) -> Option<PolicyDecision> {
        let by_status = match outcome {
            _ if status == 0 => return None,
            Outcome::Completed | Outcome::Rejected(_) => PolicyDecision::from_status(status),
            Outcome::Failed(class) if class.side() == Side::Target => PolicyDecision::Unexpected,
            _ => return None,
        };
        let seen = reading.into_iter().flat_map(|reading| &reading.marks);
        let borne = self.signs.iter().zip(seen).find(|(_, seen)| **seen == Seen::Yes);
        Some(match borne {
            Some((mark, _)) => mark.policy_decision,
            None if self.signs.iter().any(|mark| mark.policy_decision == by_status) => {
                PolicyDecision::Unexpected
            }
            None => by_status,
        })
    }
}

impl Mark {
    fn seen_in(&self, head: &ResponseHead<'_>) -> Seen {
        let ResponseMatch { status, header, .. } = &self.sign;
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

    fn sign(status: &[u16], header: &[(&str, &str)], text: Option<&str>) -> ResponseMatch {
        let header = header.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let body_contains = text.map(str::to_owned);
        ResponseMatch { status: status.to_vec(), header: header.collect(), body_contains }
    }

    fn reader() -> PolicyDecisionReader {
        let spec = PolicyDecisionSpec {
            block: Some(sign(&[403, 400], &[], Some("\"blocked\":true"))),
            redact: Some(sign(&[], &[], Some("[REDACTED"))),
            rate_limited: Some(sign(&[], &[("x-limited", "yes")], None)),
            allow: None,
        };
        PolicyDecisionReader::new(Some(PolicyDecision::Block), &spec)
    }

    /// Reads an answer in pieces of `piece` bytes.
    fn read(status: u16, header: &str, body: &str, piece: usize) -> Option<PolicyDecision> {
        let (reader, mut reading) = (reader(), Reading::default());
        let headers = [header_line("X-Limited", header)];
        reader.head(&mut reading, &ResponseHead { status, headers: &headers });
        for piece in body.as_bytes().chunks(piece) {
            reader.body(&mut reading, piece);
        }
        let outcome = if status < 300 { Outcome::Completed } else { Outcome::Rejected(status) };
        reader.policy_decision(Some(&reading), outcome, status)
    }

    fn header_line<'a>(name: &'a str, value: &'a str) -> httparse::Header<'a> {
        httparse::Header { name, value: value.as_bytes() }
    }

    #[test]
    fn the_first_sign_in_the_fixed_order_decides_however_the_body_is_cut() {
        use PolicyDecision::{Allow, Block, RateLimited, Redact, Unexpected};
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
        let plain = PolicyDecisionReader::new(None, &PolicyDecisionSpec::default());
        for (outcome, status, policy_decision) in [
            (Outcome::TimedOut, 200, None),
            (Outcome::Failed(ErrorClass::Reset), 200, None),
            (Outcome::Failed(ErrorClass::ConnectRefused), 0, None),
            (Outcome::Failed(ErrorClass::ServerError), 503, Some(PolicyDecision::Unexpected)),
            (Outcome::Failed(ErrorClass::StreamTruncated), 200, Some(PolicyDecision::Unexpected)),
            (Outcome::Rejected(403), 403, Some(PolicyDecision::Block)),
            (Outcome::Rejected(429), 429, Some(PolicyDecision::RateLimited)),
            (Outcome::Completed, 204, Some(PolicyDecision::Allow)),
        ] {
            assert_eq!(
                plain.policy_decision(None, outcome, status),
                policy_decision,
                "{outcome:?} {status}"
            );
        }
    }
}
