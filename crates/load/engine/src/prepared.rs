//! A plan with everything that every worker needs, computed once and shared read-only.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use plimsoll_measure::{
    ErrorClass, IdSeed, Moment, Nanos, RunId, ScenarioId, TargetId, TokenSource, Usage,
};
use plimsoll_plan::{
    BudgetPlan, ConnectTo as PlannedPlace, HttpVersion, Limits, Plan, ProxyScheme, ProxyUrl,
    ReachPlan, Replies, Scheme, Target,
};
use plimsoll_protocol::Dialect;
use plimsoll_schedule::{Load, PairSchedule, Schedule, StagePlan, TargetWindow};
use plimsoll_transport::{
    ClientCertificate, ConnectTo, Connector, Endpoint, Failure, InvalidHost, Proxy, ProxyProtocol,
    Reach, SocketOptions, TlsClientConfig, TlsSettings, with_own_session_cache,
};
use plimsoll_workload::Workload;

use crate::aftermath::Disturbances;
use crate::error::EngineError;
use crate::redirect;
use crate::response_headers::HeaderReader;
use crate::route::Route;

/// A plan, ready to be carried out.
#[derive(Debug)]
pub(crate) struct PreparedRun {
    pub(crate) plan: Plan,
    pub(crate) schedule: Schedule,
    /// Only in a comparison.
    pub(crate) pairs: Option<PairSchedule>,
    /// By target of a comparison: when it has virtual users.
    pub(crate) user_windows: Vec<Vec<TargetWindow>>,
    pub(crate) workload: Workload,
    /// The seed of ids of conversations.
    pub(crate) ids: IdSeed,
    /// Values to read from response headers. Names of parts of times are written once, by the
    /// worker that first sees one.
    pub(crate) headers: HeaderReader,
    /// When pauses of its workers disturbed the target.
    pub(crate) disturbances: Disturbances,
    /// How long the probe's answers took, by target; empty without a probe.
    pub(crate) answer_times: OnceLock<Vec<Option<Nanos>>>,
    /// How long the targets were silent in them.
    pub(crate) silences: OnceLock<Vec<Option<Nanos>>>,
    tls: Option<Arc<TlsClientConfig>>,
    routes: Vec<Route>,
    /// How many requests may be sent, where that is limited.
    request_budget: Option<RequestBudget>,
    /// The prompts that were taken of a list, where they are sent in order.
    next_prompt: Option<AtomicU64>,
    /// Whether the load ends after each recorded session was played once.
    pub(crate) whole_sessions: bool,
    /// Spent part of the run's budget, if it is limited.
    pub(crate) spending: Option<Spending>,
    /// By target: whether its streams have finish reasons. The probe or the first worker that sees
    /// one sets it for all.
    finish_reasons: Vec<AtomicBool>,
    /// By target: whether it closes each connection after its answer, without a word before. The
    /// probe learns it.
    closes_connections: Vec<AtomicBool>,
    /// By target: when it was taken out of the comparison, after the run's start; `u64::MAX` for
    /// not at all. Written by the thread that follows the run, read by workers at their ticks.
    taken_out: Vec<AtomicU64>,
}

/// How long the last session of a trace may go on: the load ends when all have had their requests.
const LONGEST_SESSION: Nanos = Nanos::from_secs(3_600);

impl PreparedRun {
    /// Lengthens closed stages so that each user gets the answers that the plan asks for. A stage
    /// of a few answers would leave its rate unknown.
    pub(crate) fn last_for_answers(&mut self) -> Result<(), EngineError> {
        let answer = self.answer_times.get().and_then(|times| times.iter().flatten().max());
        let Some((answers, answer)) = self.plan.limits.answers_per_user.zip(answer.copied()) else {
            return Ok(());
        };
        for stage in &mut self.plan.stages.0 {
            if let (Load::Closed { .. }, Some(length)) = (stage.load, &mut stage.duration) {
                let needed = length_for(stage.warmup, answers, answer);
                *length = needed.max(*length);
            }
        }
        let plan = &self.plan;
        self.schedule = Schedule::new(&plan.stages, plan.arrivals, plan.seed, None)?;
        Ok(())
    }

    /// Loads the files that the plan names (trace, tokenizer, roots) and prepares every route. A
    /// plan without a run id gets a random one.
    pub(crate) fn new(mut plan: Plan) -> Result<Self, EngineError> {
        let shards = plan.shard.count();
        if let Some(connections) = plan.http.max_connections.filter(|&all| all < shards) {
            return Err(EngineError::TooFewConnections { connections, shards });
        }
        plan.run_id.get_or_insert_with(RunId::random);
        let ids = plan.id_seed();
        let trace = plan.read_trace()?;
        let offsets = trace.as_ref().map(|trace| trace.offsets());
        let mut schedule = Schedule::new(&plan.stages, plan.arrivals, plan.seed, offsets.clone())?;
        let pairs = pairs(&plan, &schedule, offsets.as_ref());
        check_slots(&plan, &schedule)?;
        let tokenizer = plan.tokenizer.as_deref();
        let workload = Workload::new(&plan.scenarios, trace, tokenizer, plan.seed, ids)?;
        let workload = match (&plan.versus, &pairs) {
            (Some(versus), Some(pairs)) => {
                workload.for_targets(pairs.targets(), versus.replies == Replies::Canned)
            }
            _ => workload,
        };
        let tls = tls_config(&plan)?;
        let (mut routes, max_body) = (Vec::new(), plan.limits.max_body);
        let (proxy, plays_records) = (plain_proxy(&plan), workload.plays_records());
        for target in &plan.targets {
            for scenario in &plan.scenarios {
                routes.push(Route::new(scenario, target, max_body, proxy, plays_records)?);
            }
        }
        let prompts = workload.ordered_prompts();
        let played = trace_requests(&plan, &schedule, &workload);
        if played.is_some() {
            schedule.extend(LONGEST_SESSION);
        }
        let request_budget = requests(&plan, &workload, played).map(RequestBudget::new);
        let next_prompt = prompts.map(|_| AtomicU64::new(0));
        let spending = Spending::new(&plan.limits, |all| plan.shard.share(all));
        let headers = HeaderReader::new(&plan.response_headers);
        let finish_reasons = plan.targets.iter().map(|_| AtomicBool::new(false)).collect();
        let closes_connections = plan.targets.iter().map(|_| AtomicBool::new(false)).collect();
        let taken_out = plan.targets.iter().map(|_| AtomicU64::new(u64::MAX)).collect();
        Ok(Self {
            plan,
            schedule,
            user_windows: pairs.as_ref().map(user_windows).unwrap_or_default(),
            pairs,
            workload,
            ids,
            headers,
            answer_times: OnceLock::new(),
            silences: OnceLock::new(),
            disturbances: Disturbances::default(),
            tls,
            routes,
            request_budget,
            whole_sessions: next_prompt.is_some() || played.is_some(),
            next_prompt,
            spending,
            finish_reasons,
            closes_connections,
            taken_out,
        })
    }

    /// The place in the list of the next prompt of this shard, where prompts are sent in order;
    /// `None` also after the last one. Workers share it while they run, because parts of the list
    /// would not be used up at the same time.
    pub(crate) fn take_prompt(&self) -> Option<u64> {
        let taken = self.next_prompt.as_ref()?.fetch_add(1, Ordering::Relaxed);
        let row = self.plan.shard.index() + taken * self.plan.shard.count();
        self.workload.ordered_prompts().filter(|prompts| row < *prompts).map(|_| row)
    }

    /// Whether prompts are sent in order, each once.
    pub(crate) const fn sends_in_order(&self) -> bool {
        self.next_prompt.is_some()
    }

    /// When the first of the requests began whose number ended the load; `None` if it did not.
    pub(crate) fn begin_of_requests(&self) -> Option<Moment> {
        let limited = self.plan.limits.max_requests.is_some() && self.pairs.is_none();
        self.request_budget().filter(|_| limited).and_then(RequestBudget::begin)
    }

    /// The requests that may be sent; `None` without a limit.
    pub(crate) const fn request_budget(&self) -> Option<&RequestBudget> {
        self.request_budget.as_ref()
    }

    /// Whether the run has spent all that it may.
    pub(crate) fn is_spent(&self) -> bool {
        self.spending.as_ref().is_some_and(Spending::is_spent)
    }

    /// The route of a scenario's turns to a target.
    pub(crate) fn route(&self, scenario: ScenarioId, target: TargetId) -> &Route {
        &self.routes[self.route_index(scenario, target)]
    }

    /// Position of a route, for per-route data of workers.
    pub(crate) fn route_index(&self, scenario: ScenarioId, target: TargetId) -> usize {
        target.index() * self.plan.scenarios.len() + scenario.index()
    }

    /// Number of routes.
    pub(crate) const fn routes(&self) -> usize {
        self.routes.len()
    }

    /// Whether the streams of a target are known to have finish reasons.
    pub(crate) fn gives_finish_reasons(&self, target: TargetId) -> bool {
        self.finish_reasons[target.index()].load(Ordering::Relaxed)
    }

    /// Notes that the streams of a target have finish reasons. Written once, so that the
    /// workers only read it from then on.
    pub(crate) fn note_finish_reason(&self, target: TargetId) {
        if !self.gives_finish_reasons(target) {
            self.finish_reasons[target.index()].store(true, Ordering::Relaxed);
        }
    }

    /// Whether a connection to a target may carry another request.
    pub(crate) fn keeps_connections(&self, target: TargetId) -> bool {
        !self.closes_connections[target.index()].load(Ordering::Relaxed)
    }

    /// Notes that a target closes each connection after its answer.
    pub(crate) fn note_closed_connections(&self, target: TargetId) {
        self.closes_connections[target.index()].store(true, Ordering::Relaxed);
    }

    /// Takes a target out of the comparison, so long after the run's start.
    pub(crate) fn take_out(&self, target: usize, after: Nanos) {
        self.taken_out[target].fetch_min(after.as_u64(), Ordering::Relaxed);
    }

    /// Whether a target was taken out of the comparison.
    pub(crate) fn is_taken_out(&self, target: usize) -> bool {
        self.taken_out_after(target).is_some()
    }

    /// When a target was taken out of the comparison, after the run's start.
    pub(crate) fn taken_out_after(&self, target: usize) -> Option<Nanos> {
        let after = self.taken_out.get(target)?.load(Ordering::Relaxed);
        (after < u64::MAX).then_some(Nanos::new(after))
    }

    /// A connector for each target.
    pub(crate) fn connectors(&self) -> Result<Vec<Connector>, EngineError> {
        self.plan.targets.iter().map(|target| self.connector(target)).collect()
    }

    /// Opens connections to a server that is not a target but the destination of a redirect.
    pub(crate) fn connector_to(&self, origin: &str) -> Result<Connector, Failure> {
        let (host, port, secure) =
            redirect::endpoint(origin).ok_or_else(|| unusable(origin, "is not an HTTP server"))?;
        if secure && self.tls.is_none() {
            let cause = "requires TLS, but this system has no root certificates";
            return Err(unusable(origin, cause));
        }
        let connector = self.connector_for(Endpoint::new(host, port), secure);
        connector.map_err(|error| unusable(origin, &error.to_string()))
    }

    /// The way to the servers.
    fn reach(&self) -> Reach {
        let ReachPlan { connect_to, unix_socket, proxy } = &self.plan.reach;
        let connect_to = connect_to.iter().cloned().map(|rule: PlannedPlace| ConnectTo {
            host: rule.host,
            port: rule.port,
            to_host: rule.to_host,
            to_port: rule.to_port,
        });
        let proxy = proxy.as_ref().map(|proxy: &ProxyUrl| Proxy {
            protocol: match proxy.scheme {
                ProxyScheme::Http => ProxyProtocol::Http,
                ProxyScheme::Socks5 => ProxyProtocol::Socks5,
            },
            endpoint: Endpoint::new(proxy.host.clone(), proxy.port),
            credentials: proxy.credentials.clone(),
        });
        Reach {
            connect_to: connect_to.collect(),
            unix_socket: unix_socket.clone(),
            proxy,
            tunnel_plain: tunnels_plain(&self.plan),
        }
    }

    /// Opens connections to a target.
    fn connector(&self, target: &Target) -> Result<Connector, EngineError> {
        let endpoint = Endpoint::new(target.url.host().to_owned(), target.url.port());
        Ok(self.connector_for(endpoint, target.url.scheme() == Scheme::Https)?)
    }

    /// Opens connections, with their own cache of TLS sessions.
    fn connector_for(&self, endpoint: Endpoint, secure: bool) -> Result<Connector, InvalidHost> {
        let tls = self.tls.as_ref().filter(|_| secure);
        let tls = tls.map(|config| with_own_session_cache(config, self.plan.tls.resumption));
        let http = self.plan.http;
        let options = SocketOptions {
            timeout: self.plan.limits.connect_timeout,
            kernel_timestamps: self.plan.instrument.kernel_timestamps,
            bind: self.plan.bind.clone(),
            requests_per_connection: http
                .requests_per_connection
                .map(|churn| (churn.min, churn.max.max(churn.min))),
            http2_streams: (http.version == HttpVersion::Http2)
                .then_some(http.streams_per_connection),
            reach: self.reach(),
        };
        Connector::new(endpoint, tls, options)
    }
}

fn unusable(origin: &str, cause: &str) -> Failure {
    Failure::new(ErrorClass::Redirect, format!("{origin}: {cause}"))
}

/// When each target of a comparison has virtual users.
fn user_windows(pairs: &PairSchedule) -> Vec<Vec<TargetWindow>> {
    (0..pairs.targets()).map(|target| pairs.user_windows(TargetId(target))).collect()
}

/// Whether plain requests go through a tunnel of the proxy: those of HTTP/2 and of WebSockets are
/// none that a proxy could read.
fn tunnels_plain(plan: &Plan) -> bool {
    let mut scenarios = plan.scenarios.iter();
    plan.http.version == HttpVersion::Http2
        || scenarios.any(|scenario| scenario.protocol == Dialect::Websocket)
}

/// The HTTP proxy that reads requests to plain servers itself.
fn plain_proxy(plan: &Plan) -> Option<&ProxyUrl> {
    let proxy = plan.reach.proxy.as_ref().filter(|proxy| proxy.scheme == ProxyScheme::Http);
    proxy.filter(|_| !tunnels_plain(plan) && plan.reach.unix_socket.is_none())
}

/// The length of a closed stage for this number of responses per user, including those cut by its
/// edges; a warm-up needs one whole answer.
fn length_for(is_warmup: bool, answers: u32, answer: Nanos) -> Nanos {
    let answers = if is_warmup { 1 } else { u64::from(answers) };
    let needed = answer.as_u64().saturating_mul(answers) / 16 * 17;
    // Stages are named by their length.
    let step = if needed < 2_000_000_000 { 100_000_000 } else { 1_000_000_000 };
    Nanos::new(needed.div_ceil(step) * step)
}

/// The schedule of a comparison.
fn pairs(plan: &Plan, schedule: &Schedule, offsets: Option<&Arc<[Nanos]>>) -> Option<PairSchedule> {
    let targets = u16::try_from(plan.targets.len()).unwrap_or(u16::MAX);
    let spec = plan.versus.as_ref()?.pairs(targets);
    Some(PairSchedule::new(schedule, plan.arrivals, plan.seed, offsets, &spec))
}

/// The most requests that this part of a run may send.
fn requests(plan: &Plan, workload: &Workload, played: Option<u64>) -> Option<u64> {
    let most = plan.limits.max_requests.map(|most| plan.shard.share(most));
    [most, workload.ordered_requests(plan.shard), played].into_iter().flatten().min()
}

/// The requests of the sessions of a trace that this part of a run plays, where it plays whole ones
/// and nothing else.
fn trace_requests(plan: &Plan, schedule: &Schedule, workload: &Workload) -> Option<u64> {
    let mut measured = plan.stages.0.iter().filter(|stage| !stage.warmup);
    let whole = measured.all(|stage| stage.load == Load::Trace && stage.duration.is_none());
    if !whole || plan.versus.is_some() {
        return None;
    }
    let stages = schedule.stages();
    let played = schedule.arrivals(plan.shard).filter(|arrival| {
        stages.get(arrival.stage.index()).is_some_and(|stage| stage.load == Load::Trace)
    });
    workload.trace_requests(played.map(|arrival| arrival.index).collect())
}

/// Refuses a shard that has arrivals and no slot.
fn check_slots(plan: &Plan, schedule: &Schedule) -> Result<(), EngineError> {
    let (shard, max_in_flight) = (plan.shard, plan.limits.max_in_flight);
    if shard.share(max_in_flight) > 0
        || !schedule
            .stages()
            .iter()
            .any(|stage: &StagePlan| !matches!(stage.load, Load::Closed { .. }))
    {
        return Ok(());
    }
    let shards = shard.count();
    let shard = format!("{}/{shards}", shard.index());
    Err(EngineError::NoSlot { shard, shards, max_in_flight })
}

/// The TLS configuration, where a target needs one.
fn tls_config(plan: &Plan) -> Result<Option<Arc<TlsClientConfig>>, EngineError> {
    let needed = plan.targets.iter().any(|target| target.url.scheme() == Scheme::Https);
    if !needed && plan.http.redirects == 0 {
        return Ok(None);
    }
    let settings = TlsSettings {
        ca_file: plan.tls.ca_file.clone(),
        client: plan.tls.client_files().map(|files| ClientCertificate {
            cert_file: files.0.clone(),
            key_file: files.1.clone(),
        }),
        insecure: plan.tls.insecure,
        resumption: plan.tls.resumption,
    };
    let alpn = match plan.http.version {
        HttpVersion::Http1 => "http/1.1",
        HttpVersion::Http2 => "h2",
    };
    match settings.client_config(alpn) {
        // A redirect may lead to TLS, and need not.
        Err(_) if !needed => Ok(None),
        config => Ok(Some(config?)),
    }
}

/// Money is counted in billionths.
const UNITS: f64 = 1e9;

/// Bytes of a token, where the target does not report its input.
const TOKEN_BYTES: u64 = 4;

/// The amount that a run has spent, including warm-up, and its limit. All workers share it.
#[derive(Debug)]
pub(crate) struct Spending {
    budget: BudgetPlan,
    tokens: AtomicU64,
    /// In billionths.
    cost: AtomicU64,
}

impl Spending {
    /// Creates an unspent budget; `None` if spending is unlimited. A shard has its part.
    pub(crate) fn new(limits: &Limits, share: impl Fn(u64) -> u64) -> Option<Self> {
        let mut budget = limits.budget?;
        budget.tokens = budget.tokens.map(&share);
        let units = budget.cost.map(|cost| share(units(cost)));
        budget.cost = units.map(|units| units as f64 / UNITS);
        let (tokens, cost) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Self { budget, tokens, cost })
    }

    /// Adds the usage of an answer, or the total that the target reports if that is more. An
    /// unreported input is estimated from its bytes.
    pub(crate) fn add(&self, usage: &Usage, total: Option<u32>, request_bytes: u64) {
        let input = match usage.prompt.source {
            TokenSource::Reported => u64::from(usage.prompt.count),
            _ => request_bytes / TOKEN_BYTES,
        };
        let output = u64::from(usage.completion.count);
        let tokens = (input + output).max(total.unwrap_or(0).into());
        self.tokens.fetch_add(tokens, Ordering::Relaxed);
        let for_input = input as f64 * self.budget.input_price / 1e6;
        let for_output = output as f64 * self.budget.output_price / 1e6;
        self.cost.fetch_add(units(for_input + for_output), Ordering::Relaxed);
    }

    /// Whether a limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        let tokens = self.tokens.load(Ordering::Relaxed);
        let cost = self.cost.load(Ordering::Relaxed);
        self.budget.tokens.is_some_and(|most| tokens >= most)
            || self.budget.cost.is_some_and(|most| cost >= units(most))
    }

    /// Describes the spent amount.
    pub(crate) fn sentence(&self) -> String {
        let tokens = self.tokens.load(Ordering::Relaxed);
        let cost = self.cost.load(Ordering::Relaxed) as f64 / UNITS;
        let mut parts = Vec::new();
        if let Some(most) = self.budget.tokens {
            parts.push(format!("{tokens} tokens of {most} (--budget-tokens)"));
        }
        if let Some(most) = self.budget.cost {
            parts.push(format!("{cost:.4} of {most} by the prices of --price (--budget-cost)"));
        }
        format!("spent {}", parts.join(", "))
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked: 0 or more")]
fn units(money: f64) -> u64 {
    (money * UNITS).round().max(0.0) as u64
}

// The number of requests that a run may send.

/// How many requests may still be sent. Workers share it while they run, because parts of it would
/// not be used up at the same time.
#[derive(Debug)]
pub(crate) struct RequestBudget {
    left: AtomicU64,
    /// The earliest intended start of a request that was taken.
    begin: AtomicU64,
    /// One nanosecond after the latest intended start of a request that was taken.
    end: AtomicU64,
}

impl RequestBudget {
    /// A budget of requests.
    pub(crate) const fn new(requests: u64) -> Self {
        let [begin, end] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
        Self { left: AtomicU64::new(requests), begin, end }
    }

    /// Takes one, for a request that is intended at `at`; `false` if none is left.
    pub(crate) fn take(&self, at: Moment) -> bool {
        let end = (at + Nanos::new(1)).as_nanos();
        // Before the count: who sees that nothing is left sees the end of all that was taken.
        if self.is_spent() {
            return false;
        }
        self.begin.fetch_min(at.as_nanos(), Ordering::Relaxed);
        self.end.fetch_max(end, Ordering::Relaxed);
        self.left
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1))
            .is_ok()
    }

    /// Whether no request may be sent any more.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.load(Ordering::Acquire) == 0
    }

    /// When the first request that was taken is intended to start; `None` as long as requests may
    /// be sent.
    pub(crate) fn begin(&self) -> Option<Moment> {
        self.is_spent().then(|| Moment::from_nanos(self.begin.load(Ordering::Relaxed)))
    }

    /// When the load ended: just after the last request that was taken is intended to start.
    /// `None` as long as requests may be sent.
    pub(crate) fn end(&self) -> Option<Moment> {
        self.is_spent().then(|| Moment::from_nanos(self.end.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::TokenCount;

    use super::*;

    fn usage(input: u32, output: u32) -> Usage {
        let reported = |count| TokenCount { count, source: TokenSource::Reported };
        Usage { prompt: reported(input), completion: reported(output), ..Usage::default() }
    }

    fn spending(tokens: Option<u64>, cost: Option<f64>) -> Spending {
        let budget = BudgetPlan { tokens, cost, input_price: 0.5, output_price: 2.0 };
        let limits = Limits { budget: Some(budget), ..Limits::DEFAULT };
        Spending::new(&limits, |all| all).unwrap()
    }

    #[test]
    fn tokens_and_money_are_limits_of_their_own() {
        let by_tokens = spending(Some(100), None);
        by_tokens.add(&usage(40, 50), None, 0);
        assert!(!by_tokens.is_spent());
        by_tokens.add(&usage(5, 4), Some(10), 0);
        assert!(by_tokens.is_spent());
        assert!(by_tokens.sentence().starts_with("spent 100 tokens of 100 (--budget-tokens)"));
        // 1,000 tokens of input at 0.5 a million and 2,000 of output at 2: 0.0045.
        let by_cost = spending(None, Some(0.009));
        by_cost.add(&usage(1_000, 2_000), Some(3_000), 0);
        assert!(!by_cost.is_spent());
        assert!(by_cost.sentence().contains("0.0045 of 0.009"), "{}", by_cost.sentence());
        by_cost.add(&usage(1_000, 2_000), Some(3_000), 0);
        assert!(by_cost.is_spent());
    }

    #[test]
    fn an_unreported_input_counts_by_its_bytes() {
        let spending = spending(Some(100), None);
        spending.add(&Usage::default(), None, 396);
        assert!(!spending.is_spent());
        spending.add(&Usage::default(), None, 4);
        assert!(spending.is_spent());
    }
}

#[cfg(test)]
mod request_budget_tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    #[test]
    fn the_load_ends_with_the_latest_request_of_the_budget() {
        let budget = RequestBudget::new(3);
        assert!(budget.take(at(10)) && budget.take(at(30)));
        assert_eq!(budget.end(), None);
        assert!(budget.take(at(20)));
        assert!(!budget.take(at(40)), "a request that is not sent moves nothing");
        assert_eq!(budget.end(), Some(at(30) + Nanos::new(1)));
    }
}
