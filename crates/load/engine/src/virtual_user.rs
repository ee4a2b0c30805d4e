//! The closed model: users who start their next conversation when the last one is over.

use std::rc::Rc;

use plimsoll_measure::{ConversationKey, Nanos, TargetId};
use plimsoll_profile::HttpVersion;
use plimsoll_schedule::ActiveWindow;
use plimsoll_transport::Pool;

use crate::conversation::{Start, converse};
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Connections by target: those of one virtual user, or those that a worker's conversations share.
#[derive(Debug)]
pub(crate) struct Connections(Vec<Pool>);

impl Connections {
    /// No connections to so many targets.
    pub(crate) fn new(targets: usize) -> Self {
        Self((0..targets).map(|_| Pool::new()).collect())
    }

    /// Those to one target.
    pub(crate) fn to(&self, target: TargetId) -> &Pool {
        &self.0[target.index()]
    }
}

/// How long a virtual user rests when a request could not even be sent (connection refused, no port free):
/// without it, users of a dead target would do nothing but fail, as fast as the processor lets them.
const REST: Nanos = Nanos::from_millis(10);

/// Lives the life of virtual user `number`: in each of its windows one conversation after another, in HTTP/1.1 over a
/// connection of its own.
pub(crate) async fn live(worker: Rc<Worker>, number: u32, windows: Vec<ActiveWindow>) {
    let mut watchdog = Watchdog::new();
    let mut iteration = 0;
    for window in windows {
        let connections = match worker.run.plan.http.version {
            HttpVersion::Http1 => Rc::new(Connections::new(worker.run.plan.targets.len())),
            HttpVersion::Http2 => Rc::clone(&worker.connections),
        };
        let (mut free, to) = (worker.origin + window.from, worker.origin + window.to);
        worker.timer.sleep_until(free).await;
        while free < worker.end_of(to) {
            let conversation = worker
                .run
                .workload
                .conversation(ConversationKey::iteration(number, iteration), None);
            iteration = iteration.wrapping_add(1);
            let over = converse(
                &worker,
                conversation,
                &connections,
                &mut watchdog,
                Start::closed(free, to),
            )
            .await;
            free = over.at;
            if !over.sent {
                free = free + REST;
                worker.timer.sleep_until(free).await;
            }
        }
    }
}
