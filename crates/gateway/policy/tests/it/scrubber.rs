//! The scrubbers and scans with any input: no panic, ranges on character boundaries, and the same
//! output for any chunks.

use std::sync::{Arc, LazyLock};

use plimsoll_gateway_policy::{
    Action, Actions, InputKind, MASK, Policy, Redaction, Scrubber, TextScanner,
};
use proptest::prelude::*;

use super::examples::examples;

#[expect(clippy::unwrap_used, reason = "rules that do not load fail every test")]
static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(Policy::builtin().unwrap()));

fn scrub(bytes: &[u8], sizes: &[usize]) -> Vec<u8> {
    let mut scrubber = Scrubber::new(Arc::clone(&POLICY));
    let (mut rest, mut output) = (bytes, Vec::new());
    let mut sizes = sizes.iter().cycle();
    while !rest.is_empty() {
        let size = sizes.next().map_or(rest.len(), |size| (*size).clamp(1, rest.len()));
        let (chunk, after) = rest.split_at(size);
        output.extend_from_slice(&scrubber.feed(chunk));
        rest = after;
    }
    output.extend_from_slice(&scrubber.finish());
    output
}

#[expect(clippy::unwrap_used, reason = "output that is not UTF-8 fails the test")]
fn whole(text: &str) -> String {
    String::from_utf8(scrub(text.as_bytes(), &[])).unwrap()
}

/// Texts of the property tests.
fn pieces() -> impl Strategy<Value = String> {
    let words = prop::sample::select(vec![
        "ann@example.com",
        "4111 1111 1111 1111",
        "+49 30 901820",
        "DE89 3704 0044 0532 0130 00",
        "date of birth: ",
        "12/03/1980",
        "536-90-4399",
        "hello",
        "é",
        "日本",
        "\\n",
        "\\u00e9",
        "\"",
        " ",
        ", ",
        "\n\n",
        "data: {",
        "}",
        ":",
        "12",
        "(",
        ")",
        "ID",
        "passport no ",
        "X1234567",
        "\u{1f600}",
        "a%2f&amp;",
        "/**/",
    ]);
    prop::collection::vec(
        prop_oneof![4 => words.prop_map(str::to_owned), 1 => any::<String>()],
        0..24,
    )
    .prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn parts_do_not_change_what_the_text_scanner_finds(text in pieces(), sizes in prop::collection::vec(1_usize..9, 1..9)) {
        let mut parts = Vec::new();
        let (mut rest, mut sizes) = (text.as_str(), sizes.iter().cycle());
        while !rest.is_empty() {
            let size = rest.ceil_char_boundary(sizes.next().map_or(1, |size| *size).min(rest.len()));
            parts.push(&rest[..size]);
            rest = &rest[size..];
        }
        prop_assert_eq!(scanned(&parts), scanned(&[&text]));
    }

    #[test]
    fn chunk_boundaries_do_not_change_the_output(text in pieces(), sizes in prop::collection::vec(1_usize..9, 1..9)) {
        prop_assert_eq!(scrub(text.as_bytes(), &sizes), scrub(text.as_bytes(), &[]));
        prop_assert_eq!(scrub(text.as_bytes(), &[1]), scrub(text.as_bytes(), &[]));
    }

    #[test]
    fn chunk_boundaries_in_any_bytes_do_not_change_the_output(bytes in prop::collection::vec(any::<u8>(), 0..600), sizes in prop::collection::vec(1_usize..40, 1..9)) {
        prop_assert_eq!(scrub(&bytes, &sizes), scrub(&bytes, &[]));
    }

    #[test]
    fn released_text_ends_on_character_boundaries(text in pieces()) {
        let mut scrubber = Scrubber::new(Arc::clone(&POLICY));
        for byte in text.as_bytes() {
            prop_assert!(std::str::from_utf8(&scrubber.feed(&[*byte])).is_ok());
        }
        prop_assert!(String::from_utf8(scrubber.finish()).is_ok());
    }

    #[test]
    fn match_ranges_are_on_character_boundaries_and_in_order(text in prop_oneof![pieces(), any::<String>()]) {
        for kind in [InputKind::Query, InputKind::Text] {
            let decision = POLICY.scan(&text, kind, &Actions::all(Action::Redact));
            for found in &decision.matches {
                prop_assert!(text.get(found.range.clone()).is_some_and(|part| !part.is_empty()));
            }
            prop_assert!(decision.matches.is_sorted_by_key(|found| found.range.start));
            prop_assert_eq!(decision.matches.is_empty(), decision.text == text || text.contains(MASK));
        }
    }
}

#[test]
fn texts_without_personal_data_pass_byte_for_byte() {
    for example in examples().iter().filter(|example| example.category.is_none()) {
        assert_eq!(whole(&example.text), example.text, "{}", example.id);
    }
}

/// A byte that only starts a character is one byte of the input, also where a whole character
/// follows.
#[test]
fn started_characters_do_not_move_what_is_redacted() {
    let text = b"\xf4v \xe7\xefx, ann@example.com \xf4";
    for size in 1..=text.len() {
        assert_eq!(
            scrub(text, &[size]),
            b"\xf4v \xe7\xefx, [REDACTED] \xf4",
            "in chunks of {size}"
        );
    }
}

#[test]
fn values_are_redacted_across_chunk_boundaries() {
    let rows = [
        ("write to ann@example.com now", "write to [REDACTED] now"),
        ("card 4111 1111 1111 1111.", "card [REDACTED]."),
        ("DOB: 12/03/1980!", "DOB: [REDACTED]!"),
        ("a@b.de, c@d.org", "[REDACTED], [REDACTED]"),
        (r#"{"a":4111111111111111}"#, r#"{"a":0}"#),
        (r#"{"a":"x\nann@example.com"}"#, r#"{"a":"x\n[REDACTED]"}"#),
        (r#"{"a":"ann\u0040example.com"}"#, r#"{"a":"[REDACTED]"}"#),
        ("data: {\"t\":\"ssn 536-90-4399\"}\n\n", "data: {\"t\":\"ssn [REDACTED]\"}\n\n"),
        ("IBAN DE89 3704 0044 0532 0130 00 please", "IBAN [REDACTED] please"),
    ];
    for (text, expected) in rows {
        for size in 1..=text.len() {
            let output = scrub(text.as_bytes(), &[size]);
            assert_eq!(String::from_utf8(output).unwrap(), expected, "in chunks of {size}");
        }
    }
}

/// The text with what the scanner found in its parts replaced.
fn scanned(parts: &[&str]) -> String {
    let mut scanner = TextScanner::new(Arc::clone(&POLICY), false);
    let mut found = Vec::new();
    for part in parts {
        scanner.feed(part, &mut found);
        assert!(scanner.decided() <= scanner.fed());
    }
    scanner.finish(&mut found);
    replaced(&parts.concat(), &found)
}

fn replaced(text: &str, found: &[Redaction]) -> String {
    let mut text = text.to_owned();
    for place in found.iter().rev() {
        let [start, end] = [place.range.start, place.range.end]
            .map(|at| usize::try_from(at).unwrap_or(usize::MAX));
        text.replace_range(start..end, place.mask);
    }
    text
}

#[test]
fn the_text_scanner_finds_values_that_are_split_over_parts() {
    let parts = ["My mail is an", "n@exam", "ple.com, and", " my card 4111 11", "11 1111 1111."];
    assert_eq!(scanned(&parts), "My mail is [REDACTED], and my card [REDACTED].");
    let text = "write to ann@example.com or 4111 1111 1111 1111, DOB: 12/03/1980 now";
    for at in 0..=text.len() {
        let (before, after) = text.split_at(at);
        assert_eq!(scanned(&[before, after]), whole(text), "split at {at}");
    }
}

/// However it is written, and wherever the text is cut.
#[test]
fn values_in_other_characters_are_found_in_a_stream() {
    for (text, expected) in [
        ("mail ann\u{ff20}example.com now", "mail [REDACTED] now"),
        ("mail ann@ex\u{200b}ample.com now", "mail [REDACTED] now"),
        ("mail ann%40example.com now", "mail [REDACTED] now"),
        ("mail ann%2540example%2Ecom now", "mail [REDACTED] now"),
        ("mail ann@m\u{fc}ller.de now", "mail [REDACTED] now"),
        (
            "mail ann@\u{43f}\u{440}\u{438}\u{43c}\u{435}\u{440}.\u{440}\u{444} now",
            "mail [REDACTED] now",
        ),
        ("card \u{ff14}111\u{a0}1111\u{2009}1111\u{202f}1111.", "card [REDACTED]."),
        ("card 4111\u{2011}1111\u{2013}1111\u{2212}1111.", "card [REDACTED]."),
        ("card 4111%201111%201111%201111.", "card [REDACTED]."),
        ("card 4111  1111  1111  1111 and", "card [REDACTED] and"),
        ("card 4111.1111.1111.1111 and", "card [REDACTED] and"),
        ("call +49\u{a0}30\u{a0}901820, please", "call [REDACTED], please"),
        ("call \u{ff0b}49 30 901820, please", "call [REDACTED], please"),
        ("call 0049 30 901820, please", "call [REDACTED], please"),
        ("ssn 536\u{2011}90\u{2011}4399 ok", "ssn [REDACTED] ok"),
        ("100 % of 5 % are 40%, \u{e9}t\u{e9}", "100 % of 5 % are 40%, \u{e9}t\u{e9}"),
        (
            "\u{65e5}\u{672c}\u{8a9e}@\u{65e5}\u{672c}\u{8a9e}",
            "\u{65e5}\u{672c}\u{8a9e}@\u{65e5}\u{672c}\u{8a9e}",
        ),
    ] {
        assert_eq!(scanned(&[text]), expected);
        for (at, _) in text.char_indices() {
            let (before, after) = text.split_at(at);
            assert_eq!(scanned(&[before, after]), expected, "split at {at}");
        }
    }
}

#[test]
fn escapes_in_a_stream_of_json_are_read() {
    let text = r#"{"to":"ann\u0040example.com\n","card":"\u0034111 1111 1111 1111"}"#;
    let masked = r#"{"to":"[REDACTED]\n","card":"[REDACTED]"}"#;
    for at in 0..=text.len() {
        let mut scanner = TextScanner::new(Arc::clone(&POLICY), true);
        let mut found = Vec::new();
        let (before, after) = text.split_at(at);
        scanner.feed(before, &mut found);
        scanner.feed(after, &mut found);
        scanner.finish(&mut found);
        assert_eq!(replaced(text, &found), masked, "split at {at}");
    }
}

#[test]
fn a_part_is_decided_when_its_segment_has_ended() {
    let mut scanner = TextScanner::new(Arc::clone(&POLICY), false);
    let mut found = Vec::new();
    let rows = [("Hello ", 6), ("an", 6), ("n@example.com", 6), (", bye", 23), (" ", 27)];
    for (part, decided) in rows {
        scanner.feed(part, &mut found);
        assert_eq!(scanner.decided(), decided, "{part}");
    }
    assert_eq!(found.len(), 1);
}

#[test]
fn a_complete_frame_leaves_with_its_chunk() {
    let mut scrubber = Scrubber::new(Arc::clone(&POLICY));
    let frame = b"data: {\"delta\":\"hello 12 and\"}\n\n";
    assert_eq!(scrubber.feed(frame), frame);
    let bytes = vec![b'x'; 10_000];
    let passed = scrubber.feed(&bytes).len();
    assert!(passed >= 10_000 - 256, "{passed}");
}

#[test]
fn every_match_is_redacted() {
    let decision =
        POLICY.scan("a@b.de and c@d.org and e@f.net", InputKind::Text, &Actions::default());
    assert_eq!(decision.text, "[REDACTED] and [REDACTED] and [REDACTED]");
    assert_eq!(decision.matches.len(), 3);
}
