//! Which strings of a document are texts: all, except the names and identifiers listed here.
//!
//! The lists are short on purpose. A name that is not in them is judged, and so is a value that
//! does not look like an identifier, whatever it is called. Inside the members that hold other
//! people's data ([`is_data`]) nothing is left out.

use std::collections::HashSet;
use std::sync::LazyLock;

type Names = LazyLock<HashSet<&'static str>>;

/// Members whose value identifies something and is no text, if it looks like an identifier.
static IDENTIFIERS: Names = LazyLock::new(|| {
    names(
        "call_id created created_at encrypted_content file_id finish_reason id item_id media_type \
         model object previous_response_id response_id role signature status stop_reason \
         system_fingerprint tool_call_id tool_use_id type",
    )
});

/// Values of `role`. A chat template shows the role to the model.
static ROLES: Names = LazyLock::new(|| {
    names("ROLE_AGENT ROLE_USER agent assistant developer function model system tool user")
});

/// Members that hold data that is not the protocol's: tool arguments, schemas, metadata.
static DATA: Names = LazyLock::new(|| {
    names("args arguments input input_schema metadata parameters properties schema")
});

/// Members at the top of the document whose texts are independent of each other, one for each
/// element: messages, choices. The texts of any other member are parts of one text.
static LISTS: Names = LazyLock::new(|| {
    names("messages choices input output contents candidates data tools functions")
});

/// Other names that are words of a protocol.
static WORDS: Names = LazyLock::new(|| {
    names(
        "annotations bytes cache_control completion_tokens content content_block content_index \
         delta description function image_url include_usage index input_tokens json_schema \
         logprob logprobs max_completion_tokens max_output_tokens max_tokens message n name \
         output_index output_tokens partial_json prompt_tokens reasoning reasoning_content \
         refusal required response_format seed source stop stop_sequence stream stream_options \
         strict system temperature text thinking tool_calls tool_choice top_logprobs top_p \
         total_tokens url usage user",
    )
});

fn names(names: &'static str) -> HashSet<&'static str> {
    names.split(' ').collect()
}

/// Whether a member's value is an identifier or a word of the protocol.
pub(crate) fn is_identifier(key: &str, value: &str) -> bool {
    match key {
        "role" => ROLES.contains(value),
        _ if IDENTIFIERS.contains(key) => value.bytes().all(is_identifier_byte),
        _ => is_agent_word(key, value),
    }
}

/// Whether a member's value is a word of JSON-RPC or of A2A. They stand in every event of a stream,
/// one after the other: as texts, "2.0" and "2.0" would be the beginning of a long number.
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

/// Whether a value is a time of RFC 3339, with no more digits than one has.
fn is_timestamp(value: &[u8]) -> bool {
    (20..=30).contains(&value.len())
        && [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':')]
            .iter()
            .all(|(at, mark)| value[*at] == *mark)
        && value
            .iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'-' | b':' | b'.' | b'T' | b'Z' | b'+'))
}

/// Identifiers are one word of letters, digits and a few marks. Opaque data in base64 is, too.
const fn is_identifier_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'/' | b'+' | b'=')
}

/// Whether a member holds data that is not the protocol's.
pub(crate) fn is_data(key: &str) -> bool {
    DATA.contains(key)
}

/// Whether the elements of a member at the top of the document are independent of each other.
pub(crate) fn is_list(key: &str) -> bool {
    LISTS.contains(key)
}

/// Whether a text is one of many short pieces of the same text.
pub(crate) fn is_token(key: &str) -> bool {
    key == "token"
}

/// Whether a member holds a file in base64.
pub(crate) fn is_file_data(key: &str) -> bool {
    matches!(key, "data" | "file_data" | "b64_json")
}

/// Whether a member's name is a word of a protocol. Others may be chosen by the client, and are
/// texts that a model sees: the names of a tool's parameters.
pub(crate) fn is_protocol_name(key: &str) -> bool {
    is_token(key) || [&IDENTIFIERS, &DATA, &LISTS, &WORDS].iter().any(|names| names.contains(key))
}
