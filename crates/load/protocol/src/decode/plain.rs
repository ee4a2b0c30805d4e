//! The content that an agent extracts from responses other than the model's.

/// Content to extract from successful responses of plain HTTP or a tool server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainReading {
    /// Nothing; bytes are only counted.
    #[default]
    Nothing,
    /// The result of a tool, in an object with the member `result`: any object over plain HTTP, or
    /// a tool server's JSON-RPC response.
    ToolResult,
    /// An approval, with `id` and `state`.
    Approval,
}

/// The extracted content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainAnswer {
    /// The result of a tool.
    Tool {
        /// The texts, one per line. Other content is replaced by its type, such as `[image]`.
        text: String,
        /// Value of `isError`.
        is_error: bool,
    },
    /// An approval.
    Approval {
        /// Id of the approval, at most 256 bytes; empty if missing.
        id: String,
        /// State of the approval, such as `pending`; empty if missing.
        state: String,
    },
}
