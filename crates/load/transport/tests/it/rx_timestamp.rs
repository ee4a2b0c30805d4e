//! Kernel receive time stamps, compared with the times at which the server wrote.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_transport::{Connection, Connector, Endpoint, SocketOptions};

use crate::support::{Client, Recorded, options, read_request, run};

/// Waiting time of a server or client. It must be much larger than [`TOLERANCE`].
const PAUSE: Duration = Duration::from_millis(50);
/// Differences between the wall clock and the monotonic clock.
const TOLERANCE: Nanos = Nanos::from_millis(1);
/// No step may take longer, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(5);

/// A server that writes the parts of a response one by one. It waits for a message and then for
/// [`PAUSE`] before each further part, and reports the times before and after each write.
struct TimedServer {
    address: SocketAddr,
    proceed: Sender<()>,
    writes: Receiver<(Moment, Moment)>,
}

impl TimedServer {
    fn start(clock: MonotonicClock, parts: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (proceed, may_proceed) = channel();
        let (report, writes) = channel();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            write_parts(&mut stream, clock, parts, &may_proceed, &report);
            // The connection stays open until the test has ended.
            let _ = may_proceed.recv_timeout(LIMIT);
        });
        Self { address, proceed, writes }
    }
}

fn write_parts(
    stream: &mut TcpStream,
    clock: MonotonicClock,
    parts: &[&str],
    may_proceed: &Receiver<()>,
    report: &Sender<(Moment, Moment)>,
) {
    stream.set_nodelay(true).unwrap();
    assert!(read_request(stream));
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            may_proceed.recv_timeout(LIMIT).unwrap();
            thread::sleep(PAUSE);
        }
        let before = clock.now();
        stream.write_all(part.as_bytes()).unwrap();
        report.send((before, clock.now())).unwrap();
    }
}

fn client(clock: MonotonicClock, server: &TimedServer, kernel_timestamps: bool) -> Client {
    let endpoint = Endpoint::new("127.0.0.1".to_owned(), server.address.port());
    let options = SocketOptions { kernel_timestamps, ..options(Nanos::from_secs(1)) };
    Client::on_clock(clock, Connector::new(endpoint, None, options).unwrap())
}

#[test]
fn reads_are_stamped_when_they_happen() {
    const PARTS: [&str; 4] = [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n",
        "1\r\na\r\n",
        "1\r\nb\r\n",
        "0\r\n\r\n",
    ];
    run(async {
        let clock = MonotonicClock::start();
        let server = TimedServer::start(clock, &PARTS);
        let client = client(clock, &server, true);
        let mut connection = client.connect().await;
        // The server proceeds after each read, so that reads cannot merge.
        let on_read = Some(server.proceed.clone());
        let mut recorded = Recorded { on_read, ..Recorded::default() };
        let end = client.send_to(&mut connection, "GET", b"", &mut recorded).await;
        assert_eq!((recorded.body.as_slice(), end), (&b"ab"[..], Ok(true)));
        assert_eq!(recorded.reads.len(), PARTS.len());
        let writes = PARTS.map(|_| server.writes.recv_timeout(LIMIT).unwrap());
        for (read, (before, _)) in recorded.reads.iter().zip(&writes) {
            assert!(*read + TOLERANCE >= *before, "read {read:?}, written after {before:?}");
            let delay = read.since(*before).as_millis_f64();
            assert!(delay < 200.0, "stamped {delay} ms after the write began");
        }
        let gaps: Vec<_> =
            recorded.reads.windows(2).map(|w| w[1].since(w[0]).as_millis_f64()).collect();
        assert!(gaps.iter().all(|gap| *gap >= 45.0), "{gaps:?}");
    });
}

/// One exchange whose response is read late.
struct LateRead {
    /// The time stamp of the read.
    read: Moment,
    lag: Option<Nanos>,
    /// Time before the server's write.
    before_write: Moment,
    /// Time at which the client could read again.
    resumed: Moment,
    /// Kept open, because the kernel stamps nothing when no socket requests it.
    _connection: Connection,
}

async fn read_late(kernel_timestamps: bool) -> LateRead {
    const RESPONSE: [&str; 1] = ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"];
    let clock = MonotonicClock::start();
    let server = TimedServer::start(clock, &RESPONSE);
    let client = client(clock, &server, kernel_timestamps);
    let mut connection = client.connect().await;
    // After the request is sent, this thread is blocked until well after the response.
    let ((recorded, end), (before_write, resumed)) =
        tokio::join!(client.get(&mut connection), async {
            let (before_write, _) = server.writes.recv_timeout(LIMIT).unwrap();
            thread::sleep(PAUSE);
            (before_write, clock.now())
        });
    assert_eq!(end, Ok(true));
    let (read, lag) = (recorded.reads[0], recorded.lags[0]);
    LateRead { read, lag, before_write, resumed, _connection: connection }
}

#[test]
fn the_kernel_tells_when_bytes_arrived_however_late_they_are_read() {
    run(async {
        // The kernel enables time stamps in the background after the first socket has requested
        // them.
        let mut reads = Vec::new();
        while reads.last().is_none_or(|read: &LateRead| read.lag.is_none()) && reads.len() < 20 {
            reads.push(read_late(true).await);
        }
        let LateRead { read, lag, before_write, resumed, .. } = *reads.last().unwrap();
        let lag = lag.expect("the kernel stamps reads");
        assert!(read + TOLERANCE >= before_write, "stamped before {before_write:?}: {read:?}");
        assert!(read < resumed, "stamped when it was read, after {resumed:?}: {read:?}");
        assert!(lag + TOLERANCE >= resumed.since(read), "read lag {lag}");
        assert!(lag.as_millis_f64() < 200.0 + resumed.since(read).as_millis_f64(), "{lag}");
    });
}

#[test]
fn without_the_kernel_reads_are_stamped_when_they_are_read() {
    run(async {
        let LateRead { read, lag, resumed, .. } = read_late(false).await;
        assert!(lag.is_none() && read >= resumed, "{read:?}, read after {resumed:?}");
    });
}
