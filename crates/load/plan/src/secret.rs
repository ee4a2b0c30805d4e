//! Credentials, which must not appear in any output.

use std::fmt;

use serde::{Serialize, Serializer};

/// The replacement for a credential in every output.
pub const REDACTED: &str = "<redacted>";

/// Headers whose values are shown. The value of any other user-defined header may be a credential,
/// whatever its name.
const SHOWN_HEADERS: &str = include_str!("shown_headers.txt");

/// Query parameters whose values are shown.
const SHOWN_PARAMETERS: &str = include_str!("shown_parameters.txt");

/// Whether a header's value is shown in outputs, because it is one of the few that never have a
/// credential.
pub fn is_shown_header(name: &str) -> bool {
    SHOWN_HEADERS.lines().any(|shown| name.eq_ignore_ascii_case(shown))
}

/// Names and values in the query of a path (or a URL) that may be credentials: all except
/// placeholders such as `{{uuid}}`, and the values of a few harmless parameters that do not look
/// like credentials. A parameter without a name has an empty one.
pub fn secrets_of_query(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let query = path.split_once('?').map_or("", |(_, query)| query);
    query.split(['&', ';']).filter_map(secret_of_parameter)
}

/// Name and value of `name=value`, or of a parameter without a name, if it may be a credential.
fn secret_of_parameter(parameter: &str) -> Option<(&str, &str)> {
    let (name, value) = parameter.split_once('=').unwrap_or(("", parameter));
    let is_placeholder = value.starts_with("{{") && value.ends_with("}}");
    let is_shown = SHOWN_PARAMETERS.lines().any(|shown| name.eq_ignore_ascii_case(shown))
        && !looks_like_credential(value);
    (!value.is_empty() && !is_placeholder && !is_shown).then_some((name, value))
}

/// Number of consecutive letters and digits from which a value counts as a credential. Versions,
/// dates and names of models have dots and hyphens.
const LONG_WORD: usize = 20;
/// Prefixes of well-known credentials.
const CREDENTIAL_PREFIXES: [&str; 9] =
    ["sk-", "sk_", "pk_", "rk_", "ghp_", "xox", "akia", "eyj", "bearer"];

/// Whether a value looks like a credential, wherever it appears.
fn looks_like_credential(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    CREDENTIAL_PREFIXES.iter().any(|prefix| lower.starts_with(prefix))
        || value.split(|c: char| !c.is_alphanumeric()).any(|word| word.len() >= LONG_WORD)
}

/// Redacts the query values of a path (or a URL), see [`secrets_of_query`].
pub fn redacted_path(path: &str) -> String {
    let Some((path, query)) = path.split_once('?') else { return path.to_owned() };
    let shown = query.split_inclusive(['&', ';']).map(|piece| {
        let parameter = piece.trim_end_matches(['&', ';']);
        let end = &piece[parameter.len()..];
        match secret_of_parameter(parameter) {
            Some((_, value)) => {
                let name = &parameter[..parameter.len() - value.len()];
                format!("{name}{REDACTED}{end}")
            }
            None => piece.to_owned(),
        }
    });
    format!("{path}?{}", shown.collect::<String>())
}

/// Removes users, passwords, and query values that may be credentials from all URLs in a text.
pub fn redacted_urls(text: &str) -> String {
    const AROUND: [char; 5] = ['"', '\'', '`', '<', '>'];
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (before, url) = rest.split_at(at + 3);
        let end = url.find(|c: char| c.is_whitespace() || AROUND.contains(&c));
        let (url, after) = url.split_at(end.unwrap_or(url.len()));
        shown.push_str(before);
        // A password may have any character, even one that ends the host according to the standard.
        let place = match url.rsplit_once('@') {
            Some((_, place)) => {
                shown.push_str(REDACTED);
                shown.push('@');
                place
            }
            None => url,
        };
        shown.push_str(&redacted_path(place));
        rest = after;
    }
    shown + rest
}

/// A credential. It has no `Display`; `Debug` and `Serialize` write `<redacted>`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    pub const fn new(value: String) -> Self {
        Self(value)
    }

    /// The value itself, for sending only.
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

/// The value of a header. Hidden unless the header is one of the few that never have a credential.
#[derive(Clone, PartialEq, Eq)]
pub struct HeaderValue {
    value: String,
    shown: bool,
}

impl HeaderValue {
    /// Creates the value of the header `name`.
    pub fn new(name: &str, value: String) -> Self {
        Self { value, shown: is_shown_header(name) }
    }

    /// The value itself, for sending only.
    pub fn reveal(&self) -> &str {
        &self.value
    }

    /// The value, or [`REDACTED`] if it may be a credential.
    pub fn shown(&self) -> &str {
        if self.shown { &self.value } else { REDACTED }
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
    use plimsoll_protocol::names_credential;

    use super::*;

    #[test]
    fn only_harmless_headers_are_shown() {
        for name in ["Accept", "content-type", "User-Agent", "anthropic-version"] {
            assert!(is_shown_header(name), "{name}");
        }
        for name in ["Authorization", "x-api-key", "x-ocp", "x-tenant-id", "x-monkey", "accept-x"] {
            assert!(!is_shown_header(name), "{name}");
        }
    }

    #[test]
    fn names_of_credentials_are_words() {
        for name in
            ["Authorization", "x-api-key", "api_key", "apikey", "Set-Cookie", "X-Auth-Token"]
        {
            assert!(names_credential(name), "{name}");
        }
        for name in ["x-keyboard", "x-monkey", "accept", "x-request-id"] {
            assert!(!names_credential(name), "{name}");
        }
    }

    #[test]
    fn values_of_a_query_are_hidden_by_their_place() {
        for (path, shown) in [
            ("/v1/chat", "/v1/chat"),
            ("/a?api-version=2024-06-01&limit=5", "/a?api-version=2024-06-01&limit=5"),
            ("/a?sig=abc&code=x=y;k=1", "/a?sig=<redacted>&code=<redacted>;k=<redacted>"),
            ("/a?q={{prompt}}&id={{uuid}}", "/a?q={{prompt}}&id={{uuid}}"),
            ("/a?rawtoken", "/a?<redacted>"),
            ("/a?x=&y", "/a?x=&<redacted>"),
            ("/a?key=1", "/a?key=<redacted>"),
            // A harmless name with a suspicious value.
            ("/a?api-version=sk-1&model=eyJhbGciOi", "/a?api-version=<redacted>&model=<redacted>"),
            ("/a?version=0123456789abcdef0123&page=2", "/a?version=<redacted>&page=2"),
            (
                "/a?model=meta-llama/Llama-3.1-405B-Instruct-Turbo",
                "/a?model=meta-llama/Llama-3.1-405B-Instruct-Turbo",
            ),
            (
                "http://h:1/a?api-version=2024-06-01-preview",
                "http://h:1/a?api-version=2024-06-01-preview",
            ),
        ] {
            assert_eq!(redacted_path(path), shown);
        }
        let secrets: Vec<_> = secrets_of_query("/a?sig=abc&limit=5&raw").collect();
        assert_eq!(secrets, [("sig", "abc"), ("", "raw")]);
    }

    #[test]
    fn urls_in_a_text_show_no_credential() {
        for (text, shown) in [
            ("no URL: a@b.c?d=e", "no URL: a@b.c?d=e"),
            ("cannot reach http://h:1/p: gone", "cannot reach http://h:1/p: gone"),
            ("`http://me:se/cr@et@h/p` has a user", "`http://<redacted>@h/p` has a user"),
            (
                "'gw=https://t0ken@h:9?sig=1' and http://u:p@i",
                "'gw=https://<redacted>@h:9?sig=<redacted>' and http://<redacted>@i",
            ),
            (
                "postgres://u:p@h/db/t, clickhouse:http://h/?password=x y",
                "postgres://<redacted>@h/db/t, clickhouse:http://h/?password=<redacted> y",
            ),
        ] {
            assert_eq!(redacted_urls(text), shown);
        }
    }

    #[test]
    fn a_header_is_shown_by_its_name() {
        assert_eq!(header_as_json("accept"), "\"v\"");
        assert_eq!(header_as_json("x-api-key"), "\"<redacted>\"");
    }

    fn header_as_json(name: &str) -> String {
        serde_json::to_string(&HeaderValue::new(name, "v".to_owned())).unwrap()
    }
}
