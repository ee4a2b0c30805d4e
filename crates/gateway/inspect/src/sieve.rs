//! The fast path: all texts of a document at once, in memory that is used again.

use std::cell::RefCell;

use plimsoll_gateway_policy::{Actions, InputKind, Policy};

use crate::error::Unreadable;
use crate::hash::hash;
use crate::json_string::decode;
use crate::names::{is_file_data, is_token};
use crate::nested;
use crate::walk::{Kind, Leaf, Source, Step, Walk};

/// Memory that a thread keeps for the next document.
const KEPT: usize = 64 << 10;

thread_local! {
    static SIEVE: RefCell<Sieve> = RefCell::default();
}

/// The texts of one document, each on a line. Parts of a text are also there joined.
#[derive(Debug, Default)]
struct Sieve {
    texts: String,
    /// The parts of the current group: a number for the name, start and end in `texts`.
    parts: Vec<(u64, usize, usize)>,
    group: Option<u32>,
    /// The short pieces of one text, joined.
    tokens: String,
    /// Whether there is something that only the full walk can read.
    opaque: bool,
}

/// Whether anything in a document may have to be changed or refused.
///
/// # Errors
/// The texts of the document cannot be found.
pub(crate) fn may_match(
    document: &str,
    source: Source,
    policy: &Policy,
    kind: InputKind,
    actions: Actions,
) -> Result<bool, Unreadable> {
    SIEVE.with_borrow_mut(|sieve| {
        sieve.clear();
        sieve.collect(document, source, 0)?;
        let may_match = sieve.opaque || policy.may_match(&sieve.texts, kind, &actions);
        // A large document's memory is given back now, not with the next one.
        sieve.clear();
        Ok(may_match)
    })
}

impl Sieve {
    fn clear(&mut self) {
        self.texts.clear();
        self.tokens.clear();
        self.texts.shrink_to(KEPT);
        self.tokens.shrink_to(KEPT);
        self.parts.clear();
        self.parts.shrink_to(KEPT);
        (self.group, self.opaque) = (None, false);
    }

    fn collect(
        &mut self,
        document: &str,
        source: Source,
        nesting: usize,
    ) -> Result<(), Unreadable> {
        let mut walk = Walk::new(document, source);
        while let Some(step) = walk.next()? {
            if let Step::Text(leaf) = step {
                self.add(&leaf, nesting);
            }
        }
        self.end_group();
        self.texts.push_str(&self.tokens);
        self.texts.push('\n');
        self.tokens.clear();
        Ok(())
    }

    fn add(&mut self, leaf: &Leaf<'_>, nesting: usize) {
        let text = decode(leaf.inside);
        if leaf.kind == Kind::String && leaf.name.is_some_and(is_token) {
            self.tokens.push_str(&text);
            return;
        }
        let file = leaf.name.is_some_and(is_file_data);
        if leaf.kind == Kind::String && (file || nested::is_data_url(&text)) {
            self.opaque = true;
            return;
        }
        if leaf.group.is_some() && leaf.group != self.group {
            self.end_group();
            self.group = leaf.group;
        }
        let start = self.texts.len();
        self.texts.push_str(&text);
        if leaf.group.is_some() {
            self.parts.push((leaf.name.map_or(0, hash), start, self.texts.len()));
        }
        self.texts.push('\n');
        // With its own escapes it would hide its texts; without any they are parts of it.
        if nested::may_be_document(&text) && text.contains('\\') {
            self.add_nested(&text, nesting);
        }
    }

    /// Adds the texts of a document inside a text.
    fn add_nested(&mut self, document: &str, nesting: usize) {
        if nesting == nested::MAX_NESTING {
            self.opaque = true;
            return;
        }
        let mut inner = Self::default();
        if inner.collect(document, Source::Data, nesting + 1).is_ok() {
            self.texts.push_str(&inner.texts);
            self.opaque |= inner.opaque;
        }
    }

    /// Adds the parts of a group once more joined: all of them, and those of the same name.
    fn end_group(&mut self) {
        let mut parts = std::mem::take(&mut self.parts);
        self.join(&parts);
        if parts.iter().any(|part| Some(part.0) != parts.first().map(|first| first.0)) {
            parts.sort_by_key(|(name, start, _)| (*name, *start));
            parts.chunk_by(|a, b| a.0 == b.0).for_each(|parts| self.join(parts));
        }
        parts.clear();
        self.parts = parts;
    }

    /// Adds some parts once more without and with a space between them.
    fn join(&mut self, parts: &[(u64, usize, usize)]) {
        if parts.len() < 2 {
            return;
        }
        for separator in ["", " "] {
            for (_, start, end) in parts {
                self.texts.extend_from_within(*start..*end);
                self.texts.push_str(separator);
            }
            self.texts.push('\n');
        }
    }
}
