//! Translates characters and colours to terminal control sequences (ECMA-48).

use std::fmt::Write as _;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};

/// Switches to the alternate screen, which preserves the lines above, and hides cursor and colours.
pub(crate) const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[0m\x1b[2J";
/// Switches back, with a cursor and without colours.
pub(crate) const LEAVE: &str = "\x1b[0m\x1b[2J\x1b[?1049l\x1b[?25h";
/// Clears the screen.
pub(crate) const CLEAR: &str = "\x1b[0m\x1b[2J";

/// The sequences that change one frame into the next.
pub(crate) fn difference(old: &Buffer, new: &Buffer, colour: bool) -> String {
    let mut out = String::new();
    let mut next = None;
    let mut style = None;
    for (x, y, cell) in old.diff(new) {
        if next != Some((x, y)) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\x1b[{};{}H", y + 1, x + 1);
        }
        let wanted = (cell.fg, cell.modifier);
        if style != Some(wanted) {
            write_style(&mut out, cell, colour);
            style = Some(wanted);
        }
        out.push_str(cell.symbol());
        // A wide character moves the cursor by two, so the next position is written explicitly.
        next = cell.symbol().is_ascii().then_some((x + 1, y));
    }
    if style.is_some() {
        out.push_str("\x1b[0m");
    }
    out
}

fn write_style(out: &mut String, cell: &Cell, colour: bool) {
    out.push_str("\x1b[0");
    let modifiers = [(Modifier::BOLD, ";1"), (Modifier::DIM, ";2"), (Modifier::REVERSED, ";7")];
    for (modifier, code) in modifiers {
        if cell.modifier.contains(modifier) {
            out.push_str(code);
        }
    }
    // Only the eight basic colours, which the user may have customized.
    let code = match cell.fg {
        Color::Red => ";31",
        Color::Green => ";32",
        Color::Yellow => ";33",
        Color::Blue => ";34",
        Color::Magenta => ";35",
        Color::Cyan => ";36",
        _ => "",
    };
    out.push_str(if colour { code } else { "" });
    out.push('m');
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::layout::Rect;
    use ratatui::style::Style;

    #[test]
    fn only_what_changed_is_written_and_colours_only_where_wanted() {
        let area = Rect::new(0, 0, 6, 2);
        let (old, mut new) = (Buffer::empty(area), Buffer::empty(area));
        assert_eq!(difference(&old, &new, true), "");
        new.set_string(2, 1, "ab", Style::new().fg(Color::Red));
        new.set_string(4, 1, "c", Style::new().add_modifier(Modifier::BOLD));
        assert_eq!(difference(&old, &new, true), "\x1b[2;3H\x1b[0;31mab\x1b[0;1mc\x1b[0m");
        assert_eq!(difference(&old, &new, false), "\x1b[2;3H\x1b[0mab\x1b[0;1mc\x1b[0m");
        assert_eq!(difference(&new, &new, true), "");
    }
}
