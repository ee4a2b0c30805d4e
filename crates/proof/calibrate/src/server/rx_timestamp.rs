//! The kernel's receive timestamps (socket(7), `SO_TIMESTAMPNS`), in nanoseconds since 1970 UTC.
//!
//! On the loopback interface the kernel takes them while the client writes. They show when the
//! client sent, however late the server reads.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Turns timestamps on; on a listener, for all its connections.
pub(super) fn enable(listener: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(listener, ReceiveTimestampns, &true)?)
}

/// Reads bytes, and the timestamp of the last byte, or the current time if the kernel has none.
pub(super) fn receive(
    socket: &impl AsRawFd,
    buffer: &mut [u8],
    flags: MsgFlags,
) -> io::Result<(usize, u64)> {
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags)?;
    let timestamp = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
        _ => None,
    });
    Ok((message.bytes, timestamp.unwrap_or_else(now)))
}

/// Waits for bytes without consuming them, and returns the time of their arrival.
pub(super) fn wait_for_bytes(socket: &impl AsRawFd) -> io::Result<u64> {
    receive(socket, &mut [0], MsgFlags::MSG_PEEK).map(|(_, timestamp)| timestamp)
}

/// The current time.
pub(super) fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos)
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}
