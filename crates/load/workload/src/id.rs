//! Ids of conversations and requests, as targets and logs see them.

use std::fmt;

use plimsoll_measure::{ConversationKey, IdSeed, Seed, TargetId};

/// The id of a conversation: a version 4 UUID (RFC 9562) computed from seed, run id and key.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConversationId([u8; Self::LEN]);

/// The position of the two digits of each byte, with hyphens between the groups.
const POSITIONS: [usize; 16] = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];

/// The two digits of each byte.
const DIGITS: [[u8; 2]; 256] = {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let mut digits = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        digits[byte] = [HEX[byte >> 4], HEX[byte & 15]];
        byte += 1;
    }
    digits
};

impl ConversationId {
    /// Length in bytes.
    pub const LEN: usize = 36;

    /// The text.
    pub fn as_str(&self) -> &str {
        // Always ASCII.
        str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The first five bytes, which are uniform over all ids.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u8> {
        let digits = POSITIONS.into_iter().take(5).map(|at| self.as_str().get(at..at + 2));
        digits.map(|digits| u8::from_str_radix(digits.unwrap_or_default(), 16).unwrap_or_default())
    }

    fn from_bits(high: u64, low: u64) -> Self {
        let version = high & !0xF000 | 0x4000;
        let variant = low & !(0b11 << 62) | 0b10 << 62;
        let bytes = (u128::from(version) << 64 | u128::from(variant)).to_be_bytes();
        let mut text = [b'-'; Self::LEN];
        for (byte, position) in bytes.into_iter().zip(POSITIONS) {
            text[position..position + 2].copy_from_slice(&DIGITS[usize::from(byte)]);
        }
        Self(text)
    }
}

impl fmt::Display for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for ConversationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The id of a request, for `x-request-id`: the conversation's id, `-` and the turn, from 0.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId {
    text: [u8; Self::LEN],
    len: u8,
}

impl RequestId {
    /// Greatest length in bytes: a turn has up to five digits.
    const LEN: usize = ConversationId::LEN + 6;

    /// The text, which is ASCII.
    pub fn as_bytes(&self) -> &[u8] {
        &self.text[..usize::from(self.len)]
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        str::from_utf8(self.as_bytes()).unwrap_or_default()
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The id of a request, computed without its conversation.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a remainder of ten, and a length of at most 42"
)]
pub fn request_id(conversation: ConversationId, turn: u16) -> RequestId {
    let mut text = [b'-'; RequestId::LEN];
    text[..ConversationId::LEN].copy_from_slice(&conversation.0);
    let digits = turn.checked_ilog10().unwrap_or(0) as usize + 1;
    let len = ConversationId::LEN + 1 + digits;
    let mut rest = turn;
    for digit in text[ConversationId::LEN + 1..len].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    RequestId { text, len: len as u8 }
}

/// The id of a conversation, computed without the conversation.
pub fn conversation_id(ids: IdSeed, key: ConversationKey) -> ConversationId {
    let mut rng = ids.rng("conversation id", key.0);
    ConversationId::from_bits(rng.next_u64(), rng.next_u64())
}

/// The first eight digits of a conversation's id as a number. Uniform over all conversations.
pub fn id_rank(ids: IdSeed, key: ConversationKey) -> u32 {
    (ids.rng("conversation id", key.0).next_u64() >> 32) as u32
}

/// The id of a whole run, before the texts that its conversations on one target share.
pub(crate) fn run_marker(ids: IdSeed, target: TargetId) -> ConversationId {
    let mut rng = ids.rng("run marker", target.0.into());
    ConversationId::from_bits(rng.next_u64(), rng.next_u64())
}

/// The conversation's id in its first turn, and a different id in each later turn.
pub(crate) fn turn_id(ids: IdSeed, key: ConversationKey, turn: u16) -> ConversationId {
    if turn == 0 {
        return conversation_id(ids, key);
    }
    let mut rng = Seed(ids.rng("turn id", key.0).next_u64()).rng("turn", u64::from(turn));
    ConversationId::from_bits(rng.next_u64(), rng.next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_request_id_ends_in_the_number_of_its_turn() {
        let conversation = conversation_id(IdSeed::default(), ConversationKey::arrival(2));
        for turn in [0, 7, 10, 99, 100, 12_345, u16::MAX] {
            assert_eq!(request_id(conversation, turn).as_str(), format!("{conversation}-{turn}"));
        }
    }

    #[test]
    fn bits_are_written_as_a_version_4_uuid() {
        for (high, low, text) in [
            (0, 0, "00000000-0000-4000-8000-000000000000"),
            (u64::MAX, u64::MAX, "ffffffff-ffff-4fff-bfff-ffffffffffff"),
            (0x0123_4567_89AB_CDEF, 0x0011_2233_4455_6677, "01234567-89ab-4def-8011-223344556677"),
        ] {
            assert_eq!(ConversationId::from_bits(high, low).as_str(), text);
        }
    }

    #[test]
    fn ids_depend_on_key_seed_and_run_id_alone() {
        let ids = |seed, run: &str| IdSeed::new(Seed(seed), run);
        let id = |seed, run, key| conversation_id(ids(seed, run), ConversationKey(key));
        let all: HashSet<_> = (0..5)
            .flat_map(|s| ["a", "b"].map(|run| (s, run)))
            .flat_map(|(s, run)| (0..5_000).map(move |k| id(s, run, k)))
            .collect();
        assert_eq!(all.len(), 50_000);
        assert_eq!(id(3, "a", 4), id(3, "a", 4));
    }

    #[test]
    fn turns_have_ids_of_their_own_and_the_first_has_the_conversations() {
        let (ids, key) = (IdSeed::new(Seed(1), "a"), ConversationKey(7));
        assert_eq!(turn_id(ids, key, 0), conversation_id(ids, key));
        let of = |run: &str, key: u64, turn| {
            turn_id(IdSeed::new(Seed(1), run), ConversationKey(key), turn)
        };
        let all: HashSet<_> = ["a", "b"]
            .into_iter()
            .flat_map(|run| (0..50).flat_map(move |k| (0..50).map(move |t| of(run, k, t))))
            .collect();
        assert_eq!(all.len(), 5_000);
    }
}
