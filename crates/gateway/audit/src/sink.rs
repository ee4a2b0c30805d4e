//! Sinks: where batches of rows are written.

mod clickhouse;
mod file;

pub(crate) use clickhouse::ClickHouseSink;
pub(crate) use file::FileSink;

/// Whole lines that are written together.
#[derive(Debug)]
pub(crate) struct Batch<'a> {
    /// Its number, the same in every attempt.
    pub(crate) number: u64,
    pub(crate) lines: &'a [u8],
    /// Bytes that are in place already, after an attempt that got somewhere.
    pub(crate) done: usize,
}

/// Why a batch was not written.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Temporary: try again.
    Again(String),
    /// Permanent: the sink will never take it.
    Refused(String),
}

/// A destination for batches. Runs on the writer's thread.
pub(crate) trait Sink: Send {
    /// Writes a batch, from where the last attempt ended.
    fn put(&mut self, batch: &mut Batch<'_>) -> Result<(), Failure>;

    /// Makes durable what was written, when it is time to, or at the end.
    fn sync(&mut self, last: bool) -> Result<(), Failure>;
}
