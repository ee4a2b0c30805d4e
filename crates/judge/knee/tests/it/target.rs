//! Simulated targets in virtual time, whose capacity is known from theory or from a long
//! simulation.

use plimsoll_knee::{Load, Measured, Planned, ProbeRequest, Search, Settings};
use plimsoll_measure::{ErrorClass, Moment, Nanos, Outcome, Rng, Seed};

/// Service times.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Service {
    Constant,
    Exponential,
    /// Lognormal with this coefficient of variation.
    Lognormal(f64),
}

/// A target: slots with a first-come, first-served queue, and the generator in front of it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) slots: usize,
    pub(crate) service: Service,
    /// Mean service time, in seconds.
    pub(crate) mean_s: f64,
    /// Response time above which a request misses, in seconds.
    pub(crate) bound_s: f64,
    /// Poisson arrivals instead of even ones.
    pub(crate) is_poisson: bool,
    /// Virtual users instead of arrivals.
    pub(crate) has_users: bool,
    /// Rate limit in requests per second, and its burst.
    pub(crate) limit: Option<(f64, f64)>,
    /// Share of the requests that fail.
    pub(crate) errors: f64,
    /// Start and end of an outage, in seconds of the search.
    pub(crate) down_s: (f64, f64),
    /// Length and interval of the target's stalls, in seconds.
    pub(crate) stalls: Option<(f64, f64)>,
    /// Length and interval of the generator's stalls, which it detects.
    pub(crate) pauses: Option<(f64, f64)>,
    /// Maximum send rate of the generator, in requests per second.
    pub(crate) generator: f64,
    /// Standard deviation of the speed, which varies each half second with a memory of 20 s.
    pub(crate) drift: f64,
}

pub(crate) const TARGET: Target = Target {
    slots: 4,
    service: Service::Constant,
    mean_s: 0.05,
    bound_s: 0.2,
    is_poisson: true,
    has_users: false,
    limit: None,
    errors: 0.0,
    down_s: (f64::INFINITY, f64::INFINITY),
    stalls: None,
    pauses: None,
    generator: f64::INFINITY,
    drift: 0.0,
};

/// A target with its random numbers and the simulated time.
pub(crate) struct Simulation {
    target: Target,
    rng: Rng,
    now_s: f64,
    drifted: (f64, f64),
}

/// State of the target during a probe: when its slots become free, the tokens of its limiter and
/// the time of their last refill, and the phase of its stalls.
struct Server {
    free: Vec<f64>,
    tokens: f64,
    filled: f64,
    phase: f64,
    speed: f64,
}

/// Requests of a probe with their response times, whether it ended early, and its length in
/// seconds.
#[derive(Default)]
struct Probed {
    requests: Vec<ProbeRequest>,
    seconds: f64,
    has_ended_early: bool,
    slowest_s: f64,
    answers_s: Vec<f64>,
    /// Number of good responses in the measured part.
    answered: usize,
}

impl Simulation {
    pub(crate) fn new(target: &Target, seed: u64) -> Self {
        let rng = Seed(seed).rng("target", 0);
        Self { target: target.clone(), rng, now_s: 0.0, drifted: (0.0, 0.0) }
    }

    /// Runs a search.
    pub(crate) fn search(&mut self, settings: Settings) -> Search {
        let mut search = Search::new(settings);
        while let Some(planned) = search.next() {
            let measured = self.measure(planned);
            search.record(search.spent_s(), measured);
        }
        search
    }

    pub(crate) fn measure(&mut self, planned: Planned) -> Measured {
        let probed = self.probe(planned);
        let rest_s = (2.0 * probed.slowest_s).clamp(1.0, 10.0);
        let drain_s = if probed.has_ended_early { 0.0 } else { probed.slowest_s };
        let took_s = planned.warmup_s + probed.seconds + drain_s + rest_s;
        self.now_s += took_s;
        let count = probed.answers_s.len();
        let mean_s = probed.answers_s.iter().sum::<f64>() / count.max(1) as f64;
        Measured {
            has_ended_early: probed.has_ended_early,
            seconds: probed.seconds,
            took_s,
            answer_s: (count > 0).then_some(mean_s),
            answered_per_s: Some(probed.answered as f64 / probed.seconds),
            ..Measured::from_requests(probed.requests, false)
        }
    }

    /// Load at which the share of misses is `missed`, by bisection with long probes.
    pub(crate) fn capacity(&mut self, missed: f64, between: [f64; 2]) -> f64 {
        let [mut low, mut high] = between;
        self.target.pauses = None;
        self.target.drift = 0.0;
        for _ in 0..10 {
            let load = (low * high).sqrt();
            let seconds = (150_000.0 / load).max(200.0 * self.target.mean_s);
            let warmup_s = 50.0 * self.target.mean_s;
            let phase = plimsoll_knee::Phase::Prove;
            let planned = Planned { load, warmup_s, seconds, phase, most_misses: u64::MAX };
            let requests = self.probe(planned).requests;
            let misses = requests.iter().filter(|request| request.missed).count();
            let is_missed = misses as f64 > missed * requests.len() as f64;
            *(if is_missed { &mut high } else { &mut low }) = load;
        }
        (low * high).sqrt()
    }

    fn probe(&mut self, planned: Planned) -> Probed {
        let speed = self.speed(0.0);
        let target = self.target.clone();
        let end_s = planned.warmup_s + planned.seconds;
        let users = if target.has_users { planned.load.round() } else { 0.0 };
        let mut ready = Vec::new();
        while (ready.len() as f64) < users {
            ready.push(0.0_f64);
        }
        let (phase, free) = (self.rng.uniform(), vec![0.0; target.slots]);
        let tokens = target.limit.map_or(0.0, |(_, burst)| burst);
        let mut server = Server { free, tokens, filled: 0.0, phase, speed };
        let phase = self.rng.uniform();
        let (mut due, mut sent, mut misses) = (0.0_f64, 0.0_f64, 0);
        let (mut last_due_s, mut done_s) = (0.0_f64, Vec::new());
        let mut probed = Probed { seconds: planned.seconds, ..Probed::default() };
        loop {
            let user = least(&ready);
            due = match user {
                Some(user) => ready[user],
                None if target.is_poisson => due + self.rng.exponential() / planned.load,
                None => due + 1.0 / planned.load,
            };
            // The load looks at its misses each second.
            if misses > planned.most_misses && due.floor() > last_due_s.floor() {
                probed.has_ended_early = true;
                probed.seconds = due - planned.warmup_s;
            }
            if due >= end_s || probed.has_ended_early {
                let measured = planned.warmup_s..planned.warmup_s + probed.seconds;
                probed.answered = done_s.iter().filter(|done| measured.contains(done)).count();
                return probed;
            }
            if target.drift > 0.0 && (2.0 * due).floor() > (2.0 * last_due_s).floor() {
                server.speed = self.speed(due);
            }
            last_due_s = due;
            sent = after(due, target.pauses, phase).max(sent + 1.0 / target.generator);
            let is_down = (target.down_s.0..target.down_s.1).contains(&(self.now_s + due));
            let (outcome, done) = if is_down {
                (Outcome::Failed(ErrorClass::ConnectRefused), sent + 0.001)
            } else {
                self.answer(&mut server, sent)
            };
            if let Some(user) = user {
                ready[user] = done;
            }
            probed.slowest_s = probed.slowest_s.max(done - due);
            let is_good = outcome == Outcome::Completed;
            if is_good {
                probed.answers_s.push(done - sent);
                done_s.push(done);
            }
            if due < planned.warmup_s {
                continue;
            }
            let missed = !is_good || done - due > target.bound_s;
            let doubtful = missed && is_good && done - sent <= target.bound_s;
            let intended = Moment::EPOCH + Nanos::from_secs_f64(due);
            probed.requests.push(ProbeRequest { intended, outcome, missed, doubtful });
            misses += u64::from(missed && !doubtful);
        }
    }

    /// Outcome and end of a request that is sent at `sent`.
    fn answer(&mut self, server: &mut Server, sent: f64) -> (Outcome, f64) {
        if let Some((rate, burst)) = self.target.limit {
            server.tokens = (server.tokens + (sent - server.filled) * rate).min(burst);
            server.filled = sent;
            let done = sent + self.target.mean_s;
            if server.tokens < 1.0 {
                return (Outcome::Rejected(429), done);
            }
            server.tokens -= 1.0;
            return (Outcome::Completed, done);
        }
        let slot = least(&server.free).unwrap();
        let begun = after(sent.max(server.free[slot]), self.target.stalls, server.phase);
        let done = begun + self.service_s() / server.speed;
        server.free[slot] = done;
        if self.rng.uniform() < self.target.errors {
            return (Outcome::Failed(ErrorClass::ServerError), done);
        }
        (Outcome::Completed, done)
    }

    /// A first-order autoregression.
    fn speed(&mut self, due_s: f64) -> f64 {
        let now_s = self.now_s + due_s;
        let keeps = (-(now_s - self.drifted.0).max(0.0) / 20.0).exp();
        let fresh = (1.0 - keeps * keeps).sqrt();
        self.drifted = (now_s, keeps * self.drifted.1 + fresh * self.rng.normal());
        1.0 + self.target.drift * self.drifted.1
    }

    fn service_s(&mut self) -> f64 {
        self.target.mean_s
            * match self.target.service {
                Service::Constant => 1.0,
                Service::Exponential => self.rng.exponential(),
                Service::Lognormal(cv) => {
                    let variance = (1.0 + cv * cv).ln();
                    (variance.sqrt() * self.rng.normal() - variance / 2.0).exp()
                }
            }
    }
}

/// The moment itself, or the end of the stall that it falls into.
fn after(at: f64, stops: Option<(f64, f64)>, phase: f64) -> f64 {
    let Some((every, length)) = stops else { return at };
    let since = (at + phase * every) % every;
    if since < length { at + length - since } else { at }
}

/// Index of the smallest element.
fn least(times: &[f64]) -> Option<usize> {
    (0..times.len()).min_by(|a, b| times[*a].total_cmp(&times[*b]))
}

/// Settings of a search with virtual users.
pub(crate) fn users(settings: Settings) -> Settings {
    Settings { load: Load::VirtualUsers, ..settings }
}

/// Response time of M/M/c, first come first served: Gross and Harris, Fundamentals of Queueing
/// Theory, 2.3.
#[test]
fn the_simulation_has_the_capacity_of_the_textbook() {
    let exceeds = |load: f64| {
        let (c, mu, t) = (4_i32, 20.0, 0.4_f64);
        let a = load / mu;
        let terms = (0..c).scan(1.0, |term, n| {
            let now = *term;
            *term *= a / f64::from(n + 1);
            Some(now)
        });
        let all: f64 = terms.sum();
        let last = a.powi(c) / 24.0 / (1.0 - a / f64::from(c));
        let waits = last / (all + last);
        let rest = f64::from(c) - 1.0 - a;
        (-mu * t).exp() * (1.0 + waits * (1.0 - (-mu * t * rest).exp()) / rest)
    };
    let (mut low, mut high) = (40.0_f64, 80.0_f64);
    for _ in 0..40 {
        let middle = f64::midpoint(low, high);
        *(if exceeds(middle) > 0.01 { &mut high } else { &mut low }) = middle;
    }
    let target = Target { service: Service::Exponential, bound_s: 0.4, ..TARGET };
    let simulated = Simulation::new(&target, 1).capacity(0.01, [40.0, 80.0]);
    assert!((simulated / low - 1.0).abs() < 0.02, "{simulated} {low}");
}
