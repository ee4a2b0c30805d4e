//! The path of a field in a request, for error messages. Lives on the stack; formatted on demand.

use std::fmt;

/// The path of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldPath<'p> {
    /// A member of the outermost object.
    Name(&'static str),
    /// A member of an object.
    Member(&'p FieldPath<'p>, &'static str),
    /// An item of an array, from 0.
    Item(&'p FieldPath<'p>, usize),
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Member(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}
