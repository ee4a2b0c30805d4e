//! Building blocks of panels.

use plimsoll_measure::Nanos;
use plimsoll_report::format;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Widget as _};

/// Styles for good, bad, and notable values.
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
pub(super) const ODD: Style = Style::new().fg(Color::Yellow);
pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Style of labels next to figures.
pub(super) const DIM: Style = Style::new().add_modifier(Modifier::DIM);
pub(super) const P50: Style = Style::new().fg(Color::Cyan);
pub(super) const P99: Style = Style::new().fg(Color::Magenta);

/// Draws a frame with a title. Returns the area within.
pub(super) fn framed(title: &str, area: Rect, buf: &mut Buffer) -> Rect {
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(DIM)
        .title(Line::styled(format!(" {title} "), BOLD));
    let inner = block.inner(area);
    block.render(area, buf);
    inner
}

/// Draws as many lines as fit, from the top.
pub(super) fn lines(lines: &[Line<'_>], area: Rect, buf: &mut Buffer) {
    for (y, line) in (area.y..area.bottom()).zip(lines) {
        buf.set_line(area.x, y, line, area.width);
    }
}

/// Draws a frame with lines.
pub(super) fn panel(title: &str, content: &[Line<'_>], area: Rect, buf: &mut Buffer) {
    if area.height > 2 && area.width > 4 {
        let inner = framed(title, area, buf);
        let padded = Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner };
        lines(content, padded, buf);
    }
}

/// A figure after its name.
pub(super) fn figure<'a>(name: &str, value: String, style: Style) -> Line<'a> {
    Line::from(vec![Span::styled(format!("{name:<11}"), DIM), Span::styled(value, style)])
}

/// Formats a time in milliseconds, or `-`.
pub(super) fn time(millis: Option<f64>) -> String {
    format::time_or_dash(millis)
}

/// Formats minutes and seconds, rounded down.
pub(super) fn clock(duration: Nanos) -> String {
    let seconds = duration.as_u64() / 1_000_000_000;
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

/// Truncates a text with an ellipsis if it does not fit.
pub(super) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut kept: String = text.chars().take(width.saturating_sub(1)).collect();
    kept.push('…');
    kept
}
