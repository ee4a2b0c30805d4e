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

use serde_json::value::RawValue;

use crate::depth;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::wire::{CowStr, Members, utf8};

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
    let body = utf8(body)?;
    depth::check(body.as_bytes())?;
    sink(VERSION);
    sink(endpoint.path().as_bytes());
    write_object(body, &mut sink).map_err(DialectError::malformed)
}

/// Writes a value so that different values have different bytes: each starts with a letter for its
/// type and has a length or an end mark.
fn write_value(raw: &RawValue, sink: &mut dyn FnMut(&[u8])) -> Result<(), serde_json::Error> {
    let text = raw.get();
    match text.as_bytes().first() {
        Some(b'{') => write_object(text, sink)?,
        Some(b'[') => {
            sink(b"[");
            for item in serde_json::from_str::<Vec<&RawValue>>(text)? {
                write_value(item, sink)?;
            }
            sink(b"]");
        }
        Some(b'"') => write_sized(b's', &serde_json::from_str::<CowStr<'_>>(text)?, sink),
        _ => write_sized(b'n', text, sink),
    }
    Ok(())
}

/// Writes an object with its members sorted by name.
fn write_object(text: &str, sink: &mut dyn FnMut(&[u8])) -> Result<(), serde_json::Error> {
    let Members(mut members) = serde_json::from_str(text)?;
    members.sort_by(|a, b| a.0.0.cmp(&b.0.0));
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
