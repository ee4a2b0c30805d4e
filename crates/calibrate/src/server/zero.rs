//! A server that does nothing: it answers every request at once with the same bytes.
//!
//! It asks the kernel when it received each request (socket(7), `SO_TIMESTAMPNS`). On the loopback interface the
//! kernel notes that while the client sends, so the note tells when the client sent, however late this server reads.

use std::cell::{Cell, RefCell};
use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::os::fd::AsRawFd as _;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use crate::wait;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// Large enough for any request of a test; they have no bodies.
const ROOM: usize = 4_096;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;

/// How the server behaves.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct ZeroSpec {
    /// A pause of the whole server.
    pub(crate) pause: Option<Pause>,
    /// Is every request noted?
    pub(crate) log: bool,
}

/// A time in which the server does nothing at all.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// How long after its first request it begins.
    pub(crate) after: Duration,
    /// How long it lasts.
    pub(crate) length: Duration,
}

/// A request that was received. Times are nanoseconds since 1970 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Received {
    /// The number in its path.
    pub(crate) seq: u64,
    /// When the kernel received it.
    pub(crate) at: u64,
    /// When its answer had been handed to the kernel.
    pub(crate) answered: u64,
}

/// The running server.
#[derive(Debug)]
pub(crate) struct Zero {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<Vec<Received>>>,
}

impl Zero {
    pub(crate) fn start(addr: SocketAddr, spec: ZeroSpec) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listener = runtime.block_on(async { listen(addr) })?;
        let addr = listener.local_addr()?;
        let (stop, stopped) = watch::channel(false);
        let thread = super::thread("zero", move || run(&runtime, listener, stopped, spec))?;
        Ok(Self { addr, stop, thread: Some(thread) })
    }

    pub(crate) const fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn finish(mut self) -> Vec<Received> {
        self.end()
    }

    fn end(&mut self) -> Vec<Received> {
        // It fails where the server has ended by itself.
        let _ = self.stop.send(true);
        let log = self.thread.take().map(JoinHandle::join);
        // A server that panicked knows nothing.
        log.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Zero {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// What all connections share.
struct Shared {
    spec: ZeroSpec,
    begun: Cell<bool>,
    log: RefCell<Vec<Received>>,
}

fn run(
    runtime: &Runtime,
    listener: TcpListener,
    mut stopped: watch::Receiver<bool>,
    spec: ZeroSpec,
) -> Vec<Received> {
    let shared = Rc::new(Shared { spec, begun: Cell::new(false), log: RefCell::default() });
    let tasks = LocalSet::new();
    tasks.block_on(runtime, async {
        tokio::select! {
            () = accept(&listener, &shared) => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    });
    shared.log.take()
}

/// Ends when the system gives no more connections.
async fn accept(listener: &TcpListener, shared: &Rc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        // Without the kernel's notes a request is noted when it is read.
        let _ = setsockopt(&stream, ReceiveTimestampns, &true);
        let shared = Rc::clone(shared);
        spawn_local(async move {
            // A client that breaks a connection has its reasons.
            let _ = serve(&stream, &shared).await;
        });
    }
}

async fn serve(stream: &TcpStream, shared: &Rc<Shared>) -> io::Result<()> {
    let mut buffer = [0; ROOM];
    let mut held = 0;
    loop {
        stream.readable().await?;
        let read = stream.try_io(Interest::READABLE, || receive(stream, &mut buffer[held..]));
        let (length, note) = match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
            read => read?,
        };
        if length == 0 {
            return Ok(());
        }
        held += length;
        if !buffer[..held].ends_with(END_OF_HEAD) {
            continue;
        }
        shared.begin();
        let at = note.unwrap_or_else(wall);
        answer(stream).await?;
        shared.note(&buffer[..held], at);
        held = 0;
    }
}

async fn answer(stream: &TcpStream) -> io::Result<()> {
    let mut rest = ANSWER;
    while !rest.is_empty() {
        match stream.try_write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Shared {
    /// The first request starts the clock of the pause.
    fn begin(&self) {
        let Some(pause) = self.spec.pause.filter(|_| !self.begun.replace(true)) else { return };
        spawn_local(async move {
            tokio::time::sleep(pause.after).await;
            // Blocks the only thread: nothing is accepted, read or answered.
            wait::rest(pause.length);
        });
    }

    fn note(&self, head: &[u8], at: u64) {
        if self.spec.log {
            self.log.borrow_mut().push(Received { seq: number(head), at, answered: wall() });
        }
    }
}

/// The digits after `GET /`.
fn number(head: &[u8]) -> u64 {
    let digits = head.iter().skip(5).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
}

/// One read, with the kernel's note about the last of its bytes.
fn receive(stream: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
    let mut room = nix::cmsg_space!(TimeSpec);
    let mut slices = [IoSliceMut::new(buffer)];
    let fd = stream.as_raw_fd();
    let message = recvmsg::<()>(fd, &mut slices, Some(&mut room), MsgFlags::MSG_DONTWAIT)?;
    let note = message.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(time) => Some(nanos(time)),
        _ => None,
    });
    Ok((message.bytes, note))
}

fn wall() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos)
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream as Client;

    #[test]
    fn every_request_is_answered_and_noted_by_its_number_in_order() {
        let zero = Zero::start(
            SocketAddr::from(([127, 0, 0, 1], 0)),
            ZeroSpec { log: true, ..ZeroSpec::default() },
        )
        .unwrap();
        let before = wall();
        let mut client = Client::connect(zero.addr()).unwrap();
        for seq in [7, 123] {
            // In two pieces.
            write!(client, "GET /{seq} HTTP/1.1\r\n").unwrap();
            client.write_all(b"host: x\r\n\r\n").unwrap();
            let mut answer = vec![0; ANSWER.len()];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, ANSWER);
        }
        let log = zero.finish();
        assert_eq!(log.iter().map(|received| received.seq).collect::<Vec<_>>(), [7, 123]);
        assert!(
            before <= log[0].at && log[0].at <= log[0].answered && log[0].answered <= log[1].at
        );
    }
}
