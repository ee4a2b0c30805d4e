//! The streams of a connection: the open ones, and those that we reset.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

use super::{ReceiveWindow, SendWindow};

/// Number of reset streams that are remembered. Frames may still arrive for them and are ignored
/// (RFC 9113, section 5.1). Frames for older streams are ignored without a check.
const MAX_RESETS: usize = 256;

/// The slot of a stream, until its owner closes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamKey(pub usize);

/// One stream, from the client's side.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: u32,
    pub(super) send: SendWindow,
    pub(super) receive: ReceiveWindow,
    /// Whether the request is sent to its end.
    pub(super) sent: bool,
    /// The progress of the response.
    pub(super) response: ResponsePhase,
    /// Bytes of the body that must still arrive, if its length was announced.
    pub(super) body_bytes_left: Option<u64>,
    /// Bytes of the body that were received and not yet consumed.
    pub(super) unread: usize,
    /// Whether it is a `HEAD` request, whose response has no body.
    pub(super) is_head_request: bool,
}

/// The progress of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ResponsePhase {
    /// Its final head has not arrived.
    AwaitingHead,
    /// Its body is arriving.
    Body,
    /// It is complete, or the stream was reset.
    Done,
}

/// All streams of a connection.
#[derive(Debug, Default)]
pub(super) struct StreamTable {
    slots: Vec<Option<Stream>>,
    free: Vec<usize>,
    /// Slots by stream id, for streams that can receive frames. A closed one may still have a slot.
    ids: HashMap<u32, usize, BuildHasherDefault<IdHasher>>,
    resets: VecDeque<u32>,
    /// Reset streams up to this id have been forgotten.
    forgotten: u32,
}

/// The stream of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// It is open.
    Open(StreamKey),
    /// We reset it. The target may not have known when it sent the frame.
    Reset,
    /// It is closed.
    Closed,
}

impl StreamTable {
    pub(super) fn insert(&mut self, stream: Stream) -> StreamKey {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.ids.insert(stream.id, slot);
        self.slots[slot] = Some(stream);
        StreamKey(slot)
    }

    pub(super) fn get(&mut self, key: StreamKey) -> Option<&mut Stream> {
        self.slots.get_mut(key.0)?.as_mut()
    }

    /// Number of streams that count against the target's limit (section 5.1.2).
    pub(super) fn open_count(&self) -> usize {
        self.ids.len()
    }

    /// Looks up the stream of a frame. It must have been opened at some time.
    pub(super) fn find(&self, id: u32) -> Lookup {
        match self.ids.get(&id) {
            Some(&slot) => Lookup::Open(StreamKey(slot)),
            None if id <= self.forgotten || self.resets.contains(&id) => Lookup::Reset,
            None => Lookup::Closed,
        }
    }

    /// Stops expecting frames for a stream. `reset`: whether we reset it.
    pub(super) fn close(&mut self, id: u32, reset: bool) {
        if self.ids.remove(&id).is_none() || !reset {
            return;
        }
        if self.resets.len() >= MAX_RESETS {
            self.forgotten = self.forgotten.max(self.resets.pop_front().unwrap_or(0));
        }
        self.resets.push_back(id);
    }

    /// Frees a slot.
    pub(super) fn remove(&mut self, key: StreamKey) -> Option<Stream> {
        let stream = self.slots.get_mut(key.0)?.take()?;
        self.free.push(key.0);
        Some(stream)
    }

    /// All streams with a slot.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = (StreamKey, &mut Stream)> {
        let slots = self.slots.iter_mut().enumerate();
        slots.filter_map(|(slot, stream)| Some((StreamKey(slot), stream.as_mut()?)))
    }
}

/// Hashes stream ids. We choose them ourselves, so collisions cannot be provoked.
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
        // The golden ratio times 2^64 spreads neighbours (Knuth, section 6.4).
        self.0 = (self.0 ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::INITIAL_WINDOW;

    fn stream(id: u32) -> Stream {
        Stream {
            id,
            send: SendWindow::new(INITIAL_WINDOW),
            receive: ReceiveWindow::new(100),
            sent: false,
            response: ResponsePhase::AwaitingHead,
            body_bytes_left: None,
            unread: 0,
            is_head_request: false,
        }
    }

    #[test]
    fn slots_are_reused_only_after_they_are_freed() {
        let mut streams = StreamTable::default();
        let (a, b) = (streams.insert(stream(1)), streams.insert(stream(3)));
        assert_eq!((a, b, streams.open_count()), (StreamKey(0), StreamKey(1), 2));
        streams.close(1, false);
        assert_eq!(
            (streams.open_count(), streams.find(1), streams.find(3)),
            (1, Lookup::Closed, Lookup::Open(b))
        );
        assert_eq!(streams.insert(stream(5)), StreamKey(2));
        assert_eq!(streams.remove(a).map(|stream| stream.id), Some(1));
        assert_eq!(streams.insert(stream(7)), StreamKey(0));
    }

    #[test]
    fn recent_resets_are_remembered_and_older_streams_count_as_reset() {
        let mut streams = StreamTable::default();
        let last = u32::try_from(MAX_RESETS).unwrap() * 2 + 9;
        for id in (3..=last).step_by(2) {
            streams.insert(stream(id));
            streams.close(id, true);
        }
        streams.insert(stream(last + 2));
        streams.close(last + 2, false);
        assert_eq!((streams.find(last), streams.find(3)), (Lookup::Reset, Lookup::Reset));
        assert_eq!(streams.find(1), Lookup::Reset, "too old to say");
        assert_eq!(streams.find(last + 2), Lookup::Closed);
        assert_eq!(streams.resets.len(), MAX_RESETS);
    }
}
