//! Rows to requests, by the table of the format: sessions, times and counts.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use crate::ImportError;
use crate::draft::Draft;
use crate::format::{Choice, Format, OWN, Rule};
use crate::messages::{exchanges, from_turn, place_images};
use crate::record::{After, Header, Line, Request, VERSION};
use crate::summary::Summary;
use crate::value::{is_empty, object};

/// Maximum number of broken rows to describe.
const NAMED: usize = 3;
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
    /// Requests of a format that does not sort them by time.
    held: Vec<Timed>,
}

/// The last request of a session.
#[derive(Debug, Default)]
struct Session {
    start: Option<f64>,
    last_id: String,
    last_end: Option<f64>,
    requests: u64,
}

/// A request with its session, start and end.
struct Timed {
    request: Request,
    session: Option<String>,
    start: Option<f64>,
    end: Option<f64>,
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
        for row in self.format.rows_of(value) {
            let mut draft = Draft::default();
            if row.is_null() {
                self.leave_out("lines (not an HTTP request)");
            } else if let Some(kind) = self.format.other_kind(&row) {
                self.leave_out(&kind);
            } else if row.is_array() {
                draft.put("turns", "turns", row)?;
                self.add_draft(draft)?;
            } else {
                self.walk(&mut draft, "", object(row)?)?;
                self.add_draft(draft)?;
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
                (Rule::Descend, Value::Object(inner)) => {
                    self.walk(draft, &format!("{path}."), inner)?;
                }
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
        let [session, trace] = ["session", "trace"].map(|name| draft.take_text(name));
        let session = session.or(trace);
        let [bodies, turns] = ["bodies", "each"].map(|name| draft.take_list(name));
        let is_chain = bodies.is_none();
        let parts = match bodies.or(turns) {
            Some(turns) => Some(self.turns(turns)?),
            None => self.exchanges(&mut draft)?,
        };
        let Some(parts) = parts else {
            return self.finish_request(draft, session, None).map(drop);
        };
        let session = session.unwrap_or_else(|| own.clone());
        let mut before = None;
        for part in parts {
            let continues = before.take().filter(|_| is_chain);
            before = self.finish_request(part, Some(session.clone()), continues)?;
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
        let parent = draft.take_text("parent");
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
        let timed = Timed { request, session, start, end };
        if self.format.sort {
            self.held.push(timed);
        } else {
            self.write(timed)?;
        }
        Ok(Some(id))
    }

    /// Emits the requests that waited to be sorted, and completes the counts.
    pub(crate) fn finish(mut self) -> Result<Summary, ImportError> {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by(|one, other| one.start.partial_cmp(&other.start).unwrap_or(Ordering::Equal));
        held.into_iter().try_for_each(|timed| self.write(timed))?;
        let span_ms = self.zero.map(|_| self.span.1 - self.span.0);
        Ok(Summary { span_ms, ..self.summary })
    }

    /// Puts a request into its session, and emits it.
    fn write(&mut self, timed: Timed) -> Result<(), ImportError> {
        let Timed { mut request, session: name, start, end } = timed;
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
        (session.last_id, session.last_end) = (request.id.clone(), end);
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
    /// Orders a request after the last one, unless both were in flight together.
    fn place(&self, request: &mut Request, start: Option<f64>) {
        request.at_ms = start.and_then(|at| Some(microseconds((at - self.start?).max(0.0))));
        let wait = start.and_then(|at| Some(at - self.last_end?));
        if wait.is_some_and(|wait| wait < 0.0) {
            return;
        }
        request.wait_ms = request.wait_ms.or_else(|| wait.map(microseconds));
        if request.continues.is_none() {
            let (id, wait_ms) = (self.last_id.clone(), request.wait_ms.take());
            request.after = Some(vec![After { id, wait_ms, what: None }]);
        }
    }
}

/// Rounds milliseconds to the precision of a date in `f64`.
fn microseconds(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
