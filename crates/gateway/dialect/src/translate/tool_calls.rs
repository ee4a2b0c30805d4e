//! The tool calls of a streamed chat completion, told apart by id.

use crate::wire::openai::ToolDelta;

/// The calls so far, in the order in which they began.
///
/// Servers disagree about `index`: some count, some always send 0, some send none. So a delta
/// belongs to the call with its id; without an id to the last call with its index, or else to the
/// last one. A delta with an id or a name that begins something new begins a call.
#[derive(Debug, Default)]
pub(super) struct ToolCalls(pub(super) Vec<Call>);

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    extent: JsonExtent,
    /// Arguments that are not written yet.
    pub(super) waiting: String,
    pub(super) state: CallState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallState {
    /// Its block has not begun.
    Waiting,
    Open,
    Closed,
}

impl ToolCalls {
    /// The position of the call that a delta begins or continues. Its arguments are added to those
    /// that wait.
    pub(super) fn add(&mut self, delta: &ToolDelta<'_>) -> usize {
        let at = self.find(delta).unwrap_or_else(|| self.begin(delta));
        if let Some(call) = self.0.get_mut(at)
            && let Some(arguments) = delta.function.arguments.as_deref()
        {
            call.extent.feed(arguments);
            call.waiting.push_str(arguments);
        }
        at
    }

    fn find(&self, delta: &ToolDelta<'_>) -> Option<usize> {
        if let Some(id) = delta.id()
            && let Some(at) = self.0.iter().rposition(|call| call.id == id)
        {
            return Some(at);
        }
        let at = match delta.index {
            Some(_) => self.0.iter().rposition(|call| call.index == delta.index),
            None => self.0.len().checked_sub(1),
        }?;
        let call = self.0.get(at)?;
        let Some(name) = delta.name() else { return Some(at) };
        let is_new = delta.id().is_some()
            || call.extent.is_complete
            || (delta.index.is_none() && name != call.name);
        (!is_new).then_some(at)
    }

    fn begin(&mut self, delta: &ToolDelta<'_>) -> usize {
        let at = self.0.len();
        self.0.push(Call {
            index: delta.index,
            id: delta.id().map_or_else(|| missing_id(at), str::to_owned),
            name: delta.name().unwrap_or_default().to_owned(),
            extent: JsonExtent::default(),
            waiting: String::new(),
            state: CallState::Waiting,
        });
        at
    }

    /// The first call that waits.
    pub(super) fn first_waiting(&self) -> Option<usize> {
        self.0.iter().position(|call| call.state == CallState::Waiting)
    }

    /// Whether the arguments of a call are a whole JSON value.
    pub(super) fn is_complete(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|call| call.extent.is_complete)
    }
}

/// The id of a call for which the server gave none.
pub(super) fn missing_id(at: usize) -> String {
    format!("call_{at}")
}

/// How far a JSON object or array is that arrives in pieces.
#[derive(Debug, Default)]
struct JsonExtent {
    depth: usize,
    place: Place,
    is_complete: bool,
}

#[derive(Clone, Copy, Debug, Default)]
enum Place {
    #[default]
    Outside,
    InString,
    AfterBackslash,
}

impl JsonExtent {
    fn feed(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match (self.place, byte) {
                (Place::AfterBackslash, _) | (Place::Outside, b'"') => self.place = Place::InString,
                (Place::InString, b'\\') => self.place = Place::AfterBackslash,
                (Place::InString, b'"') => self.place = Place::Outside,
                (Place::Outside, b'{' | b'[') => self.depth += 1,
                (Place::Outside, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0;
                }
                _ => {}
            }
        }
    }
}
