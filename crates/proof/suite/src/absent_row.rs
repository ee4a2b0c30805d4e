//! A row that is not measured: the reason stands where a reader looks for the figure.

/// A row that is not measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AbsentRow {
    /// A part of the title of its sections; empty if it belongs to none.
    pub(crate) section: &'static str,
    /// Its name and the reason.
    pub(crate) text: String,
}
