//! Texts with placeholders, for requests of the `http` protocol.

use plimsoll_measure::Rng;

use crate::error::TemplateFault;

/// A text with placeholders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Template(Vec<Segment>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Uuid,
    Seq,
    Turn,
    Random(u64),
    Prompt,
}

/// The values of the placeholders in one request.
#[derive(Debug)]
pub(crate) struct PlaceholderValues<'a> {
    /// The request's id, the same for every placeholder.
    pub(crate) uuid: &'a str,
    /// The conversation's number.
    pub(crate) seq: u64,
    /// The turn, from 0.
    pub(crate) turn: u16,
    /// Random numbers, a new one for every placeholder.
    pub(crate) rng: Rng,
    /// The text that the scenario's content gives.
    pub(crate) prompt: &'a str,
}

/// The encoding of a prompt for the part of the request that it is inserted into. The other
/// placeholders need none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromptEncoding {
    /// Percent-encoded, except unreserved characters (RFC 3986).
    Path,
    /// On one line.
    Header,
    /// Inside a JSON string.
    Json,
    /// Unchanged.
    Plain,
}

impl PromptEncoding {
    /// For a body: JSON if it begins like a JSON object or array.
    pub(crate) fn of_body(template: &str) -> Self {
        let start = template.trim_start();
        let json = start.starts_with(['{', '[']) && !start.starts_with("{{");
        if json { Self::Json } else { Self::Plain }
    }

    fn write(self, text: &str, out: &mut String) {
        match self {
            Self::Plain => out.push_str(text),
            Self::Header => out.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c })),
            Self::Path => text.bytes().for_each(|byte| percent_encode(byte, out)),
            Self::Json => {
                let quoted = serde_json::Value::from(text).to_string();
                out.push_str(&quoted[1..quoted.len() - 1]);
            }
        }
    }
}

/// A text as a part of a path.
pub(crate) fn percent_encoded(text: &str) -> String {
    let mut out = String::new();
    PromptEncoding::Path.write(text, &mut out);
    out
}

fn percent_encode(byte: u8, out: &mut String) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
        out.push(char::from(byte));
    } else {
        out.push('%');
        out.extend([byte >> 4, byte & 0xF].map(|nibble| char::from(DIGITS[usize::from(nibble)])));
    }
}

impl Template {
    pub(crate) fn parse(text: &str) -> Result<Self, TemplateFault> {
        let mut segments = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let opening = text.len() - after.len() - 2;
            let position = text[..opening].chars().count() + 1;
            let (name, tail) = after.split_once("}}").ok_or(TemplateFault::Open { position })?;
            segments.push(Segment::Literal(before.to_owned()));
            segments.push(
                placeholder(name.trim())
                    .ok_or_else(|| TemplateFault::Unknown { position, name: name.to_owned() })?,
            );
            rest = tail;
        }
        segments.push(Segment::Literal(rest.to_owned()));
        segments.retain(|segment| *segment != Segment::Literal(String::new()));
        Ok(Self(segments))
    }

    /// Whether the text has only fixed parts.
    pub(crate) fn is_fixed(&self) -> bool {
        self.0.iter().all(|segment| matches!(segment, Segment::Literal(_)))
    }

    /// Whether a placeholder inserts the content.
    pub(crate) fn has_prompt(&self) -> bool {
        self.0.contains(&Segment::Prompt)
    }

    pub(crate) fn fill(
        &self,
        values: &mut PlaceholderValues<'_>,
        encoding: PromptEncoding,
    ) -> String {
        let mut out = String::new();
        for segment in &self.0 {
            match segment {
                Segment::Literal(text) => out.push_str(text),
                Segment::Uuid => out.push_str(values.uuid),
                Segment::Seq => out.push_str(&values.seq.to_string()),
                Segment::Turn => out.push_str(&values.turn.to_string()),
                Segment::Random(bound) => out.push_str(&values.rng.below(*bound).to_string()),
                Segment::Prompt => encoding.write(values.prompt, &mut out),
            }
        }
        out
    }
}

fn placeholder(name: &str) -> Option<Segment> {
    match name {
        "uuid" => Some(Segment::Uuid),
        "seq" => Some(Segment::Seq),
        "turn" => Some(Segment::Turn),
        "prompt" => Some(Segment::Prompt),
        "open" => Some(Segment::Literal("{{".to_owned())),
        _ => {
            let bound = name.strip_prefix("random ")?.trim().parse().ok()?;
            (bound > 0).then_some(Segment::Random(bound))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Seed;
    use proptest::prelude::*;

    fn fill(template: &str, prompt: &str, encoding: PromptEncoding) -> String {
        let rng = Seed(1).rng("test", 0);
        let mut values = PlaceholderValues { uuid: "U", seq: 7, turn: 2, rng, prompt };
        Template::parse(template).unwrap().fill(&mut values, encoding)
    }

    #[test]
    fn placeholders_are_replaced_and_everything_else_stays() {
        for (template, filled) in [
            ("", ""),
            ("/plain?x={y}", "/plain?x={y}"),
            ("/u/{{uuid}}/{{seq}}-{{turn}}", "/u/U/7-2"),
            ("{{ uuid }}{{uuid}}", "UU"),
            ("a {{open}}b}}", "a {{b}}"),
            ("{\"a\":{\"b\":\"{{prompt}}\"}}", "{\"a\":{\"b\":\"hi\"}}"),
            ("{{random 1}}", "0"),
            ("}} closed before", "}} closed before"),
        ] {
            assert_eq!(fill(template, "hi", PromptEncoding::Plain), filled, "{template}");
        }
    }

    #[test]
    fn random_numbers_are_below_their_bound_and_differ_between_placeholders() {
        let filled = fill("{{random 1000000}} {{random 1000000}}", "", PromptEncoding::Plain);
        let (one, other) = filled.split_once(' ').unwrap();
        assert_ne!(one, other);
        assert!(
            one.parse::<u32>().unwrap() < 1_000_000 && other.parse::<u32>().unwrap() < 1_000_000
        );
    }

    #[test]
    fn prompts_are_encoded_for_the_part_they_are_inserted_into() {
        let prompt = "a \"b\"\r\n\u{e4}/%";
        for (encoding, written) in [
            (PromptEncoding::Plain, "a \"b\"\r\n\u{e4}/%"),
            (PromptEncoding::Header, "a \"b\"  \u{e4}/%"),
            (PromptEncoding::Path, "a%20%22b%22%0D%0A%C3%A4%2F%25"),
            (PromptEncoding::Json, "a \\\"b\\\"\\r\\n\u{e4}/%"),
        ] {
            assert_eq!(fill("{{prompt}}", prompt, encoding), written, "{encoding:?}");
        }
    }

    #[test]
    fn bodies_that_begin_like_json_are_json() {
        for (body, encoding) in [
            ("{\"q\": \"{{prompt}}\"}", PromptEncoding::Json),
            (" [\"{{prompt}}\"]", PromptEncoding::Json),
            ("{{prompt}}", PromptEncoding::Plain),
            ("q={{prompt}}", PromptEncoding::Plain),
        ] {
            assert_eq!(PromptEncoding::of_body(body), encoding, "{body}");
        }
    }

    #[test]
    fn unknown_placeholders_are_refused_with_their_position() {
        let unknown =
            |position, name: &str| TemplateFault::Unknown { position, name: name.to_owned() };
        for (template, fault) in [
            ("/{{user}}", unknown(2, "user")),
            ("\u{e4}{{uuid}}{{}}", unknown(10, "")),
            ("{{random}}", unknown(1, "random")),
            ("{{random 0}}", unknown(1, "random 0")),
            ("{{random -1}}", unknown(1, "random -1")),
            ("{{uuid}} {{seq", TemplateFault::Open { position: 10 }),
        ] {
            assert_eq!(Template::parse(template).unwrap_err(), fault, "{template}");
        }
        let message = unknown(2, "user").to_string();
        assert!(
            message.starts_with("`{{user}}` at character 2 is not a placeholder: write {{uuid}}")
        );
    }

    proptest! {
        #[test]
        fn any_prompt_leaves_a_json_body_valid(prompt in "\\PC*|[\\x00-\\x20\"\\\\]*") {
            let body = "{\"query\": \"{{prompt}}\"}";
            let filled = fill(body, &prompt, PromptEncoding::of_body(body));
            let read: serde_json::Value = serde_json::from_str(&filled).unwrap();
            prop_assert_eq!(read["query"].as_str().unwrap(), prompt);
        }

        #[test]
        fn any_text_is_a_template_or_refused(text in "[a-z{} ]{0,30}") {
            if let Ok(template) = Template::parse(&text) {
                prop_assert_eq!(template.is_fixed(), !text.contains("{{"));
            }
        }
    }
}
