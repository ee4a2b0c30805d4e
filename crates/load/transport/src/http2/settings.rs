//! The target's settings (RFC 9113, section 6.5.2).

use super::{ConnectionError, ErrorCode, INITIAL_WINDOW, MAX_WINDOW};

pub(super) const HEADER_TABLE_SIZE: u16 = 0x1;
pub(super) const ENABLE_PUSH: u16 = 0x2;
pub(super) const MAX_CONCURRENT_STREAMS: u16 = 0x3;
pub(super) const INITIAL_WINDOW_SIZE: u16 = 0x4;
pub(super) const MAX_FRAME_SIZE: u16 = 0x5;
pub(super) const MAX_HEADER_LIST_SIZE: u16 = 0x6;

/// Streams opened before the target has announced its limit: the minimum that the standard
/// recommends (section 6.5.2).
const DEFAULT_MAX_STREAMS: usize = 100;

/// Limits for frames that we send.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerSettings {
    pub(super) initial_window: i64,
    pub(super) max_frame: usize,
    pub(super) max_streams: usize,
}

/// An immediate effect of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingChange {
    /// The windows of all streams change by this amount.
    StreamWindows(i64),
    /// The maximum size of the encoder's table.
    MaxTableSize(usize),
}

impl Default for PeerSettings {
    fn default() -> Self {
        Self { initial_window: INITIAL_WINDOW, max_frame: 16_384, max_streams: DEFAULT_MAX_STREAMS }
    }
}

impl PeerSettings {
    /// Applies one setting.
    pub(super) fn apply(
        &mut self,
        identifier: u16,
        value: u32,
    ) -> Result<Option<SettingChange>, ConnectionError> {
        let size = usize::try_from(value).unwrap_or(usize::MAX);
        match identifier {
            HEADER_TABLE_SIZE => return Ok(Some(SettingChange::MaxTableSize(size))),
            ENABLE_PUSH if value != 0 => {
                return Err(ConnectionError::protocol("a server must not allow pushes"));
            }
            MAX_CONCURRENT_STREAMS => self.max_streams = size,
            INITIAL_WINDOW_SIZE => {
                let window = i64::from(value);
                if window > MAX_WINDOW {
                    let detail = "the initial window is too large";
                    return Err(ConnectionError::new(ErrorCode::FLOW_CONTROL_ERROR, detail));
                }
                let before = std::mem::replace(&mut self.initial_window, window);
                return Ok(Some(SettingChange::StreamWindows(window - before)));
            }
            MAX_FRAME_SIZE if !(16_384..=16_777_215).contains(&value) => {
                return Err(ConnectionError::protocol("the frame size is out of bounds"));
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
    fn settings_are_applied_and_checked() {
        let mut peer = PeerSettings::default();
        assert_eq!(
            peer.apply(INITIAL_WINDOW_SIZE, 35),
            Ok(Some(SettingChange::StreamWindows(-65_500)))
        );
        assert_eq!(peer.apply(HEADER_TABLE_SIZE, 0), Ok(Some(SettingChange::MaxTableSize(0))));
        assert_eq!((peer.apply(MAX_CONCURRENT_STREAMS, 0), peer.max_streams), (Ok(None), 0));
        assert_eq!(
            (peer.apply(MAX_FRAME_SIZE, 16_777_215), peer.max_frame),
            (Ok(None), 16_777_215)
        );
        assert_eq!((peer.apply(ENABLE_PUSH, 0), peer.apply(0x99, 7)), (Ok(None), Ok(None)));
        for (identifier, value, code) in [
            (ENABLE_PUSH, 1, ErrorCode::PROTOCOL_ERROR),
            (INITIAL_WINDOW_SIZE, 1 << 31, ErrorCode::FLOW_CONTROL_ERROR),
            (MAX_FRAME_SIZE, 16_383, ErrorCode::PROTOCOL_ERROR),
            (MAX_FRAME_SIZE, 1 << 24, ErrorCode::PROTOCOL_ERROR),
        ] {
            let found = peer.apply(identifier, value).map_err(|error| error.code);
            assert_eq!(found, Err(code), "{identifier}");
        }
    }
}
