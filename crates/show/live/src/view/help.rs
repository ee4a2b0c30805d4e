//! Help on the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget as _};

use super::panel::panel;

const TEXT: &str = include_str!("help.txt");

/// Draws the help in the centre.
pub(super) fn draw(area: Rect, buf: &mut Buffer) {
    let (width, height) = (70.min(area.width), 15.min(area.height));
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let area = Rect::new(x, y, width, height);
    Clear.render(area, buf);
    let content: Vec<_> = TEXT.lines().map(Line::raw).collect();
    panel("keys", &content, area, buf);
}
