//! The ladder: rates that rise step by step, and fall again.

use plimsoll_metrics::{Group, RunSummary};
use plimsoll_report::format::{count, digits, or_dash, rate_with_share, time_with_share};

use super::{measure, policy, tables, with_negotiated};
use crate::figures::TimedResponses;
use crate::measurement::LoadShape;
use crate::options::SuiteOptions;
use crate::report::Section;
use crate::result::{Figures, MeasurementResult};
use crate::runner::SuiteRunner;
use crate::suite::columns::{self, Column};
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

/// A step of the ladder.
struct Step {
    /// Its name after its mark: the mark of the whole run, or of its own errors.
    name: String,
    figures: Figures,
    group: Group,
}

impl Step {
    /// Requests that were blocked as expected. Others that were blocked are errors, so that the
    /// three columns add up to all requests.
    fn blocked(&self) -> u64 {
        let expected = self.group.policy_decisions.get("block");
        expected.and_then(|actual| actual.get("block")).copied().unwrap_or_default()
    }
}

/// Carries the ladder out as one run: the whole of it, and a table with a row for each step. `way`
/// is the way to the gateway, where it is not the suite's first.
pub(super) fn climb(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
    way: &str,
    sets: &[&str],
) -> (MeasurementResult, Section) {
    let stages = stages(runner.options);
    let label = format!("ladder {stages} {way}");
    let measurement =
        policy(runner, label.trim_end(), target, sets).stages(LoadShape::Rate(100.0), &stages);
    let (whole, summary) = measure(runner, measurement);
    let way = with_negotiated(way.to_owned(), summary.as_ref());
    let columns: [Column<Step>; 11] = [
        ("Step", |step| step.name.clone()),
        ("planned/s", |step| or_dash(step.group.rates.planned_rate_per_s, digits)),
        ("achieved/s", |step| rate_with_share(step.figures.requests_per_s)),
        ("P50", |step| time_with_share(step.figures.p50_ms)),
        ("P95", |step| time_with_share(step.figures.p95_ms)),
        ("P99", |step| time_with_share(step.figures.p99_ms)),
        ("Max", |step| time_with_share(step.figures.max_ms)),
        ("success", |step| count(step.figures.expected().saturating_sub(step.blocked()))),
        ("blocked", |step| count(step.blocked())),
        ("errors", |step| count(step.figures.errors)),
        ("correctness", |step| tables::correctness(&step.group)),
    ];
    let steps = summary.map(|summary| steps(&summary, &whole)).unwrap_or_default();
    let space = if way.is_empty() { "" } else { " " };
    let title =
        format!("The ladder{space}{way}: a warm-up of the gateway, rising rates, and down again");
    let section = Section::new(&title, columns::table(&columns, &steps));
    (whole, section)
}

fn steps(summary: &RunSummary, whole: &MeasurementResult) -> Vec<Step> {
    let time = summary.metadata.headline_time();
    let steps = summary.results.by_stage.iter().filter_map(|group| {
        let figures = Figures::of_group(group, TimedResponses::All, time).ok()?;
        let has_errors = figures.gated(whole.error_gate).is_some() && !whole.is_invalid();
        let mark = if has_errors { "[ERRORS] " } else { whole.marker() };
        let name = format!("{mark}{}", group.stage.as_deref().unwrap_or_default());
        Some(Step { name, figures, group: group.clone() })
    });
    steps.collect()
}
