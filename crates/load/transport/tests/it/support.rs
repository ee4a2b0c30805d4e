//! A scripted raw server, a client, and a handler that records its response.

use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::rc::Rc;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::Duration;

use plimsoll_measure::{Clock as _, ErrorClass, Moment, MonotonicClock, Nanos};
use plimsoll_transport::{
    Connection, Connector, Demand, EncodedRequest, Endpoint, Failure, Lease, Pool, PoolLimits,
    Reach, ReadBuffers, Request, RequestHead, ResponseHandler, ResponseHead, RxClock, RxTime,
    SocketOptions, TargetOpener,
};

/// A step of a raw server on one connection, after it has read a request head.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Writes bytes.
    Send(Vec<u8>),
    /// Waits this many milliseconds.
    Pause(u64),
    /// Reads another request head.
    ReadRequest,
    /// Closes with a reset.
    Reset,
}

/// Serves each connection with the next script. Returns the address.
pub(crate) fn serve(scripts: Vec<Vec<Act>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for (stream, script) in listener.incoming().zip(scripts) {
            let stream = stream.unwrap();
            thread::spawn(move || run_script(stream, script));
        }
    });
    address
}

fn run_script(mut stream: TcpStream, script: Vec<Act>) {
    stream.set_nodelay(true).unwrap();
    if !read_request(&mut stream) {
        return;
    }
    for act in script {
        match act {
            Act::Send(bytes) => {
                if stream.write_all(&bytes).is_err() {
                    return;
                }
            }
            Act::Pause(ms) => thread::sleep(Duration::from_millis(ms)),
            Act::ReadRequest => {
                if !read_request(&mut stream) {
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
pub(crate) fn read_request(stream: &mut TcpStream) -> bool {
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

/// A handler that records everything.
#[derive(Debug, Default)]
pub(crate) struct Recorded {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) reads: Vec<Moment>,
    pub(crate) lags: Vec<Option<Nanos>>,
    pub(crate) sent: Option<Moment>,
    pub(crate) stop_after: Option<usize>,
    pub(crate) send_stall: Option<Nanos>,
    pub(crate) receive_stalled: bool,
    /// Receives a message for each read.
    pub(crate) on_read: Option<Sender<()>>,
}

impl ResponseHandler for Recorded {
    fn sent(&mut self, at: Moment, _: EncodedRequest) {
        self.sent = Some(at);
    }
    fn received(&mut self, _bytes: usize, rx_time: RxTime) {
        self.reads.push(rx_time.at);
        self.lags.push(rx_time.read_lag);
        if let Some(on_read) = &self.on_read {
            on_read.send(()).unwrap();
        }
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

/// Options with kernel time stamps.
pub(crate) fn options(timeout: Nanos) -> SocketOptions {
    SocketOptions {
        timeout,
        kernel_timestamps: true,
        http2_streams: None,
        bind: Vec::new(),
        requests_per_connection: None,
        reach: Reach::default(),
    }
}

/// A pool on a real clock.
pub(crate) type TestPool = Pool<TargetOpener<MonotonicClock>>;
/// A connection of this pool.
pub(crate) type TestLease<'p> = Lease<'p, TargetOpener<MonotonicClock>>;

/// A client of one address.
pub(crate) struct Client {
    pub(crate) clock: MonotonicClock,
    pub(crate) rx_clock: Rc<RxClock<MonotonicClock>>,
    pub(crate) buffers: RefCell<ReadBuffers>,
    pub(crate) connector: Rc<Connector>,
}

impl Client {
    pub(crate) fn new(address: SocketAddr) -> Self {
        let endpoint = Endpoint::new(address.ip().to_string(), address.port());
        Self::with(Connector::new(endpoint, None, options(Nanos::from_secs(2))).unwrap())
    }

    pub(crate) fn with(connector: Connector) -> Self {
        Self::on_clock(MonotonicClock::start(), connector)
    }

    /// Creates a client on a clock that the test uses too.
    pub(crate) fn on_clock(clock: MonotonicClock, connector: Connector) -> Self {
        Self {
            clock,
            rx_clock: Rc::new(RxClock::new(clock)),
            buffers: RefCell::default(),
            connector: Rc::new(connector),
        }
    }

    /// An empty pool without bounds.
    pub(crate) fn pool(&self) -> TestPool {
        self.pool_with(PoolLimits::default())
    }

    pub(crate) fn pool_with(&self, limits: PoolLimits) -> TestPool {
        Pool::new(TargetOpener::new(&self.connector, &self.rx_clock), limits)
    }

    /// Any connection, needed from now on.
    pub(crate) fn demand(&self) -> Demand {
        Demand::at(self.clock.now())
    }

    pub(crate) async fn connect(&self) -> Connection {
        self.connector.connect(&self.clock).await.connection.unwrap()
    }

    /// Sends one GET. Returns the recorded response, and the result of the exchange.
    pub(crate) async fn get(
        &self,
        connection: &mut Connection,
    ) -> (Recorded, Result<bool, ErrorClass>) {
        self.send(connection, "GET", b"").await
    }

    pub(crate) async fn send(
        &self,
        connection: &mut Connection,
        method: &str,
        body: &[u8],
    ) -> (Recorded, Result<bool, ErrorClass>) {
        let mut recorded = Recorded::default();
        let end = self.send_to(connection, method, body, &mut recorded).await;
        (recorded, end)
    }

    pub(crate) async fn send_to(
        &self,
        connection: &mut Connection,
        method: &str,
        body: &[u8],
        recorded: &mut Recorded,
    ) -> Result<bool, ErrorClass> {
        self.try_send(connection, method, body, recorded).await.map_err(|failure| failure.class)
    }

    /// The same, but returns failures.
    pub(crate) async fn try_send(
        &self,
        connection: &mut Connection,
        method: &str,
        body: &[u8],
        recorded: &mut Recorded,
    ) -> Result<bool, Failure> {
        let head = RequestHead::new(method, "/", "http://a", [("x-test", "1")]).unwrap();
        let mut encoded = EncodedRequest { head: Vec::new(), body: body.to_vec() };
        head.render(Some(b"id"), body.len(), &mut encoded.head);
        let request = Request { head: &head, id: Some(b"id"), encoded, may_wait: true };
        let exchange = connection.exchange(&self.rx_clock, &self.buffers, request, recorded);
        tokio::time::timeout(Duration::from_secs(5), exchange).await.expect("the exchange hangs")
    }
}

/// Waits until a condition holds, while other tasks run.
pub(crate) async fn wait_until(mut holds: impl FnMut() -> bool) {
    let wait = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), wait).await.expect("the condition never holds");
}

/// Runs a test body on a new runtime.
pub(crate) fn run<T>(body: impl Future<Output = T>) -> T {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder
        .enable_all()
        .build_local(tokio::runtime::LocalOptions::default())
        .unwrap()
        .block_on(body)
}

/// A step that sends one text.
pub(crate) fn send(text: impl AsRef<[u8]>) -> Act {
    Act::Send(text.as_ref().to_vec())
}
