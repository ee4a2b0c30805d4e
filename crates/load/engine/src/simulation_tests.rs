//! Virtual time and a scripted target, for unit tests without sleeping and without sockets.
//!
//! The engine's own tasks run unchanged. Its clock and timer show virtual time ([`world`]), its
//! connections lead to a scripted target ([`target`]), and an executor moves the time to the next
//! deadline whenever every task waits ([`executor`]). Each test therefore has exact times, and
//! takes only as long as its computations.

pub(crate) mod harness;
pub(crate) mod pool_load;
pub(crate) mod target;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use plimsoll_measure::{Clock, Moment, Nanos};
use plimsoll_transport::LookTimes;
use tokio::task::{LocalSet, spawn_local};

use crate::clock::WorkerClock;
use crate::timer::Deadlines;

/// Runs a future and the tasks that it spawns. Time moves on when all of them wait.
///
/// # Panics
/// If all wait, and none for a deadline.
pub(crate) fn run_simulated<F: Future>(
    simulation: &Simulation,
    tasks: &LocalSet,
    future: F,
) -> F::Output {
    run(tasks, future, || {
        assert!(simulation.advance(), "at {:?} every task waits for another", simulation.now());
    })
}

/// Runs a future and the tasks that it spawns, which wait for nothing but each other.
///
/// # Panics
/// If all wait.
pub(crate) fn run_until_stalled<F: Future>(future: F) -> F::Output {
    run(&LocalSet::new(), future, || panic!("every task waits for another"))
}

fn run<F: Future>(tasks: &LocalSet, future: F, mut when_idle: impl FnMut()) -> F::Output {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(tasks.run_until(future));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        if !woken.0.swap(false, Ordering::Relaxed) {
            when_idle();
        }
    }
}

/// Whether any task was woken since the last look.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The time that the news of a closed connection takes to the client.
pub(crate) const FLIGHT: Nanos = Nanos::from_millis(1);

/// A response of a chat in one piece.
pub(crate) const CHAT_BODY: &str = r#"{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}],"usage":{"prompt_tokens":8,"completion_tokens":1}}"#;

/// The reaction of the target to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reply {
    /// Refuses the connection.
    Refuse,
    /// Responds in one piece, so long after the request.
    Respond { after: Nanos, status: u16 },
    /// Responds with this body at once.
    Body(&'static str),
    /// The same, so long after the request.
    BodyAfter { after: Nanos, body: &'static str },
    /// Streams so many content events: the first so long after the request, the others with gaps.
    Stream { first: Nanos, gap: Nanos, events: u32 },
    /// Streams these reads.
    Reads(&'static [ScriptedRead]),
    /// Never responds.
    Hang,
    /// Resets the connection, so long after the request.
    Reset { after: Nanos },
}

/// One read of a streamed response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ScriptedRead {
    /// Time since the read before, or since the request.
    pub(crate) after: Nanos,
    /// Its bytes, after the head.
    pub(crate) text: &'static str,
    /// How much earlier its first byte may have arrived, and its last one.
    pub(crate) earlier_by: [Nanos; 2],
}

/// A completed response, `ms` milliseconds after the request.
pub(crate) const fn respond_after(ms: u64) -> Reply {
    Reply::Respond { after: Nanos::from_millis(ms), status: 200 }
}

/// A request as the target received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReceivedRequest {
    pub(crate) at: Moment,
    /// Connections are numbered from 1.
    pub(crate) connection: u32,
    pub(crate) id: String,
    pub(crate) body: String,
}

/// A target that follows a script.
#[derive(Debug)]
pub(crate) struct ScriptedTarget {
    script: RefCell<VecDeque<Reply>>,
    /// After the end of the script.
    otherwise: Reply,
    /// Time to open a connection.
    pub(crate) connect_time: Nanos,
    /// The target closes a connection that has been idle for so long. The client learns it
    /// [`FLIGHT`] later.
    pub(crate) idle_timeout: Option<Nanos>,
    /// Does one thing at a time, and answers each request when it is done.
    pub(crate) serial: Option<Rc<SerialServer>>,
    connections: Cell<u32>,
    requests: RefCell<Vec<ReceivedRequest>>,
}

impl ScriptedTarget {
    /// Treats every request the same.
    pub(crate) fn always(reply: Reply) -> Self {
        Self::script([], reply)
    }

    /// Treats the first requests by a script, and all others the same.
    pub(crate) fn script(first: impl IntoIterator<Item = Reply>, otherwise: Reply) -> Self {
        Self {
            script: RefCell::new(first.into_iter().collect()),
            otherwise,
            connect_time: Nanos::ZERO,
            idle_timeout: None,
            serial: None,
            connections: Cell::new(0),
            requests: RefCell::default(),
        }
    }

    /// A target that does one thing at a time.
    pub(crate) fn serial(costs: Costs) -> Self {
        let serial = Some(SerialServer::new(costs));
        Self { serial, ..Self::always(respond_after(0)) }
    }

    /// Whether it refuses the next connection.
    fn refuses(&self) -> bool {
        let mut script = self.script.borrow_mut();
        let refuses = matches!(script.front().unwrap_or(&self.otherwise), Reply::Refuse);
        if refuses {
            script.pop_front();
        }
        refuses
    }

    /// The reply to the next request.
    fn next_reply(&self) -> Reply {
        self.script.borrow_mut().pop_front().unwrap_or(self.otherwise)
    }

    /// The number of a new connection.
    fn open_connection(&self) -> u32 {
        self.connections.set(self.connections.get() + 1);
        self.connections.get()
    }

    fn log(&self, request: ReceivedRequest) {
        self.requests.borrow_mut().push(request);
    }

    /// The requests so far.
    pub(crate) fn requests(&self) -> Vec<ReceivedRequest> {
        self.requests.borrow().clone()
    }
}

/// Cost of each operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Costs {
    /// Accepting a connection. It comes before anything else, and the client does not wait for it:
    /// the kernel has already completed the TCP handshake.
    pub(crate) accept: Nanos,
    /// A TLS handshake, in turn with requests. The client waits for it.
    pub(crate) handshake: Nanos,
    /// A request.
    pub(crate) request: Nanos,
    /// How long it does nothing, once, [`PAUSE_AT`] after the first connection.
    pub(crate) pause: Nanos,
}

/// When the pause begins.
const PAUSE_AT: Nanos = Nanos::from_millis(400);

/// The server. Its time passes while it works, whatever else happens.
#[derive(Debug)]
pub(crate) struct SerialServer {
    pub(crate) costs: Costs,
    accepts: Cell<u32>,
    jobs: RefCell<VecDeque<(Nanos, Rc<Job>)>>,
    working: Cell<bool>,
    /// When it does nothing.
    pause: Cell<Option<Moment>>,
    /// From when to when it does nothing besides, in order.
    stalls: RefCell<VecDeque<(Moment, Moment)>>,
}

/// Something that a client waits for.
#[derive(Debug, Default)]
struct Job {
    done: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl SerialServer {
    pub(crate) fn new(costs: Costs) -> Rc<Self> {
        Rc::new(Self {
            costs,
            accepts: Cell::new(0),
            jobs: RefCell::default(),
            working: Cell::new(false),
            pause: Cell::new(None),
            stalls: RefCell::default(),
        })
    }

    /// Stops the server between two moments, which must follow the moments of the previous call.
    pub(crate) fn stall(&self, from: Moment, to: Moment) {
        self.stalls.borrow_mut().push_back((from, to));
    }

    /// The end of the stall that goes on now.
    fn stalled(&self, now: Moment) -> Option<Moment> {
        let mut stalls = self.stalls.borrow_mut();
        while stalls.front().is_some_and(|(_, to)| *to <= now) {
            stalls.pop_front();
        }
        stalls.front().filter(|(from, _)| *from <= now).map(|(_, to)| *to)
    }

    /// Does nothing for a while, if it is time to.
    async fn pause(&self, clock: &WorkerClock) {
        if let Some(end) = self.stalled(clock.now()) {
            sleep_until(clock, end).await;
        }
        if self.pause.get().is_some_and(|pause| clock.now() >= pause) {
            self.pause.set(Some(Moment::EPOCH + Nanos::new(u64::MAX)));
            sleep_until(clock, clock.now() + self.costs.pause).await;
        }
    }

    /// A connection to accept.
    fn connect(self: &Rc<Self>, clock: &WorkerClock) {
        self.accepts.set(self.accepts.get() + 1);
        self.pause.set(self.pause.get().or_else(|| Some(clock.now() + PAUSE_AT)));
        self.work(clock);
    }

    /// Waits until the server has done something of this cost.
    async fn perform(self: &Rc<Self>, clock: &WorkerClock, cost: Nanos) {
        let job = Rc::new(Job::default());
        self.jobs.borrow_mut().push_back((cost, Rc::clone(&job)));
        self.work(clock);
        poll_fn(|context| {
            job.waker.replace(Some(context.waker().clone()));
            if job.done.get() { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }

    fn work(self: &Rc<Self>, clock: &WorkerClock) {
        if self.working.replace(true) {
            return;
        }
        let (server, clock) = (Rc::clone(self), clock.clone());
        spawn_local(async move {
            server.do_all(&clock).await;
            server.working.set(false);
        });
    }

    /// Works until nothing is left to do.
    async fn do_all(&self, clock: &WorkerClock) {
        loop {
            self.pause(clock).await;
            if self.accepts.get() > 0 {
                self.accepts.set(self.accepts.get() - 1);
                sleep_until(clock, clock.now() + self.costs.accept).await;
                continue;
            }
            let Some((cost, job)) = self.jobs.borrow_mut().pop_front() else { break };
            sleep_until(clock, clock.now() + cost).await;
            job.done.set(true);
            if let Some(waker) = job.waker.take() {
                waker.wake();
            }
        }
    }
}

/// A world whose time stands still while any task can run.
#[derive(Debug)]
pub(crate) struct Simulation {
    now: Cell<Moment>,
    deadlines: Deadlines,
    pub(crate) target: ScriptedTarget,
    /// When the simulated worker looked at its sockets.
    pub(crate) looks: Arc<LookTimes>,
    /// From when to when the worker does not run, in order.
    pauses: RefCell<VecDeque<(Moment, Moment)>>,
}

/// A clock that may show virtual time.
pub(crate) trait Simulated: Clock {
    /// The world whose time it shows.
    fn simulation(&self) -> Option<&Rc<Simulation>>;
}

/// Sleeps until a moment of virtual time, and returns at once where it has passed. The woken task
/// has read the clock, as with the timer of a real worker.
pub(crate) async fn sleep_until(clock: &impl Simulated, at: Moment) {
    let simulation = clock.simulation().expect("the clock shows virtual time");
    poll_fn(|context| {
        let is_past = simulation.is_past_or_wake(at, context);
        if is_past { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    assert!(clock.now() >= at);
}

impl Simulation {
    /// A world at the clock's epoch.
    pub(crate) fn new(target: ScriptedTarget) -> Rc<Self> {
        Rc::new(Self {
            now: Cell::new(Moment::EPOCH),
            deadlines: Deadlines::default(),
            target,
            looks: Arc::default(),
            pauses: RefCell::default(),
        })
    }

    /// Stops the worker between two moments, which must follow the moments of the previous call.
    /// Events in that time wake it at the end. The target continues.
    pub(crate) fn pause(&self, from: Moment, to: Moment) {
        self.pauses.borrow_mut().push_back((from, to));
    }

    /// When a worker runs that wants to run at a moment.
    fn running(&self, at: Moment) -> Moment {
        let mut pauses = self.pauses.borrow_mut();
        while pauses.front().is_some_and(|(_, to)| *to <= at) {
            pauses.pop_front();
        }
        pauses.front().filter(|(from, _)| *from <= at).map_or(at, |(_, to)| *to)
    }

    /// The virtual time.
    pub(crate) fn now(&self) -> Moment {
        self.now.get()
    }

    /// Whether a moment has passed. If not, the task is woken then.
    pub(crate) fn is_past_or_wake(&self, at: Moment, context: &Context<'_>) -> bool {
        let is_past = self.now.get() >= at;
        if !is_past {
            self.deadlines.push(at, context.waker().clone());
        }
        is_past
    }

    /// Moves the time to the next deadline; false if no deadline is left.
    pub(crate) fn advance(&self) -> bool {
        let Some(next) = self.deadlines.earliest() else { return false };
        self.looks.sleeps(self.now.get(), None);
        self.now.set(self.running(next.max(self.now.get())));
        self.looks.wakes(self.now.get());
        self.deadlines.wake_due(self.now.get());
        true
    }
}
