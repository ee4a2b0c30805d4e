//! Non-blocking reads of a TCP socket, with kernel time stamps.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsRawFd as _, RawFd};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recv, recvmsg};
use nix::sys::time::TimeSpec;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// The result of one read system call.
#[derive(Clone, Copy, Debug)]
pub(super) struct RawRead {
    pub(super) length: usize,
    /// Kernel time stamp of the last bytes.
    pub(super) kernel_time: Option<TimeSpec>,
}

/// Reads once. A read that does not fill the buffer has emptied the socket, so the readiness is
/// cleared right away. This saves the next read a failing system call (epoll(7), edge-triggered
/// mode).
pub(super) fn read_raw(
    tcp: &TcpStream,
    capacity: usize,
    read: impl FnOnce(RawFd) -> io::Result<RawRead>,
) -> io::Result<RawRead> {
    let fd = tcp.as_raw_fd();
    let mut short = None;
    let result = tcp.try_io(Interest::READABLE, || {
        let received = read(fd)?;
        if received.length < capacity {
            short = Some(received);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(received)
    });
    short.map_or(result, Ok)
}

/// Reads bytes, with the kernel's time stamp if enabled.
pub(super) fn receive(
    fd: RawFd,
    timestamped: bool,
    buffer: &mut [u8],
    control: &mut [u8],
) -> io::Result<RawRead> {
    if timestamped { receive_timed(fd, buffer, control) } else { receive_untimed(fd, buffer) }
}

/// Reads bytes without a time stamp.
pub(super) fn receive_untimed(fd: RawFd, buffer: &mut [u8]) -> io::Result<RawRead> {
    Ok(RawRead { length: recv(fd, buffer, MsgFlags::MSG_DONTWAIT)?, kernel_time: None })
}

/// Reads bytes with the kernel's time stamp of the last one.
fn receive_timed(fd: RawFd, buffer: &mut [u8], control: &mut [u8]) -> io::Result<RawRead> {
    let mut slices = [IoSliceMut::new(buffer)];
    let message = recvmsg::<()>(fd, &mut slices, Some(control), MsgFlags::MSG_DONTWAIT)?;
    let kernel_time = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(time),
        _ => None,
    });
    Ok(RawRead { length: message.bytes, kernel_time })
}
