//! The buffer of one producer: rows that the writer has not taken yet.

use crate::row::Row;
use crate::stats::Drops;

/// A buffer that had this capacity and used little of it is given back: bursts must not hold memory
/// for good.
const LARGE: usize = 1 << 20;

/// Rows as JSON lines, and the counts of one producer.
#[derive(Debug, Default)]
pub(crate) struct ProducerBuffer {
    lines: Vec<u8>,
    rows: u64,
    accepted: u64,
    dropped: Drops,
    closed: bool,
}

impl ProducerBuffer {
    /// Takes a row for which there is room, and gives its bytes; nothing once closed.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Option<usize> {
        self.accepted += 1;
        if self.closed {
            self.dropped.closed += 1;
            return None;
        }
        let before = self.lines.len();
        row.write_line(&mut self.lines);
        self.rows += 1;
        Some(self.lines.len() - before)
    }

    /// Counts a row that was rejected for lack of room.
    pub(crate) const fn reject(&mut self) {
        self.accepted += 1;
        if self.closed {
            self.dropped.closed += 1;
        } else {
            self.dropped.queue_full += 1;
        }
    }

    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Nothing is taken from now on.
    pub(crate) const fn close(&mut self) {
        self.closed = true;
    }

    /// Gives away all rows, and takes an empty buffer for the next; after the last time there is
    /// none.
    pub(crate) fn take(&mut self, spare: Vec<u8>, last: bool) -> (Vec<u8>, u64) {
        self.closed |= last;
        (std::mem::replace(&mut self.lines, spare), std::mem::take(&mut self.rows))
    }

    pub(crate) const fn counts(&self) -> Counts {
        Counts { accepted: self.accepted, dropped: self.dropped, waiting: self.rows }
    }
}

/// The counts of a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) accepted: u64,
    pub(crate) dropped: Drops,
    pub(crate) waiting: u64,
}

/// Makes a used buffer ready for the next rows.
pub(crate) fn recycled(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > LARGE && buffer.len() < buffer.capacity() / 4 {
        return Vec::new();
    }
    buffer.clear();
    buffer
}
