//! Members of JSON-RPC messages that are counted, or needed for the next request.

use super::json_reader::{FromJson, JsonError, Raw, Reader, Str, from_object};

/// A message of a server, or the card of an agent.
#[derive(Debug, Default)]
pub(super) struct Message<'a> {
    pub(super) jsonrpc: Str<'a>,
    pub(super) id: Id<'a>,
    pub(super) method: Str<'a>,
    /// Some servers send both this and `result`, one of them `null`.
    pub(super) error: Option<Member<ErrorObject<'a>>>,
    pub(super) result: Member<Box<Members<'a>>>,
    /// Name of an agent, in its card.
    pub(super) name: Option<Raw<'a>>,
}
from_object!(Message<'a> { jsonrpc, id, method, error, result, name });

/// An id as written, including `null`; `None` without that member.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Id<'a>(pub(super) Option<&'a str>);

/// A member that must be an object.
#[derive(Debug, Default)]
pub(super) enum Member<T> {
    #[default]
    Missing,
    Object(T),
    Other,
}

#[derive(Debug, Default)]
pub(super) struct ErrorObject<'a> {
    pub(super) code: Option<Raw<'a>>,
    pub(super) message: Str<'a>,
}
from_object!(ErrorObject<'a> { code, message });

/// Members of an MCP or A2A result. In A2A 1.0 the task, message or update is a member named after
/// its kind; in 0.3 the result itself is one, and `kind` names it.
#[derive(Debug, Default)]
pub(super) struct Members<'a> {
    pub(super) is_error: Option<Raw<'a>>,
    pub(super) next_cursor: Str<'a>,
    pub(super) protocol_version: Str<'a>,
    task: Option<Box<Self>>,
    message: Option<Box<Self>>,
    status_update: Option<Box<Self>>,
    artifact_update: Option<Box<Self>>,
    kind: Str<'a>,
    id: Str<'a>,
    task_id: Str<'a>,
    context_id: Str<'a>,
    status: Option<Status<'a>>,
    is_final: Option<Raw<'a>>,
    artifact: Option<Artifact<'a>>,
    parts: Option<Vec<Part<'a>>>,
}
from_object!(Members<'a> {
    is_error = "isError",
    next_cursor = "nextCursor",
    protocol_version = "protocolVersion",
    task,
    message,
    status_update = "statusUpdate",
    artifact_update = "artifactUpdate",
    kind,
    id,
    task_id = "taskId",
    context_id = "contextId",
    status,
    is_final = "final",
    artifact,
    parts,
});

#[derive(Debug, Default)]
struct Status<'a> {
    state: Str<'a>,
}
from_object!(Status<'a> { state });

#[derive(Debug, Default)]
struct Artifact<'a> {
    parts: Option<Vec<Part<'a>>>,
}
from_object!(Artifact<'a> { parts });

#[derive(Debug, Default)]
struct Part<'a> {
    text: Str<'a>,
}
from_object!(Part<'a> { text });

/// The kind of an A2A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    Task,
    Message,
    Status,
    Artifact,
}

impl Members<'_> {
    /// The kind of an A2A response if it is known, and its members.
    pub(super) fn into_update(mut self) -> (Option<Update>, Self) {
        let named = [
            (Update::Task, self.task.take()),
            (Update::Message, self.message.take()),
            (Update::Status, self.status_update.take()),
            (Update::Artifact, self.artifact_update.take()),
        ];
        for (update, members) in named {
            if let Some(members) = members {
                return (Some(update), *members);
            }
        }
        let update = match &*self.kind {
            "task" => Some(Update::Task),
            "message" => Some(Update::Message),
            "status-update" => Some(Update::Status),
            "artifact-update" => Some(Update::Artifact),
            _ => None,
        };
        (update, self)
    }

    pub(super) fn task(&self) -> Option<String> {
        non_empty(&self.id).or_else(|| non_empty(&self.task_id))
    }

    pub(super) fn context(&self) -> Option<String> {
        non_empty(&self.context_id)
    }

    pub(super) fn state(&self) -> Option<&str> {
        self.status.as_ref().map(|status| &*status.state).filter(|state| !state.is_empty())
    }

    pub(super) fn is_final(&self) -> bool {
        self.is_final.is_some_and(|value| value.0 == "true")
    }

    /// The first text of a message or an artifact.
    pub(super) fn text(&self) -> Option<&str> {
        let of_artifact = self.artifact.iter().filter_map(|artifact| artifact.parts.as_deref());
        let parts = of_artifact.chain(self.parts.as_deref()).flatten();
        parts.map(|part| &*part.text).find(|text| !text.is_empty())
    }
}

/// A nonempty text.
pub(super) fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl<'a> FromJson<'a> for Id<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        Raw::read(json).map(|written| Self(Some(written.0)))
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Member<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        Ok(json.read_fitting()?.map_or(Self::Other, Self::Object))
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Box<T> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        T::read(json).map(Self::new)
    }

    fn fits(first: u8) -> bool {
        T::fits(first)
    }
}
