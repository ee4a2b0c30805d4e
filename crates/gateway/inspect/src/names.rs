//! Which strings of a document are texts: all, except the names and identifiers in `names.txt`.
//!
//! The lists are short on purpose. Other names are judged, and so are values that do not look like
//! an identifier. All strings inside the members with user data ([`is_data`]) are judged.

use std::collections::HashSet;
use std::sync::LazyLock;

/// The names of lists, each with one of its words.
static LISTS: LazyLock<HashSet<(&str, &str)>> = LazyLock::new(|| {
    let lines = include_str!("names.txt").lines().filter(|line| !line.starts_with('#'));
    let lists = lines.filter_map(|line| line.split_once(": "));
    lists.flat_map(|(list, words)| words.split(' ').map(move |word| (list, word))).collect()
});

/// Whether a list in `names.txt` has a word.
pub(crate) fn is_listed(list: &str, word: &str) -> bool {
    LISTS.contains(&(list, word))
}

/// Whether a member's value is an identifier or a word of the protocol.
pub(crate) fn is_identifier(key: &str, value: &str) -> bool {
    match key {
        "role" => is_listed("roles", value),
        _ if is_listed("identifiers", key) => value.bytes().all(is_identifier_byte),
        _ => is_agent_word(key, value),
    }
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

/// Whether a member contains data from outside the protocol.
pub(crate) fn is_data(key: &str) -> bool {
    is_listed("data", key)
}

/// Whether the elements of a member at the top of the document are independent of each other.
pub(crate) fn is_list(key: &str) -> bool {
    is_listed("lists", key)
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

/// Whether a member's name is a protocol word. Other names may be chosen by the client and are
/// texts that a model sees, such as a tool's parameters.
pub(crate) fn is_protocol_name(key: &str) -> bool {
    is_token(key)
        || ["identifiers", "data", "lists", "words"].into_iter().any(|list| is_listed(list, key))
}
