//! The cost of scanning a text.
//!
//! `cargo bench -p plimsoll-gateway-policy`. The target is 5 µs for a harmless English prompt of
//! 128 tokens, about 600 bytes.

use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use plimsoll_gateway_policy::{Action, Actions, InputKind, Policy, Scrubber};

fn main() {
    divan::main();
}

const PROMPT: &str = "I am planning a small dinner for six friends next Saturday and would like some \
help with the menu. Two of my guests do not eat meat, one is allergic to nuts, and the others are \
happy with anything as long as it is not too spicy. Could you suggest a starter, a main course and \
a dessert that can mostly be prepared the day before, so that I can spend the evening at the table \
and not in the kitchen? Please also tell me which wine would go well with the main course, how much \
of everything I should buy, and in which order I should cook things on Friday. A short list for \
shopping at the end would be wonderful, thank you.";

fn scan(bencher: Bencher<'_, '_>, text: &str, kind: InputKind) {
    let (Ok(policy), actions) = (Policy::builtin(), Actions::default()) else { return };
    bencher
        .counter(BytesCount::of_str(text))
        .bench_local(|| policy.scan(black_box(text), kind, &actions).action);
}

#[divan::bench]
fn harmless_prompt(bencher: Bencher<'_, '_>) {
    scan(bencher, PROMPT, InputKind::Text);
}

#[divan::bench]
fn harmless_prompt_with_typographic_quotes(bencher: Bencher<'_, '_>) {
    scan(bencher, &PROMPT.replace("do not", "don’t"), InputKind::Text);
}

#[divan::bench]
fn harmless_query(bencher: Bencher<'_, '_>) {
    let text =
        "SELECT name, price FROM products WHERE category = 'books' AND price < 20 ORDER BY name";
    scan(bencher, text, InputKind::Query);
}

#[divan::bench]
fn injection(bencher: Bencher<'_, '_>) {
    scan(bencher, "x' UNION SELECT username, password FROM users--", InputKind::Query);
}

#[divan::bench]
fn scrub_a_body(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::builtin() else { return };
    let mut scrubber = Scrubber::new(Arc::new(policy));
    bencher.counter(BytesCount::of_str(PROMPT)).bench_local(|| {
        scrubber.feed(black_box(PROMPT.as_bytes())).len() + scrubber.finish().len()
    });
}

/// Words as load tests send them: lower-case English words in random order.
fn words(bytes: usize) -> String {
    let own: Vec<&str> = PROMPT.split(' ').collect();
    let mut state = 1_usize;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let word = own.get((state >> 33) % own.len()).copied().unwrap_or_default();
        text.extend(word.chars().filter(char::is_ascii_alphabetic).map(|c| c.to_ascii_lowercase()));
        text.push(' ');
    }
    text
}

/// 128 and 12,500 tokens.
#[divan::bench(args = [600, 60_000])]
fn synthetic_words(bencher: Bencher<'_, '_>, bytes: usize) {
    scan(bencher, &words(bytes), InputKind::Text);
}

/// 100 kB of the most expensive texts: time must stay linear.
#[divan::bench(args = ["1", "'", "/*", "' or ", "union select ", "a@b.", "%25", "ignore previous ", "(", "1 "])]
fn hostile(bencher: Bencher<'_, '_>, piece: &str) {
    scan(bencher, &piece.repeat(100_000 / piece.len()), InputKind::Query);
}

/// A tenth of the length of [`hostile`], to check the growth.
#[divan::bench(args = ["1", "'", "/*", "' or ", "union select ", "a@b.", "%25", "ignore previous ", "(", "1 "])]
fn hostile_tenth(bencher: Bencher<'_, '_>, piece: &str) {
    scan(bencher, &piece.repeat(10_000 / piece.len()), InputKind::Query);
}

#[divan::bench]
fn scrub_frames(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::builtin() else { return };
    let mut scrubber = Scrubber::new(Arc::new(policy));
    let frame = "data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":\
[{\"index\":0,\"delta\":{\"content\":\" dinner\"},\"finish_reason\":null}]}\n\n";
    let body = frame.repeat(100);
    bencher
        .counter(BytesCount::of_str(&body))
        .bench_local(|| scrubber.feed(black_box(body.as_bytes())).len() + scrubber.finish().len());
}

/// A response text whose word contains `or`.
#[divan::bench]
fn one_word(bencher: Bencher<'_, '_>) {
    scan(bencher, &"word ".repeat(128), InputKind::Text);
}

/// The scan of a whole response: only the rules for personal data apply.
#[divan::bench]
fn scrub_a_text(bencher: Bencher<'_, '_>) {
    let actions = Actions { pii: Action::Redact, ..Actions::all(Action::Allow) };
    let Ok(policy) = Policy::builtin() else { return };
    bencher
        .counter(BytesCount::of_str(PROMPT))
        .bench_local(|| policy.scan(black_box(PROMPT), InputKind::Text, &actions).action);
}

/// The same with a date, a price and a version, as in many responses.
#[divan::bench]
fn harmless_prompt_with_numbers(bencher: Bencher<'_, '_>) {
    let text = PROMPT.replace("six", "6").replace("Saturday", "12 June 2026 at 19:30");
    scan(bencher, &text.replace("afternoon", "2.5.1 for 24.90"), InputKind::Text);
}
