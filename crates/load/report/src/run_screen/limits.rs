//! What a valid run is worth: the limit of its headline figures that says the most.

use plimsoll_metrics::{LimitedFigure, Metric, QUANTILES, Refusal, RunSummary};

use crate::format;

/// What a valid run is worth.
pub(super) fn valid_words(summary: &RunSummary) -> String {
    largest_limits(summary).map_or_else(
        || "Plimsoll kept up; these figures describe the target".to_owned(),
        |limits| format!("load as planned; {limits}"),
    )
}

/// The headline figure of which the largest share may be the generator's, where that is more than
/// 5 %, or else one that requests without an end leave open: `up to 12us of TTFT p50 96us may be
/// ours`. It fits into the last line of a screen.
fn largest_limits(summary: &RunSummary) -> Option<String> {
    let times = [summary.metadata.headline_time(), Metric::Ttft, Metric::Itl].map(Metric::title);
    let is_headline = |found: &&LimitedFigure| {
        found.label.is_empty() || (is_on_screen(found, summary) && times.contains(&found.title))
    };
    let ours = summary.results.figures_of_generator();
    let ours = ours.iter().filter(is_headline);
    let headline = summary.metadata.headline_time().title();
    let ours = ours.max_by(|a, b| {
        let (a, b) = (&a.figure, &b.figure);
        (a.bound / a.value).total_cmp(&(b.bound / b.value))
    });
    let ours = ours.map(|found| of_generator(found, headline));
    let limited = summary.results.limited_figures();
    let open = limited.iter().filter(is_headline).find(|found| found.why == Refusal::Censored);
    let open = open.map(|found| {
        let (title, label) = (found.title, found.label);
        format!("requests without an end may make {title} {label} longer")
    });
    ours.or(open)
}

/// The mean is on the screen where no stage has a median.
fn is_on_screen(found: &LimitedFigure, summary: &RunSummary) -> bool {
    match found.label {
        "min" | "max" | "p99.9" => false,
        "mean" => !summary.results.by_stage.iter().any(|stage| {
            let times = stage.distribution(summary.metadata.headline_time());
            times.is_some_and(|times| times.figure(&QUANTILES[0]).is_some())
        }),
        "" | "p50" => true,
        // Of the first token and of gaps the screen has medians.
        _ => found.title == summary.metadata.headline_time().title(),
    }
}

/// The title of the `headline` time goes without saying.
fn of_generator(found: &LimitedFigure, headline: &str) -> String {
    let LimitedFigure { title, label, figure, .. } = found;
    if label.is_empty() {
        let more = figure.bound / figure.value;
        let more = if more < 1.0 {
            format!("{} higher without the generator", format::percent(more))
        } else {
            format!("{} times as high without us", format::digits(more + 1.0))
        };
        return format!("{title} up to {more}");
    }
    let [value, bound] = [figure.value, figure.bound].map(format::time);
    let title = if *title == headline { String::new() } else { format!("{title} ") };
    format!("up to {bound} of {title}{label} {value} may be ours")
}
