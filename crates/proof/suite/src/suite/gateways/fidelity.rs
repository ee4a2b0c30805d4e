//! What gateways do to requests and answers: single exchanges whose answers are known.
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

use std::collections::BTreeMap;
use std::time::Duration;

use plimsoll_measure::MonotonicClock;
use plimsoll_runner::time::{poll, sleep};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use self::cases::{Case, Cases, DIALECTS, Exchange, Reply};
use self::client::{Answer, End, Question};
use self::upstream::ScriptedUpstream;
use self::verdict::Observed;
use super::running::Access;

/// How long the client waits. Reaching it proves nothing about the gateway.
const LIMIT: Duration = Duration::from_secs(20);
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
    /// A cell before its exchange.
    fn unobserved(case: &Case, dialect: &str) -> Self {
        Self {
            group: case.group.clone(),
            case: case.name.clone(),
            dialect: dialect.to_owned(),
            state: State::NotObserved,
            seen: "interrupted".to_owned(),
            status: 0,
            requests: 0,
        }
    }

    /// The name of its row.
    pub(crate) fn row(&self) -> String {
        format!("{}: {}: {}", self.dialect, self.group, self.case)
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
    pub(crate) const fn is_change(self) -> bool {
        matches!(self, Self::Changed)
    }

    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::NotOffered => "not offered",
            Self::NotObserved => "not observed",
            Self::Changed => "changed",
        }
    }
}

/// Starts the scripted upstream, then the gateway through `start`, which gets the upstream's port,
/// and runs all cases. Once `stopped`, the remaining cells are not observed.
///
/// # Errors
/// The gateway or the upstream could not be started.
pub(crate) fn observe<R>(
    start: &mut dyn FnMut(u16) -> Result<(R, Access), String>,
    stopped: &dyn Fn() -> bool,
) -> Result<Fidelity, String> {
    let clock = MonotonicClock::start();
    let usual = Cases::read("mock")?.usual_answers()?;
    let upstream = ScriptedUpstream::start(clock, usual);
    let upstream = upstream.map_err(|error| format!("no scripted upstream: {error}"))?;
    let (_running, access) = start(upstream.port)?;
    let cases = Cases::read(&access.model)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no event loop: {error}"))?;
    let examination = Examination { clock, upstream, access, cases: &cases, runtime, exchanges: 0 };
    Ok(examination.run(stopped))
}

/// The examination of one gateway.
struct Examination<'c> {
    clock: MonotonicClock,
    upstream: ScriptedUpstream,
    access: Access,
    cases: &'c Cases,
    runtime: Runtime,
    /// Number of exchanges so far.
    exchanges: u64,
}

impl<'c> Examination<'c> {
    fn run(mut self, stopped: &dyn Fn() -> bool) -> Fidelity {
        let mut cells: Vec<Cell> = Vec::new();
        for case in &self.cases.cases {
            for dialect in DIALECTS {
                // The first case is a plain request: without it, nothing can be observed.
                let plain = cells.iter().find(|cell| cell.dialect == dialect);
                cells.push(self.cell(case, dialect, plain, stopped));
            }
        }
        Fidelity { cells }
    }

    fn cell(
        &mut self,
        case: &'c Case,
        dialect: &str,
        plain: Option<&Cell>,
        stopped: &dyn Fn() -> bool,
    ) -> Cell {
        let mut cell = Cell::unobserved(case, dialect);
        if let Some(plain) = plain.filter(|plain| plain.requests == 0) {
            (cell.state, cell.seen) = (plain.state, plain.seen.clone());
        } else if !self.access.dialects.iter().any(|offered| offered == dialect) {
            (cell.state, cell.seen) = (State::NotOffered, BY_ENTRY.to_owned());
        } else if !stopped() {
            self.fill(&mut cell, case);
            if plain.is_none() && cell.requests == 0 && cell.state == State::Changed {
                cell.state = State::NotObserved;
            }
        }
        cell
    }

    /// Observes a case, several times if need be.
    fn fill(&mut self, cell: &mut Cell, case: &'c Case) {
        let dialect = cell.dialect.clone();
        let Some(exchange) = case.exchanges.get(&dialect) else { return };
        let depends_on_time = !exchange.alone.is_empty();
        for _ in 0..exchange.tries.max(1) {
            self.observe(cell, case, exchange, &self.gateway(&dialect));
            let is_final = cell.state == State::Changed && !depends_on_time;
            if is_final || matches!(cell.state, State::Kept | State::NotOffered) {
                break;
            }
        }
        if cell.state == State::Changed && depends_on_time {
            let mut direct = cell.clone();
            self.observe(&mut direct, case, exchange, &self.direct(&dialect));
            if direct.state != State::Kept {
                cell.state = State::NotObserved;
                cell.seen = format!("host too busy: without the gateway, {}", direct.seen);
            }
        }
        // After failures, a gateway may avoid its upstream for a while.
        let rejected = cell.status == 429 || cell.status >= 500;
        if cell.state == State::Changed && cell.requests == 0 && rejected {
            self.check_availability(cell);
        }
    }

    /// Sends a plain request: if that is rejected too, a rejection shows nothing about its case.
    fn check_availability(&mut self, cell: &mut Cell) {
        let Some(plain) = self.cases.cases.first() else { return };
        let Some(exchange) = plain.exchanges.get(&cell.dialect) else { return };
        let mut control = cell.clone();
        self.observe(&mut control, plain, exchange, &self.gateway(&cell.dialect));
        if control.requests == 0 {
            cell.state = State::NotObserved;
            cell.seen = format!("the gateway rejects all requests: status {}", control.status);
        }
    }

    /// Carries out an exchange with a server, and judges it.
    fn observe(&mut self, cell: &mut Cell, case: &Case, exchange: &Exchange, server: &Server) {
        if exchange.before.is_some() {
            let before = |exchange: &Exchange| exchange.before.clone().unwrap_or_default();
            self.ask(case, exchange, server, before);
            sleep(IDLE);
        }
        let (mark, answer) = self.ask(case, exchange, server, |exchange| exchange.reply.clone());
        if matches!(answer.end, End::Left(_)) {
            poll(AFTER_LEAVING, POLL_INTERVAL, || {
                let calls = self.upstream.calls();
                calls.first().filter(|call| call.finished || call.gone.is_some()).map(drop)
            });
        }
        let (answer, calls, all) = (&answer, &self.upstream.calls()[..], &case.exchanges);
        let observed = Observed { exchange, all, mark: &mark, answer, calls };
        (cell.state, cell.seen) = observed.verdict();
        (cell.status, cell.requests) = (answer.status, calls.len());
    }

    /// Asks once, with these answers of the upstream.
    fn ask(
        &mut self,
        case: &Case,
        exchange: &Exchange,
        server: &Server,
        reply: impl Fn(&Exchange) -> Reply,
    ) -> (String, Answer) {
        self.exchanges += 1;
        let mark = format!("fidelity-{}-end", self.exchanges);
        let replies = case.exchanges.iter().map(|(name, exchange)| (name.clone(), reply(exchange)));
        self.upstream.begin(&mark, replies.collect());
        let headers = server.headers.iter().chain(&exchange.headers);
        let question = Question {
            address: &server.address,
            path: &server.path,
            headers: headers.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            body: exchange.body(&mark).into_bytes(),
            leaves: exchange.leave_ms.map(Duration::from_millis),
            limit: LIMIT,
        };
        let answer = self.runtime.block_on(question.ask(self.clock));
        (mark, answer)
    }

    /// The gateway, as its entry says.
    fn gateway(&self, dialect: &str) -> Server {
        let mut server = self.direct(dialect);
        server.address.clone_from(&self.access.address);
        if dialect == DIALECTS[0] {
            server.path.clone_from(&self.access.path);
        }
        let own = self.access.headers.iter().filter_map(|header| header.split_once(':'));
        let own = own.map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()));
        server.headers.extend(own);
        server
    }

    /// The upstream itself.
    fn direct(&self, dialect: &str) -> Server {
        let address = format!("127.0.0.1:{}", self.upstream.port);
        let mut server = Server { address, ..Server::default() };
        if let Some(dialect) = self.cases.dialects.get(dialect) {
            server.path.clone_from(&dialect.path);
            server.headers.clone_from(&dialect.headers);
        }
        let json = ("content-type".to_owned(), "application/json".to_owned());
        server.headers.extend([json]);
        server
    }
}

/// How requests reach a server.
#[derive(Default)]
struct Server {
    address: String,
    path: String,
    /// Names in lower case.
    headers: BTreeMap<String, String>,
}
