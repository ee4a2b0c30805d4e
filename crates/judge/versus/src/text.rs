//! The result as text.

mod screen;

use plimsoll_metrics::RunSummary;
use plimsoll_report::screen::{Rest, Screen};
use plimsoll_report::{format, run_screen};

use crate::result::{Stopping, Versus};

pub use screen::{LIMITS, NOT_SHOWN, failures_and_streams, screen};

/// The report for files and pages: the screen, with the chapters of the last run, whose summary
/// this is.
pub fn report(versus: &Versus, summary: &RunSummary) -> Screen {
    let mut screen = screen(versus, summary, Rest::Flag);
    let run = run_screen(summary, Rest::Flag);
    run.chapters().iter().for_each(|chapter| screen.chapter(chapter.clone()));
    screen
}

/// The title: targets, schedule and load.
fn title(versus: &Versus) -> String {
    let compared = versus.compared();
    let count = match compared.len() {
        1 => "1 target".to_owned(),
        n => format!("{n} targets"),
    };
    let mut parts = vec![format!("{count} against {}", versus.reference())];
    parts.extend((versus.rounds > 1).then(|| format!("{} rounds", versus.rounds)));
    let time = format::seconds(versus.duration_s);
    let most = if versus.blocks.alone > 0 { "up to " } else { "" };
    parts.push(match versus.rate {
        Some(rate) => format!("{time} at {most}{}/s each", format::digits(rate)),
        None => time,
    });
    parts.push(match versus.gap_ns {
        Some(gap) => format!("{} apart", format::time(gap as f64 / 1e6)),
        None => versus.schedule.clone(),
    });
    if versus.same_host {
        parts.push("on this host".to_owned());
    }
    format!("versus: {}", parts.join(", "))
}

/// Whether the run was decided early, and the kind of the intervals.
fn ended(versus: &Versus, stopping: &Stopping) -> String {
    let planned = format::seconds(stopping.planned_s);
    let ended = match stopping.decided_at_ns {
        Some(_) => {
            let after = format::seconds(versus.duration_s);
            format!("Ended early: decided after {after} of {planned}.")
        }
        None => format!("Not decided within {planned}."),
    };
    format!("{ended} Intervals are always-valid.")
}

/// Counts from planned to complete blocks.
fn blocks(versus: &Versus) -> String {
    let blocks = &versus.blocks;
    let all = [
        (blocks.complete, "completed by every target"),
        (blocks.planned.saturating_sub(blocks.recorded), "not begun or not kept"),
        (blocks.refused_as_expected, "refused as expected"),
        (blocks.alone, "with each target alone and the others idle"),
    ];
    let recorded = (blocks.recorded > 0).then(|| format::count(blocks.recorded) + " blocks");
    let mut parts: Vec<_> = recorded.into_iter().collect();
    let known = all.into_iter().filter(|(count, _)| *count > 0);
    parts.extend(known.map(|(count, what)| format!("{} {what}", format::count(count))));
    if blocks.one_in > 1 {
        parts.push(format!("1 second in {} kept", blocks.one_in));
    }
    if versus.rounds > 1 {
        parts.push(format!("times are means of {} rounds", versus.rounds));
    }
    parts.join(", ")
}
