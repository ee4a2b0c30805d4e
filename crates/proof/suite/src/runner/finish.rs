//! Completes the report of a suite.

use plimsoll_report::format::{seconds, time};

use super::SuiteRunner;
use crate::options::SuiteOptions;
use crate::report::{Report, Section, UNDER_TEST, add_absent, distinct, reference};
use crate::sizing;
use crate::target::DIRECT;

impl SuiteRunner<'_> {
    /// Completes the report of a suite with what every suite has: the rows that are not measured,
    /// sizes, and findings on what was compared, errors, tails, what must not be used and why.
    pub(crate) fn finish(self, sizing: &str) -> Report {
        let (interrupted, setup) = (self.is_interrupted(), self.setup());
        let (sizes, not_sized) = sizing::sizes(self.capacities, self.options.size_for);
        let mut report = Report { interrupted, setup, ..self.report };
        report.sizing = sizes.map(|table| Section::new(sizing, table));
        report.skipped.extend(not_sized);
        if !self.tried_routes.rows.is_empty() {
            let tried = Section::new("What the target has", self.tried_routes).before_load();
            report.sections.insert(0, tried);
        }
        add_absent(&self.absent, &mut report.sections);
        report.conclude()
    }

    /// The gateway under test, and where everything ran.
    fn setup(&self) -> Vec<(String, String)> {
        let options = self.options;
        let targets = match &*options.targets {
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
