//! The comparison of several endpoints.

use plimsoll_metrics::{DistributionSummary, Metric, QUANTILES};
use plimsoll_plan::redacted_path;
use plimsoll_report::screen::{Rest, Rows, Screen, debug_build};
use plimsoll_report::table::Table;
use plimsoll_report::{format, run_findings, run_verdict};

use crate::session::{FinishedRun, NO_FILES};

const HEAD: [&str; 7] = ["", "done/s", "ok", "p50", "p90", "p99", "max"];

/// The most endpoints that are shown.
const MOST: usize = 10;

/// One row for each endpoint, with the times of the reports' headlines.
pub(super) fn side_by_side(urls: &[String], runs: &[FinishedRun]) -> Screen {
    let mut screen = Screen::new(Rest::Flag);
    // All have the same stages.
    let first = runs.first().map(|run| &run.summary);
    let metric = first.map_or(Metric::ServiceTime, |summary| summary.metadata.headline_time());
    let mut table = Table::new(HEAD);
    for (url, run) in urls.iter().zip(runs) {
        table.row(row(&redacted_path(url), run, metric));
    }
    let build = first.map_or("", |summary| debug_build(&summary.metadata.environment));
    screen.title(&format!("Side by side: {} endpoints, one after the other{build}", runs.len()));
    let times = if metric == Metric::ServiceTime { "service times" } else { "response times" };
    screen.rows(times, Rows { table, unit: "endpoints", most: MOST, ..Rows::default() });
    for (url, run) in urls.iter().zip(runs) {
        let path = redacted_path(url);
        screen.stands_out(run_findings(&run.summary).into_iter().map(|item| item.named(&path)));
        let (tone, text) = run_verdict(&run.summary);
        let mut own = Screen::new(Rest::Flag);
        own.verdict(tone, &text.replacen(": ", &format!(": {path}: "), 1));
        screen = screen.and(own);
    }
    for run in runs {
        if let Rest::Folder(path) = &run.rest {
            screen.folder(path);
        }
    }
    if runs.iter().all(|run| run.rest == Rest::Flag) {
        screen.file(NO_FILES);
    }
    screen
}

fn row(url: &str, run: &FinishedRun, metric: Metric) -> [String; HEAD.len()] {
    let total = &run.summary.results.total;
    let times = total.distribution(metric);
    [
        url.to_owned(),
        format::limited_rate(total.named_rate("throughput")),
        format::share_of(total.rates.success_rate),
        format::or_dash(times.and_then(DistributionSummary::middle), |middle| {
            format::middle(&middle)
        }),
        format::or_dash(times, |times| format::percentile(times, &QUANTILES[1])),
        format::or_dash(times, |times| format::percentile(times, &QUANTILES[3])),
        format::limited_time(times.map(DistributionSummary::max_figure)),
    ]
}
