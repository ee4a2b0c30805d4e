//! Traces of recorded traffic: arrival times, lengths and shared prefixes.

mod blocks;
mod line_reader;
mod mooncake;
mod record;
mod recording;
mod table;
mod timestamp;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use plimsoll_measure::Nanos;

use crate::error::{WindowFault, WorkloadError};
use crate::spec::TraceSpec;
use record::TraceRecord;
pub use record::TraceRow;
use recording::Recording;

/// A window of a recording, on the time axis on which it is played.
#[derive(Clone, Debug)]
pub struct Trace {
    offsets: Arc<[Nanos]>,
    recording: Recording,
}

impl Trace {
    /// Reads a file; a relative path starts at `base`.
    ///
    /// # Errors
    /// The file cannot be read, lines of it are not in the format, or no row lies in the window.
    pub fn load(spec: &TraceSpec, base: &Path) -> Result<Self, WorkloadError> {
        let file = base.join(&spec.file);
        let spec = TraceSpec { file, ..spec.clone() };
        let reader = plimsoll_input::open(&spec.file)
            .map_err(|source| WorkloadError::Read { file: spec.file.clone(), source })?;
        Self::parse(&spec, BufReader::new(reader))
    }

    /// Reads the text of a trace; `spec.file` is only used in errors.
    ///
    /// Times are relative to the earliest row. Rows in `from..to` are kept, and played at `(time -
    /// from) / time_scale`. Rows are sorted by time; rows of the same time keep the order of the
    /// file. Byte order marks, carriage returns and blank lines are ignored.
    ///
    /// # Errors
    /// As [`Trace::load`].
    pub fn parse(spec: &TraceSpec, reader: impl BufRead) -> Result<Self, WorkloadError> {
        let refuse = |fault| WorkloadError::Window { file: spec.file.clone(), fault };
        Window::check(spec).map_err(refuse)?;
        let mut recording = Recording::read(spec, reader)?;
        let window = Window::new(spec, &recording.records).map_err(refuse)?;
        recording.records.retain(|record| window.contains(record));
        if recording.records.is_empty() {
            return Err(refuse(window.outside()));
        }
        let offsets = recording.records.iter().map(|record| window.offset(record.at)).collect();
        Ok(Self { offsets, recording })
    }

    /// When each row is played, from the start of the window, in ascending order.
    pub fn offsets(&self) -> Arc<[Nanos]> {
        Arc::clone(&self.offsets)
    }

    /// The request of a row, by its position in [`Trace::offsets`].
    pub fn row(&self, row: u64) -> Option<TraceRow<'_>> {
        self.recording.row(usize::try_from(row).ok()?)
    }
}

/// A part of the recorded time, in nanoseconds, and the speed at which it is played.
struct Window {
    /// Recorded time of the first row.
    origin: u64,
    from: u64,
    to: u64,
    /// From the first row to just after the last.
    length: u64,
    scale: f64,
}

impl Window {
    fn check(spec: &TraceSpec) -> Result<(), WindowFault> {
        let (from, scale) = (spec.from.unwrap_or_default(), spec.time_scale);
        if !scale.is_finite() || scale <= 0.0 {
            return Err(WindowFault::Scale(scale));
        }
        match spec.to {
            Some(to) if to <= from => Err(WindowFault::EmptyWindow { from, to }),
            _ => Ok(()),
        }
    }

    /// Records must be in the order of time.
    fn new(spec: &TraceSpec, records: &[TraceRecord]) -> Result<Self, WindowFault> {
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Err(WindowFault::NoRows);
        };
        let length = last.at - first.at + 1;
        let from = spec.from.unwrap_or_default().as_u64();
        let to = spec.to.map_or_else(|| length.max(from), Nanos::as_u64);
        Ok(Self { origin: first.at, from, to, length, scale: spec.time_scale })
    }

    const fn contains(&self, record: &TraceRecord) -> bool {
        let time = record.at - self.origin;
        self.from <= time && time < self.to
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates at 584 years"
    )]
    fn offset(&self, at: u64) -> Nanos {
        let recorded = at - self.origin - self.from;
        Nanos::new((recorded as f64 / self.scale).round() as u64)
    }

    const fn outside(&self) -> WindowFault {
        WindowFault::Outside { from: Nanos::new(self.from), length: Nanos::new(self.length - 1) }
    }
}
