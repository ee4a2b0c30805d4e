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
    pub(crate) fn of(texts: &[Text<'_>]) -> Self {
        let mut all: Vec<Member> =
            texts.iter().enumerate().filter_map(|(at, text)| Member::of(at, text)).collect();
        all.sort_by_key(|member| (member.token, member.group));
        let mixed = |group: &&[Member]| group.iter().any(|own| own.name != group[0].name);
        let mut by_name: Vec<Member> =
            all.chunk_by(Member::same_group).filter(mixed).flatten().copied().collect();
        by_name.sort_by_key(|member| (member.token, member.group, member.name));
        Self { all, by_name }
    }

    /// The numbers of the texts of each list of several, and how they may be joined.
    pub(crate) fn lists(&self) -> impl Iterator<Item = (Vec<usize>, &'static [&'static str])> {
        let same_name = |a: &Member, b: &Member| a.same_group(b) && a.name == b.name;
        let groups = self.all.chunk_by(Member::same_group).chain(self.by_name.chunk_by(same_name));
        groups.filter(|group| group.len() > 1).map(|group| {
            let separators: &[&str] = if group[0].token { &[""] } else { &["", " "] };
            (group.iter().map(|member| member.text).collect(), separators)
        })
    }
}

impl Member {
    fn of(at: usize, text: &Text<'_>) -> Option<Self> {
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

/// Texts that are parts of one text, each with its number in the document.
#[derive(Debug)]
pub(crate) struct Parts<'t>(pub(crate) Vec<(usize, &'t str)>);

impl Parts<'_> {
    pub(crate) fn joined(&self, separator: &str) -> String {
        self.0.iter().map(|(_, part)| *part).collect::<Vec<_>>().join(separator)
    }

    /// The parts that a range of the joined text covers, and what it covers of each.
    pub(crate) fn spread(
        &self,
        range: &Range<usize>,
        separator: usize,
    ) -> Vec<(usize, Range<usize>)> {
        let mut start = 0;
        let mut covered = Vec::new();
        for (at, part) in &self.0 {
            let end = start + part.len();
            if range.start < end && range.end > start {
                let from = range.start.max(start) - start;
                covered.push((*at, from..range.end.min(end) - start));
            }
            start = end + separator;
        }
        covered
    }
}
