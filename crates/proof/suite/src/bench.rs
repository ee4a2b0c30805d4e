//! The bench: starts what is needed, measures cells, keeps what came of them.

use std::fs;
use std::time::Duration;

use plimsoll_engine::{Control, Run, WatchedProcess};
use plimsoll_metrics::{Band, InstrumentHealth, ProcessUse, RunSummary};

use crate::cell::{Answers, Busy, Figures, MeasurementResult};
use crate::child::{Child, Start, get};
use crate::cores::{Cores, Pinned};
use crate::error::SuiteError;
use crate::job::{Amount, Job};
use crate::order::SuiteOptions;
use crate::subject::{Gateway, MODEL, Provider, Subject};
use crate::words::{millis, rate};

/// What a suite works with.
pub(crate) struct Bench<'a> {
    pub(crate) order: &'a SuiteOptions,
    pub(crate) cores: Cores,
    /// What was left out, and why.
    pub(crate) skipped: Vec<String>,
    /// Every cell so far, for `suite.json`.
    pub(crate) cells: Vec<MeasurementResult>,
    /// What the gateway says of itself.
    pub(crate) version: Option<String>,
    /// Largest memory of a gateway of ours, in bytes.
    pub(crate) memory: Option<u64>,
    /// Gateways and their commands, for the report.
    pub(crate) commands: Vec<String>,
    control: &'a Control,
    tell: &'a mut dyn FnMut(&str),
    _pinned: Pinned,
    children: u32,
}

/// A measured pass.
pub(crate) struct Pass {
    pub(crate) summary: RunSummary,
    pub(crate) figures: Figures,
}

impl<'a> Bench<'a> {
    /// A bench. The calling thread, and the load with it, stays on its cores as long as the bench lasts, unless the
    /// gateway is somebody else's.
    pub(crate) fn new(
        order: &'a SuiteOptions,
        control: &'a Control,
        tell: &'a mut dyn FnMut(&str),
    ) -> Self {
        let cores = if order.target.is_some() { Cores::default() } else { Cores::deal() };
        let pinned = Pinned::to(&cores.generator);
        Self {
            order,
            cores,
            skipped: Vec::new(),
            cells: Vec::new(),
            version: None,
            memory: None,
            commands: Vec::new(),
            control,
            tell,
            _pinned: pinned,
            children: 0,
        }
    }

    /// Tells the user something.
    pub(crate) fn say(&mut self, message: &str) {
        (self.tell)(message);
    }

    /// Leaves something out, and says so.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        let line = format!("{what}: {why}");
        (self.tell)(&format!("skipped: {line}"));
        self.skipped.push(line);
    }

    /// Did the user end it?
    pub(crate) fn is_over(&self) -> bool {
        self.control.is_interrupted()
    }

    /// The gateway of the user's, if there is one.
    pub(crate) fn target(&self) -> Option<Subject> {
        let target = self.order.target.as_ref()?;
        Some(Subject {
            base: target.url.clone(),
            key: target.key.clone(),
            headers: target.headers.clone(),
            model: target.model.clone().unwrap_or_else(|| MODEL.to_owned()),
            insecure: target.insecure,
            ..Subject::default()
        })
    }

    /// Starts the mock provider.
    pub(crate) fn provider(&mut self, flags: &[&str]) -> Result<Provider, SuiteError> {
        let mut args: Vec<_> = ["mock", "--addr", "127.0.0.1:0"].map(str::to_owned).into();
        args.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.start("the mock provider", self.cores.provider, &args).map(Provider::new)
    }

    /// Starts the reference gateway; `sets` are settings beside those of its persona.
    pub(crate) fn gateway(
        &mut self,
        persona: &str,
        sets: &[String],
        provider: Option<&Provider>,
    ) -> Result<Gateway, SuiteError> {
        let port = self.order.port.unwrap_or(0);
        let listen = format!("127.0.0.1:{port}");
        let mut args: Vec<_> =
            ["gateway", "--persona", persona, "--listen", &listen].map(str::to_owned).into();
        if let Some(provider) = provider {
            args.extend(["--upstream".to_owned(), provider.address().to_owned()]);
        }
        for set in sets {
            args.extend(["--set".to_owned(), set.clone()]);
        }
        let child = self.start("the reference gateway", self.cores.gateway, &args)?;
        let command = self.shown(&args, provider);
        if !self.commands.contains(&command) {
            self.commands.push(command);
        }
        let gateway = Gateway::ours(child, provider);
        self.ask_version(&gateway);
        Ok(gateway)
    }

    /// The command as the report shows it: what is made up for each run has a name.
    fn shown(&self, args: &[String], provider: Option<&Provider>) -> String {
        let folder = self.order.folder.to_string_lossy();
        let command = format!("plimsoll {}", args.join(" ")).replace(&*folder, "FOLDER");
        match provider {
            None => command,
            Some(mock) => command.replace(mock.address(), "PROVIDER"),
        }
    }

    fn start(
        &mut self,
        what: &str,
        core: Option<usize>,
        args: &[String],
    ) -> Result<Child, SuiteError> {
        self.children += 1;
        let log = self.order.folder.join(format!("process-{}.log", self.children));
        Child::start(&Start { what, exe: &self.order.exe, core, args, log })
    }

    /// What the gateway says of its version and layers.
    fn ask_version(&mut self, gateway: &Gateway) {
        if self.version.is_some() {
            return;
        }
        let Some(address) = gateway.address() else { return };
        let answer = get(address, "/admin/build", Duration::from_secs(2)).ok();
        let build = answer.filter(|answer| answer.status == 200).map(|answer| answer.body);
        self.version = build.map(|build| build.trim().to_owned());
    }

    /// Remembers the memory of a gateway that is about to end.
    pub(crate) fn retire(&mut self, gateway: &Gateway) {
        self.memory = self.memory.max(gateway.peak_memory());
    }

    /// Measures jobs, `passes` times each, in turn: what changes on the machine meanwhile hits all alike.
    pub(crate) fn measure(&mut self, jobs: &[Job], passes: u32) -> Vec<MeasurementResult> {
        self.measure_by(jobs, passes, Answers::Completed, &mut |_, _| {})
    }

    /// The same, of which `look` sees every pass.
    pub(crate) fn measure_by(
        &mut self,
        jobs: &[Job],
        passes: u32,
        answers: Answers,
        look: &mut dyn FnMut(usize, &Pass),
    ) -> Vec<MeasurementResult> {
        let mut cells: Vec<_> = jobs.iter().map(empty).collect();
        for pass in 0..self.order.passes.unwrap_or(passes).max(1) {
            for (index, (job, cell)) in jobs.iter().zip(&mut cells).enumerate() {
                self.add_pass(job, pass, answers, cell).iter().for_each(|seen| look(index, seen));
            }
        }
        self.cells.extend(cells.iter().cloned());
        cells
    }

    /// Measures one pass into its cell; nothing once the user has ended the suite.
    fn add_pass(
        &mut self,
        job: &Job,
        pass: u32,
        answers: Answers,
        cell: &mut MeasurementResult,
    ) -> Option<Pass> {
        if self.is_over() {
            return None;
        }
        let done = self.pass(job, pass, answers).inspect_err(|error| {
            (self.tell)(&format!("{}: {error}", job.label));
            cell.fault = Some(error.to_string());
        });
        let (measured, file) = done.ok()?;
        self.tell_of(job, pass, &measured.figures);
        cell.files.push(file);
        cell.passes.push(measured.figures.clone());
        Some(measured)
    }

    fn tell_of(&mut self, job: &Job, pass: u32, figures: &Figures) {
        let invalid = figures.invalid.as_ref().map(|why| format!("  INVALID: {why}"));
        let line = format!(
            "{}, pass {}: {}/s, p99 {}, {} errors{}",
            job.label,
            pass + 1,
            rate(figures.requests_per_s),
            millis(figures.p99_ms),
            figures.errors,
            invalid.unwrap_or_default()
        );
        self.say(&line);
    }

    fn pass(
        &mut self,
        job: &Job,
        pass: u32,
        answers: Answers,
    ) -> Result<(Pass, String), SuiteError> {
        let plan = job.plan(pass)?;
        let bands = plan.bands.iter().flat_map(|(metric, bounds)| {
            bounds.iter().map(move |bound| Band::parse(metric, bound))
        });
        let bands = bands.collect::<Result<Vec<_>, _>>()?;
        let mut run = Run::prepare(plan)?;
        run.watch(watched(&job.subject));
        let result = run.start(None, self.control, &mut |_| {})?;
        let mut facts = result.metadata;
        facts.environment = self.order.environment.clone();
        let calibration = self.order.calibration.clone();
        let health = InstrumentHealth { calibration, ..result.health };
        let summary = RunSummary::build(facts, health, &result.snapshot, &[])?;
        let summary = RunSummary { processes: result.processes, ..summary }.with_bands(&bands);
        let mut figures = Figures::of(&summary, answers)?;
        self.add_cpu(&mut figures, &summary);
        let file = self.keep(&summary, job, pass)?;
        Ok((Pass { summary, figures }, file))
    }

    /// Who was how busy while it was measured.
    fn add_cpu(&self, figures: &mut Figures, summary: &RunSummary) {
        let (gateway, provider) = (used(summary, GATEWAY), used(summary, PROVIDER));
        let cores = |used: Option<Used>| used.filter(|used| used.wall_s > 0.0);
        let share = |used: Option<Used>| cores(used).map(|used| used.cpu_s / used.wall_s);
        let workers = &summary.health.worker_cpu_shares;
        let generator = workers.iter().sum::<f64>() / workers.len().max(1) as f64;
        figures.busy = Busy {
            gateway: share(gateway),
            provider: share(provider),
            generator: (!workers.is_empty()).then_some(generator),
            waited: summary.health.worker_wait_shares.iter().copied().reduce(f64::max),
            shared: self.cores.shared(),
            gateway_cores: gateway.and(self.cores.gateway).map(|_| 1.0),
        };
        let counters = &summary.total.counters;
        let answered = counters.completed + counters.rejected;
        let per_request = |used: Used| used.cpu_s * 1e6 / answered as f64;
        figures.gateway_cpu_us = gateway.filter(|_| answered > 0).map(per_request);
    }

    fn keep(&self, summary: &RunSummary, job: &Job, pass: u32) -> Result<String, SuiteError> {
        let folder = self.order.folder.join("cells");
        let name = format!("cells/{}-{}.json", slug(&job.label), pass + 1);
        let path = self.order.folder.join(&name);
        let text = serde_json::to_vec(summary)?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|source| SuiteError::Write { path, source })?;
        Ok(name)
    }
}

const GATEWAY: &str = "gateway";
const PROVIDER: &str = "provider";

/// The processes whose CPU time is of interest.
fn watched(subject: &Subject) -> Vec<WatchedProcess> {
    let of = |(name, pid): (&str, i32)| {
        let pid = u32::try_from(pid).ok().filter(|&pid| pid != 0)?;
        Some(WatchedProcess { name: name.to_owned(), pid })
    };
    [(GATEWAY, subject.gateway), (PROVIDER, subject.provider)].into_iter().filter_map(of).collect()
}

/// What a process used while it was measured.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    cpu_s: f64,
    wall_s: f64,
}

/// Added up over the measured stages; of a run of one stage only the whole is told.
fn used(summary: &RunSummary, name: &str) -> Option<Used> {
    let measured = |process: &&ProcessUse| {
        let stage = process.stage.as_deref();
        process.name == name
            && if summary.stages.len() > 1 {
                summary.stages.iter().any(|s| !s.warmup && Some(&*s.name) == stage)
            } else {
                stage.is_none()
            }
    };
    let add = |sum: Used, process: &ProcessUse| Used {
        cpu_s: sum.cpu_s + process.cpu_s,
        wall_s: sum.wall_s + process.wall_s,
    };
    let mut parts = summary.processes.iter().filter(measured).peekable();
    parts.peek()?;
    Some(parts.fold(Used::default(), add))
}

fn empty(job: &Job) -> MeasurementResult {
    let (clients, rate) = match job.amount {
        Amount::Clients(clients) => (Some(clients), None),
        Amount::Rate(rate) => (None, Some(rate)),
    };
    MeasurementResult { label: job.label.clone(), clients, rate, ..MeasurementResult::default() }
}

/// A label as part of a file's name.
fn slug(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = label.chars().map(plain).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_names_of_files() {
        for (label, name) in [
            ("GET /health/live, 64 clients", "get-health-live-64-clients"),
            ("--", ""),
            ("ä+PII", "pii"),
        ] {
            assert_eq!(slug(label), name);
        }
    }
}
