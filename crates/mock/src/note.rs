//! The kernel's own note of when bytes arrived.
//!
//! A busy or sleeping worker reads later than the bytes came. With `SO_TIMESTAMPNS` the kernel notes when the network
//! stack received a segment (socket(7)); on the loopback interface that is while the client writes.

use std::io::IoSliceMut;
use std::os::fd::AsRawFd;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// Asks the kernel to note arrivals, on a listener for all its connections. Where it does not, there are none.
pub(crate) fn ask(listener: &impl std::os::fd::AsFd) {
    let _ = setsockopt(listener, ReceiveTimestampns, &true);
}

/// When the bytes that wait to be read arrived, as a monotonic reading; `None` where none wait, or the kernel does not
/// say. The bytes are left where they are.
pub(crate) fn arrival(socket: &impl AsRawFd, clock: Clock) -> Option<u64> {
    let (mut byte, mut room) = ([0; 1], nix::cmsg_space!(TimeSpec));
    let mut slices = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut room), flags).ok()?;
    let note = message.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    })?;
    // The note is of the wall clock, which may be stepped: its age is what counts.
    let now = clock.now();
    Some(now.saturating_sub(Clock::age(note)))
}
