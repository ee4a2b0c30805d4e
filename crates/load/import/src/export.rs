//! Writes requests in the form of another tool, by the table of its format, and counts every member
//! that it has no place for.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::Path;

use plimsoll_protocol::Dialect;
use serde_json::{Map, Value, json};

use crate::error::ImportError;
use crate::format::{self, Format, Rule};
use crate::record::{Line, Request};
use crate::summary::Summary;
use crate::value::{is_empty, text};
use crate::{Options, read};

/// Names of the formats of other tools that can be written.
pub fn exports() -> impl Iterator<Item = &'static str> {
    format::all().iter().filter_map(|format| Some(&**format.export.first()?))
}

/// Writes the requests of a file in the form of another tool. `unused` in the summary also names
/// the members that were not written.
///
/// # Errors
/// The same as [`import`](crate::import).
pub fn export(path: &Path, name: &str, output: &mut dyn Write) -> Result<Summary, ImportError> {
    let format = format::all().iter().find(|one| one.export.first().is_some_and(|one| one == name));
    let format = format.ok_or_else(|| format!("unknown format `{name}`"))?;
    let file = plimsoll_input::open(path).map_err(|error| ImportError::unreadable(path, &error))?;
    let mut export = Export::new(format);
    let mut summary = read(path, file, &Options::default(), &mut |line| {
        if let Line::Request(request) = line {
            export.add(&request);
        }
        Ok(())
    })?;
    if export.lines.is_empty() {
        return Err(ImportError::of(path, &format!("has no request that {name} can hold")));
    }
    for line in
        Some(&format.header).filter(|line| line.is_object()).into_iter().chain(&export.lines)
    {
        serde_json::to_writer(&mut *output, line).map_err(io::Error::from)?;
        output.write_all(b"\n")?;
    }
    output.flush()?;
    for (member, count) in export.unwritten {
        *summary.unused.entry(member).or_default() += count;
    }
    Ok(summary)
}

struct Export {
    format: &'static Format,
    lines: Vec<Value>,
    known: HashMap<String, Known>,
    /// Start of each session.
    starts: HashMap<String, f64>,
    unwritten: BTreeMap<String, u64>,
}

/// A written request with all that it inherited, and its place: the line, and the turn in it.
struct Known {
    whole: Request,
    line: usize,
    turn: usize,
}

impl Export {
    fn new(format: &'static Format) -> Self {
        let (known, starts) = (HashMap::new(), HashMap::new());
        Self { format, lines: Vec::new(), known, starts, unwritten: BTreeMap::new() }
    }

    fn leave_out(&mut self, member: &str) {
        *self.unwritten.entry(format!("{member} (not written)")).or_default() += 1;
    }

    fn add(&mut self, request: &Request) {
        let whole = self.inherited(request);
        let is_graph = self.format.name == "aiperf-multi-turn";
        let mut left = json!(whole);
        if let Some(lacks) = self.format.lacks_for_export(&left) {
            return self.leave_out(&format!("requests without {lacks}"));
        }
        if is_graph {
            left["messages"] = json!(request.messages);
        }
        let mut row = Map::new();
        for member in self.format.export.iter().skip(1) {
            if let Rule::Use(conversion, target) = self.format.rule(member)
                && let value = self.take(conversion, target, &whole, &mut left)
                && !is_empty(&value)
            {
                row.insert(member.clone(), value);
            }
        }
        let (line, turn) = if is_graph {
            let _ = ["id", "session", "agent", "continues", "after", "dialect"]
                .map(|name| left[name].take());
            self.add_turn(&whole, row)
        } else {
            self.lines.push(row.into());
            (self.lines.len() - 1, 0)
        };
        let body = left["body"].take();
        for (prefix, members) in [("", &left), ("body.", &body)] {
            let members = members.as_object().into_iter().flatten();
            for (name, _) in members.filter(|(_, value)| !is_empty(value)) {
                self.leave_out(&format!("{prefix}{name}"));
            }
        }
        self.known.insert(whole.id.clone(), Known { whole, line, turn });
    }

    /// The request with its whole prompt and all members that it inherits.
    fn inherited(&self, request: &Request) -> Request {
        let mut whole = request.clone();
        let before = request.continues.as_ref().and_then(|id| self.known.get(id));
        if let Some(Known { whole: before, .. }) = before {
            whole.dialect = whole.dialect.or(before.dialect);
            whole.model = whole.model.or_else(|| before.model.clone());
            let lists = [&before.messages, &before.reply, &request.messages];
            let messages = lists.into_iter().flatten().flatten().cloned().collect::<Vec<_>>();
            whole.messages = Some(messages).filter(|messages| !messages.is_empty());
            for (name, value) in &before.body {
                whole.body.entry(name).or_insert_with(|| value.clone());
            }
            if whole.headers.is_empty() {
                whole.headers.clone_from(&before.headers);
            }
        }
        whole.body.retain(|_, value| !value.is_null());
        whole
    }

    /// The inverse of a conversion: takes the value of a member of the other format.
    fn take(&mut self, conversion: &str, target: &str, whole: &Request, left: &mut Value) -> Value {
        let has_content = whole.messages.is_some() || !whole.body.is_empty();
        match (conversion, target) {
            ("body", _) if has_content => {
                let mut body = left["body"].take();
                body["model"] = left["model"].take();
                let name = match whole.dialect {
                    Some(Dialect::OpenaiResponses | Dialect::OpenaiEmbeddings) => "input",
                    _ => "messages",
                };
                if whole.messages.is_some() {
                    body[name] = left["messages"].take();
                }
                known(body)
            }
            ("params", _) => known(left["body"].take()),
            ("after", _) => self.dependencies(whole, left),
            // Lengths are for prompts of which nothing else is known.
            ("count", "in_tokens") | ("blocks", _)
                if has_content && self.format.name == "mooncake" =>
            {
                Value::Null
            }
            ("blocks", size) => {
                let blocks = whole.blocks.as_ref().filter(|blocks| blocks.size.to_string() == size);
                let blocks = blocks.map(|_| left["blocks"].take());
                blocks.map_or(Value::Null, |mut blocks| blocks["ids"].take())
            }
            ("ms", "at") => {
                let start = left["session_at_ms"].take().as_f64();
                let session = whole.session.clone().unwrap_or_default();
                let at = left["at_ms"].take().as_f64();
                let known = *self.starts.entry(session).or_insert_with(|| start.unwrap_or(0.0));
                (start.or(at).is_some()).then(|| start.unwrap_or(known) + at.unwrap_or(0.0)).into()
            }
            ("ms", _) => {
                let waits = whole.after.iter().flatten().filter_map(|after| after.wait_ms);
                let last = waits.reduce(f64::max);
                left["wait_ms"].take().as_f64().or(last).into()
            }
            ("text", "session") if left["session"].take().is_null() => json!(whole.id),
            ("text", "session") => json!(whole.session),
            ("text", "agent") if left["agent"].take().is_null() => "main".into(),
            ("text", "agent") => json!(whole.agent),
            (_, path) => path.split('.').fold(left, |place, name| &mut place[name]).take(),
        }
    }

    /// The requests that one waits for, in the form of Dynamo.
    fn dependencies(&self, whole: &Request, left: &mut Value) -> Value {
        let _ = ["after", "continues"].map(|name| left[name].take());
        let own = whole.continues.iter().map(|id| (id, left["wait_ms"].take()));
        let after = whole.after.iter().flatten().map(|after| (&after.id, json!(after.wait_ms)));
        let all: Vec<_> = if whole.after.is_some() { after.collect() } else { own.collect() };
        // Requests that could not be written cannot be waited for.
        let all: Vec<_> = all.into_iter().filter(|(id, _)| self.known.contains_key(*id)).collect();
        let agent = |id: &String| self.known.get(id).map(|known| &known.whole.agent);
        let is_first =
            whole.continues.is_none() && !all.iter().any(|(id, _)| agent(id) == Some(&whole.agent));
        let dependencies = all.into_iter().map(|(id, wait)| {
            let relation = match agent(id) {
                _ if is_first => "spawn",
                Some(agent) if *agent == whole.agent => "sequence",
                _ => "join",
            };
            let delay_ms = wait.as_f64().unwrap_or(0.0);
            json!({ "request_id": id, "trigger": "completion", "delay_ms": delay_ms,
                "relation": relation })
        });
        dependencies.collect()
    }

    /// Adds a turn to the conversation that it continues, or begins another one: a fork of the
    /// request that it continues, or a conversation that the first request in `after` spawns.
    fn add_turn(&mut self, whole: &Request, row: Map<String, Value>) -> (usize, usize) {
        let waits = whole.after.iter().flatten().map(|after| &after.id);
        let parent = whole.continues.as_ref().or_else(|| waits.clone().next());
        let place = parent.and_then(|id| Some((self.known.get(id)?.line, self.known[id].turn)));
        if let Some((line, turn)) = place
            && whole.continues.is_some()
            && self.lines[line]["turns"].get(turn + 1).is_none()
        {
            let spawned = self.lines[line]["turns"][turn]["spawns"].clone();
            let spawned: Vec<_> = spawned.as_array().into_iter().flatten().map(text).collect();
            let names = waits.filter(|id| Some(*id) != parent);
            let lines = names
                .filter_map(|id| Some(text(&self.lines[self.known.get(id)?.line]["session_id"])));
            let others = lines.filter(|name| !spawned.contains(name)).count();
            (0..others).for_each(|_| self.leave_out("after, in another branch"));
            if let Some(turns) = self.lines[line]["turns"].as_array_mut() {
                turns.push(row.into());
            }
            return (line, turn + 1);
        }
        let session = whole.session.as_ref().unwrap_or(&whole.id);
        let mut name = match &whole.agent {
            Some(agent) => format!("{session}/{agent}"),
            None => session.clone(),
        };
        if self.lines.iter().any(|line| line["session_id"] == name) {
            name = format!("{session}/{}", whole.id);
        }
        if let Some((line, turn)) = place {
            // The conversation that is forked goes on, too.
            let (kind, child) = match whole.continues {
                Some(_) => ("forks", json!({ "child": name, "background": true })),
                None => ("spawns", json!(name)),
            };
            let children = &mut self.lines[line]["turns"][turn][kind];
            let known = children.as_array().cloned().unwrap_or_default();
            *children = known.into_iter().chain([child]).collect();
        }
        self.lines.push(json!({ "session_id": name, "turns": [row] }));
        (self.lines.len() - 1, 0)
    }
}

/// Without the members that were taken.
fn known(mut members: Value) -> Value {
    members
        .as_object_mut()
        .into_iter()
        .for_each(|members| members.retain(|_, value| !value.is_null()));
    members
}
