//! Reports the progress of reading.

/// The file that is being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// Rows of the run.
    Run,
    /// Rows of the log.
    Log,
}

/// Rows between two reports.
const EVERY: u64 = 20_000;

/// Reports the progress every 20,000 rows.
pub(crate) struct Progress<'a> {
    tell: &'a mut dyn FnMut(Reading, u64),
}

impl<'a> Progress<'a> {
    pub(crate) fn new(tell: &'a mut dyn FnMut(Reading, u64)) -> Self {
        Self { tell }
    }

    pub(crate) fn run(&mut self, rows: u64) {
        self.rows(Reading::Run, rows);
    }

    pub(crate) fn log(&mut self, rows: u64) {
        self.rows(Reading::Log, rows);
    }

    fn rows(&mut self, reading: Reading, rows: u64) {
        if rows.is_multiple_of(EVERY) {
            (self.tell)(reading, rows);
        }
    }
}
