//! Which strings of a document are texts: all, except the names and identifiers in `names.txt`.
//!
//! The lists are short on purpose. Other names are judged, and so are values that do not look like
//! an identifier. All strings inside the members with user data ([`DATA`]) are judged.

use std::sync::LazyLock;

use hashbrown::HashMap;

/// The lists that have a word: a bit for each, in the order of [`LISTS`].
pub(crate) type Lists = u8;

const LISTS: [&str; 6] = ["identifiers", "roles", "data", "lists", "words", "text-types"];
const IDENTIFIERS: Lists = 1;
const ROLES: Lists = 1 << 1;
/// Members that contain data from outside the protocol.
pub(crate) const DATA: Lists = 1 << 2;
/// Members at the top of the document whose elements are independent of each other.
pub(crate) const GROUPS: Lists = 1 << 3;
const WORDS: Lists = 1 << 4;
/// Types of `application/` that are text.
pub(crate) const TEXT_TYPES: Lists = 1 << 5;

/// The words are fixed, so they need no hash that resists attacks.
static LISTED: LazyLock<HashMap<&str, Lists>> = LazyLock::new(|| {
    let mut listed = HashMap::new();
    for (list, words) in include_str!("names.txt").lines().filter_map(|line| line.split_once(": "))
    {
        let bit = LISTS.iter().position(|name| *name == list).map_or(0, |at| 1 << at);
        words.split(' ').for_each(|word| *listed.entry(word).or_default() |= bit);
    }
    listed
});

/// The lists in `names.txt` that have a word, with one look-up.
pub(crate) fn lists_with(word: &str) -> Lists {
    LISTED.get(word).copied().unwrap_or_default()
}

/// Whether the value of a member on these lists is an identifier or a word of the protocol.
pub(crate) fn is_identifier(lists: Lists, key: &str, value: &str) -> bool {
    match key {
        "role" => lists_with(value) & ROLES != 0,
        _ if lists & IDENTIFIERS != 0 => value.bytes().all(is_identifier_byte),
        _ => is_agent_word(key, value),
    }
}

/// Whether the name of a member on these lists is a protocol word. Other names may be chosen by the
/// client and are texts that a model sees, such as a tool's parameters.
pub(crate) fn is_protocol_name(lists: Lists, key: &str) -> bool {
    is_token(key) || lists & (IDENTIFIERS | DATA | GROUPS | WORDS) != 0
}

/// Whether a member's value is a word of JSON-RPC or of A2A. They occur in every event of a stream:
/// as texts, "2.0" and "2.0" would be the beginning of a long number.
fn is_agent_word(key: &str, value: &str) -> bool {
    match key {
        "jsonrpc" => value == "2.0",
        "artifactId" | "contextId" | "messageId" | "taskId" => {
            value.bytes().all(is_identifier_byte)
        }
        "kind" | "state" => {
            value.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'-'))
        }
        "timestamp" => is_timestamp(value.as_bytes()),
        _ => false,
    }
}

/// Whether a value is an RFC 3339 time, with a plausible number of digits.
fn is_timestamp(value: &[u8]) -> bool {
    (20..=30).contains(&value.len())
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':')]
            .iter()
            .all(|(at, mark)| value[*at] == *mark)
        && value
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b':' | b'.' | b'T' | b'Z' | b'+'))
}

/// Identifiers are one word of letters, digits and a few marks, like opaque data in base64.
const fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/' | b'+' | b'=')
}

/// Whether a text is one of many short pieces of the same text.
pub(crate) fn is_token(key: &str) -> bool {
    key == "token"
}

/// Whether a member contains a file in base64. Unreadable content of the first four is refused even
/// without a declared type; the others may be images or encrypted reasoning.
pub(crate) fn is_file_data(key: &str) -> bool {
    is_untyped_file(key) || matches!(key, "data" | "b64_json")
}

pub(crate) fn is_untyped_file(key: &str) -> bool {
    matches!(key, "blob" | "bytes" | "file_data" | "raw")
}

/// Whether a member declares the type of the file beside it.
pub(crate) fn is_media_type(key: &str) -> bool {
    matches!(key, "contentType" | "mediaType" | "media_type" | "mimeType" | "mime_type")
}
