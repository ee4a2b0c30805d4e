//! The policy decision of a response, found while the response arrives.

use memchr::memmem::Finder;
use plimsoll_measure::{Outcome, PolicyDecision, Side};
use plimsoll_transport::ResponseHead;
use plimsoll_workload::{PolicyDecisionSpec, ResponseMatch};

/// The policy decision that a scenario expects, and the rules that find the actual one.
#[derive(Debug)]
pub(crate) struct DecisionClassifier {
    /// The policy decision that every turn is expected to have.
    pub(crate) expected: Option<PolicyDecision>,
    /// In the order of precedence.
    matchers: Vec<ResponseMatcher>,
    /// Bytes of the longest text that a matcher searches for.
    longest_text: usize,
}

/// Matches the responses that express one policy decision.
#[derive(Debug)]
struct ResponseMatcher {
    policy_decision: PolicyDecision,
    spec: ResponseMatch,
    text: Option<Finder<'static>>,
}

/// The state of matching one response.
#[derive(Debug, Default)]
pub(crate) struct DecisionScan {
    /// By matcher.
    states: Vec<MatchState>,
    /// The end of the body so far, in which a text may have begun; while a piece is scanned, its
    /// beginning as well.
    tail: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MatchState {
    NoMatch,
    /// The head matches, and the text has not been found yet.
    NeedsText,
    Match,
}

impl DecisionClassifier {
    pub(crate) fn new(expected: Option<PolicyDecision>, spec: &PolicyDecisionSpec) -> Self {
        let matchers: Vec<_> = spec
            .matches_in_order()
            .map(|(policy_decision, spec)| {
                let text = spec.body_contains.as_deref().filter(|text| !text.is_empty());
                let text = text.map(|text| Finder::new(text).into_owned());
                ResponseMatcher { policy_decision, spec: spec.clone(), text }
            })
            .collect();
        let texts = matchers.iter().filter_map(|matcher| matcher.text.as_ref());
        let longest_text = texts.map(|text| text.needle().len()).max().unwrap_or_default();
        Self { expected, matchers, longest_text }
    }

    /// Whether more than the status is needed.
    pub(crate) const fn needs_scan(&self) -> bool {
        !self.matchers.is_empty()
    }

    /// Begins a scan with the head of a response.
    pub(crate) fn scan_head(&self, scan: &mut DecisionScan, head: &ResponseHead<'_>) {
        scan.tail.clear();
        scan.states.clear();
        scan.states.extend(self.matchers.iter().map(|matcher| matcher.match_head(head)));
    }

    /// Scans a piece of the body.
    pub(crate) fn scan_body(&self, scan: &mut DecisionScan, bytes: &[u8]) {
        let DecisionScan { states, tail } = scan;
        if !states.contains(&MatchState::NeedsText) {
            return;
        }
        let keep = self.longest_text.saturating_sub(1);
        tail.extend_from_slice(&bytes[..bytes.len().min(keep)]);
        for (matcher, state) in self.matchers.iter().zip(states.iter_mut()) {
            if *state == MatchState::NeedsText
                && matcher.text.as_ref().is_some_and(|text: &Finder<'_>| {
                    text.find(bytes).or_else(|| text.find(tail)).is_some()
                })
            {
                *state = MatchState::Match;
            }
        }
        if bytes.len() > keep {
            tail.clear();
            tail.extend_from_slice(&bytes[bytes.len() - keep..]);
        } else {
            tail.drain(..tail.len().saturating_sub(keep));
        }
    }

    /// The policy decision of a response that has ended; `None` where the target has not responded.
    pub(crate) fn classify(
        &self,
        scan: Option<&DecisionScan>,
        outcome: Outcome,
        status: u16,
    ) -> Option<PolicyDecision> {
        let by_status = match outcome {
            _ if status == 0 => return None,
            Outcome::Completed | Outcome::Rejected(_) => PolicyDecision::from_status(status),
            Outcome::Failed(class) if class.side() == Side::Target => PolicyDecision::Unexpected,
            _ => return None,
        };
        let states = scan.into_iter().flat_map(|scan| &scan.states);
        let matched =
            self.matchers.iter().zip(states).find(|(_, state)| **state == MatchState::Match);
        Some(match matched {
            Some((matcher, _)) => matcher.policy_decision,
            None if self.matchers.iter().any(|matcher| matcher.policy_decision == by_status) => {
                PolicyDecision::Unexpected
            }
            None => by_status,
        })
    }
}

impl ResponseMatcher {
    fn match_head(&self, head: &ResponseHead<'_>) -> MatchState {
        let ResponseMatch { status, header, .. } = &self.spec;
        let status = status.is_empty() || status.contains(&head.status);
        let headers = header.iter().all(|(name, value)| head.header(name) == Some(value));
        match (status && headers, &self.text) {
            (false, _) => MatchState::NoMatch,
            (true, Some(_)) => MatchState::NeedsText,
            (true, None) => MatchState::Match,
        }
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::ErrorClass;

    use super::*;

    fn response(status: &[u16], header: &[(&str, &str)], text: Option<&str>) -> ResponseMatch {
        let header = header.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let body_contains = text.map(str::to_owned);
        ResponseMatch { status: status.to_vec(), header: header.collect(), body_contains }
    }

    fn classifier() -> DecisionClassifier {
        let spec = PolicyDecisionSpec {
            block: Some(response(&[403, 400], &[], Some("\"blocked\":true"))),
            redact: Some(response(&[], &[], Some("[REDACTED"))),
            rate_limited: Some(response(&[], &[("x-limited", "yes")], None)),
            allow: None,
        };
        DecisionClassifier::new(Some(PolicyDecision::Block), &spec)
    }

    /// Classifies a response that arrives in pieces of `piece` bytes.
    fn classify(status: u16, header: &str, body: &str, piece: usize) -> Option<PolicyDecision> {
        let (classifier, mut scan) = (classifier(), DecisionScan::default());
        let headers = [header_line("X-Limited", header)];
        classifier.scan_head(&mut scan, &ResponseHead { status, headers: &headers });
        for piece in body.as_bytes().chunks(piece) {
            classifier.scan_body(&mut scan, piece);
        }
        let outcome = if status < 300 { Outcome::Completed } else { Outcome::Rejected(status) };
        classifier.classify(Some(&scan), outcome, status)
    }

    fn header_line<'a>(name: &'a str, value: &'a str) -> httparse::Header<'a> {
        httparse::Header { name, value: value.as_bytes() }
    }

    #[test]
    fn the_first_match_in_the_fixed_order_decides_however_the_body_is_split() {
        use PolicyDecision::{Allow, Block, RateLimited, Redact, Unexpected};
        for (status, header, body, expected) in [
            (200, "no", r#"{"data":"fine"}"#, Allow),
            (200, "no", r#"{"data":"[REDACTED:card]"}"#, Redact),
            (403, "no", r#"{"success":false,"blocked":true,"x":"[REDACTED"}"#, Block),
            (400, "no", r#"{"blocked":true}"#, Block),
            // A wrong token, not the policy: the text of a block is declared, and it is missing.
            (403, "no", r#"{"error":"token"}"#, Unexpected),
            // The text without the status does not make a block.
            (200, "no", r#"{"blocked":true}"#, Allow),
            (200, "yes", "", RateLimited),
            (429, "no", "", Unexpected),
            (404, "no", "", Unexpected),
            (200, "no", "almost [REDACTE", Allow),
            (200, "no", "[[REDACTED", Redact),
        ] {
            for piece in 1..20 {
                let decision = classify(status, header, body, piece);
                assert_eq!(
                    decision,
                    Some(expected),
                    "{status} {header} {body} in pieces of {piece}"
                );
            }
        }
    }

    #[test]
    fn without_a_response_there_is_no_policy_decision() {
        let plain = DecisionClassifier::new(None, &PolicyDecisionSpec::default());
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
                plain.classify(None, outcome, status),
                policy_decision,
                "{outcome:?} {status}"
            );
        }
    }
}
