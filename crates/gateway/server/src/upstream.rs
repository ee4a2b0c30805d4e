//! Upstreams: the servers behind the gateway, and the choice of one for each request.

mod connection;
mod pool;
pub(crate) mod proxy;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

pub(crate) use connection::{Broken, Received, UpstreamConn, UpstreamError};
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::http::uri::Scheme;
use plimsoll_gateway_dialect::LimitName;
pub(crate) use pool::Pool;
use tokio::sync::Notify;
use tokio::task::yield_now;

use crate::base::clock;
use crate::config::units::HumanDuration;
use crate::config::{BreakerSpec, DialectSpec, RetrySpec, Secret, TokenLimitSpec, UpstreamSpec};

/// The smallest buffer that hyper reads responses with.
const MIN_BUFFER: u64 = 8_192;

/// A group of interchangeable servers.
#[derive(Debug)]
pub(crate) struct Upstream {
    pub(crate) name: Arc<str>,
    pub(crate) endpoints: Vec<Arc<Endpoint>>,
    pub(crate) dialect: DialectSpec,
    pub(crate) limit_name: LimitName,
    /// Sent instead of the client's key.
    pub(crate) key: Option<String>,
    pub(crate) timeout: HumanDuration,
    pub(crate) idle_timeout: HumanDuration,
    pub(crate) retry: Option<RetrySpec>,
    pub(crate) retry_budget: RetryBudget,
    next: AtomicUsize,
}

impl Upstream {
    /// # Errors
    /// A message about an invalid value.
    pub(crate) fn new(name: &str, spec: &UpstreamSpec) -> Result<Self, String> {
        if spec.addresses.is_empty() {
            return Err(format!("upstream `{name}` has no address: add `addresses: [HOST:PORT]`"));
        }
        if spec.buffer.0 < MIN_BUFFER {
            return Err(format!("upstream `{name}`: `buffer` is at least {MIN_BUFFER} bytes"));
        }
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        Ok(Self {
            name: Arc::from(name),
            endpoints: spec
                .addresses
                .iter()
                .enumerate()
                .map(|(number, address): (usize, &String)| {
                    let endpoint = Endpoint::new(address, spec).map(Arc::new);
                    // The address is not repeated: it may be a URL with a password.
                    endpoint.ok_or_else(|| {
                        format!("upstream `{name}`: its address {} is not HOST:PORT", number + 1)
                    })
                })
                .collect::<Result<_, _>>()?,
            dialect: spec.dialect,
            limit_name: match spec.token_limit {
                TokenLimitSpec::MaxCompletionTokens => LimitName::MaxCompletionTokens,
                TokenLimitSpec::MaxTokens => LimitName::MaxTokens,
            },
            key: key.map_err(|problem| format!("upstream `{name}`: {problem}"))?,
            timeout: spec.timeout,
            idle_timeout: spec.idle_timeout,
            retry: spec.retry,
            retry_budget: RetryBudget::new(spec.retry.map_or(0.0, |retry| retry.budget)),
            next: AtomicUsize::new(0),
        })
    }

    /// The next server in turn for a request; `None` when none is available. `tried` failed before,
    /// and is chosen only if there is no other.
    pub(crate) fn choose(&self, tried: Option<&Arc<Endpoint>>, now: u64) -> Option<InFlightGuard> {
        if let [only] = self.endpoints.as_slice() {
            return admitted(only, now);
        }
        let start = self.next.fetch_add(1, Ordering::Relaxed) % self.endpoints.len();
        let (before, from_start) = self.endpoints.split_at(start);
        let available =
            || from_start.iter().chain(before).filter(|endpoint| endpoint.is_available(now));
        let untried =
            available().find(|endpoint| tried.is_none_or(|tried| !Arc::ptr_eq(tried, endpoint)));
        untried.or_else(|| available().next()).and_then(|endpoint| admitted(endpoint, now))
    }
}

/// A request to a server that takes one now.
fn admitted(endpoint: &Arc<Endpoint>, now: u64) -> Option<InFlightGuard> {
    endpoint.admits(now).map(|admission| InFlightGuard::new(endpoint, admission))
}

/// Closed while `open_until` is 0. Open until that time; then one trial request decides.
#[derive(Debug)]
struct Breaker {
    /// Failures in a row that open it.
    max_failures: u32,
    /// Nanoseconds.
    open_for: u64,
    /// Failures in a row so far.
    failures: AtomicU32,
    /// Monotonic nanoseconds.
    open_until: AtomicU64,
}

/// How a request was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Admission {
    /// The breaker is closed.
    Usual,
    /// As the trial of an open breaker, which stays open for all others until this time.
    Trial(u64),
}

impl Breaker {
    fn new(spec: BreakerSpec) -> Self {
        Self {
            max_failures: spec.failures.max(1),
            open_for: spec.open.nanos(),
            failures: AtomicU32::new(0),
            open_until: AtomicU64::new(0),
        }
    }

    /// Whether it would admit a request. This changes no state.
    fn may_admit(&self, now: u64) -> bool {
        self.open_until.load(Ordering::Relaxed) <= now
    }

    /// Whether it admits this request. The first one after `open_until` is the trial; the breaker
    /// stays open as long again for all others.
    fn admits(&self, now: u64) -> Option<Admission> {
        let until = self.open_until.load(Ordering::Relaxed);
        if until == 0 {
            return Some(Admission::Usual);
        }
        let again = now.saturating_add(self.open_for);
        let is_trial = until <= now
            && self
                .open_until
                .compare_exchange(until, again, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        is_trial.then_some(Admission::Trial(again))
    }

    /// A trial that its client ended decided nothing: the next request is the trial.
    fn undecided(&self, admission: Admission, now: u64) {
        if let Admission::Trial(until) = admission {
            // Something else decided meanwhile if this fails.
            let _ = self.open_until.compare_exchange(
                until,
                now.max(1),
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
        }
    }

    fn record(&self, success: bool, now: u64) {
        if success {
            // Read first: a store would take the cache line from the other workers on every
            // request.
            if self.failures.load(Ordering::Relaxed) != 0 {
                self.failures.store(0, Ordering::Relaxed);
                self.open_until.store(0, Ordering::Relaxed);
            }
        } else if self.failures.fetch_add(1, Ordering::Relaxed) + 1 >= self.max_failures {
            self.open_until.store(now.saturating_add(self.open_for), Ordering::Relaxed);
        }
    }
}

/// `HOST:PORT` of a URL of plain HTTP, with the usual port where it names none. `None` where the
/// URL is another one, has a user, or names a port that is none: that must not become the usual
/// one.
pub(crate) fn address_of(url: &Uri) -> Option<String> {
    let authority = url.authority().filter(|_| url.scheme() == Some(&Scheme::HTTP))?;
    let host = authority.host();
    // A user stands before the host.
    let port = authority.as_str().strip_prefix(host)?;
    let port: u16 = if port.is_empty() { 80 } else { port.strip_prefix(':')?.parse().ok()? };
    Some(format!("{host}:{port}"))
}

/// One server of an upstream, with the state that all workers share.
#[derive(Debug)]
pub(crate) struct Endpoint {
    /// `HOST:PORT`.
    pub(crate) address: Arc<str>,
    /// The value of the header `host`.
    pub(crate) host: HeaderValue,
    pub(crate) connect_timeout: HumanDuration,
    /// Nanoseconds that an idle connection to it is kept.
    keep_alive: u64,
    /// Bytes of the buffer that responses are read into.
    buffer: usize,
    breaker: Option<Breaker>,
}

impl Endpoint {
    /// `None` if the address is not `HOST:PORT`.
    fn new(address: &str, spec: &UpstreamSpec) -> Option<Self> {
        let (name, port) = address.rsplit_once(':')?;
        let port: u16 = port.parse().ok()?;
        if port == 0 || name.is_empty() || name.contains(['@', '/']) {
            return None;
        }
        Some(Self {
            address: Arc::from(address),
            host: HeaderValue::from_str(address).ok()?,
            connect_timeout: spec.connect_timeout,
            keep_alive: spec.keep_alive.nanos(),
            buffer: usize::try_from(spec.buffer.0).unwrap_or(usize::MAX),
            breaker: spec.breaker.map(Breaker::new),
        })
    }

    /// Whether it may get a request. This changes no state.
    pub(crate) fn is_available(&self, now: u64) -> bool {
        self.breaker.as_ref().is_none_or(|breaker| breaker.may_admit(now))
    }

    /// Whether it gets this request. When an open breaker's time is over, it admits one as a trial.
    fn admits(&self, now: u64) -> Option<Admission> {
        self.breaker.as_ref().map_or(Some(Admission::Usual), |breaker| breaker.admits(now))
    }
}

/// A request that an endpoint admitted, in flight until it is dropped. A client that ends its
/// request says nothing about the server: then nothing is recorded.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    endpoint: Arc<Endpoint>,
    /// The trial of a breaker, as long as it is undecided.
    admission: Cell<Admission>,
}

impl InFlightGuard {
    fn new(endpoint: &Arc<Endpoint>, admission: Admission) -> Self {
        Self { endpoint: Arc::clone(endpoint), admission: Cell::new(admission) }
    }

    pub(crate) fn endpoint(&self) -> &Arc<Endpoint> {
        &self.endpoint
    }

    /// Reports the result of the request to the breaker.
    pub(crate) fn record(&self, success: bool) {
        self.admission.set(Admission::Usual);
        if let Some(breaker) = &self.endpoint.breaker {
            breaker.record(success, clock::now());
        }
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let admission = self.admission.get();
        if admission != Admission::Usual
            && let Some(breaker) = &self.endpoint.breaker
        {
            breaker.undecided(admission, clock::now());
        }
    }
}

/// Chunks of a body from this size on take turns.
pub(crate) const BULK: usize = 4 << 10;

/// Steps in one turn: large chunks, and requests that begin.
const STEPS: usize = 32;

/// The shortest turn in nanoseconds, where nobody waits in line. A worker that makes fewer steps in
/// this time never has a line.
const TURN: u64 = 500_000;

/// The turns of one worker.
#[derive(Debug, Default)]
pub(crate) struct FairQueue {
    /// Monotonic nanoseconds at which this turn began.
    begin: Cell<u64>,
    steps: Cell<usize>,
    line: RefCell<VecDeque<Waker>>,
    has_line: Notify,
}

impl FairQueue {
    /// Waits until a step is possible.
    pub(crate) async fn step(&self) {
        poll_fn(|context| self.poll_step(context)).await;
    }

    /// Ready when a step is possible in this turn.
    pub(crate) fn poll_step(&self, context: &Context<'_>) -> Poll<()> {
        if self.steps.get() >= STEPS && !self.begin_if_over() {
            self.line.borrow_mut().push_back(context.waker().clone());
            self.has_line.notify_one();
            return Poll::Pending;
        }
        self.steps.set(self.steps.get() + 1);
        Poll::Ready(())
    }

    /// Begins a new turn where nobody waits in line and this one was long enough.
    fn begin_if_over(&self) -> bool {
        let now = clock::now();
        let over = self.line.borrow().is_empty() && now - self.begin.get() >= TURN;
        if over {
            self.begin.set(now);
            self.steps.set(0);
        }
        over
    }

    /// Begins turns as long as there is a line, each when all other tasks had theirs.
    #[expect(clippy::infinite_loop, reason = "the worker's runtime ends it")]
    pub(crate) async fn run(self: Rc<Self>) {
        loop {
            self.has_line.notified().await;
            yield_now().await;
            self.begin.set(clock::now());
            self.steps.set(0);
            let mut line = self.line.borrow_mut();
            let next = line.len().min(STEPS);
            line.drain(..next).for_each(Waker::wake);
            if !line.is_empty() {
                // Those that were woken may be gone, and then make no step.
                self.has_line.notify_one();
            }
            if line.capacity() > 2 * line.len().max(STEPS) {
                line.shrink_to_fit();
            }
        }
    }
}

/// Retries that are allowed in each window whatever the traffic.
const FREE_RETRIES: f64 = 10.0;

/// Counts requests and retries of the current window; retries are limited to [`FREE_RETRIES`] and a
/// share of the requests.
#[derive(Debug)]
pub(crate) struct RetryBudget {
    share: f64,
    window: AtomicU64,
    requests: AtomicU64,
    retries: AtomicU64,
}

/// Ten seconds, in nanoseconds.
const WINDOW: u64 = 10_000_000_000;

impl RetryBudget {
    const fn new(share: f64) -> Self {
        Self {
            share,
            window: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        }
    }

    /// Counts the first attempt of a request.
    pub(crate) fn count_request(&self, now: u64) {
        let window = now / WINDOW;
        if self.window.swap(window, Ordering::Relaxed) != window {
            self.requests.store(0, Ordering::Relaxed);
            self.retries.store(0, Ordering::Relaxed);
        }
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes a retry out of the budget; `false` if it is used up.
    pub(crate) fn try_retry(&self) -> bool {
        let allowed = FREE_RETRIES + self.share * self.requests.load(Ordering::Relaxed) as f64;
        self.retries
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |retries: u64| {
                ((retries as f64) < allowed).then_some(retries + 1)
            })
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::units::HumanDuration;

    #[test]
    fn it_opens_after_failures_in_a_row_admits_one_trial_and_closes_on_success() {
        let breaker = Breaker::new(BreakerSpec { failures: 3, open: HumanDuration::secs(1) });
        let second = 1_000_000_000;
        breaker.record(false, 1);
        breaker.record(false, 2);
        breaker.record(true, 3);
        breaker.record(false, 4);
        breaker.record(false, 5);
        let admits = |now| breaker.admits(now).is_some();
        assert!(admits(6), "two in a row are not three");
        breaker.record(false, 10);
        assert!(!admits(10 + second - 1), "open");
        assert!(admits(10 + second), "one trial");
        assert!(!admits(10 + second), "and only one");
        breaker.record(false, 11 + second);
        assert!(!admits(12 + second), "it failed: open again");
        assert!(admits(11 + 2 * second));
        breaker.record(true, 12 + 2 * second);
        assert!(admits(13 + 2 * second) && admits(13 + 2 * second), "closed");
    }

    #[test]
    fn a_trial_that_decided_nothing_is_made_again() {
        let breaker = Breaker::new(BreakerSpec { failures: 1, open: HumanDuration::secs(1) });
        let second = 1_000_000_000;
        breaker.record(false, 1);
        let trial = breaker.admits(2 * second).unwrap();
        assert_eq!(breaker.admits(2 * second + 1), None);
        breaker.undecided(trial, 2 * second + 2);
        let again = breaker.admits(2 * second + 2).unwrap();
        assert_ne!(again, Admission::Usual, "it is open still");
        breaker.record(true, 2 * second + 3);
        breaker.undecided(again, 2 * second + 4);
        assert_eq!(breaker.admits(2 * second + 5), Some(Admission::Usual), "it was decided");
    }

    #[test]
    fn a_url_gives_an_address_or_nothing() {
        for (url, expected) in [
            ("http://127.0.0.1:9000/mcp", Some("127.0.0.1:9000")),
            ("http://tools", Some("tools:80")),
            ("http://[::1]/a?b=c", Some("[::1]:80")),
            ("http://[::1]:9000/", Some("[::1]:9000")),
            ("http://tools:65535/", Some("tools:65535")),
            ("http://tools:65536/", None),
            ("http://tools:99999/", None),
            ("http://tools:/", None),
            ("https://tools/mcp", None),
            ("http://joe:secret@tools/mcp", None),
            ("http://tools@tools/mcp", None),
            ("http://tools:80@tools:80/mcp", None),
            ("tools:9000", None),
            ("/mcp", None),
        ] {
            let found = url.parse().ok().and_then(|url| address_of(&url));
            assert_eq!(found.as_deref(), expected, "{url}");
        }
    }

    async fn step(fair_queue: Rc<FairQueue>, made: Rc<Cell<usize>>) {
        fair_queue.step().await;
        made.set(made.get() + 1);
    }

    #[test]
    fn a_crowd_waits_in_line_and_all_of_it_gets_its_turn() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap();
        let made = Rc::new(Cell::new(0));
        runtime.block_on(async {
            let fair_queue = Rc::<FairQueue>::default();
            tokio::task::spawn_local(Rc::clone(&fair_queue).run());
            let tasks: Vec<_> = (0..1_000)
                .map(|_| tokio::task::spawn_local(step(Rc::clone(&fair_queue), Rc::clone(&made))))
                .collect();
            // Some give up while they wait.
            tasks.iter().skip(100).step_by(2).for_each(tokio::task::JoinHandle::abort);
            yield_now().await;
            yield_now().await;
            assert!(made.get() < 500, "all at once: {}", made.get());
            for task in tasks {
                let _ = task.await;
            }
        });
        assert_eq!(made.get(), 550);
    }

    #[test]
    fn retries_are_a_share_of_the_requests_and_a_few() {
        let budget = RetryBudget::new(0.2);
        (0..100).for_each(|_| budget.count_request(WINDOW));
        let granted = (0..1_000).filter(|_| budget.try_retry()).count();
        assert_eq!(granted, 30, "ten, and a fifth of a hundred");
        budget.count_request(2 * WINDOW);
        assert!(budget.try_retry(), "a new window");
    }
}
