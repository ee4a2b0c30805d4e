//! The view where there is little room: the most important lines first.

use plimsoll_report::format::{count, digits};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::panel::{BAD, BOLD, DIM, P50, P99, lines, time};
use super::{bottom, head, middle, rows, verdict};
use crate::history::parts;
use crate::model::{Look, Model, Planned};

/// Lines of the chart, at least.
const CHART: u16 = 7;

/// Draws as many lines as there is room for, and a chart below them.
pub(super) fn draw(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let keys = u16::from(area.height >= 8);
    let content = content(model, look);
    let text = u16::try_from(content.len()).unwrap_or(u16::MAX);
    let room = area.height.saturating_sub(keys);
    let chart = room.saturating_sub(text.min(room));
    let [above, below, last] = rows(area, [text.min(room), chart, keys]);
    lines(&content, above, buf);
    if chart >= CHART {
        middle::draw_times(model, look, below, buf);
    }
    head::keys(model, look, last, buf);
}

fn content<'a>(model: &Model, look: Look) -> Vec<Line<'a>> {
    let (word, style, rest, why) = verdict::words(model);
    let mut content = vec![
        Line::styled(head::place(model, look), BOLD),
        Line::from(vec![Span::styled(word, style), Span::raw(rest)]),
    ];
    let Some(part) = model.part(look) else { return content };
    let now = part.history.last();
    let (p50, upper, name) = parts(now.time);
    content.push(Line::from(vec![
        Span::styled("p50 ", DIM),
        Span::styled(time(p50), P50),
        Span::styled(format!("  {name} "), DIM),
        Span::styled(time(upper), P99),
    ]));
    let planned = match model.planned() {
        Planned::Requests => format!(" of {}", digits(now.planned)),
        _ => String::new(),
    };
    content.push(Line::raw(format!("{}{planned}/s done", digits(now.completed))));
    let counters = &part.history.counters;
    let failed = counters.failed + counters.timed_out + counters.never_sent;
    content.push(Line::styled(
        format!("{} failed, {} in flight", count(failed), count(model.in_flight)),
        if failed > 0 { BAD } else { Style::new() },
    ));
    content.push(Line::styled(why, DIM));
    if let (_, Some(late), name) = parts(model.lag) {
        let words = format!("sends late by {} ({name})", time(Some(late)));
        content.push(Line::styled(words, DIM));
    }
    if look.part > 0 {
        content.push(Line::styled(part.title.clone(), BOLD));
    }
    content.extend(bottom::outcomes(part).into_iter().filter(|line| line.style != DIM));
    content
}
