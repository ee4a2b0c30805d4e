//! Content types, as far as they determine how a body is decoded.

/// The kind of body that a `content-type` header declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ContentType {
    /// `text/event-stream`.
    Events,
    /// `application/json`, or a type that ends in `+json`.
    Json,
    /// Anything else.
    Other,
}

impl ContentType {
    /// Parses a `content-type` header. Parameters are ignored.
    pub(super) fn parse(content_type: &[u8]) -> Self {
        match content_type {
            b"application/json" => Self::Json,
            b"text/event-stream" => Self::Events,
            other => Self::parse_slow(str::from_utf8(other).unwrap_or_default()),
        }
    }

    /// The slow path: a type with parameters or in another case.
    fn parse_slow(content_type: &str) -> Self {
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        let suffix =
            media_type.len().checked_sub("+json".len()).and_then(|at| media_type.get(at..));
        if media_type.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else if media_type.eq_ignore_ascii_case("application/json")
            || suffix.is_some_and(|suffix| suffix.eq_ignore_ascii_case("+json"))
        {
            Self::Json
        } else {
            Self::Other
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_parameters_do_not_matter() {
        for (content_type, expected) in [
            ("text/event-stream", ContentType::Events),
            ("Text/Event-Stream; charset=utf-8", ContentType::Events),
            ("application/json", ContentType::Json),
            (" APPLICATION/JSON ;charset=utf-8", ContentType::Json),
            ("application/problem+json", ContentType::Json),
            ("text/html", ContentType::Other),
            ("application/jsonl", ContentType::Other),
            ("text/plain; note=application/json", ContentType::Other),
            ("", ContentType::Other),
            ("ü+jso", ContentType::Other),
        ] {
            assert_eq!(ContentType::parse(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}
