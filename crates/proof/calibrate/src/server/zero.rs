//! A server that does nothing: it answers every request at once with the same bytes, and notes when it arrived.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::MsgFlags;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use super::note;
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
    /// Pauses of the whole server.
    pub(crate) pauses: Vec<Pause>,
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

/// A request that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Received {
    /// The number in its path.
    pub(crate) seq: u64,
    /// When the kernel received it, in nanoseconds since 1970 UTC.
    pub(crate) at: u64,
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
        let thread = super::thread("zero", move || run(&runtime, &listener, stopped, spec))?;
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
    note::ask(&socket)?;
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
    listener: &TcpListener,
    mut stopped: watch::Receiver<bool>,
    spec: ZeroSpec,
) -> Vec<Received> {
    let shared = Rc::new(Shared { spec, begun: Cell::new(false), log: RefCell::default() });
    let tasks = LocalSet::new();
    tasks.block_on(runtime, async {
        tokio::select! {
            () = accept(listener, &shared) => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    });
    shared.log.take()
}

/// Ends when the system gives no more connections.
async fn accept(listener: &TcpListener, shared: &Rc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
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
        let read = stream.try_io(Interest::READABLE, || {
            note::receive(stream, &mut buffer[held..], MsgFlags::MSG_DONTWAIT)
        });
        let (length, at) = match read {
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
    /// The first request starts the clock of the pauses.
    fn begin(&self) {
        if self.begun.replace(true) {
            return;
        }
        for pause in self.spec.pauses.clone() {
            spawn_local(async move {
                tokio::time::sleep(pause.after).await;
                // Blocks the only thread: nothing is accepted, read or answered.
                wait::rest(pause.length);
            });
        }
    }

    fn note(&self, head: &[u8], at: u64) {
        if self.spec.log {
            self.log.borrow_mut().push(Received { seq: number(head), at });
        }
    }
}

/// The digits after `GET /`.
fn number(head: &[u8]) -> u64 {
    let digits = head.iter().skip(5).take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number, digit| number * 10 + u64::from(digit - b'0'))
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
        let before = note::now();
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
        assert!(before <= log[0].at && log[0].at <= log[1].at && log[1].at <= note::now());
    }
}
