//! Windows (RFC 9113, section 5.2 and 6.9).

/// The largest window there can be.
pub(super) const MAX_WINDOW: i64 = (1 << 31) - 1;
/// The window with which a connection starts, and a stream before the settings say otherwise.
pub(super) const INITIAL_WINDOW: i64 = 65_535;
/// Room of ours below which the target may be waiting for more: a usual frame no longer fits.
const TIGHT: i64 = 16_384;

/// A window became larger than any may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overflow;

/// The target sent more than it was allowed to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Overrun;

/// How much we may send. It can be negative, after the target has lowered its initial window (section 6.9.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SendWindow(i64);

impl SendWindow {
    pub(super) const fn new(size: i64) -> Self {
        Self(size)
    }

    /// Bytes that may be sent now.
    pub(super) fn room(self) -> usize {
        usize::try_from(self.0).unwrap_or(0)
    }

    /// So many were sent, no more than there was room for.
    pub(super) fn take(&mut self, bytes: usize) {
        self.0 -= i64::try_from(bytes).unwrap_or(MAX_WINDOW);
    }

    /// The target made room, or changed the window's initial size.
    pub(super) const fn change(&mut self, by: i64) -> Result<(), Overflow> {
        self.0 += by;
        if self.0 > MAX_WINDOW { Err(Overflow) } else { Ok(()) }
    }
}

/// How much the target may send. It is told of room lazily: when half of the window is free again.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReceiveWindow {
    size: u32,
    left: i64,
    /// Bytes that were consumed and that the target has not been told of.
    freed: u32,
}

impl ReceiveWindow {
    pub(super) fn new(size: u32) -> Self {
        Self { size, left: i64::from(size), freed: 0 }
    }

    /// The target sent so much.
    pub(super) fn receive(&mut self, bytes: usize) -> Result<(), Overrun> {
        self.left -= i64::try_from(bytes).unwrap_or(MAX_WINDOW);
        if self.left < 0 { Err(Overrun) } else { Ok(()) }
    }

    /// So much of it was used; what the target is to be told, if anything.
    pub(super) fn consume(&mut self, bytes: usize) -> Option<u32> {
        self.freed += u32::try_from(bytes).unwrap_or(u32::MAX - self.freed);
        if self.freed < self.size / 2 {
            return None;
        }
        self.left += i64::from(self.freed);
        Some(std::mem::take(&mut self.freed))
    }

    /// May the target be waiting for us?
    pub(super) const fn is_tight(&self) -> bool {
        self.left < TIGHT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_that_was_lowered_below_what_was_sent_is_negative_for_a_while() {
        let mut window = SendWindow::new(INITIAL_WINDOW);
        window.take(60_000);
        // RFC 9113, 6.9.2: from 64 KB to 16 KB after 60 KB were sent gives minus 44 KB.
        assert_eq!(window.change(16_384 - INITIAL_WINDOW), Ok(()));
        assert_eq!((window, window.room()), (SendWindow(-43_616), 0));
        assert_eq!(window.change(43_617), Ok(()));
        assert_eq!(window.room(), 1);
        assert_eq!(window.change(MAX_WINDOW), Err(Overflow));
    }

    #[test]
    fn room_is_told_when_half_of_it_is_free() {
        let mut window = ReceiveWindow::new(100);
        assert_eq!((window.receive(60), window.consume(49)), (Ok(()), None));
        assert_eq!(window.consume(1), Some(50));
        assert_eq!((window.receive(90), window.receive(1)), (Ok(()), Err(Overrun)));
    }

    #[test]
    fn a_window_without_room_for_a_frame_is_tight() {
        let mut window = ReceiveWindow::new(40_000);
        window.receive(23_000).unwrap();
        assert!(!window.is_tight());
        window.receive(1_000).unwrap();
        assert!(window.is_tight());
    }
}
