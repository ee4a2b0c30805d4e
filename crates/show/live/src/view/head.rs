//! The first lines: the run and its progress; and the last line: keys and messages.

use plimsoll_measure::Nanos;
use plimsoll_report::format::count;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::panel::{BOLD, DIM, ODD, clock, cut, lines};
use crate::model::{Look, Model};

/// Draws the name, the stage, the time left and a bar.
pub(super) fn draw(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let width = usize::from(area.width);
    let right = place(model, look);
    // The progress of the run matters more than its name.
    let room = width.saturating_sub(right.chars().count() + 3);
    let left = name(model, room.min(width / 2));
    let gap = width.saturating_sub(left.chars().count() + right.chars().count() + 2);
    let first = Line::from(vec![
        Span::raw(" "),
        Span::styled(left, BOLD),
        Span::raw(" ".repeat(gap)),
        Span::styled(right, if look.frozen { ODD } else { BOLD }),
    ]);
    lines(&[first, bar(model, width)], area, buf);
}

/// Name and targets of the run.
fn name(model: &Model, width: usize) -> String {
    let targets = model.facts.targets.join(", ");
    let text = match (model.facts.name.as_str(), targets.as_str()) {
        (name, "") => name.to_owned(),
        (name, targets) => format!("{name}  {targets}"),
    };
    cut(&text, width)
}

/// The stage, and the rest of the run: requests if a number of them ends it, otherwise time.
fn place(model: &Model, look: Look) -> String {
    let frozen = if look.frozen { "FROZEN (p goes on)  " } else { "" };
    let (stages, duration) = (model.facts.stages.len(), model.facts.duration());
    let stage = model.present().map_or("", |stage| stage.name.as_str());
    let stage = format!("stage {} of {stages} {stage}", model.stage + 1);
    let place = if !model.begun {
        match model.facts.max_requests {
            Some(most) => format!("starting, {} requests to go", count(most)),
            None => format!("starting, {} to go", clock(duration)),
        }
    } else if model.ending {
        format!("ending, {} in flight", model.in_flight)
    } else if model.elapsed >= duration {
        format!("waiting for {} responses", model.in_flight)
    } else if let Some(requests) = model.requests() {
        format!("{stage}  {requests}")
    } else {
        // Rounded up, so that 0:00 is the end.
        let left = duration.saturating_sub(model.elapsed) + Nanos::from_millis(999);
        format!("{stage}  {} left of {}", clock(left), clock(duration))
    };
    format!("{frozen}{place}")
}

/// The progress bar, with gaps between stages.
fn bar<'a>(model: &Model, width: usize) -> Line<'a> {
    let width = width.saturating_sub(2);
    let duration = model.facts.duration().as_u64();
    let column = |at: Nanos| {
        let column = u128::from(at.as_u64()) * width as u128 / u128::from(duration.max(1));
        usize::try_from(column).unwrap_or(width)
    };
    let done = column(model.facts.position(model.elapsed, model.ended));
    let ends: Vec<_> = model.facts.stages.iter().map(|stage| column(stage.end)).collect();
    let (over, left): (Vec<_>, Vec<_>) = (0..width).partition(|index| *index < done);
    let text = |cells: Vec<usize>| {
        cells
            .into_iter()
            .map(|index| {
                let gap = index + 1 < width && ends.contains(&(index + 1));
                match (gap, index < done) {
                    (true, _) => ' ',
                    (false, true) => '━',
                    (false, false) => '╌',
                }
            })
            .collect::<String>()
    };
    Line::from(vec![
        Span::raw(" "),
        Span::styled(text(over), super::panel::P50),
        Span::styled(text(left), DIM),
    ])
}

/// The keys, or the latest message.
pub(super) fn keys(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    if let Some(message) = &model.message {
        let text = cut(message, usize::from(area.width).saturating_sub(2));
        lines(&[Line::styled(format!(" {text}"), ODD)], area, buf);
        return;
    }
    let next = if model.parts.len() > 1 { "   tab next part" } else { "" };
    let freeze = if look.frozen { "p go on" } else { "p freeze" };
    let text = format!(" q end and report   {freeze}{next}   ? help");
    lines(&[Line::styled(text, DIM)], area, buf);
}
