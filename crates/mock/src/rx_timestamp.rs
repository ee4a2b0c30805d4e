//! The kernel's receive timestamps (`SO_TIMESTAMPNS`, see socket(7)).
//!
//! A busy or sleeping worker reads bytes later than they arrived. The kernel stamps a segment when
//! the network stack receives it; on the loopback interface that is while the client writes.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;

use crate::clock::Clock;

/// Enables receive timestamps; accepted connections inherit the option from their listener. A
/// kernel without support sets no timestamps.
pub(crate) fn enable(listener: &impl AsFd) {
    let _ = setsockopt(listener, ReceiveTimestampns, &true);
}

/// When the first unread bytes arrived, as a monotonic time. `None` if there are none, or without a
/// kernel timestamp. Does not consume the bytes.
pub(crate) fn peek(socket: &impl AsRawFd, clock: Clock) -> Option<u64> {
    let (mut byte, mut control) = ([0; 1], nix::cmsg_space!(TimeSpec));
    let mut slices = [IoSliceMut::new(&mut byte)];
    let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags).ok()?;
    let stamp = message.cmsgs().ok()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    })?;
    Some(clock.moment_of(stamp))
}
