//! Headers that describe a body: its type and its encoding.

use hyper::HeaderMap;
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, IF_RANGE, RANGE,
};

/// Requests a readable response: whole and not encoded.
pub(crate) fn ask_for_readable(headers: &mut HeaderMap) {
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    headers.remove(RANGE);
    headers.remove(IF_RANGE);
}

/// Whether a body has a content encoding, such as compression.
pub(crate) fn is_encoded(headers: &HeaderMap) -> bool {
    let values = headers.get_all(CONTENT_ENCODING).iter();
    let mut codings = values.flat_map(|value| value.as_bytes().split(|byte| *byte == b','));
    codings.any(|coding| !coding.trim_ascii().eq_ignore_ascii_case(b"identity"))
}

/// The type of a body, of a request or of a response: the one reader of `content-type`.
#[derive(Debug)]
pub(crate) struct MediaType {
    /// Lower case, without parameters.
    pub(crate) kind: String,
    pub(crate) charset: Charset,
}

/// The character set of a media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Charset {
    /// UTF-8: declared, by default, or as ASCII.
    Utf8,
    /// Another superset of ASCII.
    AsciiCompatible,
    /// Any other, several, or an ambiguous declaration, which two readers may interpret
    /// differently.
    Other,
}

impl MediaType {
    /// The type that headers name; `None` without one.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(CONTENT_TYPE).iter();
        let value = values.next()?;
        let text = String::from_utf8_lossy(value.as_bytes()).to_ascii_lowercase();
        let (kind, parameters) = text.split_once(';').unwrap_or((&text, ""));
        // Two headers, or two types in one: servers choose different ones.
        let is_one = values.next().is_none() && !text.contains(',');
        let charset = if is_one { read_charset(parameters) } else { Charset::Other };
        Some(Self { kind: kind.trim().to_owned(), charset })
    }

    /// Whether the body is one JSON document in UTF-8, by the type that LLM APIs use.
    pub(crate) fn is_plain_json(&self) -> bool {
        self.kind == "application/json" && self.charset == Charset::Utf8
    }
}

/// The character set in the parameters of a type. Every similar parameter counts: `charset*=`, a
/// quoted name, a duplicate.
fn read_charset(parameters: &str) -> Charset {
    const UTF8: [&str; 4] = ["utf-8", "utf8", "us-ascii", "ascii"];
    const COMPATIBLE: [&str; 3] = ["iso-8859-", "latin", "windows-125"];
    let mut found = None;
    for parameter in parameters.split(';').map(str::trim).filter(|one| !one.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let (name, value) = (name.trim(), value.trim());
        if name == "charset" && found.is_none() {
            let quoted = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
            found = Some(quoted.unwrap_or(value));
        } else if parameter.contains("charset") || parameter.contains(['"', '\\']) {
            return Charset::Other;
        }
    }
    match found {
        None => Charset::Utf8,
        Some(name) if UTF8.contains(&name) => Charset::Utf8,
        Some(name) if COMPATIBLE.iter().any(|start| name.starts_with(start)) => {
            Charset::AsciiCompatible
        }
        Some(_) => Charset::Other,
    }
}

/// Whether a response is a stream of events.
pub(crate) fn is_event_stream(headers: &HeaderMap) -> bool {
    const EVENTS: &[u8] = b"text/event-stream";
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes().trim_ascii_start());
    kind.and_then(|kind| kind.get(..EVENTS.len()))
        .is_some_and(|kind| kind.eq_ignore_ascii_case(EVENTS))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &'static str) -> MediaType {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(value));
        MediaType::read(&headers).unwrap()
    }

    #[test]
    fn only_json_whose_bytes_are_utf_8_is_plain() {
        for (value, is_plain) in [
            ("application/json", true),
            ("Application/JSON; Charset=\"UTF-8\"", true),
            ("application/json;charset=us-ascii", true),
            ("application/json; odata=verbose", true),
            ("application/json; charset=utf-7", false),
            ("application/json; charset = utf-7", false),
            ("application/json; charset=utf-16", false),
            ("application/json; charset=utf-8-imap", false),
            ("application/json; charset=iso-8859-1", false),
            ("application/json; charset=utf-8; charset=utf-7", false),
            ("application/json; charset*=utf-7''x", false),
            ("application/json; charset*0=utf-; charset*1=7", false),
            ("application/json; x=\"; charset=utf-7\"", false),
            ("application/json; x=\"a;charset=utf-8\"; charset=utf-7", false),
            ("application/json; charset='utf-8'", false),
            ("application/json; charset=\"utf-8", false),
            ("application/json; charset", false),
            ("application/json, application/json; charset=utf-7", false),
            ("application/jsonx", false),
            ("application/json-seq", false),
            ("application/vnd.api+json", false),
            ("text/plain", false),
            ("", false),
        ] {
            assert_eq!(read(value).is_plain_json(), is_plain, "{value}");
        }
    }

    #[test]
    fn two_headers_name_no_type_for_sure() {
        let mut headers = HeaderMap::new();
        headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.append(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-7"));
        assert!(!MediaType::read(&headers).unwrap().is_plain_json());
    }
}
