//! Whole answers: what a client would see.

use plimsoll_gateway_inspect::Source;
use serde_json::Value;

use super::forms::{ANSWERS, cases, fill, scrub};

pub(crate) const CARD: &str = "call 4111 1111 1111 1111 now";
pub(crate) const MAIL: &str = "write to ann.b@example.com now";
/// The same shape and length, and no card: the check digit is wrong.
pub(crate) const NO_CARD: &str = "call 4111 1111 1111 1112 now";
pub(crate) const NO_MAIL: &str = "write to ann.b(example)com now";

#[test]
fn a_value_is_redacted_wherever_a_client_would_see_it() {
    let inspector = scrub();
    let mut count = 0;
    for (name, template) in cases(ANSWERS) {
        for (text, from, to) in [(CARD, 6, 23), (MAIL, 10, 25)] {
            if template.contains("{number}") && text == MAIL {
                continue;
            }
            for cut in from..to {
                let answer = fill(template, text, cut);
                let judgement = inspector.document(&answer, Source::Protocol).unwrap();
                let redacted = judgement.document.unwrap_or_else(|| panic!("{name}: {answer}"));
                for line in redacted.lines() {
                    serde_json::from_str::<Value>(line).unwrap();
                }
                let again = inspector.document(&redacted, Source::Protocol).unwrap();
                assert_eq!(again.matches, [], "{name}, cut at {cut}: {redacted}");
                assert!(!redacted.contains("1111") && !redacted.contains("example.com"), "{name}");
            }
        }
        count += 1;
    }
    assert!(count >= 25, "{count}");
}

#[test]
fn harmless_neighbours_pass_byte_for_byte() {
    let inspector = scrub();
    for (name, template) in cases(ANSWERS) {
        for text in [NO_CARD, NO_MAIL] {
            if template.contains("{number}") && text == NO_MAIL {
                continue;
            }
            for cut in 1..text.len() {
                let answer = fill(template, text, cut);
                let judgement = inspector.document(&answer, Source::Protocol).unwrap();
                assert_eq!(judgement.document, None, "{name}, cut at {cut}: {judgement:?}");
            }
        }
    }
}

#[test]
fn the_bytes_and_alternatives_of_a_redacted_token_go_with_it() {
    let answer = r#"{"choices":[{"logprobs":{"content":[
{"token":"41","bytes":[52,49],"top_logprobs":[{"token":"41","bytes":[52,49]},{"token":"x"}]},
{"token":"11 1111 1111 1111","bytes":[49],"top_logprobs":[]},{"token":".","bytes":[46]}]}}]}"#;
    let judgement = scrub().document(answer, Source::Protocol).unwrap();
    let expected = r#"{"choices":[{"logprobs":{"content":[
{"token":"[REDACTED]","bytes":null,"top_logprobs":[]},
{"token":"","bytes":null,"top_logprobs":[]},{"token":".","bytes":[46]}]}}]}"#;
    assert_eq!(judgement.document.as_deref(), Some(expected));
}
