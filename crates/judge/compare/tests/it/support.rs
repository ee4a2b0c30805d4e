//! Runs made of numbers, and reproducible noise.

use std::path::PathBuf;
use std::sync::OnceLock;

use plimsoll_compare::{Options, StoredRun};
use plimsoll_metrics::{
    Environment, Group, InstrumentHealth, LoadModel, Results, RunEnd, RunInfo, RunMetadata,
    RunSummary, Snapshot, StageInfo, TargetInfo,
};
use serde_json::{Value, json};

/// The figures of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Figures {
    /// Median and 99th percentile of the time to first token, in milliseconds.
    pub(crate) ttft: [f64; 2],
    /// Completed requests per second.
    pub(crate) throughput: f64,
    /// Requests that failed.
    pub(crate) errors: u64,
}

pub(crate) const PLAIN: Figures = Figures { ttft: [20.0, 41.0], throughput: 1_744.0, errors: 0 };

/// The plan of every run, as in `plan.json`.
pub(crate) fn plan() -> Value {
    json!({
        "name": "test", "seed": 1, "stages": "32:60s", "arrivals": "constant",
        "limits": {"timeout": "30s"}, "scenarios": [{"name": "simple", "weight": 1}],
        "targets": [{"url": "http://127.0.0.1:9000"}], "gate": {},
    })
}

fn environment() -> Environment {
    let versions = [("plimsoll", "0.2.0"), ("build", "dist"), ("features", "none")];
    Environment {
        cpu_model: Some("Some CPU @ 2.50GHz".to_owned()),
        cpu_count: Some(2),
        kernel: Some("Linux 6.18".to_owned()),
        memory_bytes: Some(24_643_248 * 1024),
        clock_source: Some("tsc".to_owned()),
        versions: versions.map(|(name, version)| (name.to_owned(), version.to_owned())).into(),
        ..Environment::default()
    }
}

fn metadata(number: u64) -> RunMetadata {
    RunMetadata {
        run: RunInfo {
            name: "test".to_owned(),
            tool_version: "0.2.0".to_owned(),
            run_id: format!("r{number}"),
            started_unix_ns: 1_790_000_000_000_000_000 + number * 60_000_000_000,
            ended: RunEnd::Complete,
            ..RunInfo::default()
        },
        stages: vec![StageInfo {
            name: "32:60s".to_owned(),
            model: LoadModel::Closed,
            duration_s: 60.0,
            ..StageInfo::default()
        }],
        scenarios: vec!["simple".to_owned()],
        targets: vec![TargetInfo { name: "a".to_owned(), ..TargetInfo::default() }],
        environment: environment(),
        ..RunMetadata::default()
    }
}

/// A distribution of `count` times with this median and 99th percentile. It has no histogram,
/// because comparisons do not read one.
fn times(count: u64, figures: [f64; 2]) -> Value {
    let [p50, p99] = figures;
    json!({
        "count": count, "sum": p50 * count as f64, "mean": p50, "min": p50 / 2.0, "p50": p50,
        "p90": p50 * 1.5, "p95": p99 * 0.83, "p99": p99, "p99_9": null, "max": p99 * 2.0,
        "ci": {
            "p50": {"low": p50 * 0.99, "high": p50 * 1.01, "batches": 60, "effective_samples": 900},
        },
        "histogram": "",
    })
}

/// A valid run without requests.
fn template() -> &'static RunSummary {
    static TEMPLATE: OnceLock<RunSummary> = OnceLock::new();
    TEMPLATE.get_or_init(|| {
        let health = InstrumentHealth::default();
        let empty = RunSummary::build(metadata(0), health, &Snapshot::new(), &[]).unwrap();
        RunSummary { findings: Vec::new(), ..empty }
    })
}

/// Run `number` in chronological order, with these figures.
pub(crate) fn run(number: u64, figures: Figures) -> StoredRun {
    run_of(10_000, number, figures)
}

/// The same with `count` requests.
pub(crate) fn run_of(count: u64, number: u64, figures: Figures) -> StoredRun {
    let mut summary = RunSummary { metadata: metadata(number), ..template().clone() };
    let mut group = Group { duration_s: 60.0, ..Group::default() };
    group.counters.scheduled = count;
    group.counters.completed = count - figures.errors;
    group.counters.unexpected = figures.errors;
    group.rates.throughput_per_s = Some(figures.throughput);
    group.rates.error_rate = Some(figures.errors as f64 / count as f64);
    let service = figures.ttft.map(|time| time * 4.0);
    for (metric, [p50, p99]) in [("ttft_ms", figures.ttft), ("service_time_ms", service)] {
        let times = serde_json::from_value(times(count, [p50, p99])).unwrap();
        group.distributions.insert(metric.to_owned(), times);
    }
    let labelled = |stage: Option<&str>, scenario: Option<&str>, target: Option<&str>| {
        let [stage, scenario, target] =
            [stage, scenario, target].map(|name| name.map(str::to_owned));
        vec![Group { stage, scenario, target, ..group.clone() }]
    };
    let (stage, scenario, target) = (Some("32:60s"), Some("simple"), Some("a"));
    summary.results = Results {
        by_stage: labelled(stage, None, None),
        by_scenario: labelled(None, scenario, None),
        by_target: labelled(None, None, target),
        cells: labelled(stage, scenario, target),
        total: group,
        ..Results::default()
    };
    StoredRun::new(PathBuf::from(format!("runs/{number}")), summary, Some(plan()))
}

/// Alternating runs of two versions, each with its figures: old, new, old, new and so on.
pub(crate) fn turns(
    count: u64,
    mut old: impl FnMut() -> Figures,
    mut new: impl FnMut() -> Figures,
) -> (Vec<StoredRun>, Vec<StoredRun>) {
    (0..count).map(|index| (run(2 * index, old()), run(2 * index + 1, new()))).unzip()
}

pub(crate) fn options(gates: &[(&str, &str)]) -> Options {
    let gates = gates.iter().map(|(figure, margin)| ((*figure).to_owned(), (*margin).to_owned()));
    Options { gates: gates.collect(), ..Options::default() }
}

pub(crate) const THREE: [(&str, &str); 3] =
    [("ttft.p50", "3%"), ("ttft.p99", "3%"), ("throughput", "3%")];

/// Reproducible pseudorandom numbers (`SplitMix64`).
#[derive(Debug)]
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// A normal deviate (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.uniform(), self.uniform());
        (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
    }

    /// A figure of a run, with this standard deviation between runs of unchanged code.
    pub(crate) fn around(&mut self, value: f64, sd: f64) -> f64 {
        value * (sd * self.normal()).exp()
    }

    /// Three independent figures of a run.
    pub(crate) fn figures(&mut self, sd: f64, of: Figures) -> Figures {
        Figures {
            ttft: [self.around(of.ttft[0], sd), self.around(of.ttft[1], sd)],
            throughput: self.around(of.throughput, sd),
            errors: of.errors,
        }
    }
}
