//! Documents and files inside a text: JSON in a string, `data:` URLs, base64.

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// The maximum nesting of documents. Servers do not decode more.
pub(crate) const MAX_NESTING: usize = 4;

/// The bytes that a URL does not have unescaped (RFC 3986, 2.3).
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Base64 with or without padding, as lenient readers take it.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Whether a text may be a JSON document: the arguments of a tool.
pub(crate) fn may_be_document(text: &str) -> bool {
    matches!(text.trim_ascii_start().as_bytes().first(), Some(b'{' | b'['))
}

/// Whether a text is a `data:` URL.
pub(crate) fn is_data_url(text: &str) -> bool {
    text.trim_ascii_start().get(..5).is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

/// The content of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum File {
    /// Text in UTF-8.
    Text(String),
    /// Anything else.
    Bytes,
}

/// A `data:` URL.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct DataUrl<'a> {
    /// The type without its parameters, in lower case.
    pub(crate) media_type: String,
    /// Everything before the content.
    pub(crate) head: &'a str,
    pub(crate) base64: bool,
    pub(crate) content: &'a str,
}

impl<'a> DataUrl<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        if !is_data_url(text) {
            return None;
        }
        let start = text.find(':')? + 1;
        let (head, content) = text.split_at(text.find(',').map_or(text.len(), |comma| comma + 1));
        let parameters = head.get(start..).unwrap_or_default().trim_end_matches(',');
        let parameters = parameters.to_ascii_lowercase();
        let base64 = parameters.split(';').any(|part| part.trim() == "base64");
        let named = parameters.split(';').next().unwrap_or_default().trim();
        let media_type = if named.is_empty() { "text/plain" } else { named }.to_owned();
        Some(Self { media_type, head, base64, content })
    }

    /// The content, decoded.
    pub(crate) fn file(&self) -> File {
        if self.base64 {
            from_base64(self.content)
        } else {
            text_file(percent_decode_str(self.content).collect())
        }
    }

    /// The URL with another content.
    pub(crate) fn with(&self, content: &str) -> String {
        if self.base64 {
            return [self.head, &to_base64(content)].concat();
        }
        let content = utf8_percent_encode(content, RESERVED).to_string();
        [self.head, &content].concat()
    }
}

/// The content of base64, of either alphabet and with white space; bytes if it is not base64.
pub(crate) fn from_base64(text: &str) -> File {
    let bytes = text.as_bytes().iter().filter(|byte| !byte.is_ascii_whitespace());
    let bytes: Vec<u8> = bytes
        .map(|byte: &u8| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => *other,
        })
        .collect();
    LENIENT.decode(bytes).map_or(File::Bytes, text_file)
}

/// A text in UTF-8, or in UTF-16 with a byte order mark or an ASCII first letter.
fn text_file(bytes: Vec<u8>) -> File {
    let is_even = bytes.len().is_multiple_of(2);
    let text = match bytes.as_slice() {
        [0xff, 0xfe, units @ ..] if is_even => from_utf16(units, u16::from_le_bytes),
        [0xfe, 0xff, units @ ..] if is_even => from_utf16(units, u16::from_be_bytes),
        units @ [_, 0, ..] if is_even => from_utf16(units, u16::from_le_bytes),
        units @ [0, ..] if is_even => from_utf16(units, u16::from_be_bytes),
        _ => String::from_utf8(bytes).ok(),
    };
    text.map_or(File::Bytes, File::Text)
}

fn from_utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let units = bytes.as_chunks().0.iter().map(|bytes| unit(*bytes));
    char::decode_utf16(units).collect::<Result<_, _>>().ok()
}

/// Whether a text consists of base64 only.
pub(crate) fn is_base64(text: &str) -> bool {
    text.bytes().all(|byte: u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'+' | b'/' | b'-' | b'_' | b'=' | b'\r' | b'\n')
    })
}

/// The base64 of a text.
pub(crate) fn to_base64(text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_urls_are_decoded_and_written_again() {
        let rows = [
            ("data:text/plain;base64,aGkgeW91", "text/plain", Some("hi you")),
            ("DATA:text/Plain;charset=utf-8;BASE64,aGkgeW91", "text/plain", Some("hi you")),
            ("data:,hi%20you", "text/plain", Some("hi you")),
            (" data:application/json,{}", "application/json", Some("{}")),
            ("data:text/plain;base64,aGk", "text/plain", Some("hi")),
            ("data:image/png;base64,iVBORw0KGgo=", "image/png", None),
            ("data:text/plain", "text/plain", Some("")),
        ];
        for (text, media_type, content) in rows {
            let url = DataUrl::parse(text).unwrap();
            assert_eq!(url.media_type, media_type, "{text}");
            let expected = content.map_or(File::Bytes, |text| File::Text(text.to_owned()));
            assert_eq!(url.file(), expected, "{text}");
        }
        for text in ["data:text/plain;base64,aGk=", "data:,hi%20you"] {
            let url = DataUrl::parse(text).unwrap();
            let File::Text(content) = url.file() else { panic!() };
            assert_eq!(url.with(&content), text);
        }
        assert_eq!(DataUrl::parse("dated: x"), None);
    }

    #[test]
    fn both_alphabets_are_read() {
        assert_eq!(from_base64("Pz8_"), from_base64("Pz8/"));
        assert_eq!(from_base64("aG\nk="), File::Text("hi".to_owned()));
        assert_eq!(from_base64("not base64!"), File::Bytes);
    }

    #[test]
    fn utf_16_is_text() {
        for (base64, content) in [
            ("//5oAGkA", File::Text("hi".to_owned())),
            ("/v8AaABp", File::Text("hi".to_owned())),
            ("aABpAA==", File::Text("hi".to_owned())),
            ("AGgAaQ==", File::Text("hi".to_owned())),
            ("/v/YAABp", File::Bytes),
        ] {
            assert_eq!(from_base64(base64), content, "{base64}");
        }
    }
}
