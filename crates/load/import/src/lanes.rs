//! Conversations of formats in which each row is a message, such as session files of coding agents.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;

use crate::draft::Draft;

/// The open conversations of a file.
#[derive(Default)]
pub(crate) struct Lanes {
    open: BTreeMap<String, Lane>,
    /// The lane and the request of each row with an id.
    rows: HashMap<String, (String, Option<usize>)>,
    /// The session of rows that do not name theirs.
    session: Option<String>,
}

/// The conversation of an agent.
#[derive(Default)]
pub(crate) struct Lane {
    pub(crate) session: Option<String>,
    /// The last request, by its number.
    pub(crate) request: Option<usize>,
    /// The members of the next request.
    pub(crate) open: Draft,
}

/// The id of a row, and the name of its lane.
pub(crate) struct Row {
    id: Option<String>,
    lane: String,
}

impl Lanes {
    /// The id and the lane of a row. A prompt that follows an earlier reply goes back to it.
    pub(crate) fn place(&mut self, draft: &mut Draft, is_reply: bool) -> (Row, &mut Lane) {
        let [id, parent, session, agent] =
            ["row", "parent", "session", "agent"].map(|name| draft.take_text(name));
        let [is_side, is_fresh] =
            ["side", "fresh"].map(|name| draft.take(name) == Some(true.into()));
        self.session = session.or_else(|| self.session.take());
        let before = parent.as_ref().and_then(|parent| self.rows.get(parent)).cloned();
        let main = self.session.clone().unwrap_or_default();
        let name = match (agent, &before) {
            (Some(agent), _) => format!("{main}/{agent}"),
            (None, Some((lane, _))) if is_side => lane.clone(),
            (None, None) if is_side => format!("{main}/{}", id.as_deref().unwrap_or_default()),
            (None, _) => main.clone(),
        };
        let agent = name.strip_prefix(&main).and_then(|rest| rest.strip_prefix('/'));
        draft.row["agent"] = agent.into();
        let lane = self.open.entry(name.clone()).or_default();
        lane.session.clone_from(&self.session);
        let is_root = parent.is_none() || is_fresh;
        let base = if is_root { None } else { before.map_or(lane.request, |(_, request)| request) };
        if id.is_some() && !is_reply && base != lane.request {
            *lane = Lane { request: base, session: lane.session.take(), ..Lane::default() };
        }
        if let Some(id) = &id {
            self.rows.insert(id.clone(), (name.clone(), lane.request));
        }
        (Row { id, lane: name }, lane)
    }

    /// Notes the request that a row completed.
    pub(crate) fn note_request(&mut self, Row { id, lane }: Row, request: usize) {
        if let Some(lane) = self.open.get_mut(&lane) {
            lane.request = Some(request);
        }
        self.rows.extend(id.map(|id| (id, (lane, Some(request)))));
    }

    /// All lanes, with the prompts that got no reply.
    pub(crate) fn take(&mut self) -> impl Iterator<Item = Lane> + use<> {
        std::mem::take(&mut self.open).into_values()
    }
}

/// Adds messages. Blocks of the same role are joined if the API requires alternate roles.
pub(crate) fn append(all: &mut Vec<Value>, messages: Vec<Value>, joins: bool) {
    for message in messages {
        let last = all.last_mut().filter(|last| joins && last["role"] == message["role"]);
        let blocks = last.and_then(|last| last["content"].as_array_mut());
        match blocks.zip(message["content"].as_array()) {
            Some((blocks, more)) => blocks.extend(more.iter().cloned()),
            None => all.push(message),
        }
    }
}
