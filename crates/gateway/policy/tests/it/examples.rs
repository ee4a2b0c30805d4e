//! The corpus: labelled example texts, also for the tests of the gateway.

use std::sync::OnceLock;

use plimsoll_gateway_policy::{Action, Category, InputKind};

/// One example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Example {
    /// Unique: a prefix for its group and a number.
    pub(crate) id: String,
    /// The category that it must match; None for a harmless text.
    pub(crate) category: Option<Category>,
    /// The expected action with the default `Actions`.
    pub(crate) expected: Action,
    /// Its role in the corpus.
    pub(crate) tag: Tag,
    /// The kind of the text.
    pub(crate) kind: InputKind,
    /// The text.
    pub(crate) text: String,
}

/// The role of an example in the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Tag {
    /// An ordinary example.
    Plain,
    /// A harmless text that looks harmful.
    Hard,
    /// An obfuscated harmful text. The share that is caught is reported, not required.
    Evasion,
    /// One of the scenarios of the policy suite.
    Suite,
}

const ACTIONS: [Action; 5] =
    [Action::Allow, Action::Log, Action::Warn, Action::Redact, Action::Block];

/// Columns: id, category or `normal`, expected action, tag, kind of input, text with escapes.
const TABLE: &str = include_str!("../../corpus/corpus.tsv");

/// All examples.
pub(crate) fn examples() -> &'static [Example] {
    static EXAMPLES: OnceLock<Vec<Example>> = OnceLock::new();
    EXAMPLES.get_or_init(|| TABLE.lines().skip(1).filter_map(example).collect())
}

/// Parses a line. Invalid lines are left out; a test compares the numbers.
fn example(line: &str) -> Option<Example> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [id, category, expected, label, kind, text] = *columns.as_slice() else { return None };
    Some(Example {
        id: id.to_owned(),
        category: Category::ALL.iter().copied().find(|known| <&str>::from(known) == category),
        expected: ACTIONS.into_iter().find(|known| <&str>::from(known) == expected)?,
        tag: tag(label)?,
        kind: if kind == "query" { InputKind::Query } else { InputKind::Text },
        text: unescape(text)?,
    })
}

fn tag(name: &str) -> Option<Tag> {
    match name {
        "plain" => Some(Tag::Plain),
        "hard" => Some(Tag::Hard),
        "evasion" => Some(Tag::Evasion),
        "suite" => Some(Tag::Suite),
        _ => None,
    }
}

/// `\n`, `\t`, `\\` and `\u{X}`.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next()? {
                'n' => '\n',
                't' => '\t',
                '\\' => '\\',
                'u' => {
                    let code: String =
                        characters.by_ref().skip(1).take_while(|c| *c != '}').collect();
                    char::from_u32(u32::from_str_radix(&code, 16).ok()?)?
                }
                _ => return None,
            },
            other => other,
        });
    }
    Some(plain)
}
