//! The open streams of a connection, and what is remembered of closed ones.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::flow::{ReceiveWindow, SendWindow};

/// Streams that we reset and that frames may still come for, which are then ignored (RFC 9113, section 5.1). For older
/// ones it is no longer checked whether we did.
const REMEMBERED: usize = 256;

/// The place of a stream, for as long as its owner keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub usize);

/// One stream, from the client's side.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    /// Have we sent all?
    pub(super) sent: bool,
    /// How far is the response?
    pub(super) response: Response,
    /// Bytes of the body that were announced and are still missing.
    pub(super) missing: Option<u64>,
    /// Bytes of the body that were received and not yet used.
    pub(super) unread: usize,
    /// Has the response to this request no body, whatever it announces?
    pub(super) to_head: bool,
}

/// How far a response is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Response {
    /// Its final head has not come.
    Awaited,
    /// Its body is coming.
    Body,
    /// It has ended, or the stream was reset.
    Over,
}

/// All streams of a connection.
#[derive(Debug, Default)]
pub(super) struct Streams {
    places: Vec<Option<Stream>>,
    free: Vec<usize>,
    /// Streams that frames are for. One that is over may still have its place.
    ids: HashMap<u32, usize, BuildHasherDefault<IdHasher>>,
    resets: VecDeque<u32>,
    /// Streams up to here are no longer told apart.
    forgotten: u32,
}

/// What a frame's stream is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is open.
    Open(Key),
    /// We reset it: the target may not have known when it sent this.
    Reset,
    /// It is over.
    Closed,
}

impl Streams {
    pub(super) fn insert(&mut self, stream: Stream) -> Key {
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            self.places.len() - 1
        });
        self.ids.insert(stream.id, place);
        self.places[place] = Some(stream);
        Key(place)
    }

    pub(super) fn get(&mut self, key: Key) -> Option<&mut Stream> {
        self.places.get_mut(key.0)?.as_mut()
    }

    /// Streams that count against the target's limit (section 5.1.2).
    pub(super) fn open(&self) -> usize {
        self.ids.len()
    }

    /// The stream of a frame, which was opened at some time.
    pub(super) fn find(&self, id: u32) -> Found {
        match self.ids.get(&id) {
            Some(&place) => Found::Open(Key(place)),
            None if id <= self.forgotten || self.resets.contains(&id) => Found::Reset,
            None => Found::Closed,
        }
    }

    /// No frame is expected for a stream any more; `reset` if we cut it off.
    pub(super) fn close(&mut self, id: u32, reset: bool) {
        if self.ids.remove(&id).is_none() || !reset {
            return;
        }
        if self.resets.len() >= REMEMBERED {
            self.forgotten = self.forgotten.max(self.resets.pop_front().unwrap_or(0));
        }
        self.resets.push_back(id);
    }

    /// Gives a place back.
    pub(super) fn remove(&mut self, key: Key) -> Option<Stream> {
        let stream = self.places.get_mut(key.0)?.take()?;
        self.free.push(key.0);
        Some(stream)
    }

    /// Every stream that has a place.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (Key, &mut Stream)> {
        let places = self.places.iter_mut().enumerate();
        places.filter_map(|(place, stream)| Some((Key(place), stream.as_mut()?)))
    }
}

/// Spreads the odd numbers of streams; they come from us, so that nobody can choose them badly.
#[derive(Debug, Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }

    fn write_u32(&mut self, id: u32) {
        // The golden ratio times 2^64: neighbours land far apart (Knuth, section 6.4).
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::flow::INITIAL_WINDOW;

    fn stream(id: u32) -> Stream {
        Stream {
            id,
            send: SendWindow::new(INITIAL_WINDOW),
            receive: ReceiveWindow::new(100),
            sent: false,
            response: Response::Awaited,
            missing: None,
            unread: 0,
            to_head: false,
        }
    }

    #[test]
    fn places_are_used_again_when_they_are_given_back_and_not_before() {
        let mut streams = Streams::default();
        let (a, b) = (streams.insert(stream(1)), streams.insert(stream(3)));
        assert_eq!((a, b, streams.open()), (Key(0), Key(1), 2));
        streams.close(1, false);
        assert_eq!(
            (streams.open(), streams.find(1), streams.find(3)),
            (1, Found::Closed, Found::Open(b))
        );
        assert_eq!(streams.insert(stream(5)), Key(2));
        assert_eq!(streams.remove(a).map(|stream| stream.id), Some(1));
        assert_eq!(streams.insert(stream(7)), Key(0));
    }

    #[test]
    fn resets_are_remembered_and_old_ones_no_longer_told_apart() {
        let mut streams = Streams::default();
        let last = u32::try_from(REMEMBERED).unwrap() * 2 + 9;
        for id in (3..=last).step_by(2) {
            streams.insert(stream(id));
            streams.close(id, true);
        }
        streams.insert(stream(last + 2));
        streams.close(last + 2, false);
        assert_eq!((streams.find(last), streams.find(3)), (Found::Reset, Found::Reset));
        assert_eq!(streams.find(1), Found::Reset, "too old to say");
        assert_eq!(streams.find(last + 2), Found::Closed);
        assert_eq!(streams.resets.len(), REMEMBERED);
    }
}
