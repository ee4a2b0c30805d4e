//! The simple rule: one new run may be worse than one old run by N percent. It compares two numbers
//! without regard to chance, and every output says so.

use plimsoll_metrics::{Gate, Group, Metric, MetricsError};

use crate::defaults;
use crate::stored_run::StoredRun;

/// Label of the rule in outputs.
pub(crate) const LABEL: &str = "simple rule: two numbers, one run each; unchanged code can fail it, \
                                and changed code can pass";

/// Gates on throughput and times of every measured stage, and on errors. The tail is the rarest
/// percentile for which both runs have enough values.
pub(crate) fn gates(base: &StoredRun, run: &StoredRun) -> Result<Vec<Gate>, MetricsError> {
    let stages = run.summary.results.by_stage.iter().filter(|stage| !stage.warmup);
    let time = run.summary.metadata.headline_time();
    let mut gates = Vec::new();
    for stage in stages {
        let name = stage.stage.as_deref().unwrap_or_default();
        let mut figures =
            vec![("throughput".to_owned(), "10%"), (format!("{}.p50", time.name()), "10%")];
        for metric in [time, Metric::Ttft] {
            let tail = rarest_of_both(base, stage, metric);
            figures.extend(tail.map(|tail| (format!("{}.{tail}", metric.name()), "10%")));
        }
        figures.push(("error_rate".to_owned(), "0.1pp"));
        for (figure, margin) in figures {
            gates.push(Gate::parse(&format!("{figure}{{stage:{name}}}"), margin)?);
        }
    }
    Ok(gates)
}

/// The rarest percentile that a stage has in both runs.
fn rarest_of_both(base: &StoredRun, stage: &Group, metric: Metric) -> Option<&'static str> {
    let same = base.summary.results.by_stage.iter().find(|other| other.stage == stage.stage);
    let both = [Some(stage), same].map(|stage| stage?.distribution(metric));
    let [Some(new), Some(old)] = both else { return None };
    defaults::tail(if old.count < new.count { old } else { new })
}
