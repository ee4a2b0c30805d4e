//! Checks that bytes which arrive in pieces are UTF-8.

/// The check so far: the bytes of a character that is not complete.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Utf8Check {
    partial: [u8; 4],
    len: u8,
}

impl Utf8Check {
    /// Nothing read yet.
    pub(super) const fn new() -> Self {
        Self { partial: [0; 4], len: 0 }
    }

    /// Checks more bytes; `false` if they cannot be UTF-8.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> bool {
        let mut rest = bytes;
        while self.len > 0 {
            let Some((&byte, after)) = rest.split_first() else { return true };
            rest = after;
            let length = usize::from(self.len);
            self.partial[length] = byte;
            match str::from_utf8(&self.partial[..=length]) {
                Ok(_) => self.len = 0,
                // At most three bytes are incomplete, so that there is room for one more.
                Err(error) if error.error_len().is_none() => self.len += 1,
                Err(_) => return false,
            }
        }
        let Err(error) = simdutf8::compat::from_utf8(rest) else { return true };
        let tail = &rest[error.valid_up_to()..];
        if error.error_len().is_some() || tail.len() > 3 {
            return false;
        }
        self.partial[..tail.len()].copy_from_slice(tail);
        self.len = u8::try_from(tail.len()).unwrap_or(0);
        true
    }

    /// Whether no character is incomplete.
    pub(super) const fn is_whole(self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(pieces: &[&[u8]]) -> bool {
        let mut check = Utf8Check::default();
        pieces.iter().all(|piece| check.feed(piece)) && check.is_whole()
    }

    #[test]
    fn characters_may_be_split_anywhere() {
        let text = "aé漢🚢z".as_bytes();
        for first in 0..=text.len() {
            for second in first..=text.len() {
                assert!(check(&[&text[..first], &text[first..second], &text[second..]]));
            }
        }
    }

    proptest! {
        #[test]
        fn every_split_gives_the_answer_of_the_whole(
            bytes in prop::collection::vec(prop_oneof![0x60u8..0x70, 0x80u8..0xC0, 0xC0u8..=0xFF], 0..12),
            at in 0usize..12,
        ) {
            let (start, end) = bytes.split_at(at.min(bytes.len()));
            prop_assert_eq!(check(&[start, end]), str::from_utf8(&bytes).is_ok());
        }
    }
}
