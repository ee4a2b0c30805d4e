//! Rows to requests, by the table of the format; sessions, times and counts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::draft::Draft;
use crate::format::{Choice, Format, OWN, Rule, find, has_version};
use crate::lines::Place;
use crate::messages::{bytes_of, from_turn, place_images};
use crate::record::{After, Dialect, Header, Line, Origin, Request, VERSION};
use crate::summary::Summary;
use crate::value::{is_empty, text};

/// The most broken rows that are named.
const NAMED: usize = 3;
/// The most names of members that are kept apart.
const NAMES: usize = 200;
/// Times above are dates, in milliseconds since 1970.
const DATES_FROM: f64 = 1e11;

/// Converts rows and writes requests.
pub(crate) struct Converter<'o> {
    format: &'static Format,
    file: String,
    emit: &'o mut dyn FnMut(Line) -> io::Result<()>,
    pub(crate) failed: Option<io::Error>,
    summary: Summary,
    zero: Option<f64>,
    first: f64,
    last: f64,
    sessions: HashMap<String, Session>,
    ids: HashSet<String>,
    /// The root of each request, in formats that name parents.
    trees: HashMap<String, String>,
    /// Rows that wait to be sorted, with their times.
    held: BTreeMap<(u64, u64), (Place, Value)>,
}

/// What is known of a session.
#[derive(Clone, Default)]
struct Session {
    start: Option<f64>,
    last_id: String,
    last_end: Option<f64>,
    requests: u64,
}

impl Session {
    /// Puts a request behind the last one, unless both were in flight together.
    fn place(&self, request: &mut Request, start: Option<f64>) {
        request.at_ms = start.and_then(|at| Some(microseconds((at - self.start?).max(0.0))));
        let wait = start.and_then(|at| Some(at - self.last_end?));
        if wait.is_some_and(|wait| wait < 0.0) {
            return;
        }
        request.wait_ms = request.wait_ms.or_else(|| wait.map(microseconds));
        if request.continues.is_none() {
            request.after = Some(vec![After::Id(self.last_id.clone())]);
        }
    }
}

impl<'o> Converter<'o> {
    pub(crate) fn new(
        choice: &Choice,
        file: String,
        emit: &'o mut dyn FnMut(Line) -> io::Result<()>,
    ) -> Self {
        let summary = Summary {
            format: format!("{} ({})", choice.format.name, choice.format.title),
            why: choice.why.clone(),
            also: choice.also.clone(),
            ..Summary::default()
        };
        Self {
            format: choice.format,
            file,
            emit,
            failed: None,
            summary,
            zero: None,
            first: f64::INFINITY,
            last: f64::NEG_INFINITY,
            sessions: HashMap::new(),
            ids: HashSet::new(),
            trees: HashMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// Converts a value of the file, which may hold several rows.
    pub(crate) fn add(&mut self, place: Place, value: Value) -> Result<(), String> {
        for row in self.format.rows_of(value) {
            let is_request = self.is_request(&row);
            if is_request && self.format.sort {
                self.hold(place, row)?;
            } else if is_request {
                self.add_row(row)?;
            }
        }
        Ok(())
    }

    /// Whether the row is of a kind that is sent; others are counted.
    fn is_request(&mut self, row: &Value) -> bool {
        let [member, kinds @ ..] = self.format.only.as_slice() else { return true };
        let kind = find(row, member).map(text).unwrap_or_default();
        let is_request = kinds.contains(&kind);
        if !is_request {
            self.leave_out(&format!("rows whose {member} is `{kind}`"), "no requests");
        }
        is_request
    }

    fn hold(&mut self, place: Place, row: Value) -> Result<(), String> {
        let mut draft = Draft::default();
        let members = self.format.members_for("at");
        for (path, unit, time) in
            members.filter_map(|(path, unit)| Some((path, unit, find(&row, path)?)))
        {
            draft.put("at", unit, time.clone()).map_err(|error| format!("`{path}` {error}"))?;
        }
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a date")]
        let key = (draft.start.unwrap_or(0.0) * 1e3) as u64;
        self.held.insert((key, self.held.len() as u64), (place, row));
        Ok(())
    }

    pub(crate) fn skip(&mut self, problem: String) {
        self.summary.skipped += 1;
        if self.summary.skipped_first.len() < NAMED {
            self.summary.skipped_first.push(problem);
        }
    }

    /// Converts the rows that wait, and returns the counts.
    pub(crate) fn finish(&mut self, skip_broken: bool) -> Result<Summary, String> {
        for (place, row) in std::mem::take(&mut self.held).into_values() {
            match self.add_row(row) {
                Err(problem) if skip_broken => self.skip(format!("{place}: {problem}")),
                Err(problem) => return Err(format!("{place}: {problem}; or --skip-broken")),
                Ok(()) => {}
            }
        }
        self.summary.span_ms = self.zero.map(|_| self.last - self.first);
        let of_sessions = self.sessions.values().filter(|session| session.requests > 0);
        self.summary.sessions += of_sessions.count() as u64;
        Ok(self.summary.clone())
    }

    fn add_row(&mut self, row: Value) -> Result<(), String> {
        if row.is_null() {
            self.leave_out("lines", "no HTTP request");
            return Ok(());
        }
        if self.format.name == OWN {
            return self.add_canonical(row);
        }
        let mut draft = Draft::default();
        if row.is_array() {
            draft.turns = Some(row.as_array().cloned().unwrap_or_default());
            return self.add_dialogue(draft);
        }
        let row = match row {
            Value::Object(_) => row,
            other => return Err(format!("is {other:.60}, not an object")),
        };
        self.walk(&mut draft, "", row)?;
        if draft.turns.is_some() {
            return self.add_dialogue(draft);
        }
        if let Some(rows) = draft.each.take() {
            return self.add_each(draft, rows);
        }
        let messages = draft.request.messages.as_deref().unwrap_or_default();
        let whole = self.format.name == "messages";
        if whole && messages.last().is_some_and(|last| last["role"] == "assistant") {
            draft.turns = draft.request.messages.take();
            return self.add_dialogue(draft);
        }
        self.add_draft(draft)
    }

    /// Gives every member of an object to its target, or counts it.
    fn walk(&mut self, draft: &mut Draft, prefix: &str, row: Value) -> Result<(), String> {
        let Value::Object(members) = row else { return Ok(()) };
        for (name, value) in members {
            let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
            match self.format.rule(&path) {
                Rule::Use { target: "turns", argument } if value.is_array() => {
                    draft.put("turns", argument, value)?;
                }
                _ if is_empty(&value) => {}
                Rule::Use { target: "used", .. } => {}
                Rule::Use { target: "whole", .. } => {
                    draft.put_request([(name, value)].into_iter().collect());
                }
                Rule::Use { target, argument } => {
                    draft.put(target, argument, value).map_err(|why| format!("`{path}` {why}"))?;
                }
                Rule::LeaveOut(reason) => self.leave_out(&path, reason),
                Rule::Descend if value.is_object() => self.walk(draft, &path, value)?,
                Rule::Descend | Rule::Unknown => self.leave_out(&path, ""),
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, member: &str, reason: &str) {
        let name = match reason {
            "" => member.to_owned(),
            _ => format!("{member} ({reason})"),
        };
        let unused = &mut self.summary.unused;
        let full = unused.len() >= NAMES && !unused.contains_key(&name);
        let name = if full { "other members".to_owned() } else { name };
        *unused.entry(name).or_default() += 1;
    }

    /// A request on its own, or the next of its session with its whole prompt.
    fn add_draft(&mut self, mut draft: Draft) -> Result<(), String> {
        let complete = draft.complete(self.format.dialect);
        for dropped in std::mem::take(&mut draft.dropped) {
            self.leave_out(&dropped, "");
        }
        if let Err(why) = complete {
            self.leave_out("requests", &why);
            return Ok(());
        }
        self.cut_what_was_truncated(&mut draft.request);
        let request = &draft.request;
        let sends = request.messages.is_some() || !request.body.is_empty();
        if !sends && request.in_tokens.is_none() && request.path.is_none() {
            return Err("has neither messages, a body, a URL nor a length".to_owned());
        }
        if let Some(host) = draft.host.take() {
            *self.summary.hosts.entry(host).or_default() += 1;
        }
        if self.format.members_for("parent").next().is_some() {
            let own = &draft.request.id;
            let known = draft.parent.as_ref().and_then(|parent| self.trees.get(parent));
            let root = known.unwrap_or(own).clone();
            self.trees.insert(own.clone(), root.clone());
            draft.session = Some(root);
        }
        let name = draft.session.take().or_else(|| draft.trace.take());
        let bytes = request.messages.as_ref().map(|all| all.iter().map(bytes_of).sum());
        self.write(draft, name, bytes);
        Ok(())
    }

    /// Logs cut long texts: such a prompt cannot be sent as it was.
    fn cut_what_was_truncated(&mut self, request: &mut Request) {
        const MARKS: [&str; 4] =
            ["litellm_truncated", "REDACTED_BY_LITELM", "[image omitted]", "__REDACTED__"];
        if !matches!(self.format.name, "litellm" | "langfuse" | "otel" | "helicone") {
            return;
        }
        let shown = json!([request.messages, request.body]).to_string();
        if MARKS.iter().any(|mark| shown.contains(mark)) {
            request.messages = None;
            request.body.clear();
            self.leave_out("prompts", "truncated by the log: only their lengths are kept");
        }
    }

    /// A dialogue: each run of messages up to a reply is a request that continues the one before.
    fn add_dialogue(&mut self, mut draft: Draft) -> Result<(), String> {
        draft.complete(self.format.dialect)?;
        let turns = draft.turns.take().unwrap_or_default();
        let mut messages = Vec::new();
        for turn in &turns {
            messages.extend(from_turn(turn, &mut draft.dropped)?);
        }
        for dropped in std::mem::take(&mut draft.dropped) {
            self.leave_out(&dropped, "");
        }
        place_images(&mut messages, draft.take_images());
        draft.request.dialect.get_or_insert(Dialect::OpenaiChat);
        let lengths = [draft.request.in_tokens.take(), draft.request.out_tokens.take()];
        if lengths.iter().any(Option::is_some) {
            self.leave_out("lengths", "of a whole dialogue, not of a turn");
        }
        let own = format!("#{}", self.summary.requests + 1);
        let name = draft.session.take().unwrap_or_else(|| own.clone());
        let (mut open, mut asked, mut bytes) = (Vec::new(), false, 0);
        let mut before: Option<String> = None;
        let mut all = messages.into_iter().peekable();
        while let Some(message) = all.next() {
            bytes += bytes_of(&message);
            let is_reply = message["role"] == "assistant";
            asked |= matches!(message["role"].as_str(), Some("user" | "tool"));
            let is_last = all.peek().is_none();
            if is_reply && asked {
                bytes -= bytes_of(&message);
                draft.request.reply = Some(vec![message]);
            } else {
                open.push(message);
            }
            if !asked || !is_reply && !is_last {
                continue;
            }
            let mut next = draft.clone();
            next.request.messages = Some(std::mem::take(&mut open));
            next.request.continues = before.take();
            let reply = draft.request.reply.take();
            if next.request.continues.is_some() {
                next.request.body.clear();
                (next.request.model, next.request.dialect) = (None, None);
            }
            before = Some(self.write(next, Some(name.clone()), Some(bytes)));
            bytes += reply.iter().flatten().map(bytes_of).sum::<usize>();
            asked = false;
            (draft.start, draft.end, draft.request.recorded) = (None, None, None);
        }
        self.close(&own);
        if before.is_none() {
            self.leave_out("conversations", "without a user's turn");
        } else if !open.is_empty() {
            self.leave_out("messages after the last reply", "without a user's turn");
        }
        Ok(())
    }

    /// Turns without recorded replies, or bodies of a session in order.
    fn add_each(&mut self, outer: Draft, rows: Vec<Value>) -> Result<(), String> {
        let own = format!("#{}", self.summary.requests + 1);
        let name = outer.session.unwrap_or_else(|| own.clone());
        let (mut before, mut bytes, mut system) = (None, 0, Vec::new());
        for row in rows {
            let mut draft = Draft::default();
            if self.format.members_for("bodies").next().is_some() {
                draft.put("body", "", row)?;
                draft.session = Some(name.clone());
                self.add_draft(draft)?;
                continue;
            }
            self.walk(&mut draft, "", row)?;
            draft.complete(self.format.dialect)?;
            let messages =
                draft.request.messages.take().ok_or("a turn has neither text nor image")?;
            bytes += messages.iter().map(bytes_of).sum::<usize>();
            system.extend(messages);
            if draft.role == "system" && before.is_none() {
                continue;
            }
            draft.request.messages = Some(std::mem::take(&mut system));
            draft.request.continues = before.take();
            if draft.request.continues.is_some() {
                draft.request.dialect = None;
            }
            before = Some(self.write(draft, Some(name.clone()), Some(bytes)));
        }
        self.close(&own);
        Ok(())
    }

    /// Forgets a session that no other row can name.
    fn close(&mut self, own: &str) {
        self.summary.sessions += u64::from(self.sessions.remove(own).is_some());
    }

    /// Completes session, times and id; counts and writes the request. Returns its id.
    fn write(&mut self, draft: Draft, name: Option<String>, bytes: Option<usize>) -> String {
        let Draft { mut request, start, end, .. } = draft;
        let number = self.summary.requests + 1;
        if request.id.is_empty() || self.ids.contains(&request.id) {
            request.id = format!("#{number}");
        } else {
            self.ids.insert(request.id.clone());
        }
        let start = start.map(|start| self.since_zero(start));
        let end = end.and_then(|end| Some(microseconds(end - self.zero?)));
        let mut session = name.as_ref().and_then(|name| self.sessions.remove(name));
        if let Some(known) = &session {
            known.place(&mut request, start);
        } else {
            request.session_at_ms = start;
        }
        request.session.clone_from(&name);
        if let Some(name) = name {
            let known = session.get_or_insert_default();
            known.start = known.start.or(start);
            known.last_id.clone_from(&request.id);
            (known.last_end, known.requests) = (end, known.requests + 1);
            self.summary.most_turns = self.summary.most_turns.max(known.requests);
            self.sessions.extend(session.map(|known| (name, known)));
        } else {
            self.summary.sessions += 1;
            self.summary.most_turns = self.summary.most_turns.max(1);
        }
        self.count(&request, bytes);
        if number == 1 {
            self.write_header();
        }
        let id = request.id.clone();
        self.write_line(Line::Request(Box::new(request)));
        id
    }

    /// Time since the first request of the file; negative for one that the file has later.
    fn since_zero(&mut self, start: f64) -> f64 {
        let zero = *self.zero.get_or_insert(start);
        self.first = self.first.min(start);
        self.last = self.last.max(start);
        microseconds(start - zero)
    }

    fn count(&mut self, request: &Request, bytes: Option<usize>) {
        let reply = request.reply.as_ref().map(|reply| reply.iter().map(bytes_of).sum());
        self.summary.requests += 1;
        self.summary.in_tokens.add(request.in_tokens, bytes);
        self.summary.out_tokens.add(request.out_tokens, reply);
        let status = request.recorded.as_ref().and_then(|recorded| recorded.status);
        self.summary.failed += u64::from(status.is_some_and(|status| status >= 400));
    }

    fn write_header(&mut self) {
        let date = self.zero.filter(|zero| *zero > DATES_FROM);
        let date = date.map(|zero| {
            // Half a millisecond, since the text is cut behind milliseconds.
            UNIX_EPOCH + Duration::from_secs_f64((zero.round() + 0.5) / 1e3)
        });
        let header = Header {
            plimsoll_traffic: VERSION,
            source: Origin {
                format: self.format.name.to_owned(),
                files: vec![self.file.clone()],
                tool: format!("plimsoll {}", env!("CARGO_PKG_VERSION")),
            },
            t0: date.map(|date| humantime::format_rfc3339_millis(date).to_string()),
        };
        self.write_line(Line::Header(header));
    }

    fn write_line(&mut self, line: Line) {
        if self.failed.is_none() {
            self.failed = (self.emit)(line).err();
        }
    }

    /// A line of a file that is canonical already.
    fn add_canonical(&mut self, row: Value) -> Result<(), String> {
        if has_version(&row) {
            let header: Header = serde_json::from_value(row).map_err(|error| error.to_string())?;
            if header.plimsoll_traffic != VERSION {
                let version = header.plimsoll_traffic;
                return Err(format!("is of version {version}; this Plimsoll reads {VERSION}"));
            }
            self.write_line(Line::Header(header));
            return Ok(());
        }
        let request: Request = serde_json::from_value(row).map_err(|error| error.to_string())?;
        if let Some(unknown) = request.parents().find(|id| !self.ids.contains(*id)) {
            return Err(format!("names `{unknown}`, which is not the id of an earlier line"));
        }
        if request.id.is_empty() || !self.ids.insert(request.id.clone()) {
            return Err(format!("the id `{}` is empty or not unique", request.id));
        }
        let name = request.session.clone().unwrap_or_else(|| request.id.clone());
        let session = self.sessions.entry(name).or_default();
        session.requests += 1;
        let start = *session.start.get_or_insert_with(|| request.session_at_ms.unwrap_or(0.0));
        self.summary.most_turns = self.summary.most_turns.max(session.requests);
        if let Some(at) = request.at_ms.or_else(|| request.session_at_ms.map(|_| 0.0)) {
            self.since_zero(start + at);
        }
        let bytes = request.messages.as_ref().map(|all| all.iter().map(bytes_of).sum());
        self.count(&request, bytes);
        self.write_line(Line::Request(Box::new(request)));
        Ok(())
    }
}

/// Milliseconds to the digits that a date in `f64` has.
fn microseconds(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}
