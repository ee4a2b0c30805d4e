//! Which texts of a document are parts of one text.

use std::ops::Range;

use crate::document::Text;
use crate::hash::hash;
use crate::walk::Kind;

/// The texts that belong together.
#[derive(Debug)]
pub(crate) struct Groups {
    /// In the order of the document.
    all: Vec<Member>,
    /// The same by name, of groups with several names.
    by_name: Vec<Member>,
}

#[derive(Clone, Copy, Debug)]
struct Member {
    token: bool,
    group: u32,
    name: u64,
    /// Its number in the document.
    text: usize,
}

impl Groups {
    pub(crate) fn from_texts(texts: &[Text<'_>]) -> Self {
        let mut all: Vec<Member> =
            texts.iter().enumerate().filter_map(|(at, text)| Member::from_text(at, text)).collect();
        all.sort_by_key(|member| (member.token, member.group));
        let mut by_name: Vec<Member> = all
            .chunk_by(Member::same_group)
            .filter(|group: &&[Member]| group.iter().any(|own| own.name != group[0].name))
            .flatten()
            .copied()
            .collect();
        by_name.sort_by_key(|member| (member.token, member.group, member.name));
        Self { all, by_name }
    }

    /// The numbers of the texts of each list of several, and how they may be joined.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (Vec<usize>, &'static [&'static str])> {
        let groups = self.all.chunk_by(Member::same_group).chain(
            self.by_name.chunk_by(|a: &Member, b: &Member| a.same_group(b) && a.name == b.name),
        );
        groups.filter(|group| group.len() > 1).map(|group| {
            let separators: &[&str] = if group[0].token { &[""] } else { &["", " "] };
            (group.iter().map(|member| member.text).collect(), separators)
        })
    }
}

impl Member {
    fn from_text(at: usize, text: &Text<'_>) -> Option<Self> {
        let string = text.leaf.kind == Kind::String && !text.opaque;
        let group = text.leaf.group.filter(|_| string)?;
        // Tokens that were not chosen are not part of what is said.
        let alternative = !text.token && text.leaf.name.is_some_and(crate::names::is_token);
        let name = text.leaf.name.map_or(0, hash);
        (!alternative).then_some(Self { token: text.token, group, name, text: at })
    }

    const fn same_group(&self, other: &Self) -> bool {
        self.token == other.token && self.group == other.group
    }
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
