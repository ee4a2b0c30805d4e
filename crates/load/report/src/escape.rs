//! Escapes what would control a terminal in texts from files and from the target.

use std::borrow::Cow;

/// The sequences that reports use themselves.
const COLOURS: [&str; 5] = ["\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;32m", "\x1b[1;33m"];

/// A text in which control characters are written out, like `\u{1b}`, except line ends, tabs and
/// the colours of reports. Characters that change the direction of writing are written out too.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(at) = rest.find(is_control) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if let Some(colour) = COLOURS.iter().find(|colour| rest.starts_with(**colour)) {
            out.push_str(colour);
            rest = &rest[colour.len()..];
        } else if let Some(control) = rest.chars().next() {
            out.extend(control.escape_unicode());
            rest = &rest[control.len_utf8()..];
        }
    }
    Cow::Owned(out + rest)
}

/// A text of one line in which every control character is written out, the colours of reports too;
/// line ends and tabs are spaces. For texts of others in a page that has colours of its own.
pub(crate) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            c if is_control(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// The value of a label in the Prometheus text format. Control characters, which may stand there,
/// are written out: pages are read in terminals, too.
pub(crate) fn escape_label(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '\\' => out.push_str(r"\\"),
            '"' => out.push_str(r#"\""#),
            '\n' => out.push_str(r"\n"),
            c if is_control(c) || c == '\t' => {
                out.push('\\');
                out.extend(c.escape_unicode());
            }
            c => out.push(c),
        }
    }
    out
}

fn is_control(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && !matches!(c, '\n' | '\t')) || directs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_line_ends_tabs_and_own_colours_are_left() {
        for (text, shown) in [
            ("plain \u{fc}\n\tx", "plain \u{fc}\n\tx"),
            ("\x1b[1;32mVALID\x1b[0m", "\x1b[1;32mVALID\x1b[0m"),
            ("\x1b[2J\x1b]0;title\x07", "\\u{1b}[2J\\u{1b}]0;title\\u{7}"),
            ("over\rwritten \u{9b}31m", "over\\u{d}written \\u{9b}31m"),
            ("\u{202e}reversed", "\\u{202e}reversed"),
        ] {
            assert_eq!(printable(text), shown);
        }
    }

    #[test]
    fn a_label_has_no_control_character() {
        for (text, label) in [
            ("plain \u{fc}", "plain \u{fc}"),
            ("a\\b\"c\nd", r#"a\\b\"c\nd"#),
            ("\x1b[2J\t\0\u{9b}\u{202e}\r", r"\\u{1b}[2J\\u{9}\\u{0}\\u{9b}\\u{202e}\\u{d}"),
        ] {
            assert_eq!(escape_label(text), label);
        }
    }

    #[test]
    fn a_text_of_others_has_neither_lines_nor_colours_of_its_own() {
        assert_eq!(one_line("a\n\x1b[1;32mVALID\x1b[0m"), "a \\u{1b}[1;32mVALID\\u{1b}[0m");
    }
}
