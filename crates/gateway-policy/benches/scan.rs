//! What judging a text costs.
//!
//! `cargo bench -p plimsoll-gateway-policy`. The target is 3 µs for an innocent English prompt of
//! 128 tokens, about 600 bytes.

use std::sync::Arc;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use plimsoll_gateway_policy::{Actions, Policy, Reading, Scrubber};

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

fn scan(bencher: Bencher<'_, '_>, text: &str, reading: Reading) {
    let (Ok(policy), actions) = (Policy::builtin(), Actions::default()) else { return };
    bencher
        .counter(BytesCount::of_str(text))
        .bench_local(|| policy.scan(black_box(text), reading, &actions).action);
}

#[divan::bench]
fn innocent_prompt(bencher: Bencher<'_, '_>) {
    scan(bencher, PROMPT, Reading::Text);
}

#[divan::bench]
fn innocent_prompt_with_typographic_quotes(bencher: Bencher<'_, '_>) {
    scan(bencher, &PROMPT.replace("do not", "don’t"), Reading::Text);
}

#[divan::bench]
fn innocent_query(bencher: Bencher<'_, '_>) {
    let text =
        "SELECT name, price FROM products WHERE category = 'books' AND price < 20 ORDER BY name";
    scan(bencher, text, Reading::Query);
}

#[divan::bench]
fn injection(bencher: Bencher<'_, '_>) {
    scan(bencher, "x' UNION SELECT username, password FROM users--", Reading::Query);
}

#[divan::bench]
fn scrub_a_body(bencher: Bencher<'_, '_>) {
    let Ok(policy) = Policy::builtin() else { return };
    let mut scrubber = Scrubber::new(Arc::new(policy));
    bencher.counter(BytesCount::of_str(PROMPT)).bench_local(|| {
        scrubber.feed(black_box(PROMPT.as_bytes())).len() + scrubber.finish().len()
    });
}
