//! Credentials, which no output shows.

use std::fmt;

use serde::{Serialize, Serializer};

/// The replacement for a credential in every output.
pub const REDACTED: &str = "<redacted>";

/// Whether a header or setting of this name carries a credential.
///
/// True for the well-known ones, and for every name that contains `key`, `token` or `secret`:
/// hiding a header without need is better than a key in a stored plan.
pub fn is_sensitive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["authorization", "cookie", "key", "token", "secret", "password"]
        .iter()
        .any(|part| name.contains(part))
}

/// A credential. It has no `Display`; `Debug` and `Serialize` write `<redacted>`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself, only to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(REDACTED)
    }
}

/// The value of a header. Hidden if the header's name says that it is a credential.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderValue {
    value: String,
    sensitive: bool,
}

impl HeaderValue {
    /// The value of the header `name`.
    pub fn new(name: &str, value: String) -> Self {
        Self { value, sensitive: is_sensitive(name) }
    }

    /// The value itself, only to be sent.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// The value, or [`REDACTED`] if it is a credential.
    pub fn shown(&self) -> &str {
        if self.sensitive { REDACTED } else { &self.value }
    }
}

impl fmt::Debug for HeaderValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.shown())
    }
}

impl Serialize for HeaderValue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.shown())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_credentials_are_recognised_in_any_case() {
        for name in [
            "Authorization",
            "proxy-authorization",
            "x-api-key",
            "api-key",
            "apikey",
            "Cookie",
            "Set-Cookie",
            "X-Auth-Token",
            "client-secret",
        ] {
            assert!(is_sensitive(name), "{name}");
        }
        for name in ["accept", "x-request-id", "x-tenant-id", "user-agent", "content-type"] {
            assert!(!is_sensitive(name), "{name}");
        }
    }

    #[test]
    fn a_header_is_shown_by_its_name() {
        let shown = |name| serde_json::to_string(&HeaderValue::new(name, "v".to_owned())).unwrap();
        assert_eq!(shown("x-tenant-id"), "\"v\"");
        assert_eq!(shown("x-api-key"), "\"<redacted>\"");
    }
}
