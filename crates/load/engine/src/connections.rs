//! The connections of a virtual user or a worker, by target.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use plimsoll_measure::{Nanos, Stripe, TargetId};
use plimsoll_plan::{HttpPlan, HttpVersion};
use plimsoll_schedule::{Load, StagePlan};
use plimsoll_transport::{Connector, LookTimes, PoolLimits, RxClock, SendQueue};

use crate::clock::WorkerClock;
use crate::error::EngineError;
use crate::prepared::PreparedRun;
use crate::worker_share::WorkerShare;

/// Most connections that a worker opens to a target before the run.
const MAX_AHEAD: usize = 256;

/// One pool of connections per target, owned by one virtual user or shared by a worker's
/// conversations.
#[derive(Debug)]
pub(crate) struct ConnectionSet {
    targets: Vec<Pool>,
    /// Servers that are not targets, by origin: redirects lead there.
    elsewhere: RefCell<BTreeMap<String, Rc<Pool>>>,
    limits: PoolLimits,
}

impl ConnectionSet {
    /// Empty pools for the targets of these connectors.
    pub(crate) fn new(
        connectors: &[Rc<Connector>],
        rx_clock: &Rc<RxClock<WorkerClock>>,
        limits: PoolLimits,
    ) -> Self {
        let targets = connectors
            .iter()
            .map(|connector| Pool::new(TargetOpener::new(connector, rx_clock), limits))
            .collect();
        Self { targets, elsewhere: RefCell::default(), limits }
    }

    /// The connections to one target.
    pub(crate) fn pool(&self, target: TargetId) -> &Pool {
        &self.targets[target.index()]
    }

    /// The connections to a server that is not a target.
    pub(crate) fn elsewhere(
        &self,
        origin: &str,
        connector: &Rc<Connector>,
        rx_clock: &Rc<RxClock<WorkerClock>>,
    ) -> Rc<Pool> {
        let mut pools = self.elsewhere.borrow_mut();
        let pool = pools.entry(origin.to_owned()).or_insert_with(|| {
            Rc::new(Pool::new(TargetOpener::new(connector, rx_clock), self.limits))
        });
        Rc::clone(pool)
    }
}

/// Connections and settings that the turns of one worker use to reach the targets.
#[derive(Debug)]
pub(crate) struct WorkerConnections {
    /// The worker's part of the load.
    pub(crate) part: WorkerShare,
    /// When its event loop looks at the sockets.
    pub(crate) looks: Arc<LookTimes>,
    pub(crate) connectors: Vec<Rc<Connector>>,
    pub(crate) rx_clock: Rc<RxClock<WorkerClock>>,
    /// Shared by the conversations of the open model, and by all users of HTTP/2.
    pub(crate) shared: Rc<ConnectionSet>,
    /// Where requests wait while the worker is busy.
    pub(crate) send_queue: Rc<SendQueue>,
}

impl WorkerConnections {
    /// No connection yet; for this part of the load.
    pub(crate) fn new(
        run: &PreparedRun,
        part: WorkerShare,
        clock: &WorkerClock,
        looks: &Arc<LookTimes>,
    ) -> Result<Self, EngineError> {
        let send_queue = Rc::new(SendQueue::new(Arc::clone(looks)));
        let connectors: Vec<_> = run
            .connectors()?
            .into_iter()
            .map(|connector: Connector| Rc::new(connector.sending_through(&send_queue)))
            .collect();
        let rx_clock = Rc::new(RxClock::watched(clock.clone(), Arc::clone(looks)));
        let limits = limits_of_worker(&run.plan.http, part);
        let shared = Rc::new(ConnectionSet::new(&connectors, &rx_clock, limits));
        Ok(Self { part, looks: Arc::clone(looks), connectors, rx_clock, shared, send_queue })
    }

    /// Opens the connections that the first open stage will need, if the probe has shown how long
    /// an answer takes. Those that cannot be opened are left to the load, which shows why.
    pub(crate) async fn open_ahead(&self, run: &PreparedRun) -> OpenedAhead {
        let mut opened = OpenedAhead::default();
        let Some(stripe) = self.part.arrivals else { return opened };
        let times = run.answer_times.get().map_or(&[][..], Vec::as_slice);
        for (pool, time) in self.shared.targets.iter().zip(times) {
            let Some(answer) = *time else { continue };
            pool.expect_answer(answer);
            let (good, failed) = pool.open_ahead(needed_ahead(run, stripe, answer)).await;
            opened.opened += good as u64;
            opened.failed += failed as u64;
        }
        opened
    }
}

/// Connections that were opened before the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct OpenedAhead {
    pub(crate) opened: u64,
    pub(crate) failed: u64,
}

/// The number of connections that this part of the load will need to each target: twice as many as
/// requests will be in flight there at once.
fn needed_ahead(run: &PreparedRun, stripe: Stripe, answer: Nanos) -> usize {
    let plan = &run.plan;
    // Where it begins later, the connections would be idle for too long.
    let Some(stage) = run
        .schedule
        .stages()
        .iter()
        .find(|stage: &&StagePlan| !matches!(stage.load, Load::Closed { .. }))
        .filter(|stage: &&StagePlan| stage.start <= plan.http.idle_limit)
    else {
        return 0;
    };
    let length = stage.end.saturating_sub(stage.start).as_secs_f64();
    let rate = match stage.load {
        Load::Open { from, to } => from.max(to),
        _ => run.schedule.planned(stage.id) as f64 / length.max(1.0),
    };
    let streams = match plan.http.version {
        HttpVersion::Http1 => 1.0,
        HttpVersion::Http2 => f64::from(plan.http.streams_per_connection),
    };
    // In a comparison every target gets every request.
    let targets = if run.pairs.is_some() { 1 } else { plan.targets.len().max(1) };
    let in_flight =
        (rate * answer.as_secs_f64() / targets as f64).min(plan.limits.max_in_flight as f64);
    let total = Nanos::from_secs_f64((2.0 * in_flight / streams).ceil() / 1e9).as_u64();
    let share = usize::try_from(stripe.share(total)).unwrap_or(usize::MAX);
    share.clamp(1, MAX_AHEAD)
}

/// The bounds of one virtual user's connections.
pub(crate) fn limits_of_user(http: &HttpPlan) -> PoolLimits {
    let limits = PoolLimits::default();
    match http.version {
        HttpVersion::Http1 => PoolLimits { idle_limit: http.idle_limit, ..limits },
        // Slots cost nothing while they are idle; the target says when it closes the connection.
        HttpVersion::Http2 => limits,
    }
}

/// The bounds of the connections that a worker with this part of the load shares.
pub(crate) fn limits_of_worker(http: &HttpPlan, part: WorkerShare) -> PoolLimits {
    let limits = limits_of_user(http);
    let share = http.max_connections.zip(part.arrivals).map(|(all, stripe)| stripe.share(all));
    let share = share.map(|share| usize::try_from(share).unwrap_or(usize::MAX));
    PoolLimits { max_connections: share.unwrap_or(limits.max_connections), ..limits }
}

// The connection pool that turns use: the transport's, which leads to the target, or in unit tests
// to a scripted target in virtual time.

#[cfg(not(test))]
pub(crate) type TargetOpener = plimsoll_transport::TargetOpener<WorkerClock>;

#[cfg(test)]
pub(crate) use crate::simulation_tests::target::ScriptedOpener as TargetOpener;

/// The connections to one target.
pub(crate) type Pool = plimsoll_transport::Pool<TargetOpener>;

/// A wait for a connection that ended.
pub(crate) type Acquired<'p> = plimsoll_transport::Acquired<'p, TargetOpener>;

/// A connection of a pool that is in use.
pub(crate) type Lease<'p> = plimsoll_transport::Lease<'p, TargetOpener>;

#[cfg(test)]
mod growth_tests;
#[cfg(test)]
mod tests;
