//! The ladder: rates that rise step by step, and fall again.

use plimsoll_metrics::{Group, RunSummary};
use plimsoll_report::format::{count, digits, or_dash, time_with_share};
use plimsoll_report::table::Table;

use super::{columns, measure, policy, tables, with_negotiated};
use crate::figures::TimedResponses;
use crate::measurement::LoadShape;
use crate::options::SuiteOptions;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;
use crate::target::SuiteTarget;

/// The ladder of rates, and its short form.
const LADDER: &str = "@10:30s,@50:60s,@100:120s,@200:60s,@100..0:30s";
const LADDER_SHORT: &str = "@10:2s,@50:3s,@100:4s,@200:6s,@100..0:2s";

/// The stages of the ladder, each as long as the user wants them.
fn stages(options: &SuiteOptions) -> String {
    let own = if options.short { LADDER_SHORT } else { LADDER };
    let Some(duration) = options.duration else { return own.to_owned() };
    let rates = own.split(',').filter_map(|stage| stage.split(':').next());
    rates.map(|rate| format!("{rate}:{duration}")).collect::<Vec<_>>().join(",")
}

/// A ladder that was carried out as one run.
pub(super) struct Ladder {
    /// The way to the gateway, where it is not the suite's first; with what TLS agreed on.
    way: String,
    pub(super) whole: MeasurementResult,
    steps: Vec<Step>,
}

struct Step {
    name: String,
    figures: Figures,
    group: Group,
}

impl Ladder {
    pub(super) fn climb(
        runner: &mut SuiteRunner<'_>,
        target: &SuiteTarget,
        way: &str,
        sets: &[&str],
    ) -> Self {
        let stages = stages(runner.options);
        let label = format!("ladder {stages} {way}");
        let measurement =
            policy(runner, label.trim_end(), target, sets).stages(LoadShape::Rate(100.0), &stages);
        let (whole, summary) = measure(runner, measurement);
        let way = with_negotiated(way.to_owned(), summary.as_ref());
        Self { way, whole, steps: summary.map(|summary| steps(&summary)).unwrap_or_default() }
    }

    /// A row for each step.
    pub(super) fn section(&self) -> Section {
        let heads = [
            "Step",
            "planned/s",
            "achieved/s",
            "P50",
            "P95",
            "P99",
            "Max",
            "success",
            "blocked",
            "errors",
            "correctness",
        ];
        let mut table = Table::new(heads);
        for Step { name, figures, group } in &self.steps {
            table.row([
                format!("{}{name}", self.marker(figures)),
                or_dash(group.rates.planned_rate_per_s, digits),
                columns::per_s(figures.requests_per_s),
                time_with_share(figures.p50_ms),
                time_with_share(figures.p95_ms),
                time_with_share(figures.p99_ms),
                time_with_share(figures.max_ms),
                count(group.counters.completed),
                count(group.counters.blocked),
                count(figures.errors),
                tables::correctness(group),
            ]);
        }
        let way = if self.way.is_empty() { String::new() } else { format!(" {}", self.way) };
        let title =
            format!("The ladder{way}: a warm-up of the gateway, rising rates, and down again");
        Section::new(&title, table).note(
            "the steps are planned arrivals per second; the published script has them as virtual users",
        )
    }

    /// The mark of a step: that of its run, or that of its own errors.
    fn marker(&self, step: &Figures) -> &'static str {
        let gated = step.gated(self.whole.error_gate).is_some();
        if gated && !self.whole.is_invalid() { "[ERRORS] " } else { self.whole.marker() }
    }
}

fn steps(summary: &RunSummary) -> Vec<Step> {
    let time = summary.metadata.headline_time();
    let stages = summary.results.by_stage.iter();
    stages
        .filter_map(|group| {
            let figures = Figures::of_group(group, TimedResponses::All, time).ok()?;
            let name = group.stage.clone().unwrap_or_default();
            Some(Step { name, figures, group: group.clone() })
        })
        .collect()
}
