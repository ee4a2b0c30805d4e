//! The targets of a comparison, and their differences so far.

use plimsoll_report::format::{count, difference};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::panel::{BAD, BOLD, DIM, ODD, cut, panel, time};
use crate::facts::Difference;
use crate::history::UpperEnd;
use crate::model::{Model, Which};

/// Height of the panel including its frame; 0 without a comparison.
pub(super) fn height(model: &Model, available: u16) -> u16 {
    if !model.facts.compares {
        return 0;
    }
    let lines = model.facts.targets.len() + 1 + between(model).count();
    // The figures above need room too.
    u16::try_from(lines + 2).unwrap_or(u16::MAX).min(available.saturating_sub(24))
}

/// Differences between two targets other than the reference.
fn between(model: &Model) -> impl Iterator<Item = &Difference> {
    let reference = reference(model);
    model.differences.iter().filter(move |found| Some(found.reference) != reference)
}

/// The reference, with which the others are compared.
fn reference(model: &Model) -> Option<usize> {
    model.differences.first().map(|first| first.reference)
}

/// Draws the panel.
pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    if area.height < 3 {
        return;
    }
    let name = |index: usize| model.facts.targets.get(index).map_or("", String::as_str);
    let figure = model.differences.first().map_or("", |first| first.figure.as_str());
    let upper = upper_end(model);
    let upper_name = format!("{} now", upper.name());
    let against = reference(model).map_or("the reference", name);
    let mut content = vec![Line::styled(
        format!(
            "{:<16} {:>10} {:>9} {:>9} {:>8}   {figure} added to {against}",
            "", "completed", "p50 now", upper_name, "failed"
        ),
        DIM,
    )];
    content.extend((0..model.facts.targets.len()).map(|target| line(model, target, upper)));
    content.extend(between(model).map(|found| {
        let words = format!("{} against {}: ", name(found.target), name(found.reference));
        Line::from(vec![Span::styled(words, DIM), Span::styled(added(found), BOLD)])
    }));
    panel("targets; intervals are always-valid, from 20 s on", &content, area, buf);
}

fn line<'a>(model: &Model, target: usize, upper: UpperEnd) -> Line<'a> {
    let name = model.facts.targets.get(target).map_or("", String::as_str);
    let part = model.parts.iter().find(|part| part.which == Which::Target(target));
    let history = part.map(|part| &part.history);
    let counters = history.map(|history| history.counters).unwrap_or_default();
    let now = history.and_then(|history| history.last().time);
    let failed = counters.failed + counters.timed_out;
    let found = model.differences.iter().find(|found| found.target == target);
    let found = found.filter(|found| Some(found.reference) == reference(model));
    let out = model.taken_out.get(target).copied().flatten();
    let (words, style) = out.map_or_else(
        || (found.map_or_else(|| "-".to_owned(), added), BOLD),
        |at| (format!("taken out after {:.0} s", at.as_secs_f64()), ODD),
    );
    let p50 = time(now.map(|now| now.p50));
    let upper = time(now.and_then(|now| now.upper(upper)));
    Line::from(vec![
        Span::styled(format!("{:<16} ", cut(name, 16)), BOLD),
        Span::raw(format!("{:>10} {p50:>9} {upper:>9} ", count(counters.completed))),
        Span::styled(format!("{:>8}", count(failed)), if failed > 0 { BAD } else { Style::new() }),
        Span::styled(format!("   {words}"), style),
    ])
}

/// The upper end that every target's last second has, because a column shows a single statistic.
fn upper_end(model: &Model) -> UpperEnd {
    let targets = model.parts.iter().filter(|part| matches!(part.which, Which::Target(_)));
    UpperEnd::of_all(targets.map(|part| part.history.last().time))
}

/// The median difference with its interval.
fn added(found: &Difference) -> String {
    found.millis.map_or_else(|| "-".to_owned(), |[value, low, high]| difference(value, low, high))
}
