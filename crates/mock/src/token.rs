//! The names of sessions, contexts and tasks on the wire.

use crate::rng::mixed;

/// 128 bits: 32 hexadecimal digits on the wire.
pub(crate) type Token = u128;

/// The token with this number. The secret makes tokens of different mocks differ.
pub(crate) fn make(secret: u64, number: u64) -> Token {
    let high = mixed(secret, number);
    u128::from(high) << 64 | u128::from(mixed(high, number))
}

/// The token as text.
pub(crate) fn text(token: Token) -> String {
    format!("{token:032x}")
}

/// Parses a token.
pub(crate) fn read(text: &str) -> Option<Token> {
    let is_own = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_own.then(|| u128::from_str_radix(text, 16).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_read_back() {
        let tokens = [make(1, 1), make(1, 2), make(2, 1)];
        assert!(tokens[0] != tokens[1] && tokens[0] != tokens[2] && tokens[1] != tokens[2]);
        assert!(tokens.into_iter().all(|token| read(&text(token)) == Some(token)));
    }

    #[test]
    fn texts_that_the_mock_never_wrote_are_none() {
        let zeros = "0".repeat(32);
        assert_eq!(read(&zeros), Some(0));
        for text in ["", "0", &zeros[1..], &"F".repeat(32), &format!("+{}", &zeros[1..]), "é"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
