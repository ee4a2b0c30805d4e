//! The response cache key: canonical bytes of a request, to be hashed.
//!
//! Two requests have the same bytes exactly if they send the same JSON to the same endpoint. The
//! order of members, white space and string escapes do not matter. Numbers are compared as text:
//! `1` and `1.0` differ, which costs a miss but never a wrong hit.
//!
//! Every member is in the key, because an upstream may answer any of them differently: `user` and
//! `metadata` by user, an unknown one anyhow, and `null` with an error. To separate tenants, the
//! gateway hashes the tenant's name first; it also decides which requests bypass the cache. A
//! temperature above zero is cached like any other value.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::depth;
use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::wire::{CowStr, utf8};

/// The prefix of all keys. Change it whenever the format of the key changes.
const VERSION: &[u8] = b"plimsoll-answer-2\0";

/// Writes the canonical bytes of a request to a sink, for example a SHA-256 digest. The bytes are
/// not collected in memory; one list of members is allocated per call.
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
    let mut writer = CanonicalWriter { members: Vec::with_capacity(32), sink: &mut sink };
    writer.request(body).map_err(|error| DialectError::Malformed(error.to_string()))
}

/// Writes values so that different values have different bytes: each starts with a letter for its
/// type and has a length or an end mark.
struct CanonicalWriter<'s, 'a> {
    /// A stack: the members of all objects that are being written, those of the innermost last.
    members: Vec<(CowStr<'a>, &'a RawValue)>,
    sink: &'s mut dyn FnMut(&[u8]),
}

impl<'a> CanonicalWriter<'_, 'a> {
    fn request(&mut self, body: &'a str) -> Result<(), serde_json::Error> {
        let mut reader = serde_json::Deserializer::from_str(body);
        reader.deserialize_map(MemberCollector(&mut self.members))?;
        reader.end()?;
        self.object_from(0)
    }

    fn value(&mut self, raw: &'a RawValue) -> Result<(), serde_json::Error> {
        let text = raw.get();
        match text.as_bytes().first() {
            Some(b'{') => {
                let start = self.members.len();
                let collector = MemberCollector(&mut self.members);
                serde_json::Deserializer::from_str(text).deserialize_map(collector)?;
                self.object_from(start)
            }
            Some(b'[') => {
                (self.sink)(b"[");
                serde_json::Deserializer::from_str(text).deserialize_seq(ItemWriter(self))?;
                (self.sink)(b"]");
                Ok(())
            }
            Some(b'"') => {
                let text: CowStr<'a> = serde_json::from_str(text)?;
                self.sized(b's', &text);
                Ok(())
            }
            _ => {
                self.sized(b'n', text);
                Ok(())
            }
        }
    }

    /// Writes the members from `start` on as an object, sorted by name, and removes them.
    fn object_from(&mut self, start: usize) -> Result<(), serde_json::Error> {
        let end = self.members.len();
        self.members[start..].sort_by(|a, b| a.0.0.cmp(&b.0.0));
        (self.sink)(b"{");
        for at in start..end {
            let member = &mut self.members[at];
            let (name, value) = (std::mem::take(&mut member.0), member.1);
            self.sized(b'k', &name);
            self.value(value)?;
        }
        (self.sink)(b"}");
        self.members.truncate(start);
        Ok(())
    }

    fn sized(&mut self, letter: u8, text: &str) {
        let mut head = [letter; 9];
        head[1..].copy_from_slice(&(text.len() as u64).to_le_bytes());
        (self.sink)(&head);
        (self.sink)(text.as_bytes());
    }
}

/// Adds an object's members to a list.
struct MemberCollector<'s, 'a>(&'s mut Vec<(CowStr<'a>, &'a RawValue)>);

impl<'de: 'a, 'a> Visitor<'de> for MemberCollector<'_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(member) = map.next_entry::<CowStr<'de>, &'de RawValue>()? {
            self.0.push(member);
        }
        Ok(())
    }
}

/// Writes an array's items in order.
struct ItemWriter<'c, 's, 'a>(&'c mut CanonicalWriter<'s, 'a>);

impl<'de: 'a, 'a> Visitor<'de> for ItemWriter<'_, '_, 'a> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element::<&'de RawValue>()? {
            self.0.value(item).map_err(serde::de::Error::custom)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
