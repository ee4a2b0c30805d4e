//! A connection pool: requests wait for a connection in order, and take a freed connection or a
//! finished handshake, whichever comes first. ADR 0009 has the reasons.

mod growth;
mod inner;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Debug;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

pub use inner::Lease;
use plimsoll_measure::{Clock, ConnectPhases, ErrorClass, Moment, Nanos};
use smart_default::SmartDefault;
use tokio::task::spawn_local;

use self::inner::Inner;
use crate::connect::Connector;
use crate::connection::{Connection, Opened};
use crate::failure::Failure;
use crate::http2::SharedConnection;
use crate::rx_timestamp::RxClock;

/// Maximum number of parallel handshakes when connections are opened ahead of the load.
const AHEAD_AT_ONCE: usize = 8;

/// The end of a wait for a connection.
#[derive(Debug)]
pub struct Acquired<'p, O: Opener> {
    /// Duration of the wait for a connection, and of the set-up of the one that ended it.
    pub phases: ConnectPhases,
    /// Time at which the connection was available, or began to be opened for the request: later
    /// than the demand by `phases.wait`.
    pub dispatched: Moment,
    /// Part of the wait that the pool may have caused, because it limits how fast it opens
    /// connections.
    pub own_wait: Nanos,
    /// Time at which the connection was ready.
    pub connected: Moment,
    /// The connection.
    pub connection: Result<Lease<'p, O>, Failure>,
}

/// Connections to one target, most recently used first. The least used ones stay idle, and the
/// target can close them without harm. HTTP/2: stream slots on shared connections.
///
/// Requires a [`tokio::task::LocalSet`] or local runtime, because handshakes are separate tasks.
#[derive(Debug)]
pub struct Pool<O: Opener>(Rc<Inner<O>>);

impl<O: Opener> Pool<O> {
    /// Creates an empty pool.
    pub fn new(opener: O, limits: PoolLimits) -> Self {
        Self(Rc::new(Inner::new(opener, limits)))
    }

    /// Returns a connection for a request: an idle one, or else a freed or new one, whichever comes
    /// first.
    ///
    /// # Cancel safety
    /// A dropped future leaves the queue. A started handshake continues, and its connection joins
    /// the pool.
    pub async fn checkout(&self, demand: Demand) -> Acquired<'_, O> {
        if !demand.unused
            && let Some(connection) = self.0.take_idle(demand.now)
        {
            let ahead = !connection.connection.was_used();
            return Acquired {
                phases: ConnectPhases { ahead, ..ConnectPhases::default() },
                dispatched: demand.now,
                own_wait: Nanos::ZERO,
                connected: demand.now,
                connection: Ok(self.lease(connection)),
            };
        }
        self.wait(demand).await
    }

    async fn wait(&self, demand: Demand) -> Acquired<'_, O> {
        let waiting = Waiting { pool: &self.0, waiter: self.0.waiting.push(demand) };
        let wanted = self.0.demand_of(demand);
        self.0.grow(demand.now, wanted, demand.adds);
        let Delivery { mut phases, started, connection } =
            poll_fn(|context| waiting.waiter.poll(context)).await;
        let connected = self.0.opener.now();
        // A handshake that began before the demand did not delay it.
        let dispatched = started.unwrap_or(connected).max(demand.now);
        phases.wait = Some(dispatched.since(demand.now)).filter(|wait| *wait > Nanos::ZERO);
        let own_wait = self.0.own_part(demand.now, dispatched);
        let connection = connection.map(|mut connection| {
            connection.taken = connected;
            self.lease(connection)
        });
        Acquired { phases, dispatched, own_wait, connected, connection }
    }

    /// Opens connections ahead of the load, up to a total of `count`. Returns the number of
    /// successes and of failures.
    pub async fn open_ahead(&self, count: usize) -> (usize, usize) {
        let count = count.min(self.0.limits.max_connections);
        let (next, failed) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let tasks: Vec<_> = (0..AHEAD_AT_ONCE.min(count))
            .map(|_| {
                let (pool, next, failed) =
                    (Rc::clone(&self.0), Rc::clone(&next), Rc::clone(&failed));
                spawn_local(async move { pool.open_ahead(&next, &failed, count).await })
            })
            .collect();
        for task in tasks {
            // A panic in the task shows as a missing connection.
            let _ = task.await;
        }
        (next.get() - failed.get(), failed.get())
    }

    /// Sets the expected response time, which applies until the pool has seen a response.
    pub fn expect_answer(&self, answer: Nanos) {
        self.0.growth.expect_answer(answer);
    }

    /// Whether the target has closed a connection that waits for its next request. Always false in
    /// HTTP/2.
    pub fn has_lost_idle(&self) -> bool {
        self.0.idle.borrow_mut().iter_mut().any(|pooled| !pooled.connection.is_idle())
    }

    /// Number of opened connections.
    pub fn opened(&self) -> u32 {
        self.0.opened.get()
    }

    fn lease(&self, connection: Pooled<O::Connection>) -> Lease<'_, O> {
        Lease::new(&self.0, connection)
    }
}

/// A waiting demand, which leaves the queue when dropped.
struct Waiting<'p, O: Opener> {
    pool: &'p Rc<Inner<O>>,
    waiter: Rc<Waiter<O::Connection>>,
}

impl<O: Opener> Drop for Waiting<'_, O> {
    fn drop(&mut self) {
        match self.waiter.take_delivery() {
            Some(Delivery { connection: Ok(pooled), .. }) => self.pool.offer(pooled),
            Some(_) => {}
            None => self.pool.waiting.remove(&self.waiter),
        }
    }
}

const SPANS: usize = 4;
const SPAN: Nanos = Nanos::from_secs(1);
/// A span without a response.
const NONE: Nanos = Nanos::new(u64::MAX);

/// Response times of a target.
///
/// After a pause of the target, and while it accepts new connections, responses are slow because
/// they wait for each other. Such times do not describe the target, and more connections would not
/// help. So the usual time follows the median at once when it falls, but only after some seconds
/// when it rises: it is the smallest median of the last [`SPANS`] seconds.
#[derive(Debug, SmartDefault)]
struct AnswerTime {
    /// Approximate median of the latest responses; zero without any.
    median: Cell<Nanos>,
    /// Smallest median of each span, with the current one last.
    #[default(Cell::new([NONE; SPANS]))]
    least: Cell<[Nanos; SPANS]>,
    /// End of the current span.
    span_end: Cell<Moment>,
    usual: Cell<Nanos>,
}

impl AnswerTime {
    /// The usual time, if it is known.
    fn usual(&self) -> Option<Nanos> {
        Some(self.usual.get()).filter(|usual| *usual > Nanos::ZERO)
    }

    /// Sets the expected time, which applies until the first response.
    fn expect(&self, answer: Nanos) {
        if self.median.get() == Nanos::ZERO {
            self.median.set(answer);
            self.usual.set(answer);
        }
    }

    /// Records a response of this duration that is complete now. The `first` on its connection
    /// counts only if it is the only one so far, because it includes the target's work for a new
    /// connection.
    fn record(&self, answer: Nanos, first: bool, now: Moment) {
        let answer = answer.max(Nanos::new(1));
        self.expect(answer);
        if now >= self.span_end.get() {
            self.begin_span(now);
        }
        if !first {
            self.median.set(step_towards(self.median.get(), answer));
        }
        if self.median.get() < self.usual.get() {
            self.note(self.median.get());
        }
    }

    fn begin_span(&self, now: Moment) {
        let ended = now.since(self.span_end.get()).as_u64() / SPAN.as_u64() + 1;
        let mut least = self.least.get();
        let aged = usize::try_from(ended).map_or(SPANS, |ended| ended.min(SPANS));
        least.rotate_left(aged % SPANS);
        least[SPANS - aged..].fill(NONE);
        self.least.set(least);
        self.span_end.set(now + SPAN);
        // The median from before the pause still applies: the pause must not end with the first
        // responses after it.
        self.note(self.median.get());
    }

    /// Records a median of the current span.
    fn note(&self, median: Nanos) {
        let mut least = self.least.get();
        least[SPANS - 1] = least[SPANS - 1].min(median);
        self.least.set(least);
        self.usual.set(least.into_iter().min().unwrap_or(median));
    }
}

/// Moves an eighth of the way towards each value, to follow the median rather than single slow
/// responses.
fn step_towards(median: Nanos, value: Nanos) -> Nanos {
    let step = Nanos::new(median.as_u64() / 8 + 1);
    if value > median { median + step } else { median.saturating_sub(step).max(Nanos::new(1)) }
}

/// Delay by the generator above which an arrival adds no connection if one will be free soon,
/// because a punctual generator would have found a free one.
const LATE_RELEASE: Nanos = Nanos::from_millis(1);

/// Limits of a pool.
#[derive(Clone, Copy, Debug, SmartDefault, PartialEq, Eq)]
pub struct PoolLimits {
    /// Maximum number of connections, including those being opened; at least 1.
    #[default(usize::MAX)]
    pub max_connections: usize,
    /// Maximum idle time of a connection that is reused. HTTP/1.1 only.
    #[default(Nanos::MAX)]
    pub idle_limit: Nanos,
}

/// A demand for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Start of the demand.
    pub now: Moment,
    /// Whether to add a connection for it.
    pub adds: Adds,
    /// Whether it requires a connection without an earlier request.
    pub unused: bool,
}

/// When to add a connection for a request that finds none free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Adds {
    /// Within the pool's current growth limit.
    WithinLimit,
    /// Within the growth limit, but not if a connection will be free soon: the generator released
    /// the request late, and the target must not be blamed for that delay.
    Late,
    /// At once, for a virtual user, because the number of users is fixed.
    AtOnce,
}

impl Adds {
    /// The demand of an arrival in the open model that the generator released this late.
    pub fn for_arrival(late: Nanos) -> Self {
        if late > LATE_RELEASE { Self::Late } else { Self::WithinLimit }
    }
}

impl Demand {
    /// A demand for any connection, added within the growth limit.
    pub const fn at(now: Moment) -> Self {
        Self { now, adds: Adds::WithinLimit, unused: false }
    }

    /// The demand of a retry; on a connection without earlier requests (`unused`) if the target
    /// closed the first one. This wait is not the generator's, however late the first attempt was.
    pub const fn again(self, now: Moment, unused: bool) -> Self {
        let adds = match self.adds {
            Adds::WithinLimit | Adds::Late => Adds::WithinLimit,
            Adds::AtOnce => Adds::AtOnce,
        };
        Self { now, adds, unused }
    }

    /// Whether the generator released it late, so that it adds no connection.
    pub fn is_late(self) -> bool {
        self.adds == Adds::Late
    }
}

/// A connection that a pool can keep.
pub trait Poolable: Debug + 'static {
    /// Whether it has been used for a request before.
    fn was_used(&self) -> bool;
    /// Whether it is open and has no unexpected data.
    fn is_idle(&mut self) -> bool;
    /// Whether the connection itself ended, rather than only the failed exchange.
    fn has_ended(&self) -> bool;
}

/// Opens the connections of a pool.
pub trait Opener: Debug + 'static {
    /// Type of the connections.
    type Connection: Poolable;

    /// The current time.
    fn now(&self) -> Moment;

    /// Sleeps, with the precision of a millisecond.
    fn sleep(&self, time: Nanos) -> impl Future<Output = ()>;

    /// Opens a connection.
    fn open(&self) -> impl Future<Output = Opened<Self::Connection>>;

    /// HTTP/2: a free slot on an open connection.
    fn free_slot(&self) -> Option<Self::Connection> {
        None
    }

    /// Number of simultaneous requests per connection.
    fn slots(&self) -> usize {
        1
    }

    /// HTTP/2: number of open connections.
    fn shared_connections(&self) -> Option<usize> {
        None
    }
}

/// Opens connections to one target.
#[derive(Debug)]
pub struct TargetOpener<C> {
    connector: Rc<Connector>,
    rx_clock: Rc<RxClock<C>>,
    shared: RefCell<Vec<Rc<SharedConnection>>>,
    /// HTTP/2: the target's limit of streams per connection, once known.
    limit: Cell<Option<u32>>,
}

impl<C: Clock + 'static> TargetOpener<C> {
    /// Creates an opener that uses this connector on the current worker.
    pub fn new(connector: &Rc<Connector>, rx_clock: &Rc<RxClock<C>>) -> Self {
        let (connector, rx_clock) = (Rc::clone(connector), Rc::clone(rx_clock));
        Self { connector, rx_clock, shared: RefCell::default(), limit: Cell::new(None) }
    }
}

/// Number of checks for the limit of a new connection, and the time between them.
const LOOKS: u32 = 25;
const LOOK: Nanos = Nanos::from_millis(1);

impl<C: Clock + Debug + 'static> TargetOpener<C> {
    /// Waits for the first settings of the target's first connection. Without them, requests beyond
    /// the target's limit would be sent there and wait. A target that sends none in time counts as
    /// unlimited.
    async fn learn_limit(&self, opened: &SharedConnection) {
        for _ in 0..LOOKS {
            if let Some(limit) = opened.limit() {
                return self.limit.set(Some(limit));
            }
            self.sleep(LOOK).await;
        }
    }
}

impl<C: Clock + Debug + 'static> Opener for TargetOpener<C> {
    type Connection = Connection;

    fn now(&self) -> Moment {
        self.rx_clock.clock().now()
    }

    async fn sleep(&self, time: Nanos) {
        tokio::time::sleep(time.to_duration()).await;
    }

    async fn open(&self) -> Opened<Connection> {
        let Some(streams) = self.connector.streams_per_connection() else {
            return self.connector.connect(self.rx_clock.clock()).await;
        };
        // The limit known from another connection applies until this one's settings have arrived.
        let streams = self.limit.get().map_or(streams, |limit| limit.clamp(1, streams));
        let (phases, opened) = self.connector.connect_shared(&self.rx_clock, streams).await;
        if let (Ok(opened), None) = (&opened, self.limit.get()) {
            self.learn_limit(opened).await;
        }
        let connection = opened.and_then(|opened| {
            self.shared.borrow_mut().push(Rc::clone(&opened));
            opened.take_slot().map(Connection::http2).ok_or_else(|| ErrorClass::ClosedEarly.into())
        });
        Opened { phases, connection }
    }

    fn free_slot(&self) -> Option<Connection> {
        let mut shared = self.shared.borrow_mut();
        let slot = shared.iter().find_map(SharedConnection::take_slot);
        if slot.is_none() {
            shared.retain(|connection| !connection.is_closed());
        }
        slot.map(Connection::http2)
    }

    fn slots(&self) -> usize {
        let streams = self.connector.streams_per_connection().unwrap_or(1);
        let limit = self.limit.get().unwrap_or(streams).max(1);
        usize::try_from(streams.min(limit)).unwrap_or(usize::MAX)
    }

    fn shared_connections(&self) -> Option<usize> {
        self.connector.streams_per_connection()?;
        let shared = self.shared.borrow();
        Some(shared.iter().filter(|connection| !connection.is_closed()).count())
    }
}

impl Poolable for Connection {
    fn was_used(&self) -> bool {
        Self::was_used(self)
    }

    fn is_idle(&mut self) -> bool {
        Self::is_idle(self)
    }

    fn has_ended(&self) -> bool {
        Self::has_ended(self)
    }
}

/// A connection of a pool. Boxed, so that handing it out moves a pointer.
#[derive(Debug)]
struct Pooled<C>(Box<PooledConnection<C>>);

#[derive(Debug)]
struct PooledConnection<C> {
    connection: C,
    /// Number in the pool.
    number: u32,
    /// Whether it has received a response.
    answered: bool,
    /// Time of the last checkout.
    taken: Moment,
    /// Time since which it has been idle, or had been before the checkout.
    idle_since: Moment,
}

impl<C> Pooled<C> {
    fn new(connection: C, number: u32, now: Moment) -> Self {
        let answered = false;
        Self(Box::new(PooledConnection {
            connection,
            number,
            answered,
            taken: now,
            idle_since: now,
        }))
    }

    /// Time for which it had been idle at checkout.
    fn idle_for(&self) -> Nanos {
        self.taken.since(self.idle_since)
    }
}

impl<C> Deref for Pooled<C> {
    type Target = PooledConnection<C>;

    fn deref(&self) -> &PooledConnection<C> {
        &self.0
    }
}

impl<C> DerefMut for Pooled<C> {
    fn deref_mut(&mut self) -> &mut PooledConnection<C> {
        &mut self.0
    }
}

/// The end of a wait.
#[derive(Debug)]
struct Delivery<C> {
    /// Durations of the handshake that ended the wait.
    phases: ConnectPhases,
    /// Start of the handshake; `None` for a freed connection.
    started: Option<Moment>,
    /// The connection.
    connection: Result<Pooled<C>, Failure>,
}

/// A demand in the queue.
#[derive(Debug)]
struct Waiter<C> {
    demand: Demand,
    /// Whether it was released late, or waits behind one that was: the generator's part.
    is_ours: bool,
    delivery: RefCell<Option<Delivery<C>>>,
    waker: RefCell<Option<Waker>>,
}

impl<C> Waiter<C> {
    /// Ends the wait.
    fn deliver(&self, delivery: Delivery<C>) {
        self.delivery.replace(Some(delivery));
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    /// Takes the delivery, if there is one.
    fn take_delivery(&self) -> Option<Delivery<C>> {
        self.delivery.take()
    }

    fn poll(&self, context: &Context<'_>) -> Poll<Delivery<C>> {
        if let Some(delivery) = self.take_delivery() {
            return Poll::Ready(delivery);
        }
        self.waker.replace(Some(context.waker().clone()));
        Poll::Pending
    }
}

/// The queue.
#[derive(Debug)]
struct WaitQueue<C> {
    waiting: RefCell<VecDeque<Rc<Waiter<C>>>>,
    /// Number of demands that were not late.
    eager: Cell<usize>,
}

impl<C> Default for WaitQueue<C> {
    fn default() -> Self {
        Self { waiting: RefCell::default(), eager: Cell::new(0) }
    }
}

impl<C> WaitQueue<C> {
    fn len(&self) -> usize {
        self.waiting.borrow().len()
    }

    fn is_empty(&self) -> bool {
        self.waiting.borrow().is_empty()
    }

    /// Number of demands for which connections may be added.
    const fn eager(&self) -> usize {
        self.eager.get()
    }

    /// Time since which the first one has waited.
    fn first_since(&self) -> Option<Moment> {
        self.waiting.borrow().front().map(|waiter| waiter.demand.now)
    }

    /// Appends a demand.
    fn push(&self, demand: Demand) -> Rc<Waiter<C>> {
        let waiter = Rc::new(Waiter {
            demand,
            is_ours: demand.is_late() || self.eager.get() < self.len(),
            delivery: RefCell::default(),
            waker: RefCell::default(),
        });
        self.eager.set(self.eager.get() + usize::from(!demand.is_late()));
        self.waiting.borrow_mut().push_back(Rc::clone(&waiter));
        waiter
    }

    /// Takes the first demand, or with `used` the first that accepts a used connection.
    fn pop(&self, used: bool) -> Option<Rc<Waiter<C>>> {
        let mut waiting = self.waiting.borrow_mut();
        let index = waiting.iter().position(|waiter| !(used && waiter.demand.unused))?;
        let waiter = waiting.remove(index)?;
        self.eager.set(self.eager.get() - usize::from(!waiter.demand.is_late()));
        Some(waiter)
    }

    /// Removes a cancelled demand.
    fn remove(&self, given_up: &Rc<Waiter<C>>) {
        let mut waiting = self.waiting.borrow_mut();
        if let Some(index) = waiting.iter().position(|waiter| Rc::ptr_eq(waiter, given_up)) {
            waiting.remove(index);
            self.eager.set(self.eager.get() - usize::from(!given_up.demand.is_late()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    /// One response per millisecond.
    fn answers(time: &AnswerTime, ms: std::ops::Range<u64>, took: Nanos) {
        ms.for_each(|ms| time.record(took, false, at(ms)));
    }

    fn usual_us(time: &AnswerTime) -> u64 {
        time.usual().unwrap_or_default().as_u64() / 1_000
    }

    #[test]
    fn one_long_answer_changes_little() {
        let time = AnswerTime::default();
        answers(&time, 0..10, Nanos::from_micros(100));
        time.record(Nanos::from_secs(1), false, at(10));
        assert!(usual_us(&time) <= 112, "{time:?}");
    }

    #[test]
    fn what_piles_up_in_a_pause_does_not_count() {
        let time = AnswerTime::default();
        answers(&time, 0..1_000, Nanos::from_micros(100));
        for pause_s in [1, 3, 10] {
            let end = 60_000 * pause_s;
            answers(&time, end - 4_000..end, Nanos::from_micros(100));
            // All requests that arrived meanwhile are answered within a second.
            let end = end + 1_000 * pause_s;
            answers(&time, end..end + 900, Nanos::from_secs(pause_s));
            assert!(usual_us(&time) < 200, "{pause_s} s: {time:?}");
        }
    }

    #[test]
    fn a_target_that_becomes_slow_is_slow_after_some_seconds() {
        let time = AnswerTime::default();
        answers(&time, 0..1_000, Nanos::from_micros(100));
        answers(&time, 1_000..3_900, Nanos::from_millis(50));
        assert!(usual_us(&time) < 200);
        answers(&time, 3_900..6_100, Nanos::from_millis(50));
        assert!((30_000..80_000).contains(&usual_us(&time)), "{time:?}");
        answers(&time, 6_100..6_200, Nanos::from_micros(100));
        assert!(usual_us(&time) < 200, "it is fast again at once: {time:?}");
    }

    #[test]
    fn a_first_answer_counts_only_alone() {
        let time = AnswerTime::default();
        assert_eq!(time.usual(), None);
        time.record(Nanos::from_millis(9), true, at(0));
        assert_eq!(time.usual(), Some(Nanos::from_millis(9)));
        time.record(Nanos::from_micros(1), true, at(1));
        assert_eq!(time.usual(), Some(Nanos::from_millis(9)));
        time.expect(Nanos::from_secs(1));
        assert_eq!(time.usual(), Some(Nanos::from_millis(9)));
    }

    #[test]
    fn a_second_attempt_of_a_late_arrival_is_not_late() {
        let (began, closed) = (Moment::from_nanos(5), Moment::from_nanos(7));
        let again = |adds| Demand { adds, ..Demand::at(began) }.again(closed, true);
        for (first, second) in [
            (Adds::for_arrival(Nanos::from_millis(1)), Adds::WithinLimit),
            (Adds::for_arrival(Nanos::from_millis(2)), Adds::WithinLimit),
            (Adds::AtOnce, Adds::AtOnce),
        ] {
            assert_eq!(again(first), Demand { now: closed, adds: second, unused: true });
        }
        assert!(
            Demand { adds: Adds::for_arrival(Nanos::from_millis(2)), ..Demand::at(began) }
                .is_late()
        );
    }
}
