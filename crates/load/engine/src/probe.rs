//! One request per target and dialect before the load, to find problems that would make the load
//! pointless. One that breaks off is repeated with another conversation.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_measure::{
    Clock as _, ConversationKey, ErrorClass, Moment, MonotonicClock, Nanos, Outcome, Sample,
    ScenarioId, TargetId, Timeline, TokenSource,
};
use plimsoll_plan::{HttpVersion, Scheme};
use plimsoll_protocol::{Dialect, TokenLimit};
use plimsoll_schedule::PairSchedule;
use plimsoll_workload::{AgentRole, Conversation};
use tokio::runtime::{Builder, LocalOptions, LocalRuntime};
use tokio::task::spawn_local;

use crate::clock::WorkerClock;
use crate::connections::WorkerConnections;
use crate::error::EngineError;
use crate::monitor::first_silence;
use crate::prepared::PreparedRun;
use crate::request_timeout::LazyTimeout;
use crate::route::model_of;
use crate::sink::RowBatcher;
use crate::timer::Timer;
use crate::turn::OpenTurn;
use crate::websocket_channel::WebSocketChannel;
use crate::worker::Worker;
use crate::worker_share::WorkerShare;

/// How long a probe waits for the rest of an answer after the time for its first byte, if `timeout`
/// is not shorter. It sends the same request as the load, including limits: a server may refuse
/// other limits.
const REST: Nanos = Nanos::from_secs(5);
/// The same where the load is to last for answers: how long one takes must be known.
const WHOLE_REST: Nanos = Nanos::from_secs(35);

/// A connection that its target closes so soon after an answer was not closed because it was idle.
/// Its next request would have met the close on its way.
const CLOSED_WITHIN: Duration = Duration::from_millis(50);

/// Message about a target that closes its connections.
const CLOSES: &str = "the target closes its connections after each response without `connection: close`: every request opens a new one, and its times include that";

/// The member that some models require for the output limit.
const OTHER_LIMIT: &str = "max_completion_tokens";
const SENDS_OTHER_LIMIT: &str =
    "the target requires max_completion_tokens: sending it instead of max_tokens";

/// The most requests to one target in one dialect, if they break off.
const ATTEMPTS: usize = 3;

/// A problem that a probe request found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeFinding {
    /// Name of the target.
    pub target: String,
    /// The scenario that was tried.
    pub scenario: String,
    /// The problem and how to fix it.
    pub message: String,
    /// Whether every request of the load would fail like this.
    pub fatal: bool,
}

/// A target's answer to a probe request. Those of a scenario have the same prompt for all targets
/// of a comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeAnswer {
    /// The target.
    pub target: TargetId,
    /// The scenario that was tried.
    pub scenario: ScenarioId,
    /// HTTP status; 0 for no response.
    pub status: u16,
    /// Input tokens, as the target reports them.
    pub input_tokens: Option<u32>,
}

/// The problems that all probe requests found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProbeReport {
    /// Requests sent.
    pub requests: u32,
    /// The problems.
    pub findings: Vec<ProbeFinding>,
    /// The answers, one for each target and dialect.
    pub answers: Vec<ProbeAnswer>,
    /// The finding that a target requires `max_completion_tokens`, which the plan does not send.
    pub(crate) other_limit: Option<ProbeFinding>,
}

/// Tries the first scenario of each dialect on each target.
pub(crate) fn probe(
    run: &Arc<PreparedRun>,
    clock: MonotonicClock,
) -> Result<ProbeReport, EngineError> {
    local_runtime()?.block_on(async {
        let timer = Timer::new(WorkerClock::new(clock), run.plan.instrument.spin)
            .map_err(EngineError::Worker)?;
        let (origin, rows) = (clock.now(), RowBatcher::default());
        let looks = Arc::default();
        let connections = WorkerConnections::new(run, WorkerShare::WHOLE, &timer.clock(), &looks)?;
        let mut worker = Worker::new(Arc::clone(run), timer, origin, connections, rows);
        worker.time_cap = Some(time_cap(run));
        let worker = Rc::new(worker);
        let driver = Rc::clone(&worker);
        spawn_local(async move { driver.timer.drive().await });
        let mut report = ProbeReport::default();
        let mut times = vec![[None; 2]; run.plan.targets.len()];
        for (scenario, target) in routes(run) {
            let time = &mut times[target.index()];
            let kept = run.keeps_connections(target);
            let found = try_route(&worker, scenario, target, &mut report, time).await;
            // Once for each target, whatever else it is asked.
            let closes = kept && !run.keeps_connections(target);
            let closes = closes.then(|| (false, CLOSES.to_owned()));
            let spec = &run.plan.scenarios[scenario.index()];
            let is_refused = spec.max_tokens_field == TokenLimit::MaxTokens
                && matches!(&found, Some((true, message)) if message.contains(" returned 4")
                    && message.contains(OTHER_LIMIT));
            let limit = is_refused.then(|| (false, SENDS_OTHER_LIMIT.to_owned()));
            let found = limit.into_iter().chain(found).chain(closes);
            let mut found = found.map(|(fatal, message)| ProbeFinding {
                target: run.plan.targets[target.index()].name.clone(),
                scenario: spec.name.clone(),
                message,
                fatal,
            });
            if is_refused {
                report.other_limit = found.next();
            }
            report.findings.extend(found);
        }
        // The first probe counts.
        let [silences, answers] = [0, 1].map(|at| times.iter().map(|times| times[at]).collect());
        let _ = (run.silences.set(silences), run.answer_times.set(answers));
        Ok(report)
    })
}

fn time_cap(run: &PreparedRun) -> Nanos {
    let rest = if run.plan.limits.answers_per_user.is_some() { WHOLE_REST } else { REST };
    first_silence(run.plan.limits.timeout) + rest
}

/// The first scenario of each dialect and model, for each target.
fn routes(run: &PreparedRun) -> Vec<(ScenarioId, TargetId)> {
    let mut routes: Vec<(ScenarioId, TargetId)> = Vec::new();
    let mut kinds = Vec::new();
    for target in
        (0..run.plan.targets.len()).filter_map(|target| u16::try_from(target).ok()).map(TargetId)
    {
        for scenario in
            (0..run.plan.scenarios.len()).filter_map(|s| u16::try_from(s).ok()).map(ScenarioId)
        {
            // No conversation begins with a part of an agent.
            let spec = &run.plan.scenarios[scenario.index()];
            if spec.agent.as_ref().is_some_and(AgentRole::is_part) {
                continue;
            }
            let dialect = run.route(scenario, target).encoder.dialect();
            let kind = (dialect, model_of(spec, &run.plan.targets[target.index()]), target);
            if !kinds.contains(&kind) {
                kinds.push(kind);
                routes.push((scenario, target));
            }
        }
    }
    routes
}

/// Keys that the mix gives to `scenario`, and that no arrival has, so that no request of the load
/// repeats the probe's prompt. None for a scenario so rare that the search would take long.
///
/// In a comparison, the first key of every target is of the same block, and so on.
pub(crate) fn keys_of(
    run: &PreparedRun,
    scenario: ScenarioId,
    target: TargetId,
) -> impl Iterator<Item = ConversationKey> {
    let targets = run.pairs.as_ref().map_or(1, PairSchedule::targets);
    // With several targets the last block would have less than one key for each.
    let last = (u64::MAX >> 1) / u64::from(targets) - u64::from(targets > 1);
    let own = if targets > 1 { target } else { TargetId(0) };
    (0..100_000)
        .map(move |n| ConversationKey::arrival(last - n).on(own, targets))
        .filter(move |&key| run.workload.scenario(key) == scenario)
}

/// Tries a route until a request does not break off. Returns the problem, if any; counts the
/// requests, and keeps the longest response time.
async fn try_route(
    worker: &Rc<Worker>,
    scenario: ScenarioId,
    target: TargetId,
    report: &mut ProbeReport,
    [silence, whole]: &mut [Option<Nanos>; 2],
) -> Option<(bool, String)> {
    let route = &Route::for_scenario(&worker.run, scenario, target);
    let mut broken_off = None;
    for (tried, key) in keys_of(&worker.run, scenario, target).take(ATTEMPTS).enumerate() {
        let turn = probe_route(worker, key, target).await;
        report.requests += 1;
        report.note_answer(turn.sample());
        // How long a target without a sign of life takes is unknown.
        let is_known = turn.sample().status > 0;
        let Sample { timeline, gaps, outcome, .. } = turn.sample();
        let begun = timeline.first_token.or(timeline.first_byte).filter(|_| is_known);
        let first = answer_time(timeline, begun).map(|first| first.max(gaps.max));
        *silence = first.filter(|_| *outcome == Outcome::Completed).max(*silence);
        *whole = answer_time(timeline, timeline.finished).filter(|_| is_known).max(*whole);
        match turn.sample().outcome {
            Outcome::Failed(class) if breaks_off(class) => {
                let (fatal, message) = diagnose(route, &turn)?;
                broken_off =
                    Some((fatal, format!("{message} ({} of {} tries)", tried + 1, tried + 1)));
            }
            _ if tried == 0 => return diagnose(route, &turn),
            Outcome::Completed => {
                let (_, message) = broken_off?;
                let first = message.split("; ").next().unwrap_or_default();
                return Some((
                    false,
                    format!(
                        "{first}, in {tried} of {} tries; such responses count as failed",
                        tried + 1
                    ),
                ));
            }
            _ => return diagnose(route, &turn).or(broken_off),
        }
    }
    broken_off
}

/// How long the target took until a moment of its answer, connection set-up excluded: later
/// requests find their connections open.
fn answer_time(timeline: &Timeline, until: Option<Moment>) -> Option<Nanos> {
    Some(until?.since(timeline.connected?))
}

impl ProbeReport {
    /// Keeps the first answer of each target and scenario.
    fn note_answer(&mut self, sample: &Sample) {
        let Sample { target, scenario, status, .. } = *sample;
        if self
            .answers
            .iter()
            .any(|answer: &ProbeAnswer| (answer.target, answer.scenario) == (target, scenario))
        {
            return;
        }
        let prompt = sample.usage.prompt;
        let reported = prompt.source == TokenSource::Reported;
        let input_tokens = reported.then_some(prompt.count);
        self.answers.push(ProbeAnswer { target, scenario, status, input_tokens });
    }
}

/// Failures that another request need not meet.
const fn breaks_off(class: ErrorClass) -> bool {
    matches!(
        class,
        ErrorClass::StreamTruncated
            | ErrorClass::StreamError
            | ErrorClass::Reset
            | ErrorClass::ClosedEarly
            | ErrorClass::BodyTruncated
            | ErrorClass::MalformedChunk
            | ErrorClass::WebsocketClosed
    )
}

/// Description of a probe request.
#[derive(Clone, Debug)]
struct Route {
    /// Method and URL.
    request: String,
    /// Whether the probe gave up before the load would.
    is_capped: bool,
    timeout: Nanos,
    dialect: Dialect,
    /// HTTP/2 over plain TCP, which nothing negotiates.
    h2c: bool,
}

impl Route {
    fn for_scenario(run: &PreparedRun, scenario: ScenarioId, target: TargetId) -> Self {
        let plain = run.plan.targets[target.index()].url.scheme() == Scheme::Http;
        let key = keys_of(run, scenario, target).next();
        let row = run.plan.trace.is_some().then_some(0);
        let conversation = key.map(|key| run.workload.conversation(key, row));
        let turn = conversation.as_ref().and_then(Conversation::turn);
        let scenario = conversation.as_ref().map_or(scenario, Conversation::scenario_of_turn);
        Self {
            request: turn
                .map(|turn| run.route(scenario, target).request_line(&turn))
                .unwrap_or_default(),
            is_capped: time_cap(run) < run.plan.limits.timeout,
            timeout: run.plan.limits.timeout,
            dialect: run.route(scenario, target).encoder.dialect(),
            h2c: plain && run.plan.http.version == HttpVersion::Http2,
        }
    }
}

async fn probe_route(worker: &Rc<Worker>, key: ConversationKey, target: TargetId) -> OpenTurn {
    let row = worker.run.plan.trace.is_some().then_some(0);
    let mut conversation = worker.run.workload.conversation(key, row);
    let mut turn = OpenTurn::new(worker, worker.clock.now());
    turn.schedule_on(&conversation, target);
    let mut timeout = LazyTimeout::new(&worker.clock);
    if turn.is_over_websocket() {
        let mut channel = WebSocketChannel::default();
        let work = turn.converse(&mut conversation, &mut channel, &mut timeout, None);
        unless_silent(worker, target, pin!(work)).await;
        channel.close(worker);
    } else {
        let connections = worker.connections_of_user();
        let work = turn.execute(&mut conversation, &connections, &mut timeout, None);
        unless_silent(worker, target, pin!(work)).await;
        if turn.sample().outcome == Outcome::Completed {
            tokio::time::sleep(CLOSED_WITHIN).await;
            if connections.pool(target).has_lost_idle() {
                worker.run.note_closed_connections(target);
            }
        }
    }
    turn
}

/// Awaits a request, but not after the time in which a target should have sent a first byte.
async fn unless_silent<F: Future>(worker: &Worker, target: TargetId, mut work: Pin<&mut F>) {
    let heard = &worker.heard[target.index()];
    let (before, now) = (heard.get(), worker.clock.now());
    let limit = now + first_silence(worker.run.plan.limits.timeout);
    let done = LazyTimeout::new(&worker.clock).run(&worker.clock, limit, work.as_mut()).await;
    if done.is_none() && heard.get() > before {
        work.await;
    }
}

/// Whether the end of a probe is fatal, and how to fix it; `None` for a good end.
fn diagnose(route: &Route, turn: &OpenTurn) -> Option<(bool, String)> {
    let status = turn.sample().status;
    let message = turn.detail().filter(|detail| !detail.is_empty());
    // The target's own message comes first, and our guess last.
    let detail = message.map(|detail| format!(": {detail}")).unwrap_or_default();
    let request = &route.request;
    // A plain endpoint may answer with any status.
    let strict = route.dialect != Dialect::Http;
    if turn.sample().as_expected() == Some(true) {
        return None;
    }
    match turn.sample().outcome {
        Outcome::Rejected(_) => {
            let (fatal, fix) = refusal(strict, status, message.unwrap_or_default());
            Some((fatal, format!("{request} returned {status}{detail}; {fix}")))
        }
        Outcome::Failed(class) => {
            let (fatal, fix) = failure(route, class, status);
            let fix = if fix.is_empty() { fix } else { format!("; {fix}") };
            let words = class.words();
            let failure = match message {
                Some(message) if message.to_lowercase().contains(words) => message.to_owned(),
                _ if status == 0 => format!("{words}{detail}"),
                _ => format!("{words} with status {status}{detail}"),
            };
            let plain = matches!(class, ErrorClass::ServerError | ErrorClass::UnexpectedStatus);
            Some((
                fatal,
                if plain && !strict {
                    format!("{request} returned {status}{detail}{fix}")
                } else {
                    format!("{request} failed: {failure}{fix}")
                },
            ))
        }
        Outcome::TimedOut | Outcome::InFlight | Outcome::NeverSent if route.h2c && status == 0 => {
            let (fatal, fix) = advice(&["h2c-reset"], status);
            Some((fatal, format!("{request} has no response within `timeout`; {fix}")))
        }
        // The load will see a started stream, and a single slow answer, in the same way.
        Outcome::TimedOut if route.is_capped && status > 0 => None,
        // The latter were dropped before their end.
        Outcome::TimedOut | Outcome::InFlight | Outcome::NeverSent => {
            let (response, waited) = match status {
                0 => ("response", first_silence(route.timeout)),
                _ => ("complete response", route.timeout),
            };
            let fix =
                "check that the target is alive, or raise `timeout` (from 25s on: to above 2m)";
            Some((true, format!("{request} got no {response} within {waited}; {fix}")))
        }
        Outcome::Completed | Outcome::Cancelled => None,
    }
}

/// Phrases of messages that complain about the key. Some gateways answer a wrong one with 400.
const ABOUT_KEYS: &str = include_str!("probe/about_keys.txt");

/// Remedy for a refusal. A plain endpoint may answer with any status, because the status is
/// measured.
fn refusal(strict: bool, status: u16, message: &str) -> (bool, String) {
    if !strict {
        return advice(&[&format!("http-{status}"), "http-rejected"], status);
    }
    let message = message.to_lowercase();
    let about_keys = ABOUT_KEYS.lines().any(|phrase| message.contains(phrase));
    let about = if about_keys {
        "key-"
    } else if message.contains("max_tokens") {
        "length-"
    } else {
        ""
    };
    advice(&[&format!("{about}{status}"), &status.to_string(), "rejected"], status)
}

/// Remedy for a failure.
fn failure(route: &Route, class: ErrorClass, status: u16) -> (bool, String) {
    let is_plain = route.dialect == Dialect::Http && status > 0;
    let special = if is_plain {
        "http-"
    } else if route.h2c && status == 0 {
        "h2c-"
    } else {
        ""
    };
    let class = class.name();
    advice(&[&format!("{special}{class}"), class, "failed"], status)
}

/// Whether the end of a probe makes the load pointless, and the remedy: by the first of these keys
/// that `advice.tsv` has.
fn advice(keys: &[&str], status: u16) -> (bool, String) {
    let (fatal, text) = keys
        .iter()
        .find_map(|key: &&str| {
            let mut rows = include_str!("probe/advice.tsv").lines();
            rows.find_map(|row| {
                let (keys, advice) = row.split_once('\t')?;
                keys.split(' ').any(|known| known == *key).then(|| advice.split_once('\t'))?
            })
        })
        .unwrap_or_default();
    (fatal == "fatal", text.replace("{status}", &status.to_string()))
}

// An event loop beside the load.

/// An event loop of this thread, for work other than load.
pub(crate) fn local_runtime() -> Result<LocalRuntime, EngineError> {
    let mut builder = Builder::new_current_thread();
    builder.enable_all().build_local(LocalOptions::default()).map_err(EngineError::Worker)
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::Moment;

    use super::*;

    /// A TLS handshake of 2 ms and an answer of 100 us: at 5,000/s one connection is busy for half
    /// of the time, and with the handshake it would have been ten.
    #[test]
    fn setting_up_the_connection_is_no_part_of_the_answer() {
        let at = |us| Some(Moment::EPOCH + Nanos::from_micros(us));
        let open = Timeline { dispatched: at(10), connected: at(2_010), ..Timeline::default() };
        let answered = Timeline { finished: at(2_110), ..open };
        assert_eq!(answer_time(&answered, answered.finished), Some(Nanos::from_micros(100)));
        assert_eq!(answer_time(&open, open.finished), None);
    }

    #[test]
    fn keys_of_the_advice_are_statuses_and_classes() {
        let rows = include_str!("probe/advice.tsv").lines().filter(|row| !row.starts_with('#'));
        for key in rows.flat_map(|row| row.split('\t').next().unwrap_or_default().split(' ')) {
            let special =
                ["http-", "h2c-", "key-", "length-"].iter().find_map(|kind| key.strip_prefix(kind));
            let name = special.unwrap_or(key);
            let is_class = ErrorClass::ALL.iter().any(|class| class.name() == name);
            let is_known = is_class || matches!(name, "rejected" | "failed");
            assert!(is_known || name.parse::<u16>().is_ok(), "{key}");
        }
    }

    #[test]
    fn advice_is_that_of_the_nearest_key() {
        let path = "check the path, or expect it: --expect 404 (`http.expect`)";
        assert_eq!(refusal(false, 404, ""), (false, path.to_owned()));
        let measured = "to measure such responses: --expect 418 (`http.expect`)";
        assert_eq!(refusal(false, 418, ""), (false, measured.to_owned()));
        let key = "give the right key with --key (or PLIMSOLL_KEY)";
        assert_eq!(refusal(true, 401, "Invalid API key"), (true, key.to_owned()));
        assert!(refusal(true, 400, "Invalid API key").1.starts_with(key));
        assert!(refusal(true, 400, "no such field").1.starts_with("does the server support this"));
        assert_eq!(refusal(true, 400, "max_tokens is too large").1, "lower the output limit");
        assert_eq!(advice(&["tls_handshake"], 0), (true, String::new()));
        assert!(!advice(&["h2c-gen_io", "gen_io", "failed"], 0).0);
    }
}
