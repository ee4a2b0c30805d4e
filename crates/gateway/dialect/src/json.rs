//! Reads JSON part by part.
//!
//! A request is checked by the parser once. After that only the ends of its parts are looked for,
//! which passes over strings many bytes at a time.

use std::borrow::Cow;

use serde::de::{Error as _, IgnoredAny, Unexpected};

use crate::depth;
use crate::error::DialectError;
use crate::wire::{CowStr, utf8};

/// The name of a member, and its value.
pub(crate) type Member<'a> = (Cow<'a, str>, &'a str);

/// The JSON of a request.
///
/// # Errors
/// It is not UTF-8, nested too deep, or not JSON.
pub(crate) fn checked(body: &[u8]) -> Result<&str, DialectError> {
    let text = utf8(body)?;
    depth::check(body)?;
    serde_json::from_str::<IgnoredAny>(text).map_err(DialectError::malformed)?;
    Ok(text.trim_ascii())
}

/// The members of an object in order, including duplicates.
///
/// # Errors
/// It is not one object, or a name has half a surrogate pair.
pub(crate) fn members(object: &str) -> Result<Vec<Member<'_>>, serde_json::Error> {
    let mut parts = items(object);
    let mut members = Vec::new();
    while object.starts_with('{')
        && let Some(name) = parts.next()
    {
        members.push((string(name)?, parts.next().unwrap_or_default()));
    }
    if object.get(parts.at..) == Some("}") {
        Ok(members)
    } else {
        Err(serde_json::Error::invalid_value(Unexpected::Other("text"), &"an object"))
    }
}

/// The items of an array.
pub(crate) const fn items(array: &str) -> Parts<'_> {
    Parts { json: array, at: 1 }
}

/// The text of a string.
///
/// # Errors
/// The value is not a string, or the text has half a surrogate pair.
pub(crate) fn string(json: &str) -> Result<Cow<'_, str>, serde_json::Error> {
    let inside = json.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inside.filter(|inside| memchr::memchr(b'\\', inside.as_bytes()).is_none()) {
        Some(inside) => Ok(Cow::Borrowed(inside)),
        None => serde_json::from_str::<CowStr<'_>>(json).map(|text| text.0),
    }
}

/// The values in an array, or the names and values in an object.
pub(crate) struct Parts<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.json.as_bytes().get(self.at..)?;
        self.at += rest.iter().take_while(|byte| is_between(**byte)).count();
        let start = self.at;
        self.at = end(self.json.as_bytes(), start);
        self.json.get(start..self.at).filter(|part| !part.is_empty())
    }
}

/// Whether a byte separates parts.
const fn is_between(byte: u8) -> bool {
    byte.is_ascii_whitespace() || matches!(byte, b',' | b':')
}

/// The end of the part that starts at a position; the position itself at the end of its container.
fn end(json: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at = depth::skip_string(json, at + 1) - 1,
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth > 0 => depth -= 1,
            b'}' | b']' => return at,
            byte if depth == 0 && is_between(*byte) => return at,
            _ => {}
        }
        at += 1;
        if depth == 0 && matches!(byte, b'"' | b'}' | b']') {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A value, put together from its parts.
    fn reread(json: &str) -> Value {
        match json.as_bytes().first() {
            Some(b'[') => items(json).map(reread).collect(),
            Some(b'{') => {
                let members = members(json).unwrap().into_iter();
                members.map(|(name, value)| (name.into_owned(), reread(value))).collect()
            }
            Some(b'"') => string(json).unwrap().into(),
            _ => serde_json::from_str(json).unwrap(),
        }
    }

    #[test]
    fn what_is_not_one_object_has_no_members() {
        for json in
            ["", "[]", "[{}]", "\"}\"", "{", "{} x", "{}}", "{]", r#"{"a":{"b":1}"#, r#"{"a":"}"#]
        {
            assert!(members(json).is_err(), "{json}");
        }
    }

    #[test]
    fn the_parts_are_those_that_the_parser_finds() {
        for json in [
            "{}",
            " [ ] ",
            r#"{"a":1,"b":[true,null,-1.5e3],"c":{"d":{}}}"#,
            "{ \"a\" : [ 1 , [ ] , { } ]\n, \"b\"\t:\r\"x\" }",
            r#"[["]"],"\\","a\"b","\\\"",{"\"}":"{"},"\u00e9"]"#,
            r#"[0,"",[[[[]]],[]]]"#,
        ] {
            assert_eq!(reread(json.trim()), serde_json::from_str::<Value>(json).unwrap(), "{json}");
        }
    }
}
