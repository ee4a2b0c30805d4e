//! Connects prompts that repeat earlier prompts and their replies, by a hash of the messages.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use plimsoll_protocol::Dialect;
use serde_json::Value;

use crate::record::Request;
use crate::value::is_empty;

/// Members of a message that make it the same message; clients drop or add others.
const COMPARED: [&str; 8] =
    ["role", "content", "tool_calls", "tool_call_id", "call_id", "name", "arguments", "output"];

/// The earlier requests, by the hash of their prompt and reply.
#[derive(Default)]
pub(crate) struct History(HashMap<u64, Known>);

struct Known {
    id: String,
    session: Option<String>,
    dialect: Option<Dialect>,
    /// The members of its body, which later requests inherit.
    members: Vec<String>,
}

impl History {
    /// Makes a request continue the one whose prompt and reply it repeats. Returns its session.
    pub(crate) fn connect(
        &mut self,
        request: &mut Request,
        session: Option<String>,
        trace: Option<String>,
    ) -> Option<String> {
        let Some(mut messages) = request.messages.take() else { return session.or(trace) };
        let (mut hash, mut repeated) = (0, None);
        for (length, message) in (1..=messages.len()).zip(&messages) {
            hash = chained(hash, message);
            let known = self.0.get(&hash).filter(|known| {
                let is_same = session.is_none() || session == known.session;
                is_same && known.dialect == request.dialect && length < messages.len()
            });
            repeated = known.map(|known| (length, known)).or(repeated);
        }
        let known = repeated.and_then(|(_, known): (_, &Known)| known.session.clone());
        let session = known.or(session).or(trace).unwrap_or_else(|| request.id.clone());
        if let Some((length, known)) = repeated {
            messages.drain(..length);
            request.continues = Some(known.id.clone());
            for name in &known.members {
                request.body.entry(name).or_insert(Value::Null);
            }
        }
        request.messages = Some(messages);
        let hash = request.reply.iter().flatten().fold(hash, chained);
        if request.reply.is_some() {
            let members = request.body.iter().filter(|(_, value)| !value.is_null());
            let members = members.map(|(name, _)| name.clone()).collect();
            let (id, dialect) = (request.id.clone(), request.dialect);
            self.0.insert(hash, Known { id, session: Some(session.clone()), dialect, members });
        }
        Some(session)
    }
}

fn chained(before: u64, message: &Value) -> u64 {
    let mut hasher = DefaultHasher::new();
    before.hash(&mut hasher);
    for name in COMPARED {
        let value = message.get(name).filter(|value| !is_empty(value));
        value.map(Value::to_string).hash(&mut hasher);
    }
    hasher.finish()
}
