//! Checks the values of a profile beyond what the schema can express.

mod scenarios;
mod targets;

use std::io;
use std::path::Path;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Gate, Limit};
use plimsoll_plan::TargetUrl;
use plimsoll_workload::Content;
pub(crate) use targets::{CheckedTargets, reference};

use crate::error::{Fault, Problem, ProblemCollector, Problems};
use crate::judgeable;
use crate::layers::LayeredValues;
use crate::path::{self, ConfigPath};
use crate::source::{self, is_plain};
use crate::spec::{ProfileFile, scenario_names};

/// The purpose of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To check it: a placeholder key is accepted, but thresholds that no run can judge are not.
    Check,
    /// To show it: a placeholder key is accepted.
    Show,
    /// To run it with its single target.
    Run,
    /// To compare its targets.
    Versus,
}

impl Purpose {
    /// Whether requests will be sent.
    const fn sends(self) -> bool {
        matches!(self, Self::Run | Self::Versus)
    }
}

/// Checks the values of a profile.
pub(crate) struct ProfileCheck<'a> {
    pub(crate) layers: &'a LayeredValues,
    pub(crate) file: &'a ProfileFile,
    pub(crate) purpose: Purpose,
    pub(crate) found: ProblemCollector,
}

/// Prefix of a placeholder key that has not been replaced yet.
const PLACEHOLDER: &str = "REPLACE_";

impl ProfileCheck<'_> {
    /// The targets' URLs, or all problems, including earlier ones.
    pub(crate) fn targets_or_problems(mut self) -> Result<CheckedTargets, Problems> {
        self.check_name();
        let targets = self.check_targets();
        self.check_key();
        self.check_stages();
        self.check_limits();
        self.check_trace();
        self.check_files();
        self.check_bounds();
        self.check_gates();
        self.check_labels();
        self.check_all_headers();
        self.check_response_headers();
        self.check_scenarios();
        self.check_model();
        self.check_judgeable(targets.as_ref().map(|targets| &targets.main));
        let problems = self.found.into_problems();
        targets.filter(|_| problems.is_empty()).ok_or(problems)
    }

    fn report(&mut self, path: ConfigPath, cause: impl Into<String>, fix: impl Into<String>) {
        self.report_fault(path, Fault::new(cause, fix));
    }

    fn report_fault(&mut self, path: ConfigPath, fault: Fault) {
        let source_name = self.layers.source(&path).clone();
        self.found.add(Problem::new(source_name, path, fault));
    }

    fn check_name(&mut self) {
        if self
            .file
            .name
            .as_ref()
            .is_some_and(|name| name.is_empty() || !name.chars().all(is_plain))
        {
            let cause = "cannot be part of a folder's name";
            self.report(top("name"), cause, "write letters, digits, `-`, `_` and `.`");
        }
    }

    /// Rejects a placeholder, unless the profile is only checked or shown.
    fn check_placeholder(&mut self, path: ConfigPath, value: &str) {
        if self.purpose.sends() && value.starts_with(PLACEHOLDER) {
            let fix = "write the key or `${NAME}` of a variable, give --key KEY, or leave `key` out if the target asks for none";
            self.report(path, "is still the placeholder", fix);
        }
    }

    /// Whether a scenario uses an LLM protocol whose requests name a model.
    fn uses_llm(&self) -> bool {
        self.file.scenarios.iter().any(|scenario| scenario.behaviour.protocol.has_model())
    }

    fn check_model(&mut self) {
        let of_all = self.file.model.as_deref().is_some_and(|model| !model.is_empty());
        let of_each = targets::compares(self.file, self.purpose)
            && self
                .file
                .targets
                .iter()
                .all(|target| target.model.as_deref().is_some_and(|own| !own.is_empty()));
        let of_scenarios = self
            .file
            .scenarios
            .iter()
            .filter(|scenario| scenario.behaviour.protocol.has_model())
            .all(|scenario| scenario.model.as_deref().is_some_and(|own| !own.is_empty()));
        let trace =
            self.file.trace.as_ref().and_then(|trace| plimsoll_plan::read_trace(trace).ok());
        let files = self.file.scenarios.iter().map(|scenario| match &scenario.behaviour.content {
            Some(Content::File { read, .. }) => {
                read.trace().is_some_and(|file| file.names_models())
            }
            _ => false,
        });
        let of_records =
            trace.is_some_and(|trace| trace.names_models()) || files.min() == Some(true);
        if self.uses_llm() && !of_all && !of_each && !of_scenarios && !of_records {
            let fix = "write the name of a model of the target, or give --model NAME";
            self.report(top("model"), "is missing", fix);
        }
    }

    fn check_stages(&mut self) {
        let Some(stages) = &self.file.stages else {
            let fix = "write at least one stage, like `stages: 10:30s`, or give --stages STAGES";
            return self.report(top("stages"), "is missing", fix);
        };
        if stages.play_trace() && self.file.trace.is_none() {
            let fix = "write `trace:` with `file` and `format`";
            self.report(top("trace"), "is missing, but a stage uses it", fix);
        }
        if !stages.play_trace() && self.file.trace.is_some() {
            let fix = "write a stage like `trace:60s`, or leave `trace` out";
            self.report(top("trace"), "is not used by any stage", fix);
        }
    }

    fn check_limits(&mut self) {
        if let Some(budget) = self.file.budget {
            let path = top("budget");
            if budget.tokens.is_none() && budget.cost.is_none() {
                self.report(path.clone(), "limits nothing", "write `tokens` or `cost`");
            }
            let prices = budget.input_price + budget.output_price;
            if budget.cost.is_some() && prices <= 0.0 {
                let fix =
                    "write `input_price` and `output_price`, for a million tokens (--price IN,OUT)";
                self.report(path.key("cost"), "has no prices to count with", fix);
            }
        }
        for (key, length) in
            [("timeout", self.file.timeout), ("connect_timeout", self.file.connect_timeout)]
        {
            if length == Nanos::ZERO {
                self.report(
                    top(key),
                    "is zero, so that every request would fail",
                    "write a length of time, like `30s`",
                );
            }
        }
        if self.file.requests_per_connection.is_some_and(|range| range.max < range.min) {
            let path = top("requests_per_connection").key("max");
            self.report(path, "is less than `min`", "write `min` or more");
        }
        if self.file.max_body.bytes() == 0 {
            self.report(
                top("max_body"),
                "is zero, so that every response would fail",
                "write a size, like `16MiB`",
            );
        }
    }

    /// Reads the trace in the same way as the run, so that its problems are found early.
    fn check_trace(&mut self) {
        let read = self.file.trace.as_ref().map(plimsoll_plan::read_trace);
        if let Some(Err(error)) = read {
            self.report_fault(top("trace"), Fault::from_error(&error));
        }
    }

    fn check_files(&mut self) {
        let (file, tls) = (self.file, top("tls"));
        let named = [
            (top("tokenizer"), &file.tokenizer),
            (tls.key("ca_file"), &file.tls.ca_file),
            (tls.key("cert_file"), &file.tls.cert_file),
            (tls.key("key_file"), &file.tls.key_file),
        ];
        for (path, named) in named {
            let Some(named) = named else { continue };
            if let Err(error) = source::try_open(named) {
                self.report_unreadable(path, named, &error);
            }
        }
    }

    fn report_unreadable(&mut self, path: ConfigPath, file: &Path, error: &io::Error) {
        let cause = format!(
            "names `{}`, which cannot be read ({})",
            file.display(),
            source::plain_error(error)
        );
        self.report(path, cause, "give the path of a file, relative to the profile's folder");
    }

    fn check_bounds(&mut self) {
        let file = self.file;
        for (metric, written) in &file.thresholds {
            if !self.check_added(metric) {
                self.check_limits_on(metric, written, &top("thresholds"), "p(95)<500ms");
            }
        }
        for (metric, written) in &file.bands {
            self.check_limits_on(metric, written, &top("bands"), "p(95)<10ms|20ms");
        }
    }

    fn check_limits_on(
        &mut self,
        metric: &str,
        written: &[String],
        path: &ConfigPath,
        example: &str,
    ) {
        let path = path.key(metric);
        self.check_scope(metric, &path);
        if written.is_empty() {
            let fix = format!("write one, like `[\"{example}\"]`, or leave it out");
            self.report(path.clone(), "has no bound", fix);
        }
        for (index, text) in written.iter().enumerate() {
            if let Err(error) = Limit::parse(metric, text) {
                self.report_fault(path.index(index), Fault::from_error(&error));
            }
        }
    }

    fn check_gates(&mut self) {
        for (figure, margin) in &self.file.gate {
            let path = top("gate").key(figure);
            self.check_scope(figure, &path);
            if let Err(error) = Gate::parse(figure, margin) {
                self.report_fault(path, Fault::from_error(&error));
            }
        }
    }

    /// Checks limits that no run can judge. A run reports them as notes instead, because flags may
    /// shorten it on purpose.
    fn check_judgeable(&mut self, target: Option<&TargetUrl>) {
        if self.purpose != Purpose::Check || self.found.any() {
            return;
        }
        for (path, fault) in
            target.map(|target| judgeable::faults(self.file, target)).into_iter().flatten()
        {
            self.report_fault(path, fault);
        }
    }

    fn check_labels(&mut self) {
        for name in self.file.labels.keys() {
            let path = top("labels").key(name);
            if RESERVED_LABELS.lines().any(|reserved| reserved == name) {
                self.report(path, "is a label that Plimsoll sets", "choose another name");
            } else if !is_label(name) {
                let fix =
                    "write ASCII letters, digits and `_`, without a digit or `__` at the start";
                self.report(path, "is not a valid Prometheus label", fix);
            }
        }
    }

    /// A threshold on `ttft{scenario:NAME}` needs a scenario with that name, because it cannot pass
    /// without samples.
    fn check_scope(&mut self, metric: &str, path: &ConfigPath) {
        let inside = metric.split_once("{scenario:").and_then(|(_, rest)| rest.strip_suffix('}'));
        let Some(name) = inside.map(str::trim) else { return };
        let names: Vec<_> = self
            .file
            .scenarios
            .iter()
            .enumerate()
            .flat_map(|(index, file)| scenario_names(index, file))
            .collect();
        if !names.iter().any(|known| known == name) {
            let known: Vec<_> = names.iter().map(String::as_str).collect();
            let cause = format!("no scenario is named `{name}`");
            self.report(path.clone(), cause, path::instead(name, &known));
        }
    }
}

/// Labels that Plimsoll sets on its Prometheus metrics; the last three are those of a scrape, and
/// of the group of a push.
const RESERVED_LABELS: &str = include_str!("reserved_labels.txt");

/// Whether Prometheus accepts the label: `[a-zA-Z_][a-zA-Z0-9_]*`, without a leading double
/// underscore, which is reserved.
fn is_label(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    starts && plain && !name.starts_with("__")
}

/// A top-level key of the profile.
fn top(key: &str) -> ConfigPath {
    ConfigPath::root().key(key)
}
