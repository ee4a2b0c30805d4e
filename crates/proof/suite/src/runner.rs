//! Starts gateways and providers, carries measurements out, keeps their results.

use std::fs;
use std::time::Duration;

use plimsoll_engine::Control;
use plimsoll_measure::Sample;
use plimsoll_metrics::{Band, RunSummary};
use plimsoll_profile::{Plan, redacted_path};
use plimsoll_report::format::{count, figure, or_dash, rate_figure};

use crate::child::{Child, ChildSpec};
use crate::cores::{Cores, Pinned};
use crate::error::SuiteError;
use crate::figures::TimedResponses;
use crate::host::Host;
use crate::http_get::get;
use crate::measurement::{LoadShape, Measurement};
use crate::options::SuiteOptions;
use crate::probed::Probed;
use crate::process_use::{CpuTime, GATEWAY, PROVIDER, busy_host, cpu_time, watched};
use crate::result::{BusyShares, Figures, MeasurementResult};
use crate::target::{Gateway, MODEL, Provider, SuiteTarget};

/// The state that all measurements of a suite share.
pub(crate) struct SuiteRunner<'a> {
    pub(crate) options: &'a SuiteOptions,
    pub(crate) cores: Cores,
    /// Parts that were left out, and why.
    pub(crate) skipped: Vec<String>,
    /// Those that the user's gateway does not have, or only at a cost.
    pub(crate) missing: Vec<String>,
    /// Every result so far, for `suite.json`.
    pub(crate) results: Vec<MeasurementResult>,
    /// The gateway's description of its build.
    pub(crate) version: Option<String>,
    /// The commands of the gateways, for the report.
    pub(crate) commands: Vec<String>,
    /// What the user's gateway has.
    pub(crate) probed: Vec<Probed>,
    host: &'a mut dyn Host,
    control: &'a Control,
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
    /// A runner. As long as it lasts, the calling thread and the load stay on their cores, unless
    /// the gateway is the user's.
    pub(crate) fn new(
        options: &'a SuiteOptions,
        host: &'a mut dyn Host,
        control: &'a Control,
        observe: &'a mut dyn FnMut(&str),
    ) -> Self {
        let cores = if options.target.is_some() { Cores::default() } else { Cores::assign() };
        let pinned = Pinned::to(&cores.generator);
        Self {
            options,
            cores,
            skipped: Vec::new(),
            missing: Vec::new(),
            results: Vec::new(),
            version: None,
            commands: Vec::new(),
            probed: Vec::new(),
            host,
            control,
            observe,
            _pinned: pinned,
            children: 0,
        }
    }

    /// Passes a message to the user.
    pub(crate) fn log(&mut self, message: &str) {
        (self.observe)(message);
    }

    /// Records and reports that something is left out.
    pub(crate) fn skip(&mut self, what: &str, why: &str) {
        let line = format!("{what}: {why}");
        (self.observe)(&format!("skipped: {line}"));
        self.skipped.push(line);
    }

    /// The same for a part that the gateway under test should have: without it the suite is not
    /// whole.
    pub(crate) fn miss(&mut self, what: &str, why: &str) {
        self.skip(what, why);
        self.missing.push(format!("{what}: {why}"));
    }

    /// Whether the user has ended the suite.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.control.is_interrupted()
    }

    /// The user's gateway, if there is one.
    pub(crate) fn target(&self) -> Option<SuiteTarget> {
        let target = self.options.target.as_ref()?;
        Some(SuiteTarget {
            base: target.url.clone(),
            key: target.key.clone(),
            headers: target.headers.clone(),
            model: target.model.clone().unwrap_or_else(|| MODEL.to_owned()),
            insecure: target.insecure,
            http2: target.http2,
            external: true,
            ..SuiteTarget::default()
        })
    }

    /// Starts the mock provider.
    pub(crate) fn provider(&mut self, flags: &[&str]) -> Result<Provider, SuiteError> {
        let mut args: Vec<_> = ["mock", "--listen", "127.0.0.1:0"].map(str::to_owned).into();
        args.extend(flags.iter().map(|&flag| flag.to_owned()));
        self.start("the mock provider", self.cores.provider, &args).map(Provider::new)
    }

    /// Starts the reference gateway; `sets` are settings beside those of its preset.
    pub(crate) fn gateway(
        &mut self,
        preset: &str,
        sets: &[String],
        provider: Option<&Provider>,
    ) -> Result<Gateway, SuiteError> {
        let port = self.options.port.unwrap_or(0);
        let listen = format!("127.0.0.1:{port}");
        let mut args: Vec<_> =
            ["gateway", "--preset", preset, "--listen", &listen].map(str::to_owned).into();
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
        let gateway = Gateway::reference(child, provider);
        self.ask_version(&gateway);
        Ok(gateway)
    }

    /// The command as the report shows it: parts that differ from run to run have a name.
    fn shown(&self, args: &[String], provider: Option<&Provider>) -> String {
        let folder = self.options.folder.to_string_lossy();
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
        let log = self.options.folder.join(format!("process-{}.log", self.children));
        self.host.start(&ChildSpec { what, exe: &self.options.exe, core, args, log })
    }

    /// Asks the gateway for its version and layers.
    fn ask_version(&mut self, gateway: &Gateway) {
        if self.version.is_some() {
            return;
        }
        let Some(address) = gateway.address() else { return };
        let response = get(address, "/admin/build", Duration::from_secs(2)).ok();
        let build =
            response.filter(|response| response.status == 200).map(|response| response.body);
        self.version = build.map(|build| build.trim().to_owned());
    }

    /// Why no request reaches a target, if none does.
    pub(crate) fn reach(&mut self, target: &SuiteTarget) -> Result<(), SuiteError> {
        let plan = Measurement::get("reach", target, "/").stages(LoadShape::Clients(1), "1:1s");
        let why = self.host.reach(plan.plan(0)?)?;
        why.map_or(Ok(()), |why| Err(SuiteError::Target { url: redacted_path(&target.base), why }))
    }

    /// Sends the few requests of a plan, which are not counted, and returns what became of each.
    pub(crate) fn probe(&mut self, plan: Plan) -> Result<Vec<Sample>, SuiteError> {
        self.host.probe(plan, self.control)
    }

    /// The connections that open files allow, and whose limit that is. Each takes a file of the
    /// load, a file of the gateway, and behind a gateway one more there and one of the provider.
    pub(crate) fn most_connections(&self, target: &SuiteTarget) -> (u64, &'static str) {
        let of = |pid: Option<u32>, each: u64| {
            let files = self.host.open_files(pid).unwrap_or(u64::MAX);
            files.saturating_sub(RESERVED_FILES) / each
        };
        let mut most = (of(None, 1), "the load generator");
        let behind = target.provider_pid.is_some();
        let mut limit = |pid: Option<u32>, each, whose| {
            let own = pid.map_or(u64::MAX, |pid| of(Some(pid), each));
            if own < most.0 {
                most = (own, whose);
            }
        };
        limit(target.gateway_pid, if behind { 2 } else { 1 }, "the gateway");
        limit(target.provider_pid, 1, "the provider");
        most
    }

    /// Why a measurement must not be started: it would run into a limit on open files, and the
    /// failures would be shown as the gateway's.
    fn too_many_connections(&self, measurement: &Measurement) -> Option<String> {
        let LoadShape::Clients(clients) = measurement.shape else { return None };
        let (most, whose) = self.most_connections(&measurement.target);
        (u64::from(clients) > most).then(|| {
            format!(
                "{} clients need more open files than {whose} may have, which allows {}; raise the hard limit (`ulimit -Hn`) or take fewer with --concurrency",
                count(u64::from(clients)),
                count(most)
            )
        })
    }

    /// Carries measurements out, `passes` times each, in turn: changes of the machine affect all
    /// alike.
    pub(crate) fn measure(
        &mut self,
        measurements: &[Measurement],
        passes: u32,
    ) -> Vec<MeasurementResult> {
        self.measure_by(measurements, passes, TimedResponses::Completed, &mut |_, _| {})
    }

    /// The same; `inspect` sees every pass.
    pub(crate) fn measure_by(
        &mut self,
        measurements: &[Measurement],
        passes: u32,
        responses: TimedResponses,
        inspect: &mut dyn FnMut(usize, &Pass),
    ) -> Vec<MeasurementResult> {
        let mut results: Vec<_> = measurements.iter().map(without_passes).collect();
        for pass in 0..self.options.passes.unwrap_or(passes).max(1) {
            for (index, (measurement, result)) in measurements.iter().zip(&mut results).enumerate()
            {
                self.add_pass(measurement, pass, responses, result)
                    .iter()
                    .for_each(|pass| inspect(index, pass));
            }
        }
        self.results.extend(results.iter().cloned());
        results
    }

    /// Adds one pass to its result; nothing once the user has ended the suite.
    fn add_pass(
        &mut self,
        measurement: &Measurement,
        pass: u32,
        responses: TimedResponses,
        result: &mut MeasurementResult,
    ) -> Option<Pass> {
        if self.is_interrupted() {
            return None;
        }
        let limit = self.too_many_connections(measurement);
        let done = limit.map_or_else(
            || self.pass(measurement, pass, responses).map_err(|error| error.to_string()),
            Err,
        );
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

    fn report_pass(&mut self, measurement: &Measurement, pass: u32, figures: &Figures) {
        let invalid = figures.invalid.as_ref().map(|why| format!("  INVALID: {why}"));
        let invalid = invalid.or_else(|| {
            figures.gated(measurement.error_gate).map(|why| format!("  NOT USABLE: {why}"))
        });
        let line = format!(
            "{}, pass {}: {}/s, p99 {}, {} errors{}",
            measurement.label,
            pass + 1,
            or_dash(figures.requests_per_s, |rate| rate_figure(Some(rate))),
            figure(figures.p99_ms),
            figures.errors,
            invalid.unwrap_or_default()
        );
        self.log(&line);
    }

    fn pass(
        &mut self,
        measurement: &Measurement,
        pass: u32,
        responses: TimedResponses,
    ) -> Result<(Pass, String), SuiteError> {
        let plan = measurement.plan(pass)?;
        let bands = plan.bands.iter().flat_map(|(metric, bounds)| {
            bounds.iter().map(move |bound| Band::parse(metric, bound))
        });
        let bands = bands.collect::<Result<Vec<_>, _>>()?;
        let summary = self.host.run(plan, watched(&measurement.target), self.control)?;
        let mut summary = summary.with_bands(&bands);
        summary.metadata.environment.clone_from(&self.options.environment);
        summary.health.calibration.clone_from(&self.options.calibration);
        let mut figures = Figures::of(&summary, responses)?;
        self.add_cpu(&mut figures, &summary);
        figures.busy_host = busy_host(&summary.health, &figures.busy);
        let file = self.keep(&summary, measurement, pass)?;
        Ok((Pass { summary, figures }, file))
    }

    /// Adds the CPU time of each process over the measured window.
    fn add_cpu(&self, figures: &mut Figures, summary: &RunSummary) {
        let (gateway, provider) = (cpu_time(summary, GATEWAY), cpu_time(summary, PROVIDER));
        let share = |time: Option<CpuTime>| {
            time.filter(|time| time.wall_s > 0.0).map(|time| time.cpu_s / time.wall_s)
        };
        let workers = &summary.health.worker_cpu_shares;
        let generator = workers.iter().sum::<f64>() / workers.len().max(1) as f64;
        figures.busy = BusyShares {
            gateway: share(gateway),
            provider: share(provider),
            generator: (!workers.is_empty()).then_some(generator),
            busiest_worker: workers.iter().copied().reduce(f64::max),
            waited: summary.health.worker_wait_shares.iter().copied().reduce(f64::max),
            shared: self.cores.shared(),
            gateway_cores: gateway.and(self.cores.gateway).map(|_| 1.0),
        };
        let counters = &summary.results.total.counters;
        let answered = counters.completed + counters.rejected;
        let per_request = |time: CpuTime| time.cpu_s * 1e6 / answered as f64;
        figures.gateway_cpu_us = gateway.filter(|_| answered > 0).map(per_request);
        figures.gateway_memory = gateway.map(|time| time.memory).filter(|memory| *memory > 0.0);
    }

    fn keep(
        &self,
        summary: &RunSummary,
        measurement: &Measurement,
        pass: u32,
    ) -> Result<String, SuiteError> {
        let folder = self.options.folder.join("measurements");
        let name = format!("measurements/{}-{}.json", slug(&measurement.label), pass + 1);
        let path = self.options.folder.join(&name);
        let text = serde_json::to_vec(summary)?;
        fs::create_dir_all(folder)
            .and_then(|()| fs::write(&path, text))
            .map_err(|source| SuiteError::Write { path, source })?;
        Ok(name)
    }
}

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
        ..MeasurementResult::default()
    }
}

/// A label as part of a file name.
fn slug(label: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let text: String = label.chars().map(plain).collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_file_names() {
        for (label, name) in [
            ("GET /health/live, 64 clients", "get-health-live-64-clients"),
            ("--", ""),
            ("ä+PII", "pii"),
        ] {
            assert_eq!(slug(label), name);
        }
    }
}
