//! The state of a cell, from the bytes that the client got and the upstream's own record.

use std::collections::BTreeMap;

use plimsoll_stats::descriptive::median;
use serde_json::Value;

use super::State;
use super::cases::{Close, Exchange, Reply};
use super::client::{Answer, End};
use super::documents::{differences, document, joined};
use super::upstream::{Call, dialect_of, event_text};

/// Events that are late by more than this, in the median, count as delayed. The client's delayed
/// acknowledgement (40 ms) is the smallest usual cause.
const DELAYED_MS: f64 = 20.0;

/// Statuses of a path or method that a server does not have.
const NOT_OFFERED: [u16; 3] = [404, 405, 501];

/// An exchange that took place.
pub(super) struct Observed<'o> {
    /// The exchange in the client's dialect.
    pub(super) exchange: &'o Exchange,
    /// The exchange in every dialect, because a gateway may translate.
    pub(super) all: &'o BTreeMap<String, Exchange>,
    /// The text that replaced `$MARK`.
    pub(super) mark: &'o str,
    pub(super) answer: &'o Answer,
    pub(super) calls: &'o [Call],
}

impl Observed<'_> {
    /// The state of the cell, and a description.
    pub(super) fn verdict(&self) -> (State, String) {
        if self.calls.is_empty() && NOT_OFFERED.contains(&self.answer.status) {
            return (State::NotOffered, format!("{}, without the upstream", self.status_text()));
        }
        if let Some(reason) = self.obstacle() {
            return (State::NotObserved, reason);
        }
        if self.exchange.told {
            return self.departure();
        }
        let mut seen = self.path_changes();
        seen.extend(self.request_changes());
        seen.extend(self.answer_changes());
        if self.answer.status != self.exchange.reply.status && !seen.is_empty() {
            seen.insert(0, self.status_text());
        }
        if seen.is_empty() {
            (State::Kept, self.remark())
        } else {
            (State::Changed, seen.join("; "))
        }
    }

    /// Why the exchange proves nothing.
    fn obstacle(&self) -> Option<String> {
        if let End::Unknown(reason) = &self.answer.end {
            return Some(reason.clone());
        }
        let unknown = self.calls.iter().find(|call| dialect_of(&call.path).is_none());
        if let Some(call) = unknown {
            return Some(format!("the gateway asked the upstream for {}", call.path));
        }
        let reused = self.calls.iter().any(|call| call.reused);
        let needs_reuse = self.exchange.reply.close == Close::UnansweredIfReused;
        (needs_reuse && !reused).then(|| "the gateway opened a new connection".to_owned())
    }

    /// Whether the upstream noticed that the client left.
    fn departure(&self) -> (State, String) {
        let End::Left(left) = self.answer.end else {
            let text = format!("{} before the client left", self.status_text());
            return (State::NotObserved, text);
        };
        match self.calls {
            [] => (State::NotObserved, "the upstream was not asked in time".to_owned()),
            [Call { gone: Some(gone), .. }, ..] => {
                (State::Kept, format!("the upstream noticed it after {}", gone.since(left)))
            }
            [Call { finished: true, .. }, ..] => {
                (State::Changed, "the upstream sent the answer to its end".to_owned())
            }
            _ => (State::NotObserved, "the upstream did not end its answer in time".to_owned()),
        }
    }

    /// Changes of the exchange as a whole.
    fn path_changes(&self) -> Vec<String> {
        let mut seen = Vec::new();
        let Exchange { reply, requests, .. } = self.exchange;
        if self.calls.is_empty() {
            seen.push("the upstream was not asked".to_owned());
        }
        if requests.is_some_and(|most| self.calls.len() > most) {
            seen.push(format!("the upstream was asked {} times", self.calls.len()));
        }
        if self.exchange.status && self.answer.status != reply.status {
            seen.push(format!("instead of {}", reply.status));
        }
        if self.exchange.visible_end && self.looks_complete() {
            seen.push("the cut answer looks complete".to_owned());
        }
        if self.answer.end == End::Cut && self.answer.status > 0 && reply.is_complete() {
            seen.push("the answer was cut".to_owned());
        }
        seen
    }

    /// Whether a client takes a cut answer for a complete one.
    fn looks_complete(&self) -> bool {
        let is_error = self.answer.status >= 400 || self.got().get("error").is_some();
        self.answer.end == End::Complete && !is_error
    }

    /// Changes of the request, as the upstream saw it, in the dialect that it was asked in.
    fn request_changes(&self) -> Vec<String> {
        let Some(call) = self.calls.first() else { return Vec::new() };
        let Some(sent) = dialect_of(&call.path).and_then(|dialect| self.all.get(dialect)) else {
            return Vec::new();
        };
        let mut seen = Vec::new();
        if !sent.passes.is_empty() {
            let request = sent.body(self.mark);
            let request = serde_json::from_str(&request).unwrap_or_default();
            seen = differences(&request, &document(&call.body), &sent.passes);
        }
        let before = headers_document(sent.headers.iter());
        let after = headers_document(call.headers.iter().map(|(name, value)| (name, value)));
        seen.extend(differences(&before, &after, &pointers(&sent.forwards)));
        seen
    }

    /// Changes of the answer, as the client saw it.
    fn answer_changes(&self) -> Vec<String> {
        let Exchange { reply, keeps, returns, alone, .. } = self.exchange;
        let mut seen = Vec::new();
        if !keeps.is_empty() {
            seen = differences(&reply.document(), &self.got(), keeps);
        }
        let before = headers_document(reply.headers.iter());
        let headers = self.answer.headers.iter().map(|(name, value)| (name, value));
        seen.extend(differences(&before, &headers_document(headers), &pointers(returns)));
        if !alone.is_empty() {
            seen.extend(self.timing().err());
        }
        seen
    }

    fn got(&self) -> Value {
        document(&self.answer.body())
    }

    /// The median delay of events in milliseconds, or why they did not arrive one by one.
    fn timing(&self) -> Result<f64, String> {
        let call = self.calls.first().ok_or("no event arrived")?;
        let sent = dialect_of(&call.path).and_then(|dialect| self.all.get(dialect));
        let sent = sent.ok_or("no event arrived")?;
        let events: Vec<_> = sent.reply.events.iter().map(event_text).collect();
        let mut arrivals = Vec::new();
        let mut delays = Vec::new();
        for text in &self.exchange.alone {
            let position = events.iter().position(|event| event.contains(text));
            let sent_at = position.and_then(|position| call.sends.get(position));
            let arrival = self.answer.arrival_of(text).ok_or_else(|| format!("lost `{text}`"))?;
            delays.extend(sent_at.map(|sent_at| arrival.since(*sent_at).as_millis_f64()));
            arrivals.push(arrival);
        }
        let count = arrivals.len();
        arrivals.dedup();
        if arrivals.len() < count {
            return Err(format!("{count} events arrived in {} reads", arrivals.len()));
        }
        let delay = median(&delays).ok_or("no event arrived")?;
        if delay > DELAYED_MS {
            return Err(format!("events arrived {delay:.0} ms late (median)"));
        }
        Ok(delay)
    }

    /// A figure of a cell that is kept.
    fn remark(&self) -> String {
        if let Ok(delay) = self.timing()
            && !self.exchange.alone.is_empty()
        {
            return format!("{delay:.1} ms late (median)");
        }
        let is_remarkable = self.exchange.requests.is_some() || self.exchange.visible_end;
        if !is_remarkable {
            return String::new();
        }
        let cut = self.answer.end == End::Cut && self.answer.status > 0;
        self.status_text() + if cut { ", then cut" } else { "" }
    }

    fn status_text(&self) -> String {
        match self.answer.status {
            0 => "closed without an answer".to_owned(),
            status => format!("status {status}"),
        }
    }
}

impl Reply {
    fn is_complete(&self) -> bool {
        self.cut.is_none() && matches!(self.close, Close::Never | Close::Idle)
    }

    /// Its JSON, or its joined events.
    fn document(&self) -> Value {
        if self.events.is_empty() {
            return self.json.clone();
        }
        joined(&self.events.iter().map(event_text).collect::<String>())
    }
}

fn headers_document<'h>(headers: impl Iterator<Item = (&'h String, &'h String)>) -> Value {
    headers.map(|(name, value)| (name.clone(), Value::from(value.clone()))).collect()
}

fn pointers(names: &[String]) -> Vec<String> {
    names.iter().map(|name| format!("/{name}")).collect()
}
