//! The beat of a worker: it looks at its sockets, however idle it is.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;

use plimsoll_measure::Clock as _;

use crate::worker::Worker;

/// Beats without a request in flight before the beat is stopped: nothing can come that a late read
/// would hide.
const IDLE_BEATS: u32 = 25;
/// Makes the worker look at its sockets at least once a beat while requests are in flight, until
/// its tasks are dropped.
///
/// # Errors
/// Where the kernel refuses the timer.
pub(crate) async fn run_idle_poll(worker: Rc<Worker>) -> io::Result<()> {
    let Worker { timer, watch, clock, .. } = &*worker;
    loop {
        timer.set_beating(true)?;
        let mut idle = 0;
        while idle < IDLE_BEATS {
            timer.beat().await?;
            let in_flight = worker.stats().in_flight();
            watch.beat(clock.now(), in_flight, &worker.run.disturbances);
            worker.count_finished();
            idle = if worker.stats().in_flight() == 0 { idle + 1 } else { 0 };
        }
        timer.set_beating(false)?;
        watch.stop();
        poll_fn(|context| watch.poll_started(context)).await;
    }
}
