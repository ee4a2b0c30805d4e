//! The null server: it answers every request at once with the same bytes, and records its arrival
//! time.

use std::cell::{Cell, RefCell};
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;

use nix::sys::socket::MsgFlags;
use plimsoll_runner::time::sleep;
use serde::{Deserialize, Serialize};
use tokio::io::Interest;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::{LocalSet, spawn_local};

use super::{GroundTruth, RunningServer, spawn_named};
use crate::error::CalibrateError;
use crate::server;

const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";
/// Bytes of the largest request of an experiment; they have no bodies.
const BUFFER: usize = 4_096;
/// Connections that may wait to be accepted.
const BACKLOG: u32 = 4_096;

/// Behaviour of the server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct NullSpec {
    /// Pauses of the whole server.
    pub(crate) pauses: Vec<Pause>,
    /// Whether every request is recorded.
    pub(crate) log: bool,
}

/// A time in which the server is paused.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Pause {
    /// Its start, counted from the first request.
    pub(crate) after: Duration,
    /// Its length.
    pub(crate) length: Duration,
}

/// A request that was received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReceivedRequest {
    /// The number in its path.
    pub(crate) seq: u64,
    /// When the kernel received it, in nanoseconds since 1970 UTC.
    pub(crate) at: u64,
}

/// The running server.
#[derive(Debug)]
struct NullServer {
    addr: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<Vec<ReceivedRequest>>>,
}

pub(super) fn start(addr: SocketAddr, spec: NullSpec) -> io::Result<Box<dyn RunningServer>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(async { listen(addr) })?;
    let addr = listener.local_addr()?;
    let (stop, stopped) = watch::channel(false);
    let thread = spawn_named("null", move || run(&runtime, &listener, stopped, spec))?;
    Ok(Box::new(NullServer { addr, stop, thread: Some(thread) }))
}

impl RunningServer for NullServer {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn finish(mut self: Box<Self>) -> Result<GroundTruth, CalibrateError> {
        Ok(GroundTruth { received: self.end(), ..GroundTruth::default() })
    }
}

impl NullServer {
    fn end(&mut self) -> Vec<ReceivedRequest> {
        // This fails if the server has already ended.
        let _ = self.stop.send(true);
        let log = self.thread.take().map(JoinHandle::join);
        // A server that panicked has no records.
        log.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for NullServer {
    fn drop(&mut self) {
        self.end();
    }
}

fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    server::enable(&socket)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// The state that all connections share.
struct ServerState {
    spec: NullSpec,
    begun: Cell<bool>,
    log: RefCell<Vec<ReceivedRequest>>,
}

fn run(
    runtime: &Runtime,
    listener: &TcpListener,
    mut stopped: watch::Receiver<bool>,
    spec: NullSpec,
) -> Vec<ReceivedRequest> {
    let state = Rc::new(ServerState { spec, begun: Cell::new(false), log: RefCell::default() });
    let tasks = LocalSet::new();
    tasks.block_on(runtime, async {
        tokio::select! {
            () = accept(listener, &state) => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    });
    state.log.take()
}

/// Ends when the system accepts no more connections.
async fn accept(listener: &TcpListener, state: &Rc<ServerState>) {
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        let state = Rc::clone(state);
        spawn_local(async move {
            // An error closes the connection, and the client sees it.
            let _ = serve(&stream, &state).await;
        });
    }
}

async fn serve(stream: &TcpStream, state: &Rc<ServerState>) -> io::Result<()> {
    let mut buffer = [0; BUFFER];
    let mut held = 0;
    loop {
        stream.readable().await?;
        let read = stream.try_io(Interest::READABLE, || {
            server::receive(stream, &mut buffer[held..], MsgFlags::MSG_DONTWAIT)
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
        state.begin();
        respond(stream).await?;
        state.record(&buffer[..held], at);
        held = 0;
    }
}

async fn respond(stream: &TcpStream) -> io::Result<()> {
    let mut rest = RESPONSE;
    while !rest.is_empty() {
        match stream.try_write(rest) {
            Ok(written) => rest = rest.get(written..).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => stream.writable().await?,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl ServerState {
    /// The first request starts the clock of the pauses.
    fn begin(&self) {
        if self.begun.replace(true) {
            return;
        }
        for pause in self.spec.pauses.clone() {
            spawn_local(async move {
                tokio::time::sleep(pause.after).await;
                // This blocks the only thread, so the server does not accept, read or answer.
                sleep(pause.length);
            });
        }
    }

    fn record(&self, head: &[u8], at: u64) {
        if self.spec.log {
            self.log.borrow_mut().push(ReceivedRequest { seq: number(head), at });
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
    fn every_request_is_answered_and_recorded_by_its_number_in_order() {
        let server = start(
            SocketAddr::from(([127, 0, 0, 1], 0)),
            NullSpec { log: true, ..NullSpec::default() },
        )
        .unwrap();
        let before = server::now();
        let mut client = Client::connect(server.addr()).unwrap();
        for seq in [7, 123] {
            // In two pieces.
            write!(client, "GET /{seq} HTTP/1.1\r\n").unwrap();
            client.write_all(b"host: x\r\n\r\n").unwrap();
            let mut response = vec![0; RESPONSE.len()];
            client.read_exact(&mut response).unwrap();
            assert_eq!(response, RESPONSE);
        }
        let log = server.finish().unwrap().received;
        assert_eq!(log.iter().map(|received| received.seq).collect::<Vec<_>>(), [7, 123]);
        assert!(before <= log[0].at && log[0].at <= log[1].at && log[1].at <= server::now());
    }

    #[test]
    fn the_number_in_a_path_is_read_and_none_is_zero() {
        for (head, expected) in
            [("GET /42 HTTP/1.1\r\n", 42), ("GET / HTTP/1.1\r\n", 0), ("GET /7x", 7), ("", 0)]
        {
            assert_eq!(number(head.as_bytes()), expected, "{head}");
        }
    }
}
