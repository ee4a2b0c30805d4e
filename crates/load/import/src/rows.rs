//! The rows of a log, in every form in which requests are read, or as any other CSV.

use std::io;
use std::path::Path;

use serde_json::Value;

use crate::source::{Form, Sink, Source};
use crate::value;

/// An opened log.
#[expect(missing_debug_implementations, reason = "a reader has nothing to show")]
pub struct Rows {
    source: Source,
    form: Form,
}

impl Rows {
    /// Opens a log, also a compressed one.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut source = Source::new(plimsoll_input::open(path)?)?;
        source.lossy = true;
        let form = match source.form() {
            Form::Text(format) if !format.has_ids() => Form::Csv(b','),
            form => form,
        };
        Ok(Self { source, form })
    }

    /// Names of the members of the first rows, in their order.
    pub fn columns(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for row in self.source.sample(self.form).iter().filter_map(Value::as_object) {
            let new: Vec<_> = row.keys().filter(|name| !names.contains(*name)).cloned().collect();
            names.extend(new);
        }
        names
    }

    /// Sends every row to the sink, until it breaks.
    ///
    /// # Errors
    /// The file cannot be read further.
    pub fn read(self, sink: &mut Sink<'_>) -> io::Result<()> {
        self.source.read(self.form, sink)
    }
}

/// Nanoseconds since 1970 of an RFC 3339 date with any zone or none (UTC), or of an access log.
pub fn unix_nanos(date: &str) -> Option<i64> {
    value::utc(date)?.timestamp_nanos_opt()
}
