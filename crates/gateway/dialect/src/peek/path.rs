//! Where in a request something is, for messages. Built on the stack; written only when needed.

use std::fmt;

/// A member of the request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Path<'p> {
    /// A member of the outermost object.
    Name(&'static str),
    /// A member of an object.
    Member(&'p Path<'p>, &'static str),
    /// An item of an array, from 0.
    Item(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Member(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}
