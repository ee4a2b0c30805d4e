//! Help on the keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget as _};

use super::panel::panel;

const TEXT: [&str; 13] = [
    "q        end the load, wait for responses, and report (as Ctrl-C)",
    "p        pause or resume the display; the load continues",
    "tab      the next scenario or target; shift-tab the one before",
    "?        this help",
    "Ctrl-C   a second one stops at once, without a report",
    "Ctrl-Z   stops the load, too: such a run is rarely valid",
    "",
    "Per-second figures fluctuate: the report covers whole stages,",
    "with intervals. The verdict so far may change until the end.",
    "Outcomes include the warm-up.",
    "",
    "The view may be closed, resized or lost: the load goes on.",
    "--ui bar shows one line instead, --ui lines suits a log file.",
];

/// Draws the help in the centre.
pub(super) fn draw(area: Rect, buf: &mut Buffer) {
    let (width, height) = (70.min(area.width), 15.min(area.height));
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let area = Rect::new(x, y, width, height);
    Clear.render(area, buf);
    let content = TEXT.map(Line::raw);
    panel("keys", &content, area, buf);
}
