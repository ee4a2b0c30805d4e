//! Which texts of a document are parts of one text.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::document::Text;
use crate::names::is_token;
use crate::walk::Kind;

/// The numbers of texts, by the names of their members.
type TextsByName<'a> = BTreeMap<Option<&'a str>, Vec<usize>>;

/// The numbers of the texts of each list of several that belong together, and how they may be
/// joined: first the whole groups, then the texts of one name in groups with several names.
pub(crate) fn groups(texts: &[Text<'_>]) -> Vec<(Vec<usize>, &'static [&'static str])> {
    let mut all: BTreeMap<(bool, u32), TextsByName<'_>> = BTreeMap::new();
    for (at, text) in texts.iter().enumerate() {
        // Tokens that were not chosen are not part of what is said.
        let alternative = !text.token && text.leaf.name.is_some_and(is_token);
        let string = text.leaf.kind == Kind::String && !text.opaque && !alternative;
        if let Some(group) = text.leaf.group.filter(|_| string) {
            let names = all.entry((text.token, group)).or_default();
            names.entry(text.leaf.name).or_default().push(at);
        }
    }
    let mut lists = Vec::new();
    let mut by_name = Vec::new();
    for ((token, _), names) in all {
        let separators: &[&str] = if token { &[""] } else { &["", " "] };
        let mut members: Vec<usize> = names.values().flatten().copied().collect();
        members.sort_unstable();
        lists.push((members, separators));
        if names.len() > 1 {
            by_name.extend(names.into_values().map(|members| (members, separators)));
        }
    }
    lists.extend(by_name);
    lists.retain(|(members, _)| members.len() > 1);
    lists
}

/// Texts that are parts of one text, joined.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) text: String,
    /// The number in the document of each part, and its place in `text`.
    parts: Vec<(usize, Range<usize>)>,
}

impl Joined {
    pub(crate) fn new<'t>(parts: impl Iterator<Item = (usize, &'t str)>, separator: &str) -> Self {
        let mut joined = Self { text: String::new(), parts: Vec::new() };
        for (at, part) in parts {
            if !joined.parts.is_empty() {
                joined.text.push_str(separator);
            }
            let start = joined.text.len();
            joined.text.push_str(part);
            joined.parts.push((at, start..joined.text.len()));
        }
        joined
    }

    /// The parts that a range of the text covers, and what it covers of each.
    pub(crate) fn spread(&self, range: &Range<usize>) -> Vec<(usize, Range<usize>)> {
        let first = self.parts.partition_point(|(_, part)| part.end <= range.start);
        let covered = self.parts.get(first..).unwrap_or_default().iter();
        let covered = covered.take_while(|(_, part)| part.start < range.end);
        let covered = covered.map(|(at, part)| {
            let from = range.start.max(part.start) - part.start;
            (*at, from..range.end.min(part.end) - part.start)
        });
        covered.filter(|(_, range)| !range.is_empty()).collect()
    }
}
