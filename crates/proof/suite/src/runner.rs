//! Carries the measurements of a suite out, and keeps their results.

mod knees;
mod parts;
mod pass;
mod processes;

use std::fs;
use std::path::PathBuf;

pub(crate) use knees::Sought;
pub(crate) use parts::Part;
use plimsoll_engine::Control;
use plimsoll_measure::Sample;
use plimsoll_metrics::RunSummary;
use plimsoll_plan::Plan;
use plimsoll_report::format::{count, seconds, time};
use plimsoll_report::table::Table;
use plimsoll_run_files::pairs::{PairsHeader, PairsWriter};
use plimsoll_runner::facts;
use plimsoll_versus::{Versus, judge};
pub(crate) use processes::GatewayCommand;
use serde::Serialize;

use crate::comparison_result::ComparisonResult;
use crate::cores::{Cores, Pinned};
use crate::error::SuiteError;
use crate::host::{Compared, Host};
use crate::measurement::{LoadShape, Measurement};
use crate::options::SuiteOptions;
use crate::process_use::{PROVIDER, busy_host, watched};
use crate::report::{AbsentRow, Report, Section, UNDER_TEST, add_absent, distinct, reference};
use crate::result::{Figures, MeasurementResult};
use crate::sizing;
use crate::sizing::Capacity;
use crate::target::{DIRECT, SuiteTarget, slug};

/// The state that all measurements of a suite share.
pub(crate) struct SuiteRunner<'a> {
    pub(crate) options: &'a SuiteOptions,
    pub(crate) cores: Cores,
    /// Results so far.
    pub(crate) report: Report,
    /// The capacities for the table of sizes, or why one is unknown.
    pub(crate) capacities: Vec<Result<Capacity, String>>,
    /// Parts that were left out, as rows of the sections in which a reader looks for them.
    pub(crate) absent: Vec<AbsentRow>,
    /// A part of the title of the sections to which the next measurements belong.
    pub(crate) section: &'static str,
    /// The gateway's description of its build.
    pub(crate) version: Option<String>,
    /// The commands of the gateways, for the report.
    pub(crate) commands: Vec<GatewayCommand>,
    /// The port of the first gateway of the suite.
    pub(crate) port: Option<u16>,
    /// The default port of the reference gateway, unless the user sets one.
    pub(crate) usual_port: Option<u16>,
    /// Results of single requests to the user's gateway: request, answer, time, conclusion.
    pub(crate) tried_routes: Table,
    host: &'a mut dyn Host,
    pub(crate) control: &'a Control,
    observe: &'a mut dyn FnMut(&str),
    _pinned: Pinned,
    children: u32,
}

/// A measured pass.
pub(crate) struct Pass {
    pub(crate) summary: RunSummary,
    pub(crate) figures: Figures,
}

impl<'a> SuiteRunner<'a> {
    /// A runner. While it exists, the calling thread and the load are pinned to their cores, unless
    /// the gateway is the user's.
    pub(crate) fn new(
        report: Report,
        usual_port: Option<u16>,
        options: &'a SuiteOptions,
        host: &'a mut dyn Host,
        control: &'a Control,
        observe: &'a mut dyn FnMut(&str),
    ) -> Self {
        let cores = if options.targets.is_empty() { Cores::assign() } else { Cores::default() };
        let pinned = Pinned::to(&cores.generator);
        Self {
            options,
            cores,
            report,
            capacities: Vec::new(),
            absent: Vec::new(),
            section: "",
            version: None,
            commands: Vec::new(),
            port: None,
            usual_port,
            tried_routes: Table::new([
                "The target, when tried once",
                "answer",
                "time",
                "conclusion",
            ]),
            host,
            control,
            observe,
            _pinned: pinned,
            children: 0,
        }
    }

    /// Writes a file of the suite, and returns its path.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, SuiteError> {
        let path = self.options.folder.join(name);
        let folder = path.parent().map_or(Ok(()), fs::create_dir_all);
        match folder.and_then(|()| fs::write(&path, content)) {
            Ok(()) => Ok(path),
            Err(source) => {
                Err(SuiteError::System { what: format!("write {}", path.display()), source })
            }
        }
    }

    /// Passes a message to the user.
    pub(crate) fn log(&mut self, message: &str) {
        (self.observe)(message);
    }

    /// Records and reports that something is not measured, also as a row of its section.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        let text = format!("{what}: not measured, because {why}");
        (self.observe)(&text);
        self.report.skipped.push(text.clone());
        self.absent.push(AbsentRow { section: self.section, text });
    }

    /// The same for the whole section.
    pub(crate) fn skip_section(&mut self, why: &str) {
        self.skip(self.section, why);
    }

    /// The same for a part that the gateway under test should have: without it the suite is not
    /// whole.
    pub(crate) fn miss(&mut self, what: &str, why: &str) {
        self.skip(what, why);
        self.report.missing.extend(self.report.skipped.last().cloned());
    }

    /// Whether the user has ended the suite.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.control.is_interrupted()
    }

    /// Whether the section is measured, which is of the suite's own gateway alone; says why if not.
    pub(crate) fn measures_own(&mut self) -> bool {
        let is_own = self.options.targets.is_empty();
        if !is_own {
            self.skip_section(OWN_ONLY);
        }
        is_own && !self.is_interrupted()
    }

    /// The user's gateway, if there is one; of several the first.
    pub(crate) fn target(&self) -> Option<SuiteTarget> {
        self.targets().into_iter().next()
    }

    /// The user's gateways.
    pub(crate) fn targets(&self) -> Vec<SuiteTarget> {
        let several = self.options.targets.len() > 1;
        self.options
            .targets
            .iter()
            .map(|target| {
                let name = if several { target.name.clone() } else { String::new() };
                let provider_pid = self.options.direct.as_ref().and_then(|one| one.gateway_pid);
                SuiteTarget { name, provider_pid, ..target.of_user() }
            })
            .collect()
    }

    /// The upstream of the user's gateways, if the user says so.
    pub(crate) fn direct(&self) -> Option<SuiteTarget> {
        let direct = self.options.direct.as_ref()?;
        Some(SuiteTarget { name: DIRECT.to_owned(), ..direct.of_user() })
    }

    /// Fails if no request reaches the target; the error says why.
    pub(crate) fn reach(&mut self, target: &SuiteTarget) -> Result<(), SuiteError> {
        let plan = Measurement::get("reach", target, "/").stages(LoadShape::Clients(1), "1:1s");
        let why = self.host.reach(plan.plan(0)?)?;
        why.map_or(Ok(()), |why| {
            let url = target.shown_url();
            Err(SuiteError::Target(format!("the target {url} cannot be used: {why}")))
        })
    }

    /// Sends the few requests of a plan, which are not counted, and returns what became of each.
    pub(crate) fn probe(&mut self, plan: Plan) -> Result<Vec<Sample>, SuiteError> {
        self.host.probe(plan, self.control)
    }

    /// The number of connections that the open-file limits allow, and the process with that limit.
    /// Each connection needs a file of the load, a file of the gateway, and behind a gateway one
    /// more there and one of the provider.
    pub(crate) fn most_connections(&self, target: &SuiteTarget) -> (u64, &'static str) {
        let per_connection = if target.provider_pid.is_some() { 2 } else { 1 };
        let own = (self.connections_of(None), "Plimsoll");
        let gateway = target.gateway_pid.map(|pid| self.connections_of(Some(pid)) / per_connection);
        let provider = target.provider_pid.map(|pid| self.connections_of(Some(pid)));
        let others = [(gateway, "the gateway"), (provider, "the provider")];
        let others = others.into_iter().filter_map(|(most, whose)| Some((most?, whose)));
        std::iter::once(own).chain(others).min_by_key(|(most, _)| *most).unwrap_or(own)
    }

    /// The open-file limit of the process, minus the files that it needs for itself.
    fn connections_of(&self, pid: Option<u32>) -> u64 {
        let files = self.host.open_files(pid).unwrap_or(u64::MAX);
        files.saturating_sub(RESERVED_FILES)
    }

    /// Why a measurement must not be started: it would run into a limit on open files, and the
    /// failures would be shown as the gateway's.
    fn too_many_connections(&self, measurement: &Measurement) -> Option<String> {
        let LoadShape::Clients(clients) = measurement.shape else { return None };
        let (most, whose) = self.most_connections(&measurement.target);
        (u64::from(clients) > most).then(|| {
            format!(
                "{} clients exceed the open-file limit of {whose}, which allows {}: raise `ulimit -Hn` or lower --concurrency",
                count(u64::from(clients)),
                count(most)
            )
        })
    }

    /// Runs measurements, `passes` times each, in turn, so changes of the machine affect all alike.
    /// A measurement whose passes the generator spoiled on an otherwise idle host runs once more.
    pub(crate) fn measure(
        &mut self,
        measurements: &[Measurement],
        passes: u32,
    ) -> Vec<MeasurementResult> {
        self.measure_by(measurements, passes, &mut |_| {})
    }

    /// The same; `inspect` sees every pass.
    pub(crate) fn measure_by(
        &mut self,
        measurements: &[Measurement],
        passes: u32,
        inspect: &mut dyn FnMut(&Pass),
    ) -> Vec<MeasurementResult> {
        let mut results: Vec<_> = measurements.iter().map(without_passes).collect();
        let passes = self.options.passes.unwrap_or(passes).max(1);
        for pass in 0..=passes {
            let all = measurements.iter().zip(&mut results);
            for (measurement, result) in all.filter(|all| pass < passes || all.1.is_spoiled()) {
                self.add_pass(measurement, pass, result).iter().for_each(&mut *inspect);
            }
        }
        self.report.measurements.extend(results.iter().cloned());
        results
    }

    /// Adds one pass to its result, unless the user has ended the suite.
    fn add_pass(
        &mut self,
        measurement: &Measurement,
        pass: u32,
        result: &mut MeasurementResult,
    ) -> Option<Pass> {
        if self.is_interrupted() {
            return None;
        }
        let limit = self.too_many_connections(measurement);
        let done = limit
            .map_or_else(|| self.pass(measurement, pass).map_err(|error| error.to_string()), Err);
        let (measured, file) = match done {
            Ok(done) => done,
            Err(error) => {
                self.log(&format!("{}: {error}", measurement.label));
                result.error = Some(error);
                return None;
            }
        };
        self.report_pass(measurement, pass, &measured.figures);
        result.files.push(file);
        result.passes.push(measured.figures.clone());
        Some(measured)
    }
}

/// Why a part is measured of the suite's own gateway alone.
pub(crate) const OWN_ONLY: &str = "it needs the reference gateway, whose settings the suite knows";
/// Why a rate below the capacity is not measured.
pub(crate) const NO_ANSWER: &str = "the closed loop had no expected response";
/// Why a target is not compared with its upstream.
pub(crate) const NO_DIRECT: &str = "it needs the upstream: give --direct URL";

/// Files that a process has open besides its connections.
const RESERVED_FILES: u64 = 128;

fn without_passes(measurement: &Measurement) -> MeasurementResult {
    let (clients, rate) = match measurement.shape {
        LoadShape::Clients(clients) => (Some(clients), None),
        LoadShape::Rate(rate) => (None, Some(rate)),
    };
    MeasurementResult {
        label: measurement.label.clone(),
        clients,
        rate,
        error_gate: measurement.error_gate,
        explores: measurement.explores,
        errors_expected: measurement.errors_expected,
        ..MeasurementResult::default()
    }
}

/// Whether the targets of a comparison are loaded alone for some of the time, to see whether they
/// disturb each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alone {
    Never,
    Sometimes,
}

impl SuiteRunner<'_> {
    /// Sends the requests of a measurement to each target, close together, and judges the overhead
    /// of each target over the first. Does not run once the user has ended the suite.
    pub(crate) fn compare(
        &mut self,
        request: Measurement,
        targets: &[(String, SuiteTarget)],
        variants: bool,
    ) -> ComparisonResult {
        if self.is_interrupted() {
            return ComparisonResult { label: request.label, ..ComparisonResult::default() };
        }
        let compared = self.carry_out(&request, targets, self.alone(), variants);
        let judged = compared.and_then(|compared| self.judged(&request.label, &compared));
        self.add_comparison(&request.label, judged.map_err(|error| error.to_string()))
    }

    /// Stores the result of a comparison, or the reason why it has none.
    fn add_comparison(
        &mut self,
        label: &str,
        judged: Result<ComparisonResult, String>,
    ) -> ComparisonResult {
        let result = judged.unwrap_or_else(|error| {
            let (label, error) = (label.to_owned(), Some(error));
            ComparisonResult { label, error, ..ComparisonResult::default() }
        });
        if let Some(versus) = &result.versus {
            let invalid = versus.invalid.first().map(|why| format!("  INVALID: {why}"));
            let [complete, all] = [versus.blocks.complete, versus.blocks.recorded].map(count);
            let invalid = invalid.unwrap_or_default();
            self.log(&format!(
                "{label}, compared: {complete} of {all} requests complete on every target{invalid}"
            ));
        }
        if let Some(error) = &result.error {
            self.log(&format!("{label}: {error}"));
        }
        self.report.comparisons.push(result.clone());
        result
    }

    /// A short suite has no time to see whether targets disturb each other.
    const fn alone(&self) -> Alone {
        if self.options.short { Alone::Never } else { Alone::Sometimes }
    }

    /// Loads the targets of a comparison. If they are `variants` of the first one, each is compared
    /// with it alone.
    fn carry_out(
        &mut self,
        request: &Measurement,
        targets: &[(String, SuiteTarget)],
        alone: Alone,
        variants: bool,
    ) -> Result<Compared, SuiteError> {
        let settings: &[&str] = if alone == Alone::Never { &["versus.alone=0s"] } else { &[] };
        let plan = request.comparison_plan(targets, settings)?;
        let processes = targets.iter().map(|(name, target)| (&**name, target.gateway_pid));
        // Otherwise it would count as one of the others that keep the host busy.
        let provider = targets.iter().find_map(|(_, target)| target.provider_pid);
        let processes = processes.chain([(PROVIDER, provider)]);
        let mut compared = self.host.compare(plan, watched(processes), self.control)?;
        compared.summary.metadata.environment.clone_from(&self.options.environment);
        compared.summary.health.calibration.clone_from(&self.options.calibration);
        compared.facts.variants = variants;
        Ok(compared)
    }

    /// Judges a comparison that has run, and stores its files.
    fn judged(&self, label: &str, compared: &Compared) -> Result<ComparisonResult, SuiteError> {
        let mut versus = judge(&compared.facts, &compared.blocks);
        facts::take_over(&compared.summary, &mut versus);
        Ok(ComparisonResult {
            label: label.to_owned(),
            files: self.keep_comparison(label, compared, &versus)?,
            versus: Some(versus),
            error: None,
            busy_host: busy_host(&compared.summary),
        })
    }

    /// Writes every pair, the whole judgement and the summary.
    fn keep_comparison(
        &self,
        label: &str,
        compared: &Compared,
        versus: &Versus,
    ) -> Result<Vec<String>, SuiteError> {
        let metadata = &compared.summary.metadata;
        let header = PairsHeader {
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            seed: metadata.run.seed,
            started_unix_ns: metadata.run.started_unix_ns,
        };
        let mut pairs = Vec::new();
        let written = PairsWriter::new(&mut pairs, header)
            .and_then(|mut writer| writer.write(&compared.blocks));
        written.map_err(SuiteError::system("write pairs.bin"))?;
        let mut files = Vec::new();
        for (name, content) in [
            ("pairs.bin", pairs),
            ("versus.json", self.shown_json(versus)?),
            ("summary.json", self.shown_json(&compared.summary)?),
        ] {
            let name = format!("comparisons/{}/{name}", slug(label));
            self.write(&name, &content)?;
            files.push(name);
        }
        Ok(files)
    }
}

impl SuiteRunner<'_> {
    /// A result as JSON, without names in a draft.
    fn shown_json(&self, result: &impl Serialize) -> Result<Vec<u8>, SuiteError> {
        let json = serde_json::to_value(result)?;
        let json = match &self.options.gateways {
            Some(file) => file.hide(json)?,
            None => json,
        };
        Ok(serde_json::to_vec(&json)?)
    }

    /// Completes the report with the parts common to all suites: rows without a measurement, sizes,
    /// and findings on comparisons, errors, tails and unusable results.
    pub(crate) fn finish(self, sizing: &str) -> Report {
        let (interrupted, setup) = (self.is_interrupted(), self.setup());
        let (sizes, not_sized) = sizing::sizes(self.capacities, self.options.size_for);
        let mut report = Report { interrupted, setup, ..self.report };
        report.sizing = sizes.map(|table| Section::new(sizing, table));
        report.skipped.extend(not_sized);
        if !self.tried_routes.rows.is_empty() {
            let tried = Section::new("Routes of the target", self.tried_routes).before_load();
            report.sections.insert(0, tried);
        }
        add_absent(&self.absent, &mut report.sections);
        report.conclude()
    }

    /// The gateway under test, and where everything ran.
    fn setup(&self) -> Vec<(String, String)> {
        let options = self.options;
        let targets = match &*options.targets {
            [] if options.gateways.is_some() => Vec::new(),
            [] => vec![(UNDER_TEST, reference())],
            [target] => vec![(UNDER_TEST, target.shown_url())],
            targets => targets.iter().map(|target| (&*target.name, target.shown_url())).collect(),
        };
        let placement = if options.targets.is_empty() {
            format!("loopback, plain TCP; {}", self.cores.text())
        } else {
            placement_of_targets(options)
        };
        let direct = options.direct.iter().map(|direct| (DIRECT, direct.shown_url()));
        let build = self.version.iter().map(|build| ("build", build.clone()));
        let lines = targets.into_iter().chain(direct).chain(build);
        let lines = lines.chain([("placement", placement), ("load", self.loads())]);
        let lines = lines.map(|(name, value)| (name.to_owned(), value));
        let gateways = self.commands.iter().enumerate().map(|(index, command)| {
            let ready = time(command.ready_after.as_millis_f64());
            let text = format!("{}; ready after {ready}", command.command);
            (format!("gateway {}", index + 1), text)
        });
        let notes = options.notes.iter().chain(&options.machine).cloned();
        lines.chain(notes).chain(gateways).collect()
    }

    /// The loads of the suite: windows, clients, passes and port.
    fn loads(&self) -> String {
        let results = &self.report.measurements;
        let passes = results.iter().flat_map(|result| &result.passes);
        let windows = distinct(passes.map(|pass| seconds(pass.seconds)));
        let clients = distinct(results.iter().filter_map(|result| result.clients));
        let rates =
            distinct(results.iter().filter_map(|result| Some(format!("{}/s", result.rate?))));
        let repeats = distinct(results.iter().map(|result| result.passes.len()));
        let port = Vec::from_iter(self.port.map(|port| port.to_string()));
        let parts = [
            ("{} connections", clients),
            ("{}", rates),
            ("for {} each", windows),
            ("passes: {}", repeats),
            ("port {}", port),
        ];
        let parts = parts.into_iter().filter(|(_, values)| !values.is_empty());
        let parts = parts.map(|(what, values)| what.replacen("{}", &values.join(", "), 1));
        parts.collect::<Vec<_>>().join("; ")
    }
}

/// Where the load and the user's gateways run, as far as that is known.
fn placement_of_targets(options: &SuiteOptions) -> String {
    let load = options
        .threads
        .map_or_else(|| "load: all cores".to_owned(), |threads| format!("load: {threads} threads"));
    let is_here = options.targets.iter().all(|target| target.gateway_pid.is_some());
    let place = if is_here { "on this host" } else { "elsewhere or unknown" };
    format!("{load}; target: {place}")
}
