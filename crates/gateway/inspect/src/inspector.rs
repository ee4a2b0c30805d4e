//! Judges every text of a document by a policy.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use plimsoll_gateway_policy::{Action, Actions, InputKind, MASK, Match, Policy};

use crate::document::{Document, Patch, Replacement, Text};
use crate::error::Unreadable;
use crate::files::FileRule;
use crate::names::{is_file_data, is_protocol_name, is_token, is_untyped_file, lists_with};
use crate::nested::{self, DataUrl, File};
use crate::walk::{Kind, Source};

/// Numbers with at least this many digits are also judged together with their name.
const FEWEST_DIGITS: usize = 6;

/// Longer base64 that is not text is not searched for words.
const LONG_BASE64: usize = 256;

/// Shorter base64 counts as a word, unless its name declares a file.
const SHORTEST_BASE64: usize = 16;

/// Judges texts by a policy.
#[derive(Clone, Debug)]
pub struct Inspector {
    pub(crate) policy: Arc<Policy>,
    actions: Actions,
    kind: InputKind,
    pub(crate) files: FileRule,
}

/// The result of judging a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judgement {
    /// The matches in all texts. Their ranges refer to the text of the match.
    pub matches: Vec<Match>,
    /// The document with its texts redacted; None if nothing changed.
    pub document: Option<String>,
}

impl Inspector {
    /// Judges prose by a policy; `files` is the rule for other files.
    pub const fn new(policy: Arc<Policy>, actions: Actions, files: FileRule) -> Self {
        Self { policy, actions, kind: InputKind::Text, files }
    }

    /// Redacts only personal data.
    pub const fn personal_data(policy: Arc<Policy>, files: FileRule) -> Self {
        let actions = Actions { pii: Action::Redact, ..Actions::all(Action::Allow) };
        Self::new(policy, actions, files)
    }

    /// Judges every text of a JSON document: names and strings, numbers, the texts of documents and
    /// files inside of strings, and texts that are split over several strings.
    ///
    /// Time is linear in the document.
    ///
    /// # Errors
    /// The texts cannot be found, or the document contains a file that must not pass.
    pub fn document(&self, document: &str, source: Source) -> Result<Judgement, Unreadable> {
        let mut matches = Vec::new();
        let document = self.judge(document, source, 0, &mut matches)?;
        Ok(Judgement { matches, document })
    }

    /// Whether the text encoded in base64 contains text to redact.
    pub(crate) fn redacts_base64(&self, base64: &str) -> bool {
        base64.len() >= SHORTEST_BASE64
            && nested::is_base64(base64)
            && match nested::from_base64(base64) {
                File::Text(content) => {
                    self.text(&content).1.iter().any(|found| found.action == Action::Redact)
                }
                File::Bytes => false,
            }
    }

    /// Judges one text.
    pub fn text<'t>(&self, text: &'t str) -> (Cow<'t, str>, Vec<Match>) {
        let decision = self.policy.scan(text, self.kind, &self.actions);
        (decision.text, decision.matches)
    }

    /// The document with its texts redacted; None if nothing changed.
    fn judge(
        &self,
        document: &str,
        source: Source,
        nesting: usize,
        found: &mut Vec<Match>,
    ) -> Result<Option<String>, Unreadable> {
        let mut document = Document::read(document, source)?;
        for at in 0..document.texts.len() {
            let Some(text) = document.texts.get(at) else { continue };
            let inner = self.inner(&document, text, nesting, found)?;
            let text = &mut document.texts[at];
            text.opaque = matches!(inner, Inner::Opaque(_));
            if let Inner::Searched(Some(new)) | Inner::Opaque(Some(new)) = inner {
                text.decoded = Cow::Owned(new);
                text.changed = true;
            }
            if !text.opaque {
                self.scan(text);
                found.extend_from_slice(&text.matches);
            }
        }
        self.scan_groups(&mut document.texts, found);
        let mut patches: Vec<Patch> = Vec::new();
        for text in std::mem::take(&mut document.texts) {
            if !text.changed && text.masks.is_empty() {
                continue;
            }
            patches.extend(document.copies(&text));
            patches.push((
                text.leaf.range,
                match text.leaf.kind {
                    Kind::Number => Replacement::Json("0"),
                    Kind::Name | Kind::String => {
                        Replacement::String(text.masks.apply(&text.decoded))
                    }
                },
            ));
        }
        Ok((!patches.is_empty()).then(|| document.patched(patches)))
    }

    /// Judges the content of a text.
    fn inner(
        &self,
        document: &Document<'_>,
        text: &Text<'_>,
        nesting: usize,
        found: &mut Vec<Match>,
    ) -> Result<Inner, Unreadable> {
        if text.leaf.kind != Kind::String {
            return Ok(Inner::Searched(None));
        }
        if let Some(url) = DataUrl::parse(&text.decoded) {
            return self.data_url(&url, nesting, found);
        }
        if nested::is_base64(&text.decoded) {
            return self.file(text, document.media_type(text), nesting, found);
        }
        let inner = self.inner_document(&text.decoded, nesting, found);
        Ok(Inner::Searched(inner))
    }

    /// The document in a text, redacted; `None` if it is unchanged or not a document.
    fn inner_document(&self, text: &str, nesting: usize, found: &mut Vec<Match>) -> Option<String> {
        if nesting >= nested::MAX_NESTING || !nested::may_be_document(text) {
            return None;
        }
        let mut inside = Vec::new();
        let inner = self.judge(text, Source::Data, nesting + 1, &mut inside).ok()?;
        found.append(&mut inside);
        inner
    }

    fn data_url(
        &self,
        url: &DataUrl<'_>,
        nesting: usize,
        found: &mut Vec<Match>,
    ) -> Result<Inner, Unreadable> {
        if !FileRule::is_text(&url.media_type) {
            return self.files.check(&url.media_type).map(|()| Inner::Opaque(None));
        }
        match url.file() {
            File::Text(content) => {
                let content = self.content(&content, nesting, found);
                let url_with = content.map(|content| url.with(&content));
                // The content was judged; base64 has no other text.
                Ok(if url.base64 { Inner::Opaque(url_with) } else { Inner::Searched(url_with) })
            }
            File::Bytes => self.files.check(&url.media_type).map(|()| Inner::Opaque(None)),
        }
    }

    /// Judges a string of base64: as the content of a file, if its name or the type beside it
    /// declares a file or if it decodes to text; otherwise as a word.
    fn file(
        &self,
        text: &Text<'_>,
        media_type: Option<&str>,
        nesting: usize,
        found: &mut Vec<Match>,
    ) -> Result<Inner, Unreadable> {
        let base64 = &*text.decoded;
        let (name, is_long) = (text.leaf.name.unwrap_or_default(), base64.len() > LONG_BASE64);
        let is_file = is_file_data(name);
        let media_type = media_type.filter(|_| is_file || is_long);
        if let Some(media_type) = media_type.filter(|name| !FileRule::is_text(name)) {
            return self.files.check(media_type).map(|()| Inner::Opaque(None));
        }
        if !is_file && base64.len() < SHORTEST_BASE64 {
            return Ok(Inner::Searched(None));
        }
        match (nested::from_base64(base64), media_type) {
            (File::Text(content), _) => {
                let content = self.content(&content, nesting, found);
                Ok(Inner::Searched(content.map(|content| nested::to_base64(&content))))
            }
            // Declared as text, but not text.
            (File::Bytes, Some(media_type)) => {
                self.files.check(media_type).map(|()| Inner::Opaque(None))
            }
            (File::Bytes, None) if is_long && is_untyped_file(name) => {
                self.files.check("application/octet-stream").map(|()| Inner::Opaque(None))
            }
            (File::Bytes, None) if is_long => Ok(Inner::Opaque(None)),
            (File::Bytes, None) => Ok(Inner::Searched(None)),
        }
    }

    /// The content of a text file, redacted; None if nothing changed.
    fn content(&self, content: &str, nesting: usize, found: &mut Vec<Match>) -> Option<String> {
        let inner = self
            .inner_document(content, nesting, found)
            .or_else(|| self.inner_base64(content, nesting, found));
        let text = inner.as_deref().unwrap_or(content);
        let decision = self.policy.scan(text, self.kind, &self.actions);
        found.extend(decision.matches);
        match decision.text {
            Cow::Owned(redacted) => Some(redacted),
            Cow::Borrowed(_) => inner,
        }
    }

    /// The text in base64 that is itself the content of a file, redacted; None if nothing changed.
    fn inner_base64(&self, text: &str, nesting: usize, found: &mut Vec<Match>) -> Option<String> {
        if nesting >= nested::MAX_NESTING
            || text.len() < SHORTEST_BASE64
            || !nested::is_base64(text)
        {
            return None;
        }
        let File::Text(content) = nested::from_base64(text) else { return None };
        let redacted = self.content(&content, nesting + 1, found)?;
        Some(nested::to_base64(&redacted))
    }

    /// Judges a text, and a number also with the name of its member.
    fn scan(&self, text: &mut Text<'_>) {
        let mut matches = self.policy.scan(&text.decoded, self.kind, &self.actions).matches;
        let name = text.leaf.name.filter(|name| {
            text.leaf.kind != Kind::Name
                && !is_protocol_name(lists_with(name), name)
                && text.decoded.bytes().filter(u8::is_ascii_digit).count() >= FEWEST_DIGITS
        });
        if let Some(name) = name {
            let prefix = split_name(&crate::json_string::decode(name)) + ": ";
            let named = [&prefix, &*text.decoded].concat();
            let named = self.policy.scan(&named, self.kind, &self.actions).matches;
            matches.extend(named.into_iter().filter_map(|mut found| {
                let end = found.range.end.checked_sub(prefix.len()).filter(|end| *end > 0)?;
                found.range = found.range.start.saturating_sub(prefix.len())..end;
                Some(found)
            }));
            matches.sort_by(|a, b| (&a.rule_id, a.range.start).cmp(&(&b.rule_id, b.range.start)));
            matches.dedup_by(|next, kept| {
                next.rule_id == kept.rule_id && next.range.start < kept.range.end
            });
        }
        for place in matches.iter().filter(|place| place.action == Action::Redact) {
            text.masks.hide(place.range.clone());
        }
        text.matches = matches;
    }

    /// Judges parts of one text joined, with and without a space: all of them, and those with the
    /// same name.
    fn scan_groups(&self, texts: &mut [Text<'_>], found: &mut Vec<Match>) {
        for (members, separators) in groups(texts) {
            let mut known: HashSet<(Arc<str>, usize, usize)> = HashSet::new();
            for separator in separators {
                let parts = members.iter().filter_map(|at| Some((*at, &*texts.get(*at)?.decoded)));
                let joined = Joined::new(parts, separator);
                self.scan_joined(&joined, texts, &mut known, found);
            }
        }
    }

    fn scan_joined(
        &self,
        joined: &Joined,
        texts: &mut [Text<'_>],
        known: &mut HashSet<(Arc<str>, usize, usize)>,
        found: &mut Vec<Match>,
    ) {
        for mut place in self.policy.scan(&joined.text, self.kind, &self.actions).matches {
            let spread = joined.spread(&place.range);
            // A match inside one part was already found there.
            let [(at, first), _, ..] = spread.as_slice() else { continue };
            // A match that is complete in one part ends there: the next or previous part is another
            // text.
            if spread.iter().any(|(at, range)| is_whole_in(&texts[*at].matches, range, &place)) {
                continue;
            }
            let key = (Arc::clone(&place.rule_id), *at, first.start);
            place.range = first.start..first.start + place.range.len();
            if place.action == Action::Redact {
                hide(&spread, texts);
            }
            if known.insert(key) {
                found.push(place);
            }
        }
    }
}

/// Whether a match across several texts is complete within one of them.
fn is_whole_in(own: &[Match], range: &Range<usize>, place: &Match) -> bool {
    own.iter().any(|found| {
        found.rule_id == place.rule_id
            && range.start <= found.range.start
            && found.range.end <= range.end
    })
}

/// Redacts a match that spans several texts: the first one gets the mask.
fn hide(spread: &[(usize, Range<usize>)], texts: &mut [Text<'_>]) {
    for (nth, (at, range)) in spread.iter().enumerate() {
        if let Some(text) = texts.get_mut(*at) {
            text.masks.replace(range.clone(), if nth == 0 { MASK } else { "" });
        }
    }
}

/// The result of judging the content of a text: the changed text, if the content was changed.
enum Inner {
    /// It has no other text.
    Opaque(Option<String>),
    /// It must be judged as a text, too.
    Searched(Option<String>),
}

/// The words of a name: both `social_security` and `socialSecurity` have two.
fn split_name(name: &str) -> String {
    let mut words = String::with_capacity(name.len() + 4);
    let mut small = false;
    for character in name.chars() {
        if small && character.is_ascii_uppercase() {
            words.push(' ');
        }
        words.push(if matches!(character, '_' | '-') { ' ' } else { character });
        small = character.is_ascii_lowercase();
    }
    words
}

/// The indexes of texts by the names of their members.
type TextsByName<'a> = BTreeMap<Option<&'a str>, Vec<usize>>;

/// The indexes of the texts of each group, and the separators to join them with: first the whole
/// groups, then the texts of one name in groups with several names.
pub(crate) fn groups(texts: &[Text<'_>]) -> Vec<(Vec<usize>, &'static [&'static str])> {
    if texts.len() < 2 {
        return Vec::new();
    }
    let mut all: BTreeMap<(bool, u32), TextsByName<'_>> = BTreeMap::new();
    for (at, text) in texts.iter().enumerate() {
        // Tokens that were not chosen are not part of the answer.
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
    /// The index of each part in the document, and its range in `text`.
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

    /// The parts that a range covers, and the covered range of each.
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

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;

    #[test]
    fn base64_is_read_in_every_spelling() {
        let inspector = Inspector::personal_data(Arc::clone(&BUILTIN), FileRule::default());
        // "write to ann@example.com", as UTF-16 with each mark and without, and encoded twice.
        for base64 in [
            "d3JpdGUgdG8gYW5uQGV4YW1wbGUuY29t",
            "//53AHIAaQB0AGUAIAB0AG8AIABhAG4AbgBAAGUAeABhAG0AcABsAGUALgBjAG8AbQA=",
            "/v8AdwByAGkAdABlACAAdABvACAAYQBuAG4AQABlAHgAYQBtAHAAbABlAC4AYwBvAG0=",
            "dwByAGkAdABlACAAdABvACAAYQBuAG4AQABlAHgAYQBtAHAAbABlAC4AYwBvAG0A",
            "ZDNKcGRHVWdkRzhnWVc1dVFHVjRZVzF3YkdVdVkyOXQ=",
        ] {
            for name in ["file_data", "note"] {
                let document = format!(r#"{{"file":{{"{name}":"{base64}"}}}}"#);
                let judged = inspector.document(&document, Source::Protocol).unwrap();
                assert!(judged.document.is_some_and(|new| !new.contains(base64)), "{document}");
            }
        }
    }

    #[test]
    fn what_is_redacted_at_the_end_of_a_part_eats_no_neighbour() {
        let inspector = Inspector::personal_data(Arc::clone(&BUILTIN), FileRule::default());
        for (document, kept) in [
            (
                r#"{"content":[{"type":"text","text":"write to ann@example.com"},{"type":"text","text":"hello there"}]}"#,
                [r#""text":"hello there""#, r#"{"type":"text","#],
            ),
            (
                r#"{"content":[{"type":"text","text":"hello"},{"text":"ann@example.com is it","type":"text"}]}"#,
                [r#""text":"hello""#, r#" is it","type":"text""#],
            ),
            (
                r#"{"content":[{"text":"write to ann@example.com","type":"text"},{"type":"refusal","refusal":"no"}]}"#,
                [r#""type":"text"}"#, r#"{"type":"refusal","refusal":"no"}"#],
            ),
        ] {
            for source in [Source::Protocol, Source::Tool, Source::Data] {
                let judged = inspector.document(document, source).unwrap();
                let redacted = judged.document.unwrap();
                assert!(!redacted.contains("ann@"), "{redacted}");
                assert!(kept.iter().all(|part| redacted.contains(part)), "{redacted}");
            }
        }
        // A value that is whole in no part is still found.
        let cut = r#"{"content":[{"type":"text","text":"write to ann@exam"},{"type":"text","text":"ple.com now"}]}"#;
        let redacted = inspector.document(cut, Source::Protocol).unwrap().document.unwrap();
        assert!(!redacted.contains("ann@exam") && !redacted.contains("ple.com"), "{redacted}");
    }

    static BUILTIN: LazyLock<Arc<Policy>> = LazyLock::new(|| Arc::new(Policy::builtin().unwrap()));
}
