//! The state of a cell, from the bytes that the client got and the upstream's own record.

use plimsoll_report::format::time;
use plimsoll_stats::descriptive::median;

use super::State;
use super::cases::{Case, Close, Exchange};
use super::client::{Answer, End};
use super::documents::{differences, document, headers};
use super::upstream::{Call, dialect_of};

/// Events count as delayed if all are late by more than this: a busy host delays some.
const DELAYED_MS: f64 = 20.0;

/// Statuses of a path or method that a server does not have.
const NOT_OFFERED: [u16; 3] = [404, 405, 501];

/// An exchange that took place.
pub(super) struct Observed<'o> {
    pub(super) case: &'o Case,
    /// The exchange in the client's dialect.
    pub(super) exchange: &'o Exchange,
    /// The text that replaced `$MARK`.
    pub(super) mark: &'o str,
    pub(super) answer: &'o Answer,
    pub(super) calls: &'o [Call],
}

impl Observed<'_> {
    /// The state of the cell, and a description.
    pub(super) fn verdict(&self) -> (State, String) {
        if self.calls.is_empty() && NOT_OFFERED.contains(&self.answer.status) {
            return (State::NotOffered, self.status_text());
        }
        if let Some(reason) = self.obstacle() {
            return (State::NotObserved, reason);
        }
        if let End::Left(left) = self.answer.end {
            return match self.calls {
                [Call { gone: Some(gone), .. }, ..] => {
                    let after = time(gone.since(left).as_millis_f64());
                    (State::Kept, format!("the upstream noticed it after {after}"))
                }
                [Call { finished: true, .. }, ..] => {
                    (State::Changed, "the upstream sent the answer to its end".to_owned())
                }
                _ => (State::NotObserved, "the upstream was not asked in time".to_owned()),
            };
        }
        let (timing, remark) = self.timing();
        let (asked, cut) = (self.calls.len(), self.answer.end == End::Cut);
        let Exchange { reply, status, visible_end, requests, .. } = self.exchange;
        let is_other = self.answer.status != reply.status;
        let instead = format!("{} instead of {}", self.status_text(), reply.status);
        let checks = [
            (*status && is_other).then(String::new),
            (asked == 0).then(|| "the upstream was not asked".to_owned()),
            requests.filter(|most| asked > *most).map(|_| format!("upstream asked {asked} times")),
            (*visible_end && self.looks_complete())
                .then(|| "the cut answer looks complete".to_owned()),
            (cut && reply.is_whole() && self.answer.status > 0)
                .then(|| "the answer was cut".to_owned()),
            timing,
            self.request_changes(),
            self.answer_changes(),
        ];
        let mut seen: Vec<_> = checks.into_iter().flatten().collect();
        if seen.is_empty() {
            return (State::Kept, remark);
        }
        if is_other {
            seen.insert(0, instead);
        }
        seen.retain(|text| !text.is_empty());
        (State::Changed, seen.join("; "))
    }

    /// Why the exchange proves nothing.
    fn obstacle(&self) -> Option<String> {
        if let End::Unknown(reason) = &self.answer.end {
            return Some(reason.clone());
        }
        if let Some(call) = self.calls.iter().find(|call| dialect_of(&call.path).is_none()) {
            return Some(format!("the gateway asked the upstream for {}", call.path));
        }
        if self.exchange.told && !matches!(self.answer.end, End::Left(_)) {
            return Some(format!("{} before the client left", self.status_text()));
        }
        let needs_reuse = self.exchange.reply.close == Close::UnansweredIfReused;
        let reused = self.calls.iter().any(|call| call.reused);
        (needs_reuse && !reused).then(|| "the gateway opened a new connection".to_owned())
    }

    /// Whether a client takes a cut answer for a complete one.
    fn looks_complete(&self) -> bool {
        let is_error = document(&self.answer.body).get("error").is_some();
        self.answer.end == End::Complete && self.answer.status < 400 && !is_error
    }

    /// The exchange in the dialect that the gateway asked the upstream in.
    fn asked(&self) -> Option<(&Call, &Exchange)> {
        let call = self.calls.first()?;
        Some((call, &self.case.exchanges[dialect_of(&call.path)?]))
    }

    fn request_changes(&self) -> Option<String> {
        let (call, sent) = self.asked()?;
        if !sent.passes.is_empty() {
            let request = document(sent.body(self.mark).as_bytes());
            return differences(&request, &document(&call.body), &sent.passes);
        }
        let got = call.headers.iter().map(|(name, value)| (name, value));
        differences(&headers(&sent.headers), &headers(got), &pointers(&sent.forwards))
    }

    fn answer_changes(&self) -> Option<String> {
        let Exchange { reply, keeps, translated, returns, .. } = self.exchange;
        let is_translated = self.asked().is_some_and(|(_, asked)| asked.path != self.exchange.path);
        let keeps = if is_translated && !translated.is_empty() { translated } else { keeps };
        if !keeps.is_empty() {
            let sent = document(reply.pieces().concat().as_bytes());
            return differences(&sent, &document(&self.answer.body), keeps);
        }
        let got = self.answer.headers.iter().map(|(name, value)| (name, value));
        differences(&headers(&reply.headers), &headers(got), &pointers(returns))
    }

    /// Why events did not arrive one by one, if so; else a remark.
    fn timing(&self) -> (Option<String>, String) {
        let Exchange { alone, requests, visible_end, .. } = self.exchange;
        let (mut arrivals, mut delays) = (Vec::new(), Vec::new());
        let pieces = self.asked().map(|(call, sent)| (call, sent.reply.pieces()));
        for text in alone {
            let Some(arrival) = self.answer.arrival_of(text) else {
                return (Some(format!("lost `{text}`")), String::new());
            };
            let sent = pieces.as_ref().and_then(|(call, pieces)| {
                call.sends.get(pieces.iter().position(|piece| piece.contains(text))?)
            });
            delays.extend(sent.map(|sent| arrival.since(*sent).as_millis_f64()));
            arrivals.push(arrival);
        }
        arrivals.dedup();
        let delay = median(&delays).unwrap_or_default();
        let remark = match (alone.is_empty(), requests.is_some() || *visible_end) {
            (false, _) => format!("{} late (median)", time(delay)),
            (true, true) => self.status_text(),
            (true, false) => String::new(),
        };
        if arrivals.len() < alone.len() {
            let seen = format!("{} events arrived in {} reads", alone.len(), arrivals.len());
            return (Some(seen), remark);
        }
        let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
        let is_late = !delays.is_empty() && least > DELAYED_MS;
        (is_late.then(|| format!("every event arrived at least {} late", time(least))), remark)
    }

    fn status_text(&self) -> String {
        let cut = if self.answer.end == End::Cut { ", then cut" } else { "" };
        match self.answer.status {
            0 => "closed without an answer".to_owned(),
            status => format!("status {status}{cut}"),
        }
    }
}

fn pointers(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("/{name}")).collect()
}
