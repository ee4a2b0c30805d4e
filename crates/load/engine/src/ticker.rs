//! The worker's heartbeat: looks whether the run shall end, and sends away what was counted.

use std::rc::Rc;
use std::sync::mpsc::Sender;

use plimsoll_measure::{Clock as _, Moment, Nanos};
use plimsoll_metrics::Snapshot;

use crate::control::Control;
use crate::worker::Worker;

/// How often the worker looks whether the run was interrupted, and posts samples.
const TICK: Nanos = Nanos::from_millis(50);
/// Ticks of an interval: one second.
const INTERVAL: u32 = 20;

/// What one worker counted in one interval.
#[derive(Debug)]
pub(crate) struct Interval {
    pub(crate) at: Moment,
    pub(crate) snapshot: Snapshot,
    pub(crate) in_flight: u64,
}

/// Beats until the worker's tasks are dropped.
pub(crate) async fn tick(worker: Rc<Worker>, control: Control, intervals: Sender<Interval>) {
    let mut next = worker.origin;
    let mut ticks = 0;
    loop {
        next = next + TICK;
        worker.timer.sleep_until(next).await;
        let at = worker.clock.now();
        if control.is_interrupted() && worker.until.get() > at {
            worker.until.set(at);
        }
        worker.post_samples(false);
        ticks += 1;
        if ticks % INTERVAL == 0 {
            let interval =
                Interval { at, snapshot: worker.take_snapshot(), in_flight: worker.in_flight() };
            // Nobody listens any more when the run is being torn down.
            if intervals.send(interval).is_err() {
                return;
            }
        }
    }
}
