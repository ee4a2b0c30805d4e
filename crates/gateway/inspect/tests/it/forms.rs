//! The cases of the corpus, with a text put into them.

use std::sync::{Arc, LazyLock};

use base64::Engine as _;
use plimsoll_gateway_inspect::{FileRule, Inspector};
use plimsoll_gateway_policy::{Actions, Policy};

static POLICY: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(Policy::builtin().unwrap()));

pub(crate) const REQUESTS: &str = include_str!("../../corpus/requests.txt");
pub(crate) const ANSWERS: &str = include_str!("../../corpus/answers.txt");
pub(crate) const STREAMS: &str = include_str!("../../corpus/streams.txt");

/// As on requests.
pub(crate) fn policy() -> Inspector {
    Inspector::new(Arc::clone(&POLICY), Actions::default(), FileRule::default())
}

/// As on answers.
pub(crate) fn scrub() -> Inspector {
    Inspector::personal_data(Arc::clone(&POLICY), FileRule::default())
}

/// The cases of a file of the corpus: name and template.
pub(crate) fn cases(file: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    file.split("\n== ").skip(1).map(|case| {
        let (name, template) = case.split_once('\n').unwrap();
        (name, template.trim_end())
    })
}

/// A template with a text in all its forms; `cut` is where it is split inside a word.
pub(crate) fn fill(template: &str, text: &str, cut: usize) -> String {
    let (head, tail) = text.split_at(cut);
    let space = text[..text.len() / 2].rfind(' ').unwrap_or(0);
    let (first, rest) = (&text[..space], &text[space + 1..]);
    let words: Vec<&str> = text.trim_end_matches('.').split(' ').collect();
    let escape = |text: &str| -> String {
        text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect()
    };
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let forms = [
        ("{text}", text.to_owned()),
        ("{head}", head.to_owned()),
        ("{tail}", tail.to_owned()),
        ("{first}", first.to_owned()),
        ("{rest}", rest.to_owned()),
        ("{snake}", words.join("_").to_lowercase()),
        ("{kebab}", words.join("-").to_lowercase()),
        (
            "{camel}",
            words.iter().map(|word: &&str| word[..1].to_uppercase() + &word[1..]).collect(),
        ),
        ("{base64}", base64::engine::general_purpose::STANDARD.encode(text)),
        ("{percent}", text.bytes().map(|byte| format!("%{byte:02x}")).collect()),
        ("{inner}", escape(text).replace('\\', "\\\\")),
        ("{unicode}", escape(text)),
        ("{number}", digits),
    ];
    forms.iter().fold(template.to_owned(), |filled, (name, form)| filled.replace(name, form))
}
