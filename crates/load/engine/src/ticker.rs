//! The periodic task of a worker: checks whether the run is interrupted, and sends counts and
//! rows away.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::mpsc::Sender;

use plimsoll_measure::{Block, Clock as _, Moment, Nanos};
use plimsoll_metrics::Snapshot;

use crate::control::Control;
use crate::worker::Worker;

/// Time between checks for an interrupt; rows are sent as often.
const TICK: Nanos = Nanos::from_millis(50);
/// Ticks of an interval: one second.
const TICKS_PER_INTERVAL: u32 = 20;

/// The counts of one worker in one interval.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) at: Moment,
    pub(crate) snapshot: Snapshot,
    pub(crate) in_flight: u64,
    /// By target: before this time, after the run's start, no request in flight was intended.
    pub(crate) oldest: Vec<Option<Nanos>>,
    /// By target: the last read of a response.
    pub(crate) heard: Vec<Moment>,
    /// Blocks of a comparison that ended.
    pub(crate) blocks: Vec<Block>,
}

/// Ticks until the worker's tasks are dropped.
pub(crate) async fn run_ticker(worker: Rc<Worker>, control: Control, intervals: Sender<Interval>) {
    let mut next = worker.origin;
    let mut ticks = 0;
    loop {
        next = next + TICK;
        worker.timer.sleep_until(next).await;
        let at = worker.clock.now();
        if control.stop().is_some() || worker.run.is_spent() {
            worker.end_early(at);
        }
        worker.end_taken_out(at);
        worker.count_finished();
        worker.send_rows();
        ticks += 1;
        if ticks % TICKS_PER_INTERVAL == 0 {
            let snapshot = worker.stats().take_snapshot(at);
            let in_flight = worker.stats().in_flight();
            let oldest = worker.stats().oldest_open();
            // The receiver is gone when the run is being torn down.
            let blocks = worker.take_blocks(false);
            let heard = worker.heard.iter().map(Cell::get).collect();
            let interval = Interval { at, snapshot, in_flight, oldest, heard, blocks };
            if intervals.send(interval).is_err() {
                return;
            }
        }
    }
}
