//! Redacts personal data in a stream of events, even if it spans events.
//!
//! An event is held back until all of it is known to be harmless or part of a match. Then it is
//! sent unchanged except for redactions, so a stream without personal data passes byte for byte.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use plimsoll_gateway_dialect::{DialectError, EventSplitter};
use plimsoll_gateway_policy::{Action, Redaction, TextScanner};

use crate::document::{Patch, Replacement, apply};
use crate::error::Unreadable;
use crate::event::{Ends, Event, EventText, Form};
use crate::files::Unread;
use crate::inspector::Inspector;
use crate::json_string::decode;
use crate::mask::Masks;

/// The most bytes of held events. Beyond it the oldest are sent before later text is known.
pub const MAX_WAITING_BYTES: usize = 64 << 10;

/// The most texts of one stream that are followed over events.
const MAX_PATHS: usize = 256;

/// Longer texts are also searched for matches that only a whole text shows.
const LONG_TEXT: usize = 64;

/// Redacts personal data in a stream of server-sent events of any dialect.
///
/// Chunks may end anywhere; the output depends only on the stream. Each text of the stream is
/// followed over its events: by choice or block, and by its place in the event.
#[derive(Debug)]
pub struct EventScrubber {
    inspector: Arc<Inspector>,
    splitter: EventSplitter,
    scrubbing: Scrubbing,
}

#[derive(Debug, Default)]
struct Scrubbing {
    waiting: WaitingEvents,
    paths: HashMap<u64, Path>,
    /// Reused memory for the scanner's matches.
    found: Vec<Redaction>,
}

/// The held events, in order.
#[derive(Debug, Default)]
struct WaitingEvents {
    events: VecDeque<Waiting>,
    bytes: usize,
    /// The number of the first one.
    first: u64,
}

/// A held event.
#[derive(Debug)]
struct Waiting {
    event: Vec<u8>,
    pieces: Vec<Piece>,
    /// The number of undecided pieces.
    open: usize,
}

/// A text of an event.
#[derive(Debug)]
struct Piece {
    text: EventText,
    masks: Masks,
}

/// A text of the stream.
#[derive(Debug)]
struct Path {
    scanner: TextScanner,
    owner: u64,
    /// The undecided pieces.
    open: VecDeque<OpenPiece>,
    /// The last event that continued it.
    last: u64,
}

/// The place of a piece: its event, and its index there.
#[derive(Clone, Copy, Debug)]
struct PieceAddress {
    event: u64,
    piece: usize,
}

/// An undecided piece, and its place in the text.
#[derive(Debug)]
struct OpenPiece {
    piece: PieceAddress,
    place: Range<u64>,
}

impl EventScrubber {
    /// `inspector` defines personal data, and the handling of events whose texts cannot be found.
    pub fn new(inspector: Arc<Inspector>) -> Self {
        Self { inspector, splitter: EventSplitter::default(), scrubbing: Scrubbing::default() }
    }

    /// Takes the next bytes and appends the decided events to `out`.
    ///
    /// # Errors
    /// The stream cannot continue: an event is too long, or cannot be read and must not pass.
    pub fn feed(&mut self, chunk: &[u8], out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let Self { inspector, splitter, scrubbing } = self;
        let mut failure = None;
        let fed = splitter.feed(chunk, |event| {
            scrubbing.event(inspector, event, out).map_err(|error| {
                failure = Some(error);
                DialectError::Truncated
            })
        });
        fed.map_err(|_| failure.unwrap_or(Unreadable::EventTooLong))
    }

    /// The held bytes of the stream, including an incomplete event.
    pub fn buffered(&self) -> usize {
        self.scrubbing.waiting.bytes + self.splitter.incomplete().len()
    }

    /// Ends the stream and appends the held events. A last event without its empty line gets one.
    ///
    /// # Errors
    /// [`Unreadable::Truncated`] if the stream ended within an event, which is omitted.
    pub fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), Unreadable> {
        let Self { inspector, splitter, scrubbing } = self;
        let rest = splitter.incomplete();
        let blank = if rest.trim_ascii().is_empty() { rest.to_vec() } else { Vec::new() };
        let mut read = Ok(());
        let last = splitter.finish(|event| {
            read = scrubbing.event(inspector, event, out);
            Ok(())
        });
        scrubbing.end_all();
        scrubbing.release(out);
        out.extend_from_slice(&blank);
        last.map_err(|_| Unreadable::Truncated)?;
        read
    }
}

impl Scrubbing {
    fn event(
        &mut self,
        inspector: &Arc<Inspector>,
        event: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), Unreadable> {
        let read = str::from_utf8(event).map_err(|_| Unreadable::NotUtf8).and_then(Event::read);
        let read = match read {
            Err(_) if inspector.files.unreadable == Unread::Pass => Event::default(),
            read => read?,
        };
        if read.texts.is_empty() && read.ends == Ends::Nothing && self.waiting.events.is_empty() {
            out.extend_from_slice(event);
            return Ok(());
        }
        self.add(inspector, event, read.texts);
        match read.ends {
            Ends::Nothing => {}
            Ends::Of(owner) => self.end_texts(|path| path.owner == owner),
            Ends::All => self.end_all(),
        }
        self.release(out);
        while self.waiting.bytes > MAX_WAITING_BYTES {
            self.give_up_first();
            self.release(out);
        }
        Ok(())
    }

    fn add(&mut self, inspector: &Arc<Inspector>, event: &[u8], texts: Vec<EventText>) {
        let number = self.waiting.push(event);
        let mut owners: Vec<u64> = Vec::new();
        for text in texts {
            let Ok(source) = str::from_utf8(event.get(text.range.clone()).unwrap_or_default())
            else {
                continue;
            };
            let (owner, path, json) = (text.owner, text.path, text.json);
            let content = match text.form {
                Form::String => decode(source.get(1..source.len() - 1).unwrap_or_default()),
                Form::Number | Form::Plain => source.into(),
            };
            let masks = by_itself(inspector, &text, &content);
            let Some(last) = self.waiting.events.back_mut() else { return };
            last.pieces.push(Piece { text, masks });
            let piece = last.pieces.len() - 1;
            if let Some(path) = path.filter(|_| !content.is_empty()) {
                owners.push(owner);
                let piece = PieceAddress { event: number, piece };
                self.path(inspector, path, owner, json).last = number;
                self.continue_path(path, piece, &content);
            }
        }
        self.leave_idle(number, &owners);
    }

    /// A text of the stream, which may be new.
    fn path(&mut self, inspector: &Arc<Inspector>, key: u64, owner: u64, json: bool) -> &mut Path {
        if self.paths.len() >= MAX_PATHS && !self.paths.contains_key(&key) {
            self.end_all();
        }
        self.paths.entry(key).or_insert_with(|| Path {
            scanner: TextScanner::new(Arc::clone(&inspector.policy), json),
            owner,
            open: VecDeque::new(),
            last: 0,
        })
    }

    /// Continues a text of the stream with a piece of an event.
    fn continue_path(&mut self, key: u64, piece: PieceAddress, content: &str) {
        let Some(path) = self.paths.get_mut(&key) else { return };
        let start = path.scanner.fed();
        path.open.push_back(OpenPiece { piece, place: start..start + content.len() as u64 });
        if let Some(waiting) = self.waiting.events.back_mut() {
            waiting.open += 1;
        }
        path.scanner.feed(content, &mut self.found);
        settle(path, &mut self.found, &mut self.waiting);
    }

    /// Decides the pieces of texts that this event could have continued and did not. If they
    /// continue later, the rest is still searched.
    fn leave_idle(&mut self, number: u64, owners: &[u64]) {
        if owners.is_empty() {
            return;
        }
        for path in self.paths.values_mut() {
            let active = path.owner == 0 || owners.contains(&path.owner);
            if active && path.last != number {
                look_ahead(path, &mut self.found, &mut self.waiting);
                path.open.drain(..).for_each(|open| self.waiting.decide(open.piece));
            }
        }
    }

    /// Ends texts of the stream.
    fn end_texts(&mut self, which: impl Fn(&Path) -> bool) {
        let Self { paths, waiting, found } = self;
        paths.retain(|_, path| {
            if !which(path) {
                return true;
            }
            path.scanner.finish(found);
            settle(path, found, waiting);
            false
        });
    }

    fn end_all(&mut self) {
        self.end_texts(|_| true);
    }

    /// Sends the first event although it is not fully decided.
    fn give_up_first(&mut self) {
        let first = self.waiting.first;
        for path in self.paths.values_mut() {
            if path.open.front().is_some_and(|open| open.piece.event == first) {
                look_ahead(path, &mut self.found, &mut self.waiting);
                path.open.retain(|open| open.piece.event != first);
            }
        }
        if let Some(waiting) = self.waiting.events.front_mut() {
            waiting.open = 0;
        }
    }

    /// Sends the decided events in order.
    fn release(&mut self, out: &mut Vec<u8>) {
        while let Some(waiting) = self.waiting.pop_decided() {
            waiting.write(out);
        }
    }
}

impl WaitingEvents {
    /// Adds an event; returns its number.
    fn push(&mut self, event: &[u8]) -> u64 {
        let number = self.first + self.events.len() as u64;
        self.bytes += event.len();
        self.events.push_back(Waiting { event: event.to_vec(), pieces: Vec::new(), open: 0 });
        number
    }

    /// Removes the first event if it is decided.
    fn pop_decided(&mut self) -> Option<Waiting> {
        let waiting = self.events.pop_front_if(|waiting| waiting.open == 0)?;
        self.first += 1;
        self.bytes -= waiting.event.len();
        Some(waiting)
    }

    fn event(&mut self, number: u64) -> Option<&mut Waiting> {
        self.events.get_mut(usize::try_from(number.checked_sub(self.first)?).ok()?)
    }

    fn piece(&mut self, address: PieceAddress) -> Option<&mut Piece> {
        self.event(address.event)?.pieces.get_mut(address.piece)
    }

    fn decide(&mut self, address: PieceAddress) {
        if let Some(event) = self.event(address.event) {
            event.open = event.open.saturating_sub(1);
        }
    }
}

/// The matches in a text, regardless of other events.
fn by_itself(inspector: &Inspector, text: &EventText, content: &str) -> Masks {
    let mut masks = Masks::default();
    if text.form == Form::String && inspector.redacts_base64(content) {
        masks.hide(0..content.len());
        return masks;
    }
    if text.path.is_some() && content.len() < LONG_TEXT {
        return masks;
    }
    for found in inspector.text(content).1 {
        if found.action == Action::Redact {
            masks.hide(found.range);
        }
    }
    masks
}

/// Applies the matches of a scanner to the pieces, and marks the decided ones.
fn settle(path: &mut Path, found: &mut Vec<Redaction>, waiting: &mut WaitingEvents) {
    hide(path, found, waiting);
    let decided = path.scanner.decided();
    while let Some(open) = path.open.pop_front_if(|open| open.place.end <= decided) {
        waiting.decide(open.piece);
    }
}

/// Redacts the matches that a text would have if it ended here. It may continue.
fn look_ahead(path: &Path, found: &mut Vec<Redaction>, waiting: &mut WaitingEvents) {
    if !path.open.is_empty() {
        path.scanner.clone().finish(found);
        hide(path, found, waiting);
    }
}

/// Redacts matches in the pieces that they span: the first piece gets the mask.
fn hide(path: &Path, found: &mut Vec<Redaction>, waiting: &mut WaitingEvents) {
    for place in found.drain(..) {
        let mut mask = place.mask;
        for open in &path.open {
            let from = place.range.start.max(open.place.start);
            let to = place.range.end.min(open.place.end);
            if from >= to {
                continue;
            }
            let within = |at: u64| usize::try_from(at - open.place.start).unwrap_or(usize::MAX);
            if let Some(piece) = waiting.piece(open.piece) {
                piece.masks.replace(within(from)..within(to), std::mem::take(&mut mask));
            }
        }
    }
}

impl Waiting {
    /// Appends the event with its pieces redacted.
    fn write(self, out: &mut Vec<u8>) {
        let mut patches: Vec<Patch> = Vec::new();
        for piece in self.pieces {
            if piece.masks.is_empty() {
                continue;
            }
            let source = self.event.get(piece.text.range.clone()).unwrap_or_default();
            let source = String::from_utf8_lossy(source);
            let replacement = match piece.text.form {
                Form::Number => Replacement::Json("0"),
                Form::Plain => Replacement::Plain(piece.masks.apply(&source)),
                Form::String => {
                    let inside = source.get(1..source.len() - 1).unwrap_or_default();
                    Replacement::String(piece.masks.apply(&decode(inside)))
                }
            };
            let copies = piece.text.copies.into_iter();
            patches.extend(copies.map(|(range, json)| (range, Replacement::Json(json))));
            patches.push((piece.text.range, replacement));
        }
        patches.sort_by_key(|(range, _)| (range.start, std::cmp::Reverse(range.end)));
        let copied = apply(&self.event, &patches, out);
        out.extend_from_slice(self.event.get(copied..).unwrap_or_default());
    }
}
