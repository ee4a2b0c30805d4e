//! Ids and times of sessions and approvals.

use std::fmt;

/// The id of a session or an approval: 128 random bits, written as 32 hexadecimal digits. Callers
/// take them from the operating system, so that ids cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RecordId(pub u128);

impl RecordId {
    /// Parses 32 lower-case hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        let is_id = text.len() == 32
            && text.bytes().all(|byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        is_id.then(|| u128::from_str_radix(text, 16).ok()).flatten().map(Self)
    }
}

impl fmt::Display for RecordId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The time of an operation.
///
/// Expiry uses the monotonic clock in memory and the server's clock in Redis. The wall clock is for
/// display only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Monotonic nanoseconds, from a start that all workers of the process share.
    pub now: u64,
    /// Milliseconds since 1970 UTC, for display.
    pub unix_ms: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_32_lower_case_digits_and_nothing_else() {
        for number in [0, 1, 0xabc, u128::MAX] {
            let text = RecordId(number).to_string();
            assert_eq!((text.len(), RecordId::parse(&text)), (32, Some(RecordId(number))));
        }
        let digits = "0123456789abcdef0123456789abcdef";
        assert!(RecordId::parse(digits).is_some());
        for text in [
            "",
            "0",
            &digits[1..],
            &format!("{digits}0"),
            &digits.to_uppercase(),
            "+123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcde ",
            "0123456789abcdef-123456789abcdef",
            "é123456789abcdef0123456789abcde",
        ] {
            assert_eq!(RecordId::parse(text), None, "{text}");
        }
    }
}
