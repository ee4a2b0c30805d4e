//! The kernel's own notes of when bytes arrived (socket(7), `SO_TIMESTAMPNS`), in nanoseconds since 1970 UTC.
//!
//! On the loopback interface the kernel notes an arrival while the client writes, so the note tells when the client
//! sent, however late the server reads.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};

/// Asks for notes, on a listener for all its connections.
pub(super) fn ask(listener: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(listener, ReceiveTimestampns, &true)?)
}

/// Reads, with the note about the last of the bytes, or the time where there is none.
pub(super) fn receive(
    socket: &impl AsRawFd,
    buffer: &mut [u8],
    flags: MsgFlags,
) -> io::Result<(usize, u64)> {
    let mut room = nix::cmsg_space!(TimeSpec);
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(socket.as_raw_fd(), &mut slices, Some(&mut room), flags)?;
    let note = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
        _ => None,
    });
    Ok((message.bytes, note.unwrap_or_else(now)))
}

/// Waits for bytes, leaves them where they are, and tells when they arrived.
pub(super) fn await_arrival(socket: &impl AsRawFd) -> io::Result<u64> {
    receive(socket, &mut [0], MsgFlags::MSG_PEEK).map(|(_, note)| note)
}

/// The time.
pub(super) fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos)
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}
