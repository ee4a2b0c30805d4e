//! The gateways suite: gateways of any project, started one after another in front of the same
//! upstream: what each adds to the same requests, its capacity, and what it costs.

mod against;
mod anonymous;
mod fidelity;
mod figures;
mod result;
mod rounds;
mod running;
mod spec;
mod tables;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(super) use against::against;
use plimsoll_measure::Nanos;
use plimsoll_report::format::time;
use plimsoll_runner::time::sleep;
use plimsoll_versus::Versus;
use serde_json::json;

use crate::error::SuiteError;
use crate::knee_result::KneeResult;
use crate::measurement::{Length, Measurement};
use crate::runner::{Sought, SuiteRunner};
use crate::target::{DIRECT, Provider, SuiteTarget};
use fidelity::State;
use result::GatewayFacts;
pub use result::GatewaysResult;
use running::{Place, Running};
pub use spec::GatewaysFile;
use spec::{Entry, digits_of, shuffled};

/// A gateway while it is measured.
struct Subject<'f> {
    entry: &'f Entry,
    facts: GatewayFacts,
    /// Bytes of its image or package, if known.
    size: Option<f64>,
    starts_ms: Vec<f64>,
    /// Resident bytes of each start, if read: idle, the most after a load, and at the end.
    memory: Vec<[Option<f64>; 3]>,
    capacity: Option<KneeResult>,
}

/// The comparisons at a rate.
#[derive(Default)]
struct Rate {
    /// By the names of the gateways that ran at the same time.
    groups: BTreeMap<Vec<String>, Group>,
    /// Why a gateway has no result, by its name.
    refused: BTreeMap<String, String>,
}

#[derive(Default)]
struct Group {
    /// In each round the comparison of all requests, of the chats, and of the streams.
    rounds: Vec<Vec<Versus>>,
    files: Vec<String>,
    /// Why the host was busy in a round.
    busy_host: Option<String>,
}

/// Names of the scenarios: plain chats and streamed ones.
const SCENARIOS: [&str; 2] = ["chat", "stream"];

/// A gateway settles before its memory is read.
const SETTLE: Nanos = Nanos::from_secs(1);

struct Bench<'f> {
    file: &'f GatewaysFile,
    provider: Option<Provider>,
    subjects: Vec<Subject<'f>>,
    rates: Vec<Rate>,
    /// The capacity of the upstream without a gateway.
    direct: Option<KneeResult>,
}

pub(super) fn run(runner: &mut SuiteRunner<'_>) -> Result<(), SuiteError> {
    let options = runner.options;
    let Some(file) = &options.gateways else { return Ok(()) };
    let seed = file.seed.unwrap_or_else(|| digits_of(&options.started));
    let mut bench = Bench::open(runner, file)?;
    bench.describe(runner);
    if file.fidelity {
        bench.examine(runner);
    }
    let mut orders = Vec::new();
    // A gateway that was loaded to its limit keeps memory: it is started again for the rounds.
    let first = u32::from(file.capacity_seconds == 0);
    for round in first..=file.rounds {
        let order = shuffled(bench.subjects.len(), seed, u64::from(round));
        orders.push(order.iter().map(|at| bench.subjects[*at].entry.name.clone()).collect());
        let groups: Vec<_> = if file.together {
            vec![order]
        } else {
            order.into_iter().map(|at| vec![at]).collect()
        };
        for group in groups {
            bench.round(runner, round, &group)?;
        }
    }
    bench.start_cold(runner);
    bench.conclude(runner, seed, orders);
    Ok(())
}

impl<'f> Bench<'f> {
    /// Starts the upstream.
    fn open(runner: &mut SuiteRunner<'_>, file: &'f GatewaysFile) -> Result<Self, SuiteError> {
        let provider = if file.upstream.is_some() {
            None
        } else {
            let own = serde_json::to_vec(&file.mock.clone().unwrap_or_else(mock))?;
            let config = runner.write("mock.json", &own)?.display().to_string();
            Some(runner.provider(&["--config", &config])?)
        };
        let subjects = file.entries.iter().map(|entry| Subject {
            entry,
            facts: GatewayFacts { name: entry.name.clone(), ..GatewayFacts::default() },
            size: None,
            starts_ms: Vec::new(),
            memory: Vec::new(),
            capacity: None,
        });
        let rates = file.rates.iter().map(|_| Rate::default()).collect();
        Ok(Self { file, provider, subjects: subjects.collect(), rates, direct: None })
    }

    /// Asks each gateway for its version and size.
    fn describe(&mut self, runner: &mut SuiteRunner<'_>) {
        let upstream = self.direct_target();
        for Subject { entry, facts, size, .. } in &mut self.subjects {
            let place = place(self.file, runner, upstream.authority(), "0");
            let bytes = running::printed(&entry.size, entry, &place);
            *size = bytes.and_then(|bytes| bytes.parse().ok());
            if !self.file.real_names.is_empty() {
                continue;
            }
            facts.version = running::printed(&entry.version, entry, &place).unwrap_or_default();
            (facts.install, facts.start) = (entry.install.clone(), entry.start.clone());
            facts.digests = running::digests(entry);
            let version = if facts.version.is_empty() { "version unknown" } else { &facts.version };
            runner.log(&format!("{}: {version}", facts.name));
        }
    }

    /// Sends single requests with known answers through each gateway.
    fn examine(&mut self, runner: &mut SuiteRunner<'_>) {
        for at in 0..self.subjects.len() {
            if runner.is_interrupted() {
                return;
            }
            let (file, entry) = (self.file, self.subjects[at].entry);
            let found = fidelity::observe(
                fidelity::LIMIT,
                &mut |port| {
                    let upstream = format!("127.0.0.1:{port}");
                    let place = place(file, runner, &upstream, "fidelity");
                    let running = Running::start(entry, &place)?;
                    let access = running.access.clone();
                    Ok((running, access))
                },
                &|| runner.is_interrupted(),
            );
            match found {
                Ok(found) => {
                    let changed = found.cells.iter().filter(|cell| cell.state == State::Changed);
                    let changed = changed.count();
                    let all = found.cells.len();
                    runner.log(&format!("{}: changed in {changed} of {all} cases", entry.name));
                    self.subjects[at].facts.fidelity = found;
                }
                Err(_) if runner.is_interrupted() => {}
                Err(why) => self.fail(runner, at, &format!("does not start: {why}")),
            }
        }
    }

    /// The upstream without a gateway.
    fn direct_target(&self) -> SuiteTarget {
        let own = self.provider.as_ref().map(Provider::target);
        let base = self.file.upstream.as_deref().unwrap_or_default();
        let base = base.trim_end_matches('/').to_owned();
        let key = self.file.key.clone();
        let direct = own.unwrap_or_else(|| SuiteTarget { base, key, ..SuiteTarget::default() });
        SuiteTarget { name: DIRECT.to_owned(), model: self.file.model.clone(), ..direct }
    }

    /// Starts a gateway for a round; `None` if it does not start, which its facts then say.
    fn start(&mut self, runner: &mut SuiteRunner<'_>, at: usize, round: &str) -> Option<Running> {
        let upstream = self.direct_target();
        let place = place(self.file, runner, upstream.authority(), round);
        let subject = &mut self.subjects[at];
        let name = &subject.entry.name;
        match Running::start(subject.entry, &place) {
            Ok(running) => {
                let took = running.ready_after.as_millis_f64();
                subject.starts_ms.push(took);
                subject.memory.push([None; 3]);
                runner.log(&format!("{name}: answers after {}", time(took)));
                Some(running)
            }
            Err(_) if runner.is_interrupted() => None,
            Err(why) => {
                self.fail(runner, at, &format!("does not start: {why}"));
                None
            }
        }
    }

    /// Notes why a gateway is not measured any further.
    fn fail(&mut self, runner: &mut SuiteRunner<'_>, at: usize, why: &str) {
        let facts = &mut self.subjects[at].facts;
        let install = match &*facts.install {
            install if !install.is_empty() && why.starts_with("does not start") => {
                format!(" (to install it: {install})")
            }
            _ => String::new(),
        };
        let why = self.file.shown(&format!("{why}{install}"));
        runner.log(&format!("{}: {why}", facts.name));
        runner.report.missing.push(format!("{}: {why}", facts.name));
        facts.error = Some(why);
    }

    /// One round of some gateways that run at the same time; round 0 searches their capacities.
    fn round(
        &mut self,
        runner: &mut SuiteRunner<'_>,
        round: u32,
        group: &[usize],
    ) -> Result<(), SuiteError> {
        let folder = if round == 0 { "capacity".to_owned() } else { round.to_string() };
        let mut running = Vec::new();
        for at in group.iter().copied() {
            if self.subjects[at].facts.error.is_none() && !runner.is_interrupted() {
                running.extend(self.start(runner, at, &folder).map(|running| (at, running)));
            }
        }
        if running.is_empty() {
            return Ok(());
        }
        if round == 0 {
            return self.search(runner, &running);
        }
        sleep(SETTLE);
        self.read_memory(&running, 0);
        for rate in 0..self.file.rates.len() {
            if !runner.is_interrupted() {
                self.compare(runner, round, rate, &running);
                running.retain(|(at, one)| self.lives(runner, *at, one));
            }
        }
        sleep(SETTLE);
        self.read_memory(&running, 2);
        Ok(())
    }

    fn lives(&mut self, runner: &mut SuiteRunner<'_>, at: usize, one: &Running) -> bool {
        let lives = one.memory().is_some();
        if !lives {
            self.fail(runner, at, &format!("died under load{}", one.last_words()));
        }
        lives
    }

    fn read_memory(&mut self, running: &[(usize, Running)], moment: usize) {
        for (at, one) in running {
            let Some(round) = self.subjects[*at].memory.last_mut() else { continue };
            round[moment] = round[moment].into_iter().chain(one.memory()).reduce(f64::max);
        }
    }

    /// The requests of all loads.
    fn requests(&self, label: &str, target: &SuiteTarget) -> Measurement {
        let (input, output) = self.file.tokens;
        let scenarios = SCENARIOS.map(|name| json!({"name": name, "stream": name == "stream"}));
        Measurement::scenarios(label, target, &scenarios)
            .with("protocol", "openai-chat")
            .with("content", json!({"mode": "sized", "approx_input_tokens": input}))
            .with("max_tokens", output)
            .with("cache_mode", "bust")
            .with("arrivals", "poisson")
            .with("timeout", "30s")
    }

    fn search(
        &mut self,
        runner: &mut SuiteRunner<'_>,
        running: &[(usize, Running)],
    ) -> Result<(), SuiteError> {
        if self.direct.is_none() {
            let direct = [self.sought(DIRECT, &self.direct_target())];
            self.direct = self.knees(runner, "upstream", &direct)?.pop();
        }
        let targets = running.iter().map(|(at, one)| {
            let entry = self.subjects[*at].entry;
            self.sought(&entry.name, &one.target(entry))
        });
        let targets: Vec<_> = targets.collect();
        let found = self.knees(runner, &targets[0].measurement.label, &targets)?;
        for ((at, _), found) in running.iter().zip(found) {
            self.subjects[*at].capacity = Some(found);
        }
        Ok(())
    }

    fn sought(&self, name: &str, target: &SuiteTarget) -> Sought {
        let from = self.file.rates.iter().copied().fold(MOST_FROM, f64::min);
        // The rates of the file are meant to be kept: a climb from the lowest would take too long.
        let first = self.file.rates.iter().copied().fold(from, f64::max);
        // Beyond the rate that the upstream keeps alone, nothing is known about a gateway.
        let direct = self.direct.as_ref().map(|direct| direct.knee);
        let to = direct.and_then(|knee| knee.kept.or(knee.missed)).unwrap_or(f64::INFINITY);
        // The search replaces the rate. Random arrivals would widen its result.
        let measurement = self.requests(name, target).with("arrivals", "constant");
        let measurement = measurement.rate(from, Length::new(WARM_UP, WARM_UP));
        Sought { name: name.to_owned(), measurement, from, first, to }
    }

    fn knees(
        &self,
        runner: &mut SuiteRunner<'_>,
        label: &str,
        sought: &[Sought],
    ) -> Result<Vec<KneeResult>, SuiteError> {
        let budget = Nanos::from_secs(self.file.capacity_seconds);
        let label = format!("capacity, {label}");
        runner.search_knees(&label, &self.file.objective, budget, sought)
    }

    /// Compares running gateways with the upstream at a rate, unless it is beyond their capacity.
    fn compare(
        &mut self,
        runner: &mut SuiteRunner<'_>,
        round: u32,
        rate: usize,
        running: &[(usize, Running)],
    ) {
        let per_s = self.file.rates[rate];
        let mut targets = vec![(DIRECT.to_owned(), self.direct_target())];
        for (at, one) in running {
            let Subject { entry, capacity, .. } = &self.subjects[*at];
            let most = capacity.as_ref().and_then(|found| found.knee.high);
            if let Some(most) = most.filter(|most| *most < per_s) {
                let why = format!("above its capacity, which is below {most:.0}/s");
                self.rates[rate].refused.insert(entry.name.clone(), why);
            } else {
                targets.push((entry.name.clone(), one.target(entry)));
            }
        }
        let names: Vec<_> = targets[1..].iter().map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            return;
        }
        let label = format!("{}, {per_s}/s, round {round}", names.join(" "));
        let length = Length::new(WARM_UP, Nanos::from_secs(self.file.seconds));
        let request = self.requests(&label, &targets[0].1).rate(per_s, length);
        match runner.compare_round(&request, &targets, &SCENARIOS) {
            Ok((round, whole)) => {
                let complete = round.first().map_or(0, |versus| versus.blocks.complete);
                runner.log(&format!("{label}: {complete} pairs"));
                let group = self.rates[rate].groups.entry(names).or_default();
                group.files.extend(whole.files);
                group.busy_host = group.busy_host.take().or(whole.busy_host);
                group.rounds.push(round);
                self.read_memory(running, 1);
            }
            Err(error) => {
                runner.log(&format!("{label}: {error}"));
                let refused = names.into_iter().map(|name| (name, error.to_string()));
                self.rates[rate].refused.extend(refused);
            }
        }
    }

    /// Starts gateways again until each has as many cold starts as wanted.
    fn start_cold(&mut self, runner: &mut SuiteRunner<'_>) {
        for at in 0..self.subjects.len() {
            while self.subjects[at].starts_ms.len() < self.file.cold_starts
                && self.subjects[at].facts.error.is_none()
                && !runner.is_interrupted()
            {
                drop(self.start(runner, at, "cold"));
            }
        }
    }

    /// Adds the result to the report.
    fn conclude(self, runner: &mut SuiteRunner<'_>, seed: u64, orders: Vec<Vec<String>>) {
        runner.report.comparisons.extend(rounds::comparisons(&self));
        let rows = rounds::rows(&self);
        let gateways = self.subjects.into_iter().map(|subject| subject.facts).collect();
        let result = GatewaysResult { seed, orders, gateways, rows, loads: self.file.loads() };
        let answers = tables::answers(&runner.report.comparisons);
        runner.report.sections.extend(tables::sections(&result, &self.file.objective));
        runner.report.sections.extend(answers);
        runner.report.gateways = Some(result);
    }
}

/// A search for the capacity goes down to the lowest rate of the file, or to this one.
const MOST_FROM: f64 = 20.0;
/// Load before each comparison that does not count.
const WARM_UP: Nanos = Nanos::from_secs(2);

/// The provider's own times depend on the prompt alone, so that they are the same whatever way a
/// request comes.
fn mock() -> serde_json::Value {
    json!({
        "draw": "prompt",
        "workers": 1,
        "other_models": {
            "ttft": {"lognormal": {"median": "20ms", "p95": "40ms"}},
            "gap": "4ms",
            "output": "from_request",
        },
    })
}

fn place<'a>(
    file: &GatewaysFile,
    runner: &'a SuiteRunner<'_>,
    upstream: &'a str,
    round: &str,
) -> Place<'a> {
    // Configurations and logs tell which gateway is which.
    let kept = if file.real_names.is_empty() { "gateways" } else { "private" };
    let folder: PathBuf = runner.options.folder.join(kept).join(round);
    // Several workers on one core would take turns.
    let core = runner.cores.gateway.filter(|_| file.workers == 1);
    let (exe, control) = (&runner.options.exe, runner.control);
    Place { exe, folder, upstream, workers: file.workers, core, control }
}
