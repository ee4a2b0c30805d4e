//! Draws the model, at any size.

mod bottom;
mod head;
mod help;
mod middle;
mod panel;
mod targets;
mod verdict;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::model::{Look, Model};

/// Minimum width and height for panels; smaller terminals show lines instead.
const PANELS: (u16, u16) = (90, 24);

/// Draws the model within the buffer.
pub fn draw(model: &Model, look: Look, buf: &mut Buffer) {
    let area = buf.area;
    if area.width < PANELS.0 || area.height < PANELS.1 {
        few_panels(model, look, area, buf);
    } else {
        panels(model, look, area, buf);
    }
    if look.help {
        help::draw(area, buf);
    }
}

/// For small terminals: the most important panels, one below the other.
fn few_panels(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let [head, verdict, outcomes, times, keys] =
        rows(area, [2, verdict::HEIGHT, bottom::HEIGHT, u16::MAX, 1]);
    head::draw(model, look, head, buf);
    verdict::draw(model, verdict, buf);
    bottom::draw_outcomes(model, look, outcomes, buf);
    middle::draw_times(model, look, times, buf);
    head::keys(model, look, keys, buf);
}

fn panels(model: &Model, look: Look, area: Rect, buf: &mut Buffer) {
    let targets = targets::height(model, area.height);
    let [head, verdict, middle, compared, bottom, keys] =
        rows(area, [2, verdict::HEIGHT, u16::MAX, targets, bottom::HEIGHT, 1]);
    head::draw(model, look, head, buf);
    verdict::draw(model, verdict, buf);
    middle::draw(model, look, middle, buf);
    targets::draw(model, compared, buf);
    bottom::draw(model, look, bottom, buf);
    head::keys(model, look, keys, buf);
}

/// Areas of these heights from top to bottom. The highest one receives the rest.
fn rows<const N: usize>(area: Rect, heights: [u16; N]) -> [Rect; N] {
    let fixed: u16 = heights.iter().filter(|height| **height != u16::MAX).sum();
    let mut y = area.y;
    heights.map(|height| {
        let wanted = if height == u16::MAX { area.height.saturating_sub(fixed) } else { height };
        let row = Rect::new(area.x, y, area.width, wanted.min(area.bottom().saturating_sub(y)));
        y = row.bottom();
        row
    })
}

/// Areas with these shares of the width, in percent, from left to right.
fn columns<const N: usize>(area: Rect, shares: [u16; N]) -> [Rect; N] {
    let (mut x, mut so_far) = (area.x, 0);
    shares.map(|share| {
        so_far += u32::from(share);
        let end =
            area.x + u16::try_from(u32::from(area.width) * so_far / 100).unwrap_or(area.width);
        let column = Rect::new(x, area.y, end.saturating_sub(x), area.height);
        x = end;
        column
    })
}
