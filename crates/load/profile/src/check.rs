//! What the schema cannot say: whether the values of a profile make sense, alone and together.

mod headers;
mod scenarios;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use plimsoll_measure::Nanos;
use plimsoll_metrics::{Band, MetricsError, Threshold};
use plimsoll_protocol::Dialect;
use plimsoll_workload::{TraceSpec, WindowFault, WorkloadError};

use crate::document::{self, Profile, is_plain};
use crate::draft::{Draft, Found};
use crate::error::{Fault, Problem, Problems, Source};
use crate::place::ConfigPath;
use crate::resolve::{Purpose, scenario_name};
use crate::spec::ProfileFile;
use crate::suggest;
use crate::url::{TargetUrl, UrlFault};

/// Everything that is needed to judge the values of a profile.
pub(crate) struct Check<'a> {
    pub(crate) profile: &'a Profile,
    pub(crate) draft: &'a Draft,
    pub(crate) file: &'a ProfileFile,
    pub(crate) purpose: Purpose,
    pub(crate) found: Found,
}

/// What a key looks like that nobody has filled in yet.
const PLACEHOLDER: &str = "REPLACE_";

/// So many bad lines of a trace are shown one by one: they are mostly bad in the same way.
const SHOWN_ROWS: usize = 3;

impl Check<'_> {
    /// The target's address, or every problem of the values and those that were found before.
    pub(crate) fn target_or_problems(mut self) -> Result<TargetUrl, Problems> {
        self.name();
        let target = self.target();
        self.key();
        self.model();
        self.stages();
        self.limits();
        self.trace();
        self.files();
        self.thresholds();
        self.labels();
        self.all_headers();
        self.scenarios();
        let problems = self.found.into_problems();
        target.filter(|_| problems.is_empty()).ok_or(problems)
    }

    fn report(&mut self, place: ConfigPath, cause: impl Into<String>, mend: impl Into<String>) {
        self.report_fault(place, Fault::new(cause, mend));
    }

    fn report_fault(&mut self, place: ConfigPath, fault: Fault) {
        let source_name = self.draft.source(&place).clone();
        self.found.add(Problem { source_name, place, fault });
    }

    fn name(&mut self) {
        let plain = |name: &String| !name.is_empty() && name.chars().all(is_plain);
        if self.file.name.as_ref().is_some_and(|name| !plain(name)) {
            let cause = "cannot be part of a folder's name";
            self.report(top("name"), cause, "write letters, digits, `-`, `_` and `.`");
        }
    }

    fn target(&mut self) -> Option<TargetUrl> {
        let Some(target) = &self.file.target else {
            let mend = "write `target: http://127.0.0.1:9000`, or give --target URL";
            self.report(top("target"), "is missing", mend);
            return None;
        };
        target
            .parse()
            .map_err(|fault: UrlFault| self.report(top("target"), fault.to_string(), fault.mend()))
            .ok()
    }

    fn key(&mut self) {
        let Some(key) = self.file.key.as_deref() else { return };
        if key.is_empty() {
            self.report(
                top("key"),
                "is empty",
                "write the key or `${NAME}` of a variable, or leave `key` out",
            );
        } else if !headers::is_value(key) {
            let cause = "has a line break or another character that no header can carry";
            self.report(top("key"), cause, "check how the key got there");
        } else {
            self.placeholder(top("key"), key);
        }
    }

    /// A placeholder may be checked and shown, but not run.
    fn placeholder(&mut self, place: ConfigPath, value: &str) {
        if self.purpose == Purpose::Run && value.starts_with(PLACEHOLDER) {
            let mend = "write the key or `${NAME}` of a variable, or give --vk KEY (any, if the target asks for none)";
            self.report(place, "is still the placeholder", mend);
        }
    }

    /// Does a scenario speak an LLM protocol?
    fn speaks_llm(&self) -> bool {
        self.file.scenarios.iter().any(|scenario| scenario.behaviour.protocol != Dialect::Http)
    }

    fn model(&mut self) {
        if self.speaks_llm() && self.file.model.as_deref().is_none_or(str::is_empty) {
            let mend = "write the name of a model of the target, or give --model NAME";
            self.report(top("model"), "is missing", mend);
        }
    }

    fn stages(&mut self) {
        let Some(stages) = &self.file.stages else {
            let mend = "write at least one stage, like `stages: 10:30s`, or give --stages STAGES";
            return self.report(top("stages"), "is missing", mend);
        };
        if stages.play_trace() && self.file.trace.is_none() {
            let mend = "write `trace:` with `file` and `format`";
            self.report(top("trace"), "is missing, and a stage plays it", mend);
        }
        if !stages.play_trace() && self.file.trace.is_some() {
            let mend = "write a stage like `trace:60s`, or leave `trace` out";
            self.report(top("trace"), "is played by no stage", mend);
        }
    }

    fn limits(&mut self) {
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
        if self.file.requests_per_connection.is_some_and(|churn| churn.max < churn.min) {
            let place = top("requests_per_connection").key("max");
            self.report(place, "is less than `min`", "write `min` or more");
        }
        if self.file.max_body.bytes() == 0 {
            self.report(
                top("max_body"),
                "is zero, so that every answer would fail",
                "write a size, like `16MiB`",
            );
        }
    }

    /// Reads the trace as the run will, so that what is wrong with it is known before.
    fn trace(&mut self) {
        let Some(trace) = &self.file.trace else { return };
        let place = top("trace").key("file");
        let file = resolve_path(self.profile, self.draft, &place, &trace.file);
        match document::read_trace(&TraceSpec { file, ..trace.clone() }) {
            Ok(_) => {}
            Err(WorkloadError::Read { file, source }) => self.unreadable(place, &file, &source),
            Err(WorkloadError::Window { fault, .. }) => {
                let key = match fault {
                    WindowFault::Scale(_) => "time_scale",
                    WindowFault::EmptyWindow { .. } => "to",
                    WindowFault::Outside { .. } => "from",
                    _ => "file",
                };
                self.report_fault(top("trace").key(key), Fault::of(&fault));
            }
            Err(WorkloadError::Trace { problems, more }) => {
                for row in problems.iter().take(SHOWN_ROWS) {
                    self.report_fault(place.clone(), Fault::of(row));
                }
                let more = more + problems.len().saturating_sub(SHOWN_ROWS) as u64;
                if more > 0 {
                    self.report(
                        place,
                        format!("{more} more lines cannot be read"),
                        "see those above",
                    );
                }
            }
            Err(error) => self.report_fault(place, Fault::of(&error)),
        }
    }

    fn files(&mut self) {
        let file = self.file;
        let named = [
            (top("tokenizer"), file.tokenizer.as_deref()),
            (top("tls").key("ca_file"), file.tls.ca_file.as_deref()),
        ];
        for (place, path) in named {
            let Some(path) = path else { continue };
            let path = resolve_path(self.profile, self.draft, &place, path);
            if let Err(error) = document::try_open(&path) {
                self.unreadable(place, &path, &error);
            }
        }
    }

    fn unreadable(&mut self, place: ConfigPath, path: &Path, error: &io::Error) {
        let cause = format!(
            "names `{}`, which cannot be read ({})",
            path.display(),
            document::plain_error(error)
        );
        self.report(place, cause, "give the path of a file, relative to the profile's folder");
    }

    fn thresholds(&mut self) {
        let of = |metric: &str, text: &str| Threshold::parse(metric, text).err();
        self.bounds("thresholds", &self.file.thresholds, "p(95)<500ms", of);
        let of = |metric: &str, text: &str| Band::parse(metric, text).err();
        self.bounds("bands", &self.file.bands, "p(95)<10ms|20ms", of);
    }

    fn bounds(
        &mut self,
        key: &str,
        bounds: &BTreeMap<String, Vec<String>>,
        example: &str,
        fault: impl Fn(&str, &str) -> Option<MetricsError>,
    ) {
        for (metric, expressions) in bounds {
            let place = top(key).key(metric);
            self.scenario_of(metric, &place);
            if expressions.is_empty() {
                let mend = format!("write one, like `[\"{example}\"]`, or leave it out");
                self.report(place.clone(), "has no bound", mend);
            }
            let faults = expressions.iter().map(|text| fault(metric, text));
            for (index, error) in
                faults.enumerate().filter_map(|(index, error)| Some((index, error?)))
            {
                self.report_fault(place.index(index), Fault::of(&error));
            }
        }
    }

    fn labels(&mut self) {
        for name in self.file.labels.keys() {
            let place = top("labels").key(name);
            if OWN_LABELS.contains(&name.as_str()) {
                self.report(place, "is a label of Plimsoll's own", "call it something else");
            } else if !is_label(name) {
                let mend = "write ASCII letters, digits and `_`, no digit first, and no `__`";
                self.report(place, "is no name for a label of Prometheus", mend);
            }
        }
    }

    /// A bound on `ttft{scenario:NAME}` needs a scenario of that name: without samples it never passes.
    fn scenario_of(&mut self, metric: &str, place: &ConfigPath) {
        let inside = metric.split_once("{scenario:").and_then(|(_, rest)| rest.strip_suffix('}'));
        let Some(name) = inside.map(str::trim) else { return };
        let names: Vec<_> = self.file.scenarios.iter().enumerate().map(scenario_name).collect();
        if !names.iter().any(|known| known == name) {
            let known: Vec<_> = names.iter().map(String::as_str).collect();
            let cause = format!("is about a scenario `{name}`, which there is not");
            self.report(place.clone(), cause, suggest::instead(name, &known));
        }
    }
}

/// What Plimsoll's own figures are labelled with.
const OWN_LABELS: [&str; 16] = [
    "stage",
    "scenario",
    "target",
    "warmup",
    "quantile",
    "class",
    "side",
    "status",
    "name",
    "version",
    "seed",
    "process",
    "expected",
    "policy_decision",
    "metric",
    "bounds",
];

/// Prometheus: `[a-zA-Z_][a-zA-Z0-9_]*`, and what begins with two underscores is its own.
fn is_label(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    starts && plain && !name.starts_with("__")
}

/// A key of the profile.
fn top(key: &str) -> ConfigPath {
    ConfigPath::top().key(key)
}

/// The path of a file that is named at `place`: relative to the profile where the profile names it, else
/// to the current folder.
pub(crate) fn resolve_path(
    profile: &Profile,
    draft: &Draft,
    place: &ConfigPath,
    path: &Path,
) -> std::path::PathBuf {
    match draft.source(place) {
        Source::File(_) => profile.resolve(path),
        Source::Environment(_) | Source::Flag(_) => path.to_path_buf(),
    }
}
