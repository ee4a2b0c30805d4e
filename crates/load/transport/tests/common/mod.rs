//! A server that says exactly the bytes it is told to, and a receiver that keeps what it hears.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use plimsoll_measure::{ErrorClass, Moment, MonotonicClock, Nanos};
use plimsoll_transport::{
    Connection, Connector, EncodedRequest, Endpoint, ReadBuffers, Request, RequestHead,
    ResponseHandler, ResponseHead, RxClock, RxTime, SocketOptions,
};

/// What a raw server does on one connection after it has read a request head.
#[derive(Clone, Debug)]
pub enum Act {
    /// Writes bytes.
    Say(Vec<u8>),
    /// Waits.
    Pause(u64),
    /// Reads another request head.
    Listen,
    /// Closes with a reset.
    Reset,
}

/// Serves each connection with the next script of a list; returns the address.
pub fn serve(scripts: Vec<Vec<Act>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (stream, script) in listener.incoming().zip(scripts) {
            let stream = stream.unwrap();
            thread::spawn(move || play(stream, script));
        }
    });
    address
}

fn play(mut stream: TcpStream, script: Vec<Act>) {
    stream.set_nodelay(true).unwrap();
    if !listen(&mut stream) {
        return;
    }
    for act in script {
        match act {
            Act::Say(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Act::Pause(ms) => thread::sleep(Duration::from_millis(ms)),
            Act::Listen => {
                if !listen(&mut stream) {
                    return;
                }
            }
            Act::Reset => {
                socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
                return;
            }
        }
    }
}

/// Reads up to the end of a request head; bodies of these tests fit the same read.
fn listen(stream: &mut TcpStream) -> bool {
    let mut seen = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return false,
            Ok(n) => seen.extend_from_slice(&buffer[..n]),
        }
        if seen.windows(4).any(|w| w == b"\r\n\r\n") {
            return true;
        }
    }
}

/// Keeps everything it is told.
#[derive(Debug, Default)]
pub struct Heard {
    pub status: u16,
    pub headers: Vec<(String, Vec<u8>)>,
    pub body: Vec<u8>,
    pub reads: Vec<Moment>,
    pub lags: Vec<Option<Nanos>>,
    pub sent: Option<Moment>,
    pub stop_after: Option<usize>,
    pub send_stall: Option<Nanos>,
    pub receive_stalled: bool,
}

impl ResponseHandler for Heard {
    fn sent(&mut self, at: Moment, _: EncodedRequest) {
        self.sent = Some(at);
    }
    fn received(&mut self, _bytes: usize, arrival: RxTime) {
        self.reads.push(arrival.at);
        self.lags.push(arrival.read_lag);
    }
    fn head(&mut self, head: &ResponseHead<'_>) {
        self.status = head.status;
        let lines = head.headers.iter();
        self.headers = lines.map(|line| (line.name.to_owned(), line.value.to_owned())).collect();
    }
    fn send_stalled(&mut self, waited: Nanos) {
        self.send_stall = Some(waited);
    }
    fn receive_stalled(&mut self) {
        self.receive_stalled = true;
    }
    fn body(&mut self, bytes: &[u8], _at: Moment) -> ControlFlow<()> {
        self.body.extend_from_slice(bytes);
        if self.stop_after.is_some_and(|limit| self.body.len() >= limit) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// With kernel time stamps.
pub fn options(timeout: Nanos) -> SocketOptions {
    SocketOptions {
        timeout,
        kernel_stamps: true,
        http2_streams: None,
        bind: Vec::new(),
        requests_per_connection: None,
    }
}

/// A client of one address.
pub struct Client {
    pub clock: MonotonicClock,
    pub stamper: Rc<RxClock<MonotonicClock>>,
    pub scratch: RefCell<ReadBuffers>,
    pub connector: Connector,
}

impl Client {
    pub fn new(address: SocketAddr) -> Self {
        let endpoint = Endpoint::new(address.ip().to_string(), address.port());
        Self::with(Connector::new(endpoint, None, options(Nanos::from_secs(2))).unwrap())
    }

    pub fn with(connector: Connector) -> Self {
        let clock = MonotonicClock::start();
        Self {
            clock,
            stamper: Rc::new(RxClock::new(clock)),
            scratch: RefCell::default(),
            connector,
        }
    }

    pub async fn connect(&self) -> Connection {
        self.connector.connect(&self.clock).await.connection.unwrap()
    }

    /// One GET; what was heard, and how it ended.
    pub async fn get(&self, connection: &mut Connection) -> (Heard, Result<bool, ErrorClass>) {
        self.send(connection, "GET", b"").await
    }

    pub async fn send(
        &self,
        connection: &mut Connection,
        method: &str,
        body: &[u8],
    ) -> (Heard, Result<bool, ErrorClass>) {
        let mut heard = Heard::default();
        let end = self.send_to(connection, method, body, &mut heard).await;
        (heard, end)
    }

    pub async fn send_to(
        &self,
        connection: &mut Connection,
        method: &str,
        body: &[u8],
        heard: &mut Heard,
    ) -> Result<bool, ErrorClass> {
        let shape = RequestHead::new(method, "/", "http://a", [("x-test", "1")]).unwrap();
        let mut wire = EncodedRequest { head: Vec::new(), body: body.to_vec() };
        shape.render(Some("id"), body.len(), &mut wire.head);
        let request = Request { shape: &shape, id: Some("id"), wire };
        let exchange = connection.exchange(&self.stamper, &self.scratch, request, heard);
        let end = tokio::time::timeout(Duration::from_secs(5), exchange)
            .await
            .expect("the exchange hangs");
        end.map_err(|failure| failure.class)
    }
}

/// Runs a test body on a runtime of its own.
pub fn run<T>(body: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap()
        .block_on(body)
}

/// A script that says one text.
pub fn say(text: impl AsRef<[u8]>) -> Act {
    Act::Say(text.as_ref().to_vec())
}
