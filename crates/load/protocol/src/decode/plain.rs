//! What an agent reads from plain HTTP, and what it finds.

/// What is read from a success of plain HTTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainReading {
    /// Nothing: its bytes are counted.
    #[default]
    Nothing,
    /// The result of a tool, in an object with the member `result`.
    ToolResult,
    /// The same as the answer of JSON-RPC to the request with the
    /// [expected id](super::Decoder::expect_id), as JSON or in an event stream.
    RpcToolResult,
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
