//! Rows to requests, by the table of the format: sessions, times and counts.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::{Map, Value};

use crate::branches::{Branches, Timed};
use crate::draft::Draft;
use crate::error::ImportError;
use crate::format::{Choice, Format, OWN, Rule};
use crate::history::History;
use crate::lanes::{Lanes, append};
use crate::messages::{exchanges, from_turn, is_question, place_images};
use crate::record::{After, Header, Line, Request, VERSION};
use crate::summary::Summary;
use crate::value::{is_empty, object, unpacked};

/// Maximum number of broken rows to describe.
const NAMED: usize = 3;
/// The mode of `AIPerf` in which each turn is a whole prompt.
const WHOLE: &str = "message_array_with_responses";
/// Maximum number of unused members to count separately.
const NAMES: usize = 200;

/// Receives a line; [`ImportError::Input`] describes a problem of its row.
pub(crate) type Emit<'o> = dyn FnMut(Line) -> Result<(), ImportError> + 'o;

/// Converts rows and emits requests.
pub(crate) struct Converter<'o> {
    format: &'static Format,
    emit: &'o mut Emit<'o>,
    pub(crate) summary: Summary,
    /// Start of the first request; zero of all times.
    zero: Option<f64>,
    /// Earliest and latest start.
    span: (f64, f64),
    sessions: HashMap<String, Session>,
    ids: HashSet<String>,
    /// The root of each request, in formats that name parents.
    roots: HashMap<String, String>,
    branches: Branches,
    history: History,
    lanes: Lanes,
    /// Requests of a format that does not sort them by time.
    held: Vec<Timed>,
}

/// Maximum number of requests of a session that a later request may wait for.
const RECENT: usize = 64;

/// A session, and its last requests.
#[derive(Debug, Default)]
struct Session {
    start: Option<f64>,
    recent: VecDeque<Recent>,
    requests: u64,
}

/// A request, its end, and the requests that it waited for.
#[derive(Debug)]
struct Recent {
    id: String,
    end: Option<f64>,
    after: Vec<String>,
}

impl Timed {
    /// Adds another part of the reply.
    fn add_to_reply(&mut self, mut draft: Draft, messages: Vec<Value>, joins: bool) {
        let Request { in_tokens, out_tokens, cached_tokens, reply, .. } = &mut self.request;
        for (name, count) in
            [("in_tokens", in_tokens), ("out_tokens", out_tokens), ("cached_tokens", cached_tokens)]
        {
            *count = draft.take(name).and_then(|stated| stated.as_u64()).or(*count);
        }
        if !messages.is_empty() {
            self.end = draft.take_times().0.or(self.end);
        }
        append(reply.get_or_insert_default(), messages, joins);
    }
}

impl<'o> Converter<'o> {
    pub(crate) fn new(choice: Choice, emit: &'o mut Emit<'o>) -> Self {
        let Choice { format, why, also } = choice;
        let title = format!("{} ({})", format.name, format.title);
        Self {
            format,
            emit,
            summary: Summary { format: title, why, also, ..Summary::default() },
            zero: None,
            span: (f64::INFINITY, f64::NEG_INFINITY),
            sessions: HashMap::new(),
            ids: HashSet::new(),
            roots: HashMap::new(),
            branches: Branches::default(),
            history: History::default(),
            lanes: Lanes::default(),
            held: Vec::new(),
        }
    }

    /// Converts a value of the file, which may contain several rows.
    ///
    /// # Errors
    /// A row is broken: the member, and the problem.
    pub(crate) fn add(&mut self, value: Value) -> Result<(), ImportError> {
        if self.format.name == OWN {
            return self.add_canonical(value);
        }
        let mut around = Vec::new();
        let rows = self.format.rows_of(value, &mut around);
        for name in around {
            self.leave_out(&name);
        }
        for row in rows {
            let mut draft = Draft::default();
            if row.is_null() {
                self.leave_out("lines (not an HTTP request)");
            } else if let Some(kind) = self.format.other_kind(&row) {
                self.leave_out(&kind);
            } else if row.is_array() {
                draft.put("turns", "turns", row)?;
                self.add_draft(draft)?;
            } else {
                let is_reply = self.format.is_reply(&row);
                self.walk(&mut draft, "", object(row)?)?;
                match is_reply {
                    None => self.add_draft(draft)?,
                    Some(is_reply) => self.add_message(draft, is_reply)?,
                }
            }
        }
        Ok(())
    }

    /// Adds a message to its conversation. The first part of a reply completes a request.
    fn add_message(&mut self, mut draft: Draft, is_reply: bool) -> Result<(), ImportError> {
        let joins = self.format.dialect.as_deref() == Some("anthropic-messages");
        let messages = draft.take_messages();
        let (row, lane) = self.lanes.place(&mut draft, is_reply);
        let mut open = lane.open.take_list("messages").unwrap_or_default();
        let known = lane.request.and_then(|request| self.held.get_mut(request));
        let is_part = is_reply && (open.is_empty() || messages.is_empty());
        if let Some(known) = known.filter(|_| is_part) {
            known.add_to_reply(draft, messages, joins);
        } else if is_reply && !messages.is_empty() && open.iter().any(is_question) {
            let mut whole = std::mem::take(&mut lane.open);
            let (session, request) = (lane.session.clone(), lane.request);
            let continues = request.map(|request| self.held[request].request.id.clone());
            draft.row["end"] = draft.take("at").into();
            whole.extend(draft);
            whole.row["messages"] = open.into();
            whole.row["reply"] = messages.into();
            self.finish_request(whole, session, continues)?;
            self.lanes.note_request(row, self.held.len() - 1);
            return Ok(());
        } else {
            append(&mut open, messages, joins);
            lane.open.extend(draft);
        }
        if !open.is_empty() {
            lane.open.row["messages"] = open.into();
        }
        Ok(())
    }

    /// Adds the prompts of conversations that got no reply, or counts them.
    fn add_unanswered(&mut self) -> Result<(), ImportError> {
        for mut lane in self.lanes.take() {
            let open = lane.open.row["messages"].as_array();
            if !open.is_some_and(|open| open.iter().any(is_question)) {
                continue;
            }
            if self.format.unanswered {
                let known = lane.request.and_then(|request| self.held.get(request));
                let continues = known.map(|known| known.request.id.clone());
                self.finish_request(std::mem::take(&mut lane.open), lane.session, continues)?;
            } else {
                self.leave_out("prompts (without a reply)");
            }
        }
        Ok(())
    }

    /// Converts every member of an object by its rule, or counts it as unused.
    fn walk(
        &mut self,
        draft: &mut Draft,
        prefix: &str,
        members: Map<String, Value>,
    ) -> Result<(), String> {
        for (name, value) in members {
            let path = format!("{prefix}{name}");
            match (self.format.rule(&path), value) {
                (Rule::Use(conversion, target), value) => {
                    let target = Some(target).filter(|target| !target.is_empty()).unwrap_or(&name);
                    let put = draft.put(conversion, target, value);
                    put.map_err(|why| format!("`{path}` {why}"))?;
                }
                (_, value) if is_empty(&value) => {}
                (Rule::LeaveOut(reason), _) => self.leave_out(&format!("{path} ({reason})")),
                (Rule::Descend, value) => match unpacked(value) {
                    Value::Object(inner) => self.walk(draft, &format!("{path}."), inner)?,
                    _ => self.leave_out(&path),
                },
                _ => self.leave_out(&path),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, name: &str) {
        let unused = &mut self.summary.unused;
        let full = unused.len() >= NAMES && !unused.contains_key(name);
        let name = if full { "other members" } else { name };
        *unused.entry(name.to_owned()).or_default() += 1;
    }

    pub(crate) fn skip(&mut self, problem: String) {
        self.summary.skipped += 1;
        if self.summary.skipped_first.len() < NAMED {
            self.summary.skipped_first.push(problem);
        }
    }

    /// Adds the requests of a row: one, the turns of a dialogue, or several bodies.
    fn add_draft(&mut self, mut draft: Draft) -> Result<(), ImportError> {
        let own = format!("#{}", self.summary.requests + 1);
        let session = draft.take_text("session");
        let [bodies, turns] = ["bodies", "each"].map(|name| draft.take_list(name));
        let is_whole = draft.take_text("context_mode").is_some_and(|mode| mode == WHOLE);
        let (is_chain, is_turns) = (bodies.is_none() && !is_whole, turns.is_some());
        if is_turns && draft.take("spawns").is_some() {
            self.leave_out("spawns (of an orchestrator; its conversations start at once)");
        }
        let parts = match bodies.or(turns) {
            Some(turns) => Some(self.turns(turns)?),
            None => self.exchanges(&mut draft)?,
        };
        let Some(parts) = parts else {
            return self.finish_request(draft, session, None).map(drop);
        };
        let session = session.unwrap_or_else(|| own.clone());
        let (mut ids, mut children, mut inherited) = (Vec::new(), Vec::new(), Vec::new());
        for mut part in parts {
            if is_chain {
                part.end_inheritance(&mut inherited, is_turns);
            }
            let continues = ids.last().cloned().flatten().filter(|_| is_chain);
            children.push(["forks", "spawns"].map(|name| part.take_list(name)));
            ids.push(self.finish_request(part, Some(session.clone()), continues)?);
        }
        for (turn, children) in children.into_iter().enumerate() {
            self.branches.add(&ids, turn, children);
        }
        // No other row can name it.
        self.sessions.remove(&own);
        Ok(())
    }

    /// The prompts of a dialogue, each with its reply; `None` for any other row.
    fn exchanges(&mut self, draft: &mut Draft) -> Result<Option<Vec<Draft>>, String> {
        let last = draft.row["messages"].as_array().and_then(|all| all.last());
        let is_whole = last.is_some_and(|last| last["role"] == "assistant");
        let is_whole = is_whole && self.format.name == "messages";
        let turns = draft.take_list(if is_whole { "messages" } else { "turns" });
        let Some(turns) = turns else { return Ok(None) };
        let images = draft.take_list("images").unwrap_or_default();
        draft.join_texts();
        let mut messages = draft.take_list("messages").unwrap_or_default();
        for turn in turns {
            messages.extend(from_turn(turn, &mut draft.dropped)?);
        }
        place_images(&mut messages, images);
        if draft.take("out_tokens").is_some() {
            self.leave_out("lengths (of a whole dialogue, not of a turn)");
        }
        let exchanges = exchanges(messages);
        if exchanges.is_empty() {
            self.leave_out("conversations (without a user's turn)");
        }
        let parts = exchanges.into_iter().map(|(messages, reply)| {
            // Later requests inherit the members of the first.
            let mut part = std::mem::take(draft);
            part.row["messages"] = messages.into();
            part.row["reply"] = reply.map(|reply| vec![reply]).into();
            part
        });
        Ok(Some(parts.collect()))
    }

    /// Turns or bodies without recorded replies. A leading system turn belongs to the next one.
    fn turns(&mut self, turns: Vec<Value>) -> Result<Vec<Draft>, String> {
        let (mut parts, mut open) = (Vec::new(), Vec::new());
        for turn in turns {
            let mut part = Draft::default();
            self.walk(&mut part, "", object(turn)?)?;
            part.join_texts();
            let own = part.take_list("messages");
            if own.is_none() && part.row["body"].is_null() {
                return Err("a turn has neither text nor image".to_owned());
            }
            open.extend(own.into_iter().flatten());
            if open.last().is_none_or(|last: &Value| last["role"] != "system") {
                part.row["messages"] = std::mem::take(&mut open).into();
                parts.push(part);
            }
        }
        Ok(parts)
    }

    /// Completes a request and returns its id, unless it is not sent.
    fn finish_request(
        &mut self,
        mut draft: Draft,
        session: Option<String>,
        continues: Option<String>,
    ) -> Result<Option<String>, ImportError> {
        let (start, end) = draft.take_times();
        let [parent, trace] = ["parent", "trace"].map(|name| draft.take_text(name));
        let status = draft.take("status").and_then(|status| status.as_u64());
        draft.row["continues"] = continues.into();
        let request = draft.finish(self.format);
        draft.dropped.iter().for_each(|name| self.leave_out(name));
        let Some(mut request) = request? else { return Ok(None) };
        if request.id.is_empty() || !self.ids.insert(request.id.clone()) {
            request.id = format!("#{}", self.summary.requests + self.held.len() as u64 + 1);
        }
        let session = session.or_else(|| {
            let root = self.roots.get(&parent?).unwrap_or(&request.id).clone();
            self.roots.insert(request.id.clone(), root.clone());
            Some(root)
        });
        let id = request.id.clone();
        self.summary.failed += u64::from(status.is_some_and(|status| status >= 400));
        let timed = Timed { request, session, trace, start, end };
        if self.format.sort {
            self.held.push(timed);
        } else {
            self.write(timed)?;
        }
        Ok(Some(id))
    }

    /// Emits the requests that waited to be sorted, and completes the counts.
    pub(crate) fn finish(mut self) -> Result<Summary, ImportError> {
        self.add_unanswered()?;
        let (held, mut last) = (std::mem::take(&mut self.held), f64::NEG_INFINITY);
        // A request without a time keeps its place after the one before it.
        let timed = held.into_iter().map(|timed| {
            last = timed.start.unwrap_or(last);
            (last, timed)
        });
        let mut held: Vec<_> = timed.collect();
        held.sort_by(|(one, _), (other, _)| one.total_cmp(other));
        let mut held: Vec<_> = held.into_iter().map(|(_, timed)| timed).collect();
        self.branches.join(&mut held);
        self.write_in_order(held)?;
        let span_ms = self.zero.map(|_| self.span.1 - self.span.0);
        Ok(Summary { span_ms, ..self.summary })
    }

    /// Emits requests after those that they name.
    fn write_in_order(&mut self, mut held: Vec<Timed>) -> Result<(), ImportError> {
        let mut written = HashSet::new();
        while !held.is_empty() {
            let before = held.len();
            for timed in std::mem::take(&mut held) {
                held.extend(self.write_if_due(timed, &mut written)?);
            }
            if held.len() == before {
                let id = &held[0].request.id;
                return Err(format!("request {id} waits for itself or for an unknown one").into());
            }
        }
        Ok(())
    }

    /// Emits a request if those that it names were emitted; gives it back otherwise.
    fn write_if_due(
        &mut self,
        timed: Timed,
        written: &mut HashSet<String>,
    ) -> Result<Option<Timed>, ImportError> {
        if !timed.request.parents().all(|id| written.contains(id)) {
            return Ok(Some(timed));
        }
        written.insert(timed.request.id.clone());
        self.write(timed)?;
        Ok(None)
    }

    /// Puts a request into its session, and emits it.
    fn write(&mut self, timed: Timed) -> Result<(), ImportError> {
        let Timed { mut request, session: mut name, trace, start, end } = timed;
        if self.format.history {
            name = self.history.connect(&mut request, name, trace);
        }
        let start = start.map(|start| self.since_zero(start));
        let end = end.and_then(|end| Some(microseconds(end - self.zero?)));
        request.session.clone_from(&name);
        if let Some(known) = name.as_ref().and_then(|name| self.sessions.get(name)) {
            known.place(&mut request, start);
        } else {
            request.session_at_ms = start;
        }
        let session = self.count(&request, name);
        session.start = session.start.or(start);
        session.recent.truncate(RECENT - 1);
        let after = request.parents().map(str::to_owned).collect();
        session.recent.push_front(Recent { id: request.id.clone(), end, after });
        (self.emit)(Line::Request(Box::new(request)))
    }

    /// Time since the first request of the file; negative for an earlier one.
    fn since_zero(&mut self, start: f64) -> f64 {
        self.span = (self.span.0.min(start), self.span.1.max(start));
        microseconds(start - *self.zero.get_or_insert(start))
    }

    /// Counts a request, and returns its session.
    fn count(&mut self, request: &Request, name: Option<String>) -> &mut Session {
        let Summary { sessions, requests, most_turns, in_tokens, out_tokens, .. } =
            &mut self.summary;
        let session = self.sessions.entry(name.unwrap_or_default()).or_default();
        if session.requests == 0 || request.session.is_none() {
            *session = Session::default();
            *sessions += 1;
        }
        *requests += 1;
        session.requests += 1;
        *most_turns = session.requests.max(*most_turns);
        in_tokens.add(request.in_tokens);
        out_tokens.add(request.out_tokens);
        session
    }

    /// Adds a line of a canonical file.
    fn add_canonical(&mut self, row: Value) -> Result<(), ImportError> {
        if row.get("plimsoll_traffic").is_some() {
            let header: Header = serde_json::from_value(row).map_err(|error| error.to_string())?;
            if header.plimsoll_traffic != VERSION {
                let version = header.plimsoll_traffic;
                return Err(
                    format!("is of version {version}; this Plimsoll reads {VERSION}").into()
                );
            }
            return (self.emit)(Line::Header(header));
        }
        let request: Request = serde_json::from_value(row).map_err(|error| error.to_string())?;
        if let Some(unknown) = request.parents().find(|id| !self.ids.contains(*id)) {
            return Err(format!("names `{unknown}`, which is not the id of an earlier line").into());
        }
        if request.id.is_empty() || !self.ids.insert(request.id.clone()) {
            return Err(format!("the id `{}` is empty or not unique", request.id).into());
        }
        let session = self.count(&request, request.session.clone());
        let start = *session.start.get_or_insert_with(|| request.session_at_ms.unwrap_or(0.0));
        if let Some(at) = request.at_ms.or_else(|| request.session_at_ms.map(|_| 0.0)) {
            self.since_zero(start + at);
        }
        (self.emit)(Line::Request(Box::new(request)))
    }
}

impl Session {
    /// Orders a request after those that had ended before it started, unless the format does.
    fn place(&self, request: &mut Request, start: Option<f64>) {
        request.at_ms = start.and_then(|at| Some(microseconds((at - self.start?).max(0.0))));
        if let Some(after) = &mut request.after {
            let wait_ms = request.wait_ms.take();
            for one in after {
                one.wait_ms = one.wait_ms.or(wait_ms);
            }
            return;
        }
        let ended = self.ended_before(start);
        let wait = ended.first().and_then(|last| Some(microseconds(start? - last.end?)));
        let own = request.continues.as_ref();
        if own.is_some_and(|own| start.is_none() || ended.iter().all(|last| last.id == *own)) {
            request.wait_ms = request.wait_ms.or(wait);
        } else if !ended.is_empty() {
            let mut wait_ms = request.wait_ms.take().or(wait);
            let others = ended.iter().filter(|last| Some(&last.id) != own);
            let others = others.map(|last| (last.id.clone(), wait_ms.take()));
            let own = own.map(|own| (own.clone(), None));
            let after = own.into_iter().chain(others);
            let after = after.map(|(id, wait_ms)| After { id, wait_ms, what: None });
            request.after = Some(after.collect());
        }
    }

    /// The requests that ended before this time, the latest first, without those that one of them
    /// waited for. Without times, the last request.
    fn ended_before(&self, start: Option<f64>) -> Vec<&Recent> {
        let last = self.recent.front();
        let (Some(start), Some(_)) = (start, last.and_then(|last| last.end)) else {
            return last.into_iter().collect();
        };
        let ends = self.recent.iter().filter_map(|recent| Some((recent.end?, recent)));
        let mut ended: Vec<_> = ends.filter(|(end, _)| *end <= start).collect();
        ended.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        let mut covered = HashSet::new();
        let mut found = Vec::new();
        for (_, recent) in ended {
            if !covered.contains(&recent.id) {
                found.push(recent);
            }
            covered.extend(&recent.after);
        }
        found
    }
}

/// Rounds milliseconds to the precision of a date in `f64`.
fn microseconds(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
