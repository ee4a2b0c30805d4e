//! All texts of a document, decoded, and the document with replacements.

use std::borrow::Cow;
use std::ops::Range;

use plimsoll_gateway_policy::Match;
use serde_json::Value;

use crate::error::Unreadable;
use crate::json_string::decode;
use crate::mask::Masks;
use crate::names::is_media_type;
use crate::walk::{Kind, Leaf, Source, Step, Walk};

/// All texts of a document.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    source: &'a str,
    pub(crate) texts: Vec<Text<'a>>,
    /// The objects and arrays.
    nodes: Vec<Node<'a>>,
}

/// A text of a document.
#[derive(Debug)]
pub(crate) struct Text<'a> {
    pub(crate) leaf: Leaf<'a>,
    /// The text, with escapes decoded.
    pub(crate) decoded: Cow<'a, str>,
    /// The object or array that contains it.
    node: Option<usize>,
    /// Whether it is one of the short pieces that make up a text.
    pub(crate) token: bool,
    /// Whether it is a file without readable text.
    pub(crate) opaque: bool,
    /// Whether `decoded` differs from the document.
    pub(crate) changed: bool,
    /// The matches in it alone.
    pub(crate) matches: Vec<Match>,
    /// Its parts to replace.
    pub(crate) masks: Masks,
}

/// An object or an array.
#[derive(Debug, Default)]
struct Node<'a> {
    name: Option<&'a str>,
    start: usize,
    parent: Option<usize>,
    /// The media type that one of its members declares for another.
    media_type: Option<&'a str>,
    /// Members that repeat one of its texts, with their replacement if that text is redacted.
    copies: Vec<(Range<usize>, &'static str)>,
}

/// A change of a document.
pub(crate) type Patch = (Range<usize>, Replacement);

/// The replacement of a part of a document.
#[derive(Debug)]
pub(crate) enum Replacement {
    /// A string.
    String(String),
    /// Text outside JSON.
    Plain(String),
    /// JSON.
    Json(&'static str),
}

impl<'a> Document<'a> {
    pub(crate) fn read(source: &'a str, kind: Source) -> Result<Self, Unreadable> {
        let mut document =
            Self { source, texts: Vec::with_capacity(8), nodes: Vec::with_capacity(8) };
        let mut walk = Walk::new(source, kind);
        let mut open = None;
        while let Some(step) = walk.next()? {
            match step {
                Step::Open { name, at, .. } => {
                    document.nodes.push(Node { name, start: at, parent: open, ..Node::default() });
                    open = Some(document.nodes.len() - 1);
                }
                Step::Close { end } => open = document.close(open, end),
                Step::Text(leaf) => {
                    document.note_type(open, leaf.name, leaf.inside);
                    document.add(leaf, open);
                }
                Step::Other { name, json } => document.note_type(open, name, json),
            }
        }
        Ok(document)
    }

    /// Notes a member that declares a media type.
    fn note_type(&mut self, open: Option<usize>, name: Option<&str>, media_type: &'a str) {
        if name.is_some_and(is_media_type)
            && let Some(node) = open.and_then(|open| self.nodes.get_mut(open))
        {
            node.media_type = Some(media_type);
        }
    }

    fn close(&mut self, open: Option<usize>, end: usize) -> Option<usize> {
        let node = self.nodes.get(open?)?;
        let parent = node.parent;
        let copy = match node.name {
            Some("bytes") => Some("null"),
            Some("top_logprobs") => Some("[]"),
            _ => None,
        };
        let range = node.start..end;
        if let Some((copy, parent)) = copy.zip(parent) {
            self.nodes.get_mut(parent)?.copies.push((range, copy));
        }
        parent
    }

    fn add(&mut self, leaf: Leaf<'a>, node: Option<usize>) {
        let token = leaf.kind == Kind::String
            && leaf.name.is_some_and(crate::names::is_token)
            && !self.is_alternative(node);
        self.texts.push(Text {
            decoded: decode(leaf.inside),
            leaf,
            node,
            token,
            opaque: false,
            changed: false,
            matches: Vec::new(),
            masks: Masks::default(),
        });
    }

    /// Whether a node is inside tokens that the model did not choose.
    fn is_alternative(&self, node: Option<usize>) -> bool {
        let mut outwards = std::iter::successors(node, |node: &usize| {
            self.nodes.get(*node).and_then(|node| node.parent)
        });
        outwards.any(|node| self.nodes.get(node).is_some_and(|n| n.name == Some("top_logprobs")))
    }

    /// The media type declared beside a text.
    pub(crate) fn media_type(&self, text: &Text<'_>) -> Option<&'a str> {
        self.nodes.get(text.node?)?.media_type
    }

    /// The changes of a text's copies after a change of the text.
    pub(crate) fn copies(&self, text: &Text<'_>) -> impl Iterator<Item = Patch> {
        let node = text.node.and_then(|node| self.nodes.get(node));
        let copies = node.map(|node| node.copies.as_slice()).unwrap_or_default();
        copies.iter().map(|(range, json)| (range.clone(), Replacement::Json(json)))
    }

    /// The document with changes. A change inside another one is omitted.
    pub(crate) fn patched(&self, mut patches: Vec<Patch>) -> String {
        patches.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let mut out = Vec::with_capacity(self.source.len());
        let copied = apply(self.source.as_bytes(), &patches, &mut out);
        out.extend_from_slice(self.source.as_bytes().get(copied..).unwrap_or_default());
        // Patches are made of whole strings.
        String::from_utf8(out).unwrap_or_default()
    }
}

/// Appends the source up to the end of the last patch, with the patches applied; returns that end.
/// The patches must be sorted.
pub(crate) fn apply(source: &[u8], patches: &[Patch], out: &mut Vec<u8>) -> usize {
    let mut copied = 0;
    for (range, replacement) in patches {
        if range.start < copied {
            continue;
        }
        out.extend_from_slice(source.get(copied..range.start).unwrap_or_default());
        match replacement {
            Replacement::String(text) => out.extend(Value::from(text.as_str()).to_string().bytes()),
            Replacement::Plain(text) => out.extend_from_slice(text.as_bytes()),
            Replacement::Json(json) => out.extend_from_slice(json.as_bytes()),
        }
        copied = range.end;
    }
    copied
}
