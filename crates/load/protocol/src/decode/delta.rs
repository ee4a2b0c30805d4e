//! Parts of a stream that have content.

/// The kind of content in a [`Delta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeltaKind {
    /// Text for the user, including refusals.
    Text,
    /// The model's reasoning.
    Reasoning,
    /// Name or arguments of a tool call.
    ToolCall,
}

/// A part of a stream that has content. It is never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delta<'a> {
    /// The kind of content.
    pub kind: DeltaKind,
    /// The part itself.
    pub text: &'a str,
}

/// Callback that receives the deltas of a stream in order.
pub(super) type OnDelta<'a> = &'a mut dyn FnMut(Delta<'_>);
