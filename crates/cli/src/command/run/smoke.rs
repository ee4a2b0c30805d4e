//! `plimsoll run --smoke`: checks that each scenario is answered. The few requests measure nothing
//! else.

use plimsoll_metrics::{DistributionSummary, Group, Metric, RunEnd, RunSummary};
use plimsoll_plan::Plan;
use plimsoll_report::screen::{Rows, Screen, Tone};
use plimsoll_report::table::Table;
use plimsoll_report::{format, run_findings, run_requests};

use crate::exit::Exit;
use crate::session::FinishedRun;

/// One user, who gets time enough for slow answers; `max_requests` ends it.
pub(super) const STAGES: &str = "1:10m";

/// Requests for each scenario, on average.
const EACH: usize = 10;

/// The most scenarios that are shown.
const MOST: usize = 20;

/// The number of requests that a plan's smoke sends.
pub(super) fn requests(plan: &Plan) -> String {
    (EACH * plan.scenarios.len()).to_string()
}

/// Gives every scenario its share, and leaves out the bounds, which so few requests cannot show.
pub(super) fn prepare(plan: &mut Plan) {
    for scenario in plan.scenarios.iter_mut().filter(|scenario| scenario.weight > 0.0) {
        scenario.weight = 1.0;
    }
    plan.thresholds.clear();
}

/// Answers by scenario.
pub(super) fn screen(run: &FinishedRun) -> Screen {
    let summary = &run.summary;
    let mut screen = Screen::new(run.rest.clone());
    let metadata = &summary.metadata;
    let urls: Vec<_> = metadata.targets.iter().map(|target| target.url.as_str()).collect();
    screen.title(&format!("smoke of {}: {}", metadata.run.name, urls.join(", ")));
    let mut table = Table::new(["", "answered", "mean time", "mean TTFT"]);
    for group in &summary.results.by_scenario {
        table.row(row(group));
    }
    screen.rows("", Rows { table, unit: "scenarios", most: MOST, ..Rows::default() });
    screen.stands_out(run_findings(summary));
    screen.fact(&run_requests(summary));
    let (tone, text) = verdict(summary);
    screen.verdict(tone, &text);
    screen
}

/// The outcome: 1 where a scenario was not answered.
pub(super) fn exit(summary: &RunSummary) -> Exit {
    match (summary.metadata.run.ended, verdict(summary).0) {
        (RunEnd::Interrupted, _) => Exit::Interrupted,
        (_, Tone::Good) => Exit::Pass,
        (_, Tone::Bad) => Exit::Fail,
        (_, Tone::Unsure) => Exit::Inconclusive,
    }
}

fn row(group: &Group) -> [String; 4] {
    let name = group.scenario.clone().unwrap_or_default();
    let answered = format!("{} of {}", group.counters.ok(), group.counters.scheduled);
    let [response, ttft] = [Metric::ResponseTime, Metric::Ttft].map(|metric: Metric| {
        format::limited_time(group.distribution(metric).map(DistributionSummary::mean_figure))
    });
    [name, answered, response, ttft]
}

fn verdict(summary: &RunSummary) -> (Tone, String) {
    if summary.metadata.run.ended == RunEnd::Interrupted {
        return (Tone::Unsure, "INTERRUPTED: not all requests were sent".to_owned());
    }
    let groups = &summary.results.by_scenario;
    let broken = groups.iter().filter(|group| group.counters.unexpected > 0);
    let broken: Vec<_> = broken
        .map(|group| {
            let name = group.scenario.as_deref().unwrap_or_default();
            format!("{name} {} of {}", group.counters.ok(), group.counters.scheduled)
        })
        .collect();
    if !broken.is_empty() {
        return (Tone::Bad, format!("FAIL: not every request was answered: {}", broken.join(", ")));
    }
    let was_tried = |name: &&String| {
        let own = groups.iter().find(|group| group.scenario.as_ref() == Some(name));
        own.is_some_and(|group| group.counters.scheduled > 0)
    };
    let untried: Vec<_> =
        summary.metadata.scenarios.iter().filter(|name| !was_tried(name)).cloned().collect();
    if !untried.is_empty() {
        let names = untried.join(", ");
        return (Tone::Unsure, format!("INCONCLUSIVE: no request was sent for {names}"));
    }
    let (all, scenarios) = (summary.results.total.counters.scheduled, groups.len());
    let of = if scenarios == 1 { "the scenario" } else { "each scenario" };
    (Tone::Good, format!("PASS: {of} was answered, {all} of {all} requests"))
}
