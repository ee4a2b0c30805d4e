//! What an agent reads from answers that are not the model's, and what it finds.

/// What is read from a success of plain HTTP, or of a tool server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainReading {
    /// Nothing: its bytes are counted.
    #[default]
    Nothing,
    /// The result of a tool, in an object with the member `result`: over plain HTTP any object, of
    /// a tool server the answer of JSON-RPC.
    ToolResult,
    /// An approval, with `id` and `state`.
    Approval,
}

/// What was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlainAnswer {
    /// The result of a tool.
    Tool {
        /// Its texts, one per line. Other content is named by its type, like `[image]`.
        text: String,
        /// Whether it says `isError`.
        is_error: bool,
    },
    /// An approval.
    Approval {
        /// Its id; empty if the answer has none. At most 256 bytes.
        id: String,
        /// Its state, like `pending`; empty if the answer has none.
        state: String,
    },
}
