//! Checks UTF-8 that comes in pieces, which may end within a character.

use super::error::FrameError;

/// The check of one text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Utf8Check {
    /// The character that is not complete yet.
    partial: [u8; 4],
    length: usize,
}

impl Utf8Check {
    /// The check of a text of which nothing has come yet.
    pub(super) const fn new() -> Self {
        Self { partial: [0; 4], length: 0 }
    }

    /// Checks the next piece.
    ///
    /// # Errors
    /// The text is not UTF-8, whatever follows.
    pub(super) fn push(&mut self, mut piece: &[u8]) -> Result<(), FrameError> {
        while self.length > 0 {
            let Some((&byte, rest)) = piece.split_first() else { return Ok(()) };
            piece = rest;
            // A character of four bytes is complete or wrong, so there is room.
            self.partial[self.length] = byte;
            self.length += 1;
            match std::str::from_utf8(&self.partial[..self.length]) {
                Ok(_) => self.length = 0,
                Err(error) if error.error_len().is_none() => {}
                Err(_) => return Err(FrameError::NotUtf8),
            }
        }
        let Err(error) = std::str::from_utf8(piece) else { return Ok(()) };
        if error.error_len().is_some() {
            return Err(FrameError::NotUtf8);
        }
        let partial = &piece[error.valid_up_to()..];
        self.partial[..partial.len()].copy_from_slice(partial);
        self.length = partial.len();
        Ok(())
    }

    /// Begins another text.
    pub(super) const fn reset(&mut self) {
        self.length = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Whether the pieces are the beginning of a text, and where that is first known to be false.
    fn check(pieces: &[&[u8]]) -> Result<usize, usize> {
        let mut check = Utf8Check::new();
        for (index, piece) in pieces.iter().enumerate() {
            check.push(piece).map_err(|_| index)?;
        }
        Ok(check.length)
    }

    #[test]
    fn a_wrong_byte_is_found_at_once_and_a_character_may_be_split() {
        assert_eq!(check(&["n\u{e4}he".as_bytes()]), Ok(0));
        assert_eq!(check(&[b"\xf0", b"\x9f", b"\x9a", b"\xa2"]), Ok(0));
        assert_eq!(check(&[b"\xf0\x9f"]), Ok(2));
        assert_eq!(check(&[b"ok\xe2", b"\x82\xac \xc3"]), Ok(1));
        assert_eq!(check(&[b"ok", b"\xff", b"more"]), Err(1));
        // A surrogate, a form that is too long, and a character beyond the last.
        assert_eq!(check(&[b"\xed", b"\xa0"]), Err(1));
        assert_eq!(check(&[b"\xc0"]), Err(0));
        assert_eq!(check(&[b"\xf4", b"\x90"]), Err(1));
    }

    proptest! {
        #[test]
        fn any_split_gives_the_verdict_of_the_whole(
            bytes in prop::collection::vec(
                prop_oneof![any::<u8>(), prop::sample::select("aä€🚢".as_bytes().to_vec())],
                0..40,
            ),
            size in 1..7usize,
        ) {
            let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
            let begins = match std::str::from_utf8(&bytes) {
                Ok(_) => true,
                Err(error) => error.error_len().is_none(),
            };
            prop_assert_eq!(check(&pieces).is_ok(), begins);
        }
    }
}
