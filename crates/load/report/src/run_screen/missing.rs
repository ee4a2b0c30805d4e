//! Why the table of stages has a dash where a figure should be.

use plimsoll_metrics::{
    BoundedFigure, Group, Metric, QUANTILES, Refusal, RunSummary, samples_needed,
};

use crate::format;
use crate::screen::{Item, Tone};

/// The place of the 99th percentile in `QUANTILES`.
pub(super) const P99: usize = 3;

/// The stages of the screen: all but warm-up.
pub(super) fn measured_stages(summary: &RunSummary) -> impl Iterator<Item = &Group> {
    summary.results.by_stage.iter().filter(|stage| !stage.warmup)
}

/// Why a figure is missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// A rate that the generator may have held down.
    HeldDown,
    Refused(Refusal),
    TooFew(u64),
}

/// The reasons in a sentence, with the fix of the first one; `None` if no figure is missing.
pub(super) fn item(summary: &RunSummary) -> Option<Item> {
    let metric = summary.metadata.headline_time();
    let found: Vec<_> =
        measured_stages(summary).flat_map(|stage| of_stage(stage, metric)).collect();
    let mut reasons: Vec<Why> = Vec::new();
    for (_, why) in &found {
        if !reasons.contains(why) {
            reasons.push(*why);
        }
    }
    reasons.sort_by_key(|why| matches!(why, Why::TooFew(_)));
    let sentences: Vec<_> = reasons
        .iter()
        .map(|why| {
            let mut figures: Vec<_> =
                found.iter().filter(|(_, w)| w == why).map(|(f, _)| *f).collect();
            figures.sort_unstable();
            figures.dedup();
            why.sentence(&figures.join(", "))
        })
        .collect();
    let first = reasons.first()?;
    Some(Item::new(Tone::Unsure, &format!("-: {}", sentences.join("; "))).fix(first.fix()))
}

/// The figures of a stage that are missing.
fn of_stage(stage: &Group, metric: Metric) -> Vec<(&'static str, Why)> {
    let times = [
        (metric, 0, "p50"),
        (metric, P99, "p99"),
        (Metric::Ttft, 0, "TTFT"),
        (Metric::Itl, 0, "ITL"),
    ];
    let of_time = |(metric, quantile, name): (Metric, usize, &'static str)| {
        let times = stage.distribution(metric)?;
        let why = match times.figure(&QUANTILES[quantile]) {
            None => Why::TooFew(samples_needed(QUANTILES[quantile].q)),
            Some(BoundedFigure { refused, .. }) => Why::Refused(refused?),
        };
        Some((name, why))
    };
    let rate = stage.named_rate("achieved_rate").and_then(|rate| rate.refused);
    let rate = rate.map(|_| ("sent/s", Why::HeldDown));
    times.into_iter().filter_map(of_time).chain(rate).collect()
}

impl Why {
    fn sentence(self, figures: &str) -> String {
        match self {
            Self::HeldDown => format!("{figures} refused (the generator may have held it down)"),
            Self::Refused(Refusal::Generator) => {
                format!("{figures} refused (the generator may have added more than 5 %)")
            }
            Self::Refused(Refusal::Censored) => {
                format!("{figures} not known (too many requests had no end)")
            }
            Self::TooFew(needed) => {
                format!("too few values for {figures} (needs {})", format::count(needed))
            }
        }
    }

    const fn fix(self) -> &'static str {
        match self {
            Self::HeldDown | Self::Refused(Refusal::Generator) => {
                "give the generator more or idler cores, or lower the load"
            }
            Self::Refused(Refusal::Censored) => {
                "look why requests hang, or give them time with `timeout` and `drain`"
            }
            Self::TooFew(_) => "make the stage longer, or its load higher",
        }
    }
}
