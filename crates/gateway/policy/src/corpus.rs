//! Examples of our own with the judgement that each must get, to be replayed through a gateway.

use std::sync::OnceLock;

use crate::action::Action;
use crate::category::{Category, Reading};

/// One example.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Unique: the first word of its kind and a number.
    pub id: String,
    /// What is in it; none for a harmless text.
    pub category: Option<Category>,
    /// The action it must get with the default [`Actions`](crate::Actions).
    pub expected: Action,
    /// Why it is here.
    pub tag: Tag,
    /// How it is read.
    pub reading: Reading,
    /// The text.
    pub text: String,
}

/// Why an example is in the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tag {
    /// An ordinary example.
    Plain,
    /// A harmless text which looks harmful.
    Hard,
    /// A harmful text in disguise: the share that is caught is reported, not required.
    Evasion,
    /// One of the scenarios of the policy suite.
    Suite,
}

/// Columns: id, category or `normal`, expected action, tag, reading, text with escapes.
const TABLE: &str = include_str!("../corpus/corpus.tsv");

/// All examples.
pub fn entries() -> &'static [Entry] {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    ENTRIES.get_or_init(|| TABLE.lines().skip(1).filter_map(entry).collect())
}

/// A line that is not understood is left out; a test compares the numbers.
fn entry(line: &str) -> Option<Entry> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [id, category, expected, label, reading, text] = *columns.as_slice() else { return None };
    Some(Entry {
        id: id.to_owned(),
        category: Category::ALL.into_iter().find(|known| known.name() == category),
        expected: Action::ALL.into_iter().find(|known| known.name() == expected)?,
        tag: tag(label)?,
        reading: if reading == "query" { Reading::Query } else { Reading::Text },
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
