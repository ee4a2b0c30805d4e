//! Changes of requests and answers by gateways, from single exchanges whose answers are known.
//!
//! A scripted upstream answers as `fidelity/cases.yaml` says and records what reaches it. Each cell
//! follows from that record and from the bytes that the client got.

mod cases;
mod client;
mod documents;
#[cfg(test)]
mod tests;
mod upstream;
mod verdict;

use std::time::Duration;

use plimsoll_measure::{Clock as _, MonotonicClock};
use plimsoll_runner::time::{poll, sleep};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use self::cases::{Case, DIALECTS, Exchange, Reply};
use self::client::{Answer, End};
use self::upstream::ScriptedUpstream;
use self::verdict::Observed;
use super::running::Access;

/// How long the client waits. Reaching it proves nothing about the gateway.
pub(super) const LIMIT: Duration = Duration::from_secs(20);
/// How long the upstream may take to end an answer after the client left.
const AFTER_LEAVING: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// For a gateway to notice that an idle connection was closed.
const IDLE: Duration = Duration::from_millis(100);
const BY_ENTRY: &str = "its entry does not list this dialect";

/// The cells of one gateway, in the order of the rows, which is the same for all gateways.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fidelity {
    pub(crate) cells: Vec<Cell>,
}

/// One case in one dialect.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) group: String,
    pub(crate) case: String,
    pub(crate) dialect: String,
    pub(crate) state: State,
    /// The change, the reason, or a figure; may be empty.
    pub(crate) seen: String,
    /// The status at the client; 0 without an answer.
    pub(crate) status: u16,
    /// How often the upstream was asked.
    pub(crate) requests: usize,
}

impl Cell {
    /// The name of its row.
    pub(crate) fn row(&self) -> String {
        format!("{}: {}: {}", self.dialect, self.group, self.case)
    }

    /// Its state as tables show it. Retries are counted.
    pub(crate) fn label(&self) -> String {
        match (self.state, self.requests) {
            (State::Changed, requests @ 2..) => format!("changed ({requests} requests)"),
            (state, _) => state.label().to_owned(),
        }
    }
}

/// The state of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum State {
    /// All that the case watches arrived unchanged.
    Kept,
    /// The gateway does not have the path, or its entry says so.
    NotOffered,
    /// The exchange proves nothing, for example because of our own timeout.
    NotObserved,
    /// The gateway changed something.
    Changed,
}

impl State {
    const fn label(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::NotOffered => "not offered",
            Self::NotObserved => "not observed",
            Self::Changed => "changed",
        }
    }
}

/// Starts the scripted upstream, then the gateway through `start`, which gets the upstream's port,
/// and runs all cases, each answer within a `limit`. Once `stopped`, the remaining cells are not
/// observed.
///
/// # Errors
/// The gateway or the upstream could not be started.
pub(crate) fn observe<R>(
    limit: Duration,
    start: &mut dyn FnMut(u16) -> Result<(R, Access), String>,
    stopped: &dyn Fn() -> bool,
) -> Result<Fidelity, String> {
    let clock = MonotonicClock::start();
    let cases = cases::read("mock")?;
    let usual = cases[0].exchanges.iter().map(|exchange| exchange.reply.clone());
    let upstream = ScriptedUpstream::start(clock, usual.collect());
    let upstream = upstream.map_err(|error| format!("no scripted upstream: {error}"))?;
    let (_running, access) = start(upstream.port)?;
    let mut cases = cases::read(&access.model)?;
    for case in &mut cases {
        case.exchanges[0].path.clone_from(&access.path);
        for exchange in &mut case.exchanges {
            let own = access.headers.iter().filter_map(|header| header.split_once(':'));
            let own = own.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
            exchange.headers.extend(own);
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no event loop: {error}"))?;
    Ok(Examination { limit, clock, upstream, access, runtime }.run(&cases, stopped))
}

/// The examination of one gateway.
struct Examination {
    limit: Duration,
    clock: MonotonicClock,
    upstream: ScriptedUpstream,
    access: Access,
    runtime: Runtime,
}

impl Examination {
    fn run(&self, cases: &[Case], stopped: &dyn Fn() -> bool) -> Fidelity {
        let mut cells: Vec<Cell> = Vec::new();
        for case in cases {
            for (number, dialect) in DIALECTS.into_iter().enumerate() {
                let mut cell = Cell {
                    group: case.group.clone(),
                    case: case.name.clone(),
                    dialect: dialect.to_owned(),
                    state: State::NotObserved,
                    seen: "interrupted".to_owned(),
                    status: 0,
                    requests: 0,
                };
                self.fill(&mut cell, &cells, [case, &cases[0]], number, stopped);
                cells.push(cell);
            }
        }
        Fidelity { cells }
    }

    /// Decides a cell. `earlier` has those before it, and `plain` is the first case.
    fn fill(
        &self,
        cell: &mut Cell,
        earlier: &[Cell],
        [case, plain]: [&Case; 2],
        number: usize,
        stopped: &dyn Fn() -> bool,
    ) {
        if let Some(plain) = earlier.get(number).filter(|plain| plain.requests == 0) {
            (cell.state, cell.seen) = (plain.state, plain.seen.clone());
        } else if !self.access.dialects.contains(&cell.dialect) {
            (cell.state, cell.seen) = (State::NotOffered, BY_ENTRY.to_owned());
        } else if !stopped() {
            self.try_case(cell, case, number);
            if cell.state == State::Changed {
                self.verify(cell, [case, plain], number);
            }
        }
    }

    /// Observes a case, several times if need be.
    fn try_case(&self, cell: &mut Cell, case: &Case, number: usize) {
        let Exchange { tries, alone, .. } = &case.exchanges[number];
        for _ in 0..*tries.max(&1) {
            self.observe(cell, case, number, &self.access.address);
            let is_final = cell.state == State::Changed && alone.is_empty();
            if is_final || matches!(cell.state, State::Kept | State::NotOffered) {
                break;
            }
        }
    }

    /// Looks for another cause of a change than the case itself.
    fn verify(&self, cell: &mut Cell, [case, plain]: [&Case; 2], number: usize) {
        let mut control = cell.clone();
        if !case.exchanges[number].alone.is_empty() {
            let upstream = format!("127.0.0.1:{}", self.upstream.port);
            self.observe(&mut control, case, number, &upstream);
            if control.state != State::Kept {
                cell.state = State::NotObserved;
                cell.seen = format!("host too busy: without the gateway, {}", control.seen);
            }
        } else if cell.requests == 0 {
            // After failures, a gateway may avoid its upstream for a while.
            self.observe(&mut control, plain, number, &self.access.address);
            if control.requests == 0 {
                cell.state = State::NotObserved;
                cell.seen = format!("a plain request gets status {}, too", control.status);
            }
        }
    }

    /// Carries out an exchange with a server, and judges it.
    fn observe(&self, cell: &mut Cell, case: &Case, number: usize, address: &str) {
        let exchange = &case.exchanges[number];
        if exchange.before.is_some() {
            self.ask(case, number, address, |other| other.before.clone().unwrap_or_default());
            sleep(IDLE);
        }
        let (mark, answer) = self.ask(case, number, address, |exchange| exchange.reply.clone());
        if matches!(answer.end, End::Left(_)) {
            poll(AFTER_LEAVING, POLL_INTERVAL, || {
                let calls = self.upstream.calls();
                calls.first().filter(|call| call.finished || call.gone.is_some()).map(drop)
            });
        }
        let (answer, calls) = (&answer, &self.upstream.calls()[..]);
        let observed = Observed { case, exchange, mark: &mark, answer, calls };
        (cell.state, cell.seen) = observed.verdict();
        (cell.status, cell.requests) = (answer.status, calls.len());
    }

    /// Asks once, with these answers of the upstream. Also returns the mark of the request.
    fn ask(
        &self,
        case: &Case,
        number: usize,
        address: &str,
        reply: impl Fn(&Exchange) -> Reply,
    ) -> (String, Answer) {
        let exchange = &case.exchanges[number];
        let mark = format!("fidelity-{}-end", self.clock.now().as_nanos());
        self.upstream.begin(&mark, case.exchanges.iter().map(reply).collect());
        let mut answer = Answer::new(self.clock);
        let limit = exchange.leave_ms.map_or(self.limit, Duration::from_millis);
        let fetched = self.runtime.block_on(answer.fetch(exchange, address, &mark, limit));
        if let Err(reason) = fetched {
            answer.end = End::Unknown(reason);
        } else if matches!(answer.end, End::Left(_)) && !exchange.told {
            answer.end = End::Unknown(format!("no end of the answer within {} s", limit.as_secs()));
        }
        (mark, answer)
    }
}
