//! The closed model: users who start their next conversation when the last one is over.

use std::cell::RefCell;
use std::rc::Rc;

use plimsoll_measure::{ConversationKey, LaneId, Nanos};
use plimsoll_schedule::Window;
use plimsoll_transport::{Connection, Pool};

use crate::conversation::{Start, converse};
use crate::watchdog::Watchdog;
use crate::worker::Worker;

/// Idle connections by lane: those of one virtual user, or those that a worker's open arrivals share.
#[derive(Debug)]
pub(crate) struct Connections(Vec<RefCell<Pool>>);

impl Connections {
    /// No connections to so many lanes.
    pub(crate) fn new(lanes: usize) -> Self {
        Self((0..lanes).map(|_| RefCell::default()).collect())
    }

    /// An idle connection to a lane.
    pub(crate) fn take(&self, lane: LaneId) -> Option<Connection> {
        self.0.get(lane.index())?.borrow_mut().take()
    }

    /// Takes a connection back.
    pub(crate) fn give(&self, lane: LaneId, connection: Connection) {
        if let Some(pool) = self.0.get(lane.index()) {
            pool.borrow_mut().give(connection);
        }
    }
}

/// How long a virtual user rests when a request could not even be sent (connection refused, no port free):
/// without it, users of a dead target would do nothing but fail, as fast as the processor lets them.
const REST: Nanos = Nanos::from_millis(10);

/// Lives the life of virtual user `number`: in each of its windows one conversation after another, over
/// connections of its own.
pub(crate) async fn live(worker: Rc<Worker>, number: u32, windows: Vec<Window>) {
    let mut watchdog = Watchdog::new();
    let mut iteration = 0;
    for window in windows {
        let connections = Connections::new(worker.run.plan.lanes.len());
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
