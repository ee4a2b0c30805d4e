//! The response cache key: canonical bytes of a request, to be hashed.
//!
//! Two requests have the same bytes exactly if they send the same JSON to the same endpoint. The
//! order of members, white space and string escapes do not matter. Numbers are compared as text:
//! `1` and `1.0` differ, which costs a miss but never a wrong hit.
//!
//! Every member is in the key, because any of them may change the answer: `user` and `metadata` may
//! select a user, unknown members may have any effect, and `null` may cause an error. To separate
//! tenants, the gateway hashes the tenant's name first; it also decides which requests bypass the
//! cache. A temperature above zero is cached like any other value.

use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::json;

/// The prefix of all keys. Change it whenever the format of the key changes.
const VERSION: &[u8] = b"plimsoll-answer-2\0";

/// Writes the canonical bytes of a request to a sink, for example a SHA-256 digest. The bytes are
/// not collected in memory.
///
/// # Errors
/// As [`RequestView::read`](crate::RequestView::read): not UTF-8, nested too deeply, or not a JSON
/// object.
pub fn write_cache_key(
    endpoint: Endpoint,
    body: &[u8],
    mut sink: impl FnMut(&[u8]),
) -> Result<(), DialectError> {
    let body = json::checked(body)?;
    sink(VERSION);
    sink(endpoint.path().as_bytes());
    write_object(body, &mut sink).map_err(DialectError::malformed)
}

/// Writes a value so that different values have different bytes: each starts with a letter for its
/// type and has a length or an end mark.
fn write_value(value: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), serde_json::Error> {
    match value.as_bytes().first() {
        Some(b'{') => write_object(value, sink)?,
        Some(b'[') => {
            sink(b"[");
            json::items(value).try_for_each(|item| write_value(item, sink))?;
            sink(b"]");
        }
        Some(b'"') => write_sized(b's', &json::string(value)?, sink),
        _ => write_sized(b'n', value, sink),
    }
    Ok(())
}

/// Writes an object with its members sorted by name.
fn write_object(object: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), serde_json::Error> {
    let mut members = json::members(object)?;
    members.sort_by(|a, b| a.0.cmp(&b.0));
    sink(b"{");
    for (name, value) in members {
        write_sized(b'k', &name, sink);
        write_value(value, sink)?;
    }
    sink(b"}");
    Ok(())
}

fn write_sized(letter: u8, text: &str, sink: &mut dyn FnMut(&[u8])) {
    let mut head = [letter; 9];
    head[1..].copy_from_slice(&(text.len() as u64).to_le_bytes());
    sink(&head);
    sink(text.as_bytes());
}

#[cfg(test)]
mod tests;
