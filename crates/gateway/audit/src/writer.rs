//! The writer thread: takes rows from the queue and delivers them to the sink.

use std::sync::Arc;
use std::time::Duration;

use crate::queue::Queue;
use crate::settings::{Retry, Settings};
use crate::sink::{Batch, Failure, Sink};
use crate::stats::{Drops, Notice};

/// Buffers above this capacity may be freed.
const LARGE: usize = 1 << 20;

/// Reports to the operator.
pub(crate) type Notify = Box<dyn Fn(Notice) + Send>;

pub(crate) struct Writer {
    queue: Arc<Queue>,
    sink: Box<dyn Sink>,
    notify: Notify,
    rows: usize,
    flush: Duration,
    retry: Retry,
    batches: u64,
    closing: bool,
    outage: Option<Outage>,
}

/// An outage of the sink.
#[derive(Default)]
struct Outage {
    lost: u64,
    /// A batch was given up after the audit was closed, so the rest is dropped without trying.
    unreachable: bool,
}

impl Writer {
    pub(crate) fn new(
        queue: Arc<Queue>,
        sink: Box<dyn Sink>,
        settings: &Settings,
        notify: Notify,
    ) -> Self {
        Self {
            queue,
            sink,
            notify,
            rows: settings.batch,
            flush: settings.flush,
            retry: settings.retry,
            batches: 0,
            closing: false,
            outage: None,
        }
    }

    /// Writes until the audit is closed and every row is written or dropped.
    pub(crate) fn run(mut self) {
        let mut lines = Vec::new();
        loop {
            let last = self.queue.take(self.flush, &mut lines);
            self.closing |= last;
            self.write(&lines);
            lines = recycled(lines);
            if let Err(Failure::Again(error) | Failure::Refused(error)) = self.sink.sync(last) {
                self.failing(&error, false);
            }
            if last {
                return;
            }
        }
    }

    fn write(&mut self, mut lines: &[u8]) {
        while !lines.is_empty() {
            let (batch, rows, rest) = first_rows(lines, self.rows);
            self.batches += 1;
            self.deliver(&mut Batch { number: self.batches, lines: batch, done: 0 }, rows);
            lines = rest;
        }
    }

    /// Delivers a batch to the sink, with retries.
    fn deliver(&mut self, batch: &mut Batch<'_>, rows: u64) {
        if self.outage.as_ref().is_some_and(|outage| outage.unreachable) {
            return self.give_up(batch, rows, false);
        }
        for failures in 1..=self.retry.attempts {
            match self.sink.put(batch) {
                Ok(()) => return self.succeed(rows, batch.lines.len()),
                Err(Failure::Refused(error)) => {
                    self.failing(&error, false);
                    return self.give_up(batch, rows, true);
                }
                Err(Failure::Again(error)) => self.pause_after(failures, &error),
            }
        }
        self.give_up(batch, rows, false);
    }

    fn pause_after(&mut self, failures: u32, error: &str) {
        let again = failures < self.retry.attempts;
        self.failing(error, again);
        if again {
            self.closing |= self.queue.pause(self.retry.pause(failures));
        }
    }

    fn succeed(&mut self, rows: u64, bytes: usize) {
        self.queue.settle(rows, Drops::default(), bytes);
        if let Some(outage) = self.outage.take() {
            self.queue.set_failing(false);
            (self.notify)(Notice::Recovered { lost: outage.lost });
        }
    }

    fn failing(&mut self, error: &str, again: bool) {
        self.queue.failed(error, again);
        if self.outage.is_none() {
            self.outage = Some(Outage::default());
            self.queue.set_failing(true);
            (self.notify)(Notice::Failing(error.to_owned()));
        }
    }

    /// Counts the lines that got through as written and the rest as dropped.
    fn give_up(&mut self, batch: &Batch<'_>, rows: u64, is_refused: bool) {
        let done = batch.lines.get(..batch.done).unwrap_or_default();
        let written = memchr::memchr_iter(b'\n', done).count() as u64;
        let lost = rows - written;
        let outage = self.outage.get_or_insert_default();
        outage.lost += lost;
        outage.unreachable = self.closing && !is_refused;
        let (store, refused) = if is_refused { (0, lost) } else { (lost, 0) };
        self.queue.settle(written, Drops { store, refused, ..Drops::default() }, batch.lines.len());
    }
}

/// Empties a used buffer for the next rows. Frees a large, mostly unused one, so that a burst does
/// not hold memory forever.
fn recycled(mut buffer: Vec<u8>) -> Vec<u8> {
    if buffer.capacity() > LARGE && buffer.len() < buffer.capacity() / 4 {
        return Vec::new();
    }
    buffer.clear();
    buffer
}

/// Splits off the first rows; returns them, their number and the rest.
fn first_rows(lines: &[u8], most: usize) -> (&[u8], u64, &[u8]) {
    let (mut rows, mut end) = (0, lines.len());
    for newline in memchr::memchr_iter(b'\n', lines).take(most) {
        rows += 1;
        end = newline + 1;
    }
    let (first, rest) = lines.split_at_checked(end).unwrap_or((lines, &[]));
    (first, rows, rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_into_batches() {
        assert_eq!(first_rows(b"a\nbb\nc\n", 2), (&b"a\nbb\n"[..], 2, &b"c\n"[..]));
        assert_eq!(first_rows(b"a\nbb\n", 2), (&b"a\nbb\n"[..], 2, &b""[..]));
        assert_eq!(first_rows(b"a\n", 9), (&b"a\n"[..], 1, &b""[..]));
    }
}
