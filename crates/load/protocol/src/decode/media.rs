//! Content types, as far as they decide how a body is read.

/// The kinds of body that dialects promise.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Media {
    /// `text/event-stream`.
    Events,
    /// `application/json`, or a type that ends in `+json`.
    Json,
    /// Anything else.
    Other,
}

impl Media {
    /// The kind that a `content-type` header names; its parameters do not matter.
    pub(super) fn of(content_type: &str) -> Self {
        match content_type {
            "application/json" => Self::Json,
            "text/event-stream" => Self::Events,
            other => Self::of_spelled(other),
        }
    }

    /// The same where it has parameters, or is written in another case.
    fn of_spelled(content_type: &str) -> Self {
        let essence = content_type.split(';').next().unwrap_or_default().trim();
        let suffix = essence.len().checked_sub("+json".len()).and_then(|at| essence.get(at..));
        if essence.eq_ignore_ascii_case("text/event-stream") {
            Self::Events
        } else if essence.eq_ignore_ascii_case("application/json")
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
    fn the_essence_decides_and_neither_case_nor_parameters_matter() {
        for (content_type, media) in [
            ("text/event-stream", Media::Events),
            ("Text/Event-Stream; charset=utf-8", Media::Events),
            ("application/json", Media::Json),
            (" APPLICATION/JSON ;charset=utf-8", Media::Json),
            ("application/problem+json", Media::Json),
            ("text/html", Media::Other),
            ("application/jsonl", Media::Other),
            ("text/plain; note=application/json", Media::Other),
            ("", Media::Other),
            ("ü+jso", Media::Other),
        ] {
            assert_eq!(Media::of(content_type), media, "{content_type}");
        }
    }
}
