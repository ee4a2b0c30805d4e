//! What the target's settings say (RFC 9113, section 6.5.2).

use super::error::{Code, Violation};
use super::flow::{INITIAL_WINDOW, MAX_WINDOW};

pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(super) const MAX_FRAME_SIZE: u16 = 0x5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;

/// Streams that are opened at once before the target has said how many it allows: the least that it should
/// (section 6.5.2).
const CAUTIOUS_STREAMS: usize = 100;

/// What holds for what we send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) initial_window: i64,
    pub(super) max_frame: usize,
    pub(super) max_streams: usize,
}

/// What a setting asks for at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The windows of all streams change by so much.
    Windows(i64),
    /// So large may the encoder's table be.
    Table(usize),
}

impl Default for Peer {
    fn default() -> Self {
        Self { initial_window: INITIAL_WINDOW, max_frame: 16_384, max_streams: CAUTIOUS_STREAMS }
    }
}

impl Peer {
    /// Takes one setting over.
    pub(super) fn set(&mut self, identifier: u16, value: u32) -> Result<Option<Change>, Violation> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match identifier {
            HEADER_TABLE_SIZE => return Ok(Some(Change::Table(size))),
            ENABLE_PUSH if value != 0 => {
                return Err(Violation::protocol("a server must not allow pushes"));
            }
            MAX_CONCURRENT_STREAMS => self.max_streams = size,
            INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                if window > MAX_WINDOW {
                    let detail = "the initial window is too large";
                    return Err(Violation::new(Code::FLOW_CONTROL_ERROR, detail));
                }
                let before = std::mem::replace(&mut self.initial_window, window);
                return Ok(Some(Change::Windows(window - before)));
            }
            MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                return Err(Violation::protocol("the frame size is out of bounds"));
            }
            MAX_FRAME_SIZE => self.max_frame = size,
            _ => {}
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_taken_over_and_checked() {
        let mut peer = Peer::default();
        assert_eq!(peer.set(INITIAL_WINDOW_SIZE, 35), Ok(Some(Change::Windows(-65_500))));
        assert_eq!(peer.set(HEADER_TABLE_SIZE, 0), Ok(Some(Change::Table(0))));
        assert_eq!((peer.set(MAX_CONCURRENT_STREAMS, 0), peer.max_streams), (Ok(None), 0));
        assert_eq!((peer.set(MAX_FRAME_SIZE, 16_777_215), peer.max_frame), (Ok(None), 16_777_215));
        assert_eq!((peer.set(ENABLE_PUSH, 0), peer.set(0x99, 7)), (Ok(None), Ok(None)));
        for (identifier, value, code) in [
            (ENABLE_PUSH, 1, Code::PROTOCOL_ERROR),
            (INITIAL_WINDOW_SIZE, 1 << 31, Code::FLOW_CONTROL_ERROR),
            (MAX_FRAME_SIZE, 16_383, Code::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, Code::PROTOCOL_ERROR),
        ] {
            let found = peer.set(identifier, value).map_err(|violation| violation.code);
            assert_eq!(found, Err(code), "{identifier}");
        }
    }
}
