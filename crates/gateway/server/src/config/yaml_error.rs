//! Messages about unreadable configurations. They name the place and the expected syntax, and
//! repeat no value: it may be a key, or an address with a password.

use std::fmt::Display;

use serde_saphyr::Error;

/// Longest name of a key that a message repeats.
const MAX_NAME: usize = 24;

/// The problem, with its line and column.
pub(crate) fn describe(error: &Error) -> (String, Option<(u64, u64)>) {
    let place = error.location().map(|location| (location.line(), location.column()));
    let message = message_of(error.without_snippet());
    let message = match place {
        Some((line, column)) => format!("line {line}, column {column}: {message}"),
        None => message,
    };
    (message, place)
}

fn message_of(error: &Error) -> String {
    match error {
        Error::SerdeUnknownField { field, expected, .. } => {
            format!("unknown key{}, {}", quoted(field), one_of(expected))
        }
        Error::SerdeUnknownVariant { expected, .. } => {
            format!("unknown value, {}", one_of(expected))
        }
        Error::SerdeMissingField { field, .. } => format!("the key `{field}` is missing"),
        Error::SerdeInvalidType { expected, .. } => wrong("type", expected),
        Error::SerdeInvalidValue { expected, .. } => wrong("value", expected),
        Error::SerdeInvalidLength { expected, .. } => wrong("length", expected),
        Error::InvalidScalar { ty, .. } => wrong("type", ty),
        Error::DuplicateMappingKey { key, .. } => {
            format!("the key{} appears twice", key.as_deref().map(quoted).unwrap_or_default())
        }
        Error::Unexpected { expected, .. } => format!("expected {expected}"),
        Error::Eof { .. } => "the text ends too early".to_owned(),
        Error::Message { msg, .. } => without_values(msg),
        Error::AliasError { error, .. } => message_of(error.without_snippet()),
        _ => "this is not YAML of a configuration".to_owned(),
    }
}

fn wrong(what: &str, expected: impl Display) -> String {
    format!("wrong {what}, expected {expected}")
}

/// The name of a key, where it looks like one.
fn quoted(name: &str) -> String {
    let is_plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if is_plain && name.len() <= MAX_NAME { format!(" `{name}`") } else { String::new() }
}

fn one_of(expected: &[&str]) -> String {
    let names: Vec<_> = expected.iter().map(|name| format!("`{name}`")).collect();
    format!("expected one of {}", names.join(", "))
}

/// A message of serde, or of this crate's own types, without the values that serde adds.
pub(crate) fn without_values(message: &str) -> String {
    const OWN: [&str; 3] = ["not a duration", "not a size", "missing field"];
    let expected = message.rfind(", expected").map(|at| &message[at..]).unwrap_or_default();
    if let Some(rest) = message.strip_prefix("unknown field `") {
        let field = rest.split('`').next().unwrap_or_default();
        return format!("unknown key{}{expected}", quoted(field));
    }
    if OWN.iter().any(|own| message.starts_with(own)) {
        return message.to_owned();
    }
    for (start, said) in [
        ("invalid type", "wrong type"),
        ("invalid value", "wrong value"),
        ("invalid length", "wrong length"),
        ("unknown variant", "unknown value"),
    ] {
        if message.starts_with(start) {
            return format!("{said}{expected}");
        }
    }
    "a value that cannot be read".to_owned()
}
