//! The gateways suite: gateways of any project, started one after another in front of the same
//! upstream: what each adds to the same requests, its capacity, and what it costs.

mod against;
mod fidelity;
mod figures;
mod rounds;
mod running;
mod spec;
mod tables;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub(super) use against::against;
use plimsoll_measure::{Nanos, Seed};
use plimsoll_report::format::time;
use plimsoll_runner::time::sleep;
use plimsoll_versus::Versus;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::SuiteError;
use crate::measurement::{Length, Measurement};
use crate::runner::{Sought, SuiteRunner};
use crate::target::{DIRECT, Provider, SuiteTarget};
use fidelity::Fidelity;
use figures::Row;
use running::{Access, Place, Running};
use spec::Entry;
pub use spec::GatewaysFile;

/// The result of the suite, besides its comparisons and searches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewaysResult {
    /// Seed of the orders.
    seed: u64,
    /// The order of the gateways in each round.
    orders: Vec<Vec<String>>,
    gateways: Vec<GatewayFacts>,
    rows: Vec<Row>,
}

/// What belongs to the result of a gateway, besides its figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct GatewayFacts {
    name: String,
    version: String,
    install: String,
    start: String,
    /// SHA-256 of each configuration file.
    digests: BTreeMap<String, String>,
    /// Why it was not measured, or not to the end.
    error: Option<String>,
    fidelity: Fidelity,
}

/// A gateway while it is measured.
struct Subject<'f> {
    entry: &'f Entry,
    facts: GatewayFacts,
    /// Bytes of its image or package.
    size: Option<f64>,
    starts_ms: Vec<f64>,
    /// Resident bytes: idle, under load, afterwards; a value for each round.
    memory: [Vec<f64>; 3],
    /// The capacity in each round.
    capacities: Vec<plimsoll_knee::Found>,
    /// For each rate its rounds, or why it has none.
    rates: Vec<Result<Vec<Round>, String>>,
}

/// The comparisons of one round: of all requests, of the chats, and of the streams.
type Round = Vec<Versus>;

/// Names of the scenarios: plain chats and streamed ones.
const SCENARIOS: [&str; 2] = ["chat", "stream"];

/// A gateway settles before its memory is read.
const SETTLE: Nanos = Nanos::from_secs(1);

struct Bench<'f> {
    file: &'f GatewaysFile,
    provider: Option<Provider>,
    subjects: Vec<Subject<'f>>,
    files: Vec<Vec<String>>,
    /// The capacity of the upstream without a gateway.
    direct: Option<plimsoll_knee::Found>,
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
    for round in 0..file.rounds {
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

/// A number from the time of the start, as good as a random one.
fn digits_of(time: &str) -> u64 {
    time.bytes().filter(u8::is_ascii_digit).fold(0_u64, |n, digit| n * 10 + u64::from(digit - b'0'))
}

/// A random order of so many gateways (Fisher and Yates).
fn shuffled(count: usize, seed: u64, round: u64) -> Vec<usize> {
    let mut rng = Seed(seed).rng("gateways", round);
    let mut order: Vec<_> = (0..count).collect();
    for last in (1..count).rev() {
        let other = usize::try_from(rng.below(last as u64 + 1)).unwrap_or(last);
        order.swap(last, other);
    }
    order
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
            memory: Default::default(),
            capacities: Vec::new(),
            rates: vec![Ok(Vec::new()); file.rates.len()],
        });
        let files = vec![Vec::new(); file.rates.len()];
        Ok(Self { file, provider, subjects: subjects.collect(), files, direct: None })
    }

    /// Asks each gateway for its version and size.
    fn describe(&mut self, runner: &mut SuiteRunner<'_>) {
        let upstream = self.direct_target().base;
        for subject in &mut self.subjects {
            let (entry, place) =
                (subject.entry, place(self.file, runner, authority(&upstream), "0"));
            subject.size =
                running::printed(&entry.size, entry, &place).and_then(|b| b.parse().ok());
            let facts = &mut subject.facts;
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
            let mut start = |port: u16| {
                let upstream = format!("127.0.0.1:{port}");
                let running = Running::start(entry, &place(file, runner, &upstream, "fidelity"))?;
                let access = running.access.clone();
                Ok::<(Running, Access), String>((running, access))
            };
            match fidelity::observe(&mut start, &|| runner.is_interrupted()) {
                Ok(found) => {
                    let changed = found.cells.iter().filter(|cell| cell.state.is_change()).count();
                    let all = found.cells.len();
                    runner.log(&format!("{}: changed in {changed} of {all} cases", entry.name));
                    self.subjects[at].facts.fidelity = found;
                }
                Err(why) => self.fail(runner, at, &format!("does not start: {why}")),
            }
        }
    }

    /// The upstream without a gateway.
    fn direct_target(&self) -> SuiteTarget {
        let own = self.provider.as_ref().map(Provider::target);
        let base = self.file.upstream.clone().unwrap_or_default();
        let direct = own.unwrap_or_else(|| SuiteTarget { base, ..SuiteTarget::default() });
        SuiteTarget { name: DIRECT.to_owned(), model: "mock".to_owned(), ..direct }
    }

    /// Starts a gateway for a round; `None` if it does not start, which its facts then say.
    fn start(&mut self, runner: &mut SuiteRunner<'_>, at: usize, round: &str) -> Option<Running> {
        let upstream = self.direct_target().base;
        let place = place(self.file, runner, authority(&upstream), round);
        let subject = &mut self.subjects[at];
        let name = &subject.entry.name;
        match Running::start(subject.entry, &place) {
            Ok(running) => {
                let took = running.ready_after.as_millis_f64();
                subject.starts_ms.push(took);
                runner.log(&format!("{name}: answers after {}", time(took)));
                Some(running)
            }
            Err(why) => {
                self.fail(runner, at, &format!("does not start: {why}"));
                None
            }
        }
    }

    /// Notes why a gateway is not measured any further.
    fn fail(&mut self, runner: &mut SuiteRunner<'_>, at: usize, why: &str) {
        let (facts, real) = (&mut self.subjects[at].facts, &self.file.real_names);
        let install = match &*facts.install {
            "" => String::new(),
            install => format!(" (to install it: {install})"),
        };
        let why = format!("{why}{install}");
        let why =
            real.get(&facts.name).map_or_else(|| why.clone(), |real| why.replace(real, "..."));
        runner.log(&format!("{}: {why}", facts.name));
        runner.report.missing.push(format!("{}: {why}", facts.name));
        facts.error = Some(why);
    }

    /// One round of some gateways that run at the same time.
    fn round(
        &mut self,
        runner: &mut SuiteRunner<'_>,
        round: u32,
        group: &[usize],
    ) -> Result<(), SuiteError> {
        let folder = (round + 1).to_string();
        let mut running = Vec::new();
        for at in group.iter().copied() {
            if self.subjects[at].facts.error.is_none() && !runner.is_interrupted() {
                running.extend(self.start(runner, at, &folder).map(|running| (at, running)));
            }
        }
        if running.is_empty() {
            return Ok(());
        }
        self.read_memory(&running, 0);
        if self.file.capacity_seconds > 0 && !runner.is_interrupted() {
            self.search(runner, round, &running)?;
        }
        for rate in 0..self.file.rates.len() {
            if !runner.is_interrupted() {
                self.compare(runner, round, rate, &running);
                self.drop_dead(runner, &mut running);
            }
        }
        self.read_memory(&running, 2);
        Ok(())
    }

    fn drop_dead(&mut self, runner: &mut SuiteRunner<'_>, running: &mut Vec<(usize, Running)>) {
        running.retain(|(at, one)| {
            let lives = one.memory().is_some();
            if !lives {
                self.fail(runner, *at, &format!("died under load{}", one.last_words()));
            }
            lives
        });
    }

    fn read_memory(&mut self, running: &[(usize, Running)], moment: usize) {
        sleep(SETTLE);
        for (at, one) in running {
            self.subjects[*at].memory[moment].extend(one.memory());
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
        round: u32,
        running: &[(usize, Running)],
    ) -> Result<(), SuiteError> {
        let budget = Nanos::from_secs(self.file.capacity_seconds);
        let names: Vec<_> = running.iter().map(|(at, _)| &*self.subjects[*at].entry.name).collect();
        let label = format!("{}, capacity, round {}", names.join(" "), round + 1);
        let sought = |bench: &Self, name: &str, target: &SuiteTarget| Sought {
            name: name.to_owned(),
            measurement: bench.requests(&format!("{name}, round {}", round + 1), target),
            from: FROM,
        };
        let objective = &self.file.objective;
        if self.direct.is_none() {
            let direct = [sought(self, DIRECT, &self.direct_target())];
            let found =
                runner.search_knees("capacity of the upstream", objective, budget, &direct)?;
            self.direct = found.first().map(|found| found.knee);
        }
        let targets = running.iter().map(|(at, one)| {
            let entry = self.subjects[*at].entry;
            sought(self, &entry.name, &one.target(entry))
        });
        let targets: Vec<_> = targets.collect();
        let found = runner.search_knees(&label, objective, budget, &targets)?;
        for ((at, _), found) in running.iter().zip(found) {
            self.subjects[*at].capacities.push(found.knee);
        }
        Ok(())
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
        let mut compared = Vec::new();
        for (at, one) in running {
            let subject = &mut self.subjects[*at];
            let most = subject.capacities.iter().filter_map(|found| found.high).reduce(f64::max);
            if let Some(most) = most.filter(|most| *most < per_s) {
                let why = format!("above its capacity, which is below {most:.0}/s");
                subject.rates[rate] = Err(why);
            } else {
                targets.push((subject.entry.name.clone(), one.target(subject.entry)));
                compared.push((*at, one));
            }
        }
        if compared.is_empty() {
            return;
        }
        let names: Vec<_> = targets[1..].iter().map(|(name, _)| &**name).collect();
        let label = format!("{}, {per_s}/s, round {}", names.join(" "), round + 1);
        let length = Length::new(WARM_UP, Nanos::from_secs(self.file.seconds));
        let request = self.requests(&label, &targets[0].1).rate(per_s, length);
        let found = runner.compare_round(&request, &targets, &SCENARIOS);
        match found {
            Ok((round, files)) => {
                self.files[rate].extend(files);
                for (at, one) in compared {
                    let subject = &mut self.subjects[at];
                    subject.memory[1].extend(one.memory());
                    subject.rates[rate].iter_mut().for_each(|rounds| rounds.push(round.clone()));
                }
                let complete = round.first().map_or(0, |versus| versus.blocks.complete);
                runner.log(&format!("{label}: {complete} pairs"));
            }
            Err(error) => {
                for (at, _) in compared {
                    self.subjects[at].rates[rate] = Err(error.to_string());
                }
                runner.log(&format!("{label}: {error}"));
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
        let combined = rounds::combined(&self);
        runner.report.comparisons.extend(rounds::comparisons(&self, &combined));
        let rows = rounds::rows(&self, &combined);
        let gateways = self.subjects.into_iter().map(|subject| subject.facts).collect();
        let result = GatewaysResult { seed, orders, gateways, rows };
        runner.report.sections.extend(tables::sections(&result, self.file));
        runner.report.gateways = Some(result);
    }
}

/// The lowest rate of a search for the capacity.
const FROM: f64 = 5.0;
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
    let folder: PathBuf = runner.options.folder.join("gateways").join(round);
    // Several workers on one core would take turns.
    let core = runner.cores.gateway.filter(|_| file.workers == 1);
    Place { exe: &runner.options.exe, folder, upstream, workers: file.workers, core }
}

/// `HOST:PORT` of a URL.
fn authority(url: &str) -> &str {
    let after = url.split_once("://").map_or(url, |(_, rest)| rest);
    after.split(['/', '?']).next().unwrap_or_default()
}
