//! The result for people.

mod notes;
mod other;
mod screen;
mod stated;
mod times;

use plimsoll_metrics::RunSummary;
use plimsoll_report::screen::Rest;
use plimsoll_report::{Style, format};

use crate::result::{Difference, Stopping, Versus};

pub use screen::screen;

/// The result as a file has it: all of its screen, with what a screen has no room for. Lines are at
/// most `width` columns wide where words can be broken. `summary` is that of its last run.
pub fn text(versus: &Versus, summary: &RunSummary, width: usize) -> String {
    screen(versus, summary, Rest::Flag).report(Style::plain(width))
}

/// What was compared, and how.
fn title(versus: &Versus) -> String {
    let compared = versus.compared();
    let count = match compared.len() {
        1 => "1 target".to_owned(),
        n => format!("{n} targets"),
    };
    let mut parts = vec![format!("{count} against {}", versus.reference())];
    let time = format::seconds(versus.duration_s);
    parts.push(match versus.rate {
        Some(rate) => format!("{time} at {}/s each", format::digits(rate)),
        None => time,
    });
    parts.push(match versus.gap_ns {
        Some(gap) => format!("{} {}", versus.schedule, format::time(gap as f64 / 1e6)),
        None => versus.schedule.clone(),
    });
    if versus.same_host {
        parts.push("on this host".to_owned());
    }
    format!("versus: {}", parts.join(", "))
}

/// Whether it was decided before its time was over, and what intervals are shown.
fn ended(versus: &Versus, stopping: &Stopping) -> String {
    let planned = format::seconds(stopping.planned_s);
    let ended = match stopping.decided_at_ns {
        Some(_) => {
            let after = format::seconds(versus.duration_s);
            format!("Ended early: decided after {after} of {planned}.")
        }
        None => format!("Not decided within {planned}."),
    };
    format!("{ended} Intervals are always-valid: they hold at every look, and are wider.")
}

/// From the planned blocks to the pairs of each difference, so that a reader can follow the counts.
fn blocks(versus: &Versus) -> String {
    let blocks = &versus.blocks;
    let [recorded, complete] = [blocks.recorded, blocks.complete].map(format::count);
    let planned = match blocks.planned.saturating_sub(blocks.recorded) {
        0 => String::new(),
        missing => format!(
            "of {} planned, {} did not begin or were not kept; ",
            format::count(blocks.planned),
            format::count(missing)
        ),
    };
    let mut parts = vec![format!("{recorded} blocks, {planned}{complete} complete")];
    parts.extend(blocks.lost.iter().map(|lost| {
        let share = format::share(lost.share);
        format!("{} lost {} ({share})", lost.target, format::count(lost.pairs))
    }));
    if blocks.refused_as_expected > 0 {
        let refused = format::count(blocks.refused_as_expected);
        parts.push(format!("{refused} refused as expected"));
    }
    parts.extend(versus.headline_added().filter(|found| found.pairs < blocks.complete).map(
        |found: &Difference| {
            let figure = versus.headline.title();
            format!("{} has a {figure} in {} pairs", found.target, format::count(found.pairs))
        },
    ));
    if blocks.alone > 0 {
        let alone = format::count(blocks.alone);
        parts.push(format!("{alone} more with each target alone"));
    }
    if blocks.one_in > 1 {
        parts.push(format!("a sample: 1 second in {} was kept", blocks.one_in));
    }
    if versus.rounds > 1 {
        parts.push(format!("mean of {} rounds", versus.rounds));
    }
    parts.join("; ")
}
