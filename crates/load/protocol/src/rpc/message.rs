//! One JSON-RPC message of a server: what is counted, or needed for the next request.

use super::a2a::TaskState;
use super::scan::{Value, Visitor};

/// A place in a message at which something is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Node {
    #[default]
    Elsewhere,
    Root,
    Version,
    Id,
    Method,
    Error,
    Code,
    ErrorText,
    Result,
    IsError,
    Cursor,
    McpVersion,
    CardName,
    Task,
    Message,
    StatusUpdate,
    ArtifactUpdate,
    Kind,
    OwnId,
    TaskId,
    ContextId,
    Status,
    State,
    Final,
    Artifact,
    Parts,
    Part,
    PartText,
}

/// The kind of a whole document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Root {
    #[default]
    Nothing,
    Object,
    Batch,
    Other,
}

/// The id of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Id {
    Null,
    /// As we write them.
    Number(u64),
    /// Any other, as text.
    Other(String),
}

/// The `error` member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ErrorMember {
    pub(super) code: Option<i64>,
    pub(super) message: String,
}

/// What an A2A answer is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Update {
    #[default]
    Unknown,
    Task,
    Message,
    Status,
    Artifact,
}

/// What has been read of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) root: Root,
    /// Whether `jsonrpc` is `"2.0"`; `None` without that member.
    pub(super) is_version_2: Option<bool>,
    pub(super) id: Option<Id>,
    pub(super) method: Option<String>,
    pub(super) error: Option<ErrorMember>,
    /// Whether `result` is an object; `None` without that member.
    pub(super) result: Option<bool>,
    pub(super) tool_error: bool,
    pub(super) cursor: Option<String>,
    pub(super) mcp_version: Option<String>,
    pub(super) card_name: Option<String>,
    pub(super) update: Update,
    pub(super) task: Option<String>,
    pub(super) context: Option<String>,
    pub(super) state: Option<TaskState>,
    pub(super) is_final: bool,
    /// The start of the first text part of a message or an artifact.
    pub(super) text: String,
}

impl Visitor for Message {
    type Node = Node;

    fn member(&self, object: Node, name: &str) -> Node {
        match (object, name) {
            (Node::Root, "jsonrpc") => Node::Version,
            (Node::Root, "id") => Node::Id,
            (Node::Root, "method") => Node::Method,
            (Node::Root, "error") => Node::Error,
            (Node::Root, "result") => Node::Result,
            (Node::Root, "name") => Node::CardName,
            (Node::Error, "code") => Node::Code,
            (Node::Error, "message") => Node::ErrorText,
            (Node::Result, _) => of_result(name),
            (Node::Task, "id") => Node::OwnId,
            (Node::Task | Node::Message | Node::StatusUpdate | Node::ArtifactUpdate, _) => {
                of_update(name)
            }
            (Node::Status, "state") => Node::State,
            (Node::Artifact, "parts") => Node::Parts,
            (Node::Part, "text") => Node::PartText,
            _ => Node::Elsewhere,
        }
    }

    fn element(&self, array: Node) -> Node {
        if array == Node::Parts { Node::Part } else { Node::Elsewhere }
    }

    fn opened(&mut self, at: Node, is_object: bool) {
        match at {
            Node::Root => self.root = if is_object { Root::Object } else { Root::Batch },
            Node::Result => self.result = Some(is_object),
            Node::Error => self.error = Some(ErrorMember::default()),
            Node::Task => self.update = Update::Task,
            Node::Message => self.update = Update::Message,
            Node::StatusUpdate => self.update = Update::Status,
            Node::ArtifactUpdate => self.update = Update::Artifact,
            Node::Version => self.is_version_2 = Some(false),
            Node::Id => self.id = Some(Id::Other("no text or number".to_owned())),
            // A member that is there twice is what it was last.
            Node::CardName => self.card_name = None,
            _ => {}
        }
    }

    fn value(&mut self, at: Node, value: Value<'_>) {
        match (at, value) {
            (Node::Root, _) => self.root = Root::Other,
            (Node::Version, Value::Text(text, _)) => self.is_version_2 = Some(text == "2.0"),
            (Node::Version, _) => self.is_version_2 = Some(false),
            (Node::Id, value) => self.id = Some(id(value)),
            // Some servers write both members, and one of them is `null`.
            (Node::Error, Value::Null) => {}
            (Node::Error, _) => self.error = Some(ErrorMember::default()),
            (Node::Result, _) => self.result = Some(false),
            (Node::Code, Value::Number(number)) => self.error_member().code = number.parse().ok(),
            (Node::ErrorText, Value::Text(text, _)) => {
                self.error_member().message = text.into_owned();
            }
            (Node::IsError, Value::Bool(is_error)) => self.tool_error = is_error,
            (Node::Final, Value::Bool(is_final)) => self.is_final = is_final,
            (at, Value::Text(text, whole)) => self.take_text(at, &text, whole),
            (Node::CardName, _) => self.card_name = None,
            _ => {}
        }
    }
}

impl Message {
    fn error_member(&mut self) -> &mut ErrorMember {
        self.error.get_or_insert_default()
    }

    /// Takes a text. One that is not whole cannot be sent back.
    fn take_text(&mut self, at: Node, text: &str, whole: bool) {
        let known = || whole.then(|| text.to_owned());
        match at {
            Node::Method => self.method = Some(text.to_owned()),
            Node::Cursor => self.cursor = known(),
            Node::McpVersion => self.mcp_version = known(),
            Node::CardName => self.card_name = known(),
            Node::OwnId | Node::TaskId => self.task = known(),
            Node::ContextId => self.context = known(),
            Node::State => self.state = Some(TaskState::named(text)),
            Node::Kind => self.update = update_of_kind(text),
            Node::PartText if self.text.is_empty() => text.clone_into(&mut self.text),
            _ => {}
        }
    }
}

/// The members of a result: those of MCP, those of A2A 1.0, and those of A2A 0.3, whose results are
/// the task, message or update itself.
fn of_result(name: &str) -> Node {
    match name {
        "isError" => Node::IsError,
        "nextCursor" => Node::Cursor,
        "protocolVersion" => Node::McpVersion,
        "task" => Node::Task,
        "message" => Node::Message,
        "statusUpdate" => Node::StatusUpdate,
        "artifactUpdate" => Node::ArtifactUpdate,
        "kind" => Node::Kind,
        "id" => Node::OwnId,
        other => of_update(other),
    }
}

fn of_update(name: &str) -> Node {
    match name {
        "taskId" => Node::TaskId,
        "contextId" => Node::ContextId,
        "status" => Node::Status,
        "final" => Node::Final,
        "artifact" => Node::Artifact,
        "parts" => Node::Parts,
        _ => Node::Elsewhere,
    }
}

/// The words of A2A 0.3.
fn update_of_kind(kind: &str) -> Update {
    match kind {
        "task" => Update::Task,
        "message" => Update::Message,
        "status-update" => Update::Status,
        "artifact-update" => Update::Artifact,
        _ => Update::Unknown,
    }
}

fn id(value: Value<'_>) -> Id {
    match value {
        Value::Null => Id::Null,
        Value::Number(number) => {
            number.parse().map_or_else(|_| Id::Other(number.to_owned()), Id::Number)
        }
        Value::Text(text, _) => Id::Other(format!("\"{text}\"")),
        Value::Bool(word) => Id::Other(word.to_string()),
    }
}
