//! Flow-control windows (RFC 9113, sections 5.2 and 6.9).

/// Our receive window for one stream: large enough that round trips do not throttle a response.
pub(super) const STREAM_WINDOW: u32 = 4 << 20;
/// Our receive window for all streams of a connection.
pub(super) const CONNECTION_WINDOW: u32 = 64 << 20;

/// The largest possible window.
pub(super) const MAX_WINDOW: i64 = (1 << 31) - 1;
/// The initial window of a connection, and of a stream until the settings change it.
pub(super) const INITIAL_WINDOW: i64 = 65_535;
/// Below this size of our window the target may be waiting: a typical frame no longer fits.
const LOW: i64 = 16_384;

/// A window became larger than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

/// The target sent more than our window allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overrun;

/// Bytes that we may send. Negative after the target has lowered its initial window (section
/// 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) const fn new(size: i64) -> Self {
        Self(size)
    }

    /// Bytes that may be sent now.
    pub(super) fn available(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// Records sent bytes, at most those available.
    pub(super) fn sent(&mut self, bytes: usize) {
        self.0 -= i64::try_from(bytes).unwrap_or(MAX_WINDOW);
    }

    /// Changes the window: the target opened it, or changed its initial size.
    pub(super) const fn change(&mut self, by: i64) -> Result<(), Overflow> {
        self.0 += by;
        if self.0 > MAX_WINDOW { Err(Overflow) } else { Ok(()) }
    }
}

/// Bytes that the target may send. Updates are sent lazily: when half of the window is free again.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    size: u32,
    available: i64,
    /// Consumed bytes that were not announced to the target yet.
    unannounced: u32,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { size, available: i64::from(size), unannounced: 0 }
    }

    /// Records received bytes.
    pub(super) fn receive(&mut self, bytes: usize) -> Result<(), Overrun> {
        self.available -= i64::try_from(bytes).unwrap_or(MAX_WINDOW);
        if self.available < 0 { Err(Overrun) } else { Ok(()) }
    }

    /// Records consumed bytes. Returns the window update to send, if one is due.
    pub(super) fn consume(&mut self, bytes: usize) -> Option<u32> {
        self.unannounced += u32::try_from(bytes).unwrap_or(u32::MAX - self.unannounced);
        if self.unannounced < self.size / 2 {
            return None;
        }
        self.available += i64::from(self.unannounced);
        Some(std::mem::take(&mut self.unannounced))
    }

    /// Whether the target may be waiting for a window update.
    pub(super) const fn is_low(&self) -> bool {
        self.available < LOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_lowered_below_the_sent_bytes_is_negative() {
        let mut window = SendWindow::new(INITIAL_WINDOW);
        window.sent(60_000);
        // RFC 9113, 6.9.2: from 64 KB to 16 KB after 60 KB were sent gives minus 44 KB.
        assert_eq!(window.change(16_384 - INITIAL_WINDOW), Ok(()));
        assert_eq!((window, window.available()), (SendWindow(-43_616), 0));
        assert_eq!(window.change(43_617), Ok(()));
        assert_eq!(window.available(), 1);
        assert_eq!(window.change(MAX_WINDOW), Err(Overflow));
    }

    #[test]
    fn an_update_is_due_when_half_of_the_window_is_free() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!((window.receive(60), window.consume(49)), (Ok(()), None));
        assert_eq!(window.consume(1), Some(50));
        assert_eq!((window.receive(90), window.receive(1)), (Ok(()), Err(Overrun)));
    }

    #[test]
    fn a_window_too_small_for_a_frame_is_low() {
        let mut window = ReceiveWindow::new(40_000);
        window.receive(23_000).unwrap();
        assert!(!window.is_low());
        window.receive(1_000).unwrap();
        assert!(window.is_low());
    }
}
