//! Parses keys from the bytes that a terminal sends.

/// The action of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    /// `q`: ends the run and reports.
    End,
    /// `p` or space: pauses or resumes the display.
    Freeze,
    /// Tab: shows the next scenario or target.
    Next,
    /// Shift-Tab: shows the previous one.
    Back,
    /// `?`: opens or closes the help.
    Help,
    /// Escape: closes whatever is open.
    Close,
}

/// Parses the keys of one read. Others are ignored: arrows, pasted text, responses of the terminal.
pub(crate) fn keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while let [first, rest @ ..] = bytes {
        bytes = rest;
        let key = match first {
            b'q' => Some(Key::End),
            b'p' | b' ' => Some(Key::Freeze),
            b'\t' => Some(Key::Next),
            b'?' | b'h' => Some(Key::Help),
            0x1b => {
                let (key, length) = escape(rest);
                bytes = rest.get(length..).unwrap_or_default();
                key
            }
            _ => None,
        };
        keys.extend(key);
    }
    keys
}

/// The key of an escape sequence without its first byte, and its length.
fn escape(rest: &[u8]) -> (Option<Key>, usize) {
    match rest {
        [] => (Some(Key::Close), 0),
        [b'[' | b'O', tail @ ..] => {
            // ECMA-48: the sequence ends with the first byte from `@` to `~`.
            let end = tail.iter().position(|byte| (0x40..=0x7e).contains(byte));
            let length = end.map_or(rest.len(), |end| end + 2);
            (tail.starts_with(b"Z").then_some(Key::Back), length)
        }
        [..] => (None, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_told_from_sequences_that_contain_their_letters() {
        for (bytes, expected) in [
            (&b"q"[..], &[Key::End][..]),
            (b"p\t?", &[Key::Freeze, Key::Next, Key::Help]),
            (b"\x1b", &[Key::Close]),
            (b"\x1b[Z", &[Key::Back]),
            // Arrow up, F1, delete; Alt-q; the response to a cursor position request.
            (b"\x1b[A\x1bOP\x1b[3~", &[]),
            (b"\x1bq", &[]),
            (b"\x1b[24;80Rp", &[Key::Freeze]),
            (b"xyz\xff\x00", &[]),
            (b"\x1b[", &[]),
        ] {
            assert_eq!(keys(bytes), expected, "{bytes:?}");
        }
    }
}
