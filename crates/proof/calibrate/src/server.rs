//! Reference servers: they record the truth, and share no code with the client.
//!
//! Each is started from a [`ServerSpec`]: in a separate process if the tool's binary is known, so
//! that its CPU time is not the generator's, else in this one.

use std::fmt::Debug;
use std::io::{self, BufRead, BufReader, IoSliceMut, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::thread::{self, Builder, JoinHandle};
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;
use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
pub(crate) use null_server::{NullSpec, Pause, ReceivedRequest};
pub(crate) use phased_server::{PhasedLog, PhasedSpec};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_mock::{LogRecord, Mock, MockConfig};
use serde::{Deserialize, Serialize};
pub(crate) use server_process::{Cores, ServerProcess, serve, stay_on};

use crate::error::CalibrateError;

mod null_server;
mod phased_server;
mod server_process;

/// Behaviour of a reference server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ServerSpec {
    /// The mock provider, by its configuration.
    Mock(Box<MockConfig>),
    /// Answers at once, and notes when the kernel received each request.
    Null(NullSpec),
    /// Plays a scripted stream, write by write.
    Scripted(Script),
    /// Takes its time for the TLS handshake, and closes connections after a number of requests.
    Phased(PhasedSpec),
}

/// The records of a reference server.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct GroundTruth {
    /// Log of the mock.
    pub(crate) requests: Vec<LogRecord>,
    /// Requests that the null server received.
    pub(crate) received: Vec<ReceivedRequest>,
    /// Log of the phased server.
    pub(crate) phased: PhasedLog,
}

/// A reference server.
pub(crate) trait RunningServer: Debug + Send {
    /// Where it listens.
    fn addr(&self) -> SocketAddr;

    /// Ends it, and returns its records.
    fn finish(self: Box<Self>) -> Result<GroundTruth, CalibrateError>;
}

impl RunningServer for Mock {
    fn addr(&self) -> SocketAddr {
        self.addr()
    }

    fn finish(mut self: Box<Self>) -> Result<GroundTruth, CalibrateError> {
        self.shutdown();
        Ok(GroundTruth { requests: self.take_log(), ..GroundTruth::default() })
    }
}

impl ServerSpec {
    /// Starts it on a free port of the loopback interface.
    pub(crate) fn start(self) -> Result<Box<dyn RunningServer>, CalibrateError> {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let started = match self {
            Self::Mock(config) => return Ok(Box::new(Mock::spawn(&config, any)?)),
            Self::Null(spec) => null_server::start(any, spec),
            Self::Scripted(script) => start(any, script),
            Self::Phased(spec) => phased_server::start(any, spec),
        };
        started.map_err(CalibrateError::Server)
    }
}

/// A reference server of an experiment, in this process or in a separate one.
#[derive(Debug)]
pub(crate) struct Server(pub(crate) Box<dyn RunningServer>);

impl Server {
    /// Where it listens.
    pub(crate) fn addr(&self) -> SocketAddr {
        self.0.addr()
    }

    /// Its URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr())
    }

    /// Ends it, and returns its records.
    pub(crate) fn finish(self) -> Result<GroundTruth, CalibrateError> {
        self.0.finish()
    }
}

/// Starts a named thread.
fn spawn_named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Listens, with the kernel's timestamps, and serves each connection in a thread of its own. The
/// threads end with their connections, and the process. Returns where it listens.
fn serve_connections(
    addr: SocketAddr,
    serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(addr)?;
    enable(&listener)?;
    let addr = listener.local_addr()?;
    spawn_named("accept", move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let serve = serve.clone();
            // An error closes the connection, and the client sees it.
            let _ = spawn_named("connection", move || {
                stream.set_nodelay(true)?;
                serve(stream)
            });
        }
    })?;
    Ok(addr)
}

/// Reads a request; false if the client closed the connection.
fn read_request(reader: &mut impl BufRead) -> io::Result<bool> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(false);
        }
        let line = line.trim_end().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).map(|()| true)
}

// A server that answers every request with one scripted stream, write by write.

const HEAD: &str =
    "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One piece of the body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Step {
    /// When it is due, from the request's arrival.
    pub(crate) at: Duration,
    /// Its bytes, before HTTP's chunk framing.
    pub(crate) text: String,
}

/// The stream that the server sends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Script {
    /// Its pieces, in order. The head of the response is sent with the first.
    pub(crate) steps: Vec<Step>,
    /// The largest write, in bytes. Small writes split UTF-8 characters and line ends.
    pub(crate) max_write: Option<usize>,
}

/// The running server.
#[derive(Debug)]
struct ScriptedServer {
    addr: SocketAddr,
}

fn start(addr: SocketAddr, script: Script) -> io::Result<Box<dyn RunningServer>> {
    let addr = serve_connections(addr, move |stream| serve_script(&stream, &script))?;
    Ok(Box::new(ScriptedServer { addr }))
}

impl RunningServer for ScriptedServer {
    fn addr(&self) -> SocketAddr {
        self.addr
    }

    fn finish(self: Box<Self>) -> Result<GroundTruth, CalibrateError> {
        Ok(GroundTruth::default())
    }
}

fn serve_script(stream: &TcpStream, script: &Script) -> io::Result<()> {
    let clock = MonotonicClock::start();
    let mut reader = BufReader::new(stream);
    loop {
        // The reader is empty between requests: our client does not pipeline.
        let arrived = wait_for_bytes(stream)?;
        if !read_request(&mut reader)? {
            return Ok(());
        }
        let origin = clock.now() - Nanos::new(now().saturating_sub(arrived));
        let mut head = HEAD.to_owned();
        for step in &script.steps {
            let chunk = format!("{:x}\r\n{}\r\n", step.text.len(), step.text);
            let bytes = std::mem::take(&mut head) + &chunk;
            wait_until(&clock, origin + Nanos::from(step.at));
            write(stream, bytes.as_bytes(), script.max_write)?;
        }
        write(stream, b"0\r\n\r\n", script.max_write)?;
    }
}

fn write(mut stream: &TcpStream, bytes: &[u8], max_write: Option<usize>) -> io::Result<()> {
    bytes
        .chunks(max_write.unwrap_or(bytes.len()).max(1))
        .try_for_each(|part| stream.write_all(part))
}

// The kernel's receive timestamps (socket(7), `SO_TIMESTAMPNS`), in nanoseconds since 1970 UTC.
//
// On the loopback interface the kernel takes them while the client writes. They show when the
// client sent, however late the server reads.

/// Turns timestamps on; on a listener, for all its connections.
fn enable(listener: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(listener, ReceiveTimestampns, &true)?)
}

/// Reads bytes, and the timestamp of the last byte, or the current time if the kernel has none.
fn receive(socket: &impl AsRawFd, buffer: &mut [u8], flags: MsgFlags) -> io::Result<(usize, u64)> {
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
fn wait_for_bytes(socket: &impl AsRawFd) -> io::Result<u64> {
    receive(socket, &mut [0], MsgFlags::MSG_PEEK).map(|(_, timestamp)| timestamp)
}

/// The current time.
fn now() -> u64 {
    clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, nanos)
}

fn nanos(time: TimeSpec) -> u64 {
    u64::try_from(Duration::from(time).as_nanos()).unwrap_or(u64::MAX)
}

// Waiting to the microsecond: for reference servers, and to see what this host's timer can do.

/// The scheduler may wake a thread this much late; the rest is spent spinning.
const SPIN: Nanos = Nanos::from_micros(200);

/// Blocks the thread until a moment of the clock.
pub(crate) fn wait_until(clock: &MonotonicClock, at: Moment) {
    loop {
        let left = at.since(clock.now());
        if left == Nanos::ZERO {
            return;
        }
        let sleep = left.saturating_sub(SPIN);
        if sleep == Nanos::ZERO {
            std::hint::spin_loop();
        } else {
            thread::park_timeout(sleep.to_duration());
        }
    }
}

/// When a thread that sleeps from one deadline to the next wakes, with `rate` deadlines per second
/// for some seconds: in seconds since the first deadline.
pub(crate) fn bare_timer_wakeups(rate: f64, seconds: f64) -> Result<Vec<f64>, CalibrateError> {
    let clock = MonotonicClock::start();
    let begin = clock.now() + Nanos::from_millis(10);
    let mut woken = Vec::new();
    for number in 0.. {
        let at = begin + Nanos::from_secs_f64(f64::from(number) / rate);
        if at >= begin + Nanos::from_secs_f64(seconds) {
            break;
        }
        while clock.now() < at {
            let left = TimeSpec::from_duration(at.since(clock.now()).to_duration());
            match clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::empty(), &left) {
                Ok(_) | Err(Errno::EINTR) => {}
                Err(errno) => return Err(CalibrateError::errno("cannot sleep")(errno)),
            }
        }
        woken.push(clock.now().since(begin).as_secs_f64());
    }
    Ok(woken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleeper_wakes_once_for_each_deadline_and_never_early() {
        let woken = bare_timer_wakeups(200.0, 0.1).unwrap();
        assert_eq!(woken.len(), 20);
        for (number, at) in woken.iter().enumerate() {
            assert!(*at >= number as f64 / 200.0, "{number}: {at}");
        }
    }

    #[test]
    fn a_wait_never_ends_early() {
        let clock = MonotonicClock::start();
        let at = clock.now() + Nanos::from_millis(3);
        wait_until(&clock, at);
        assert!(clock.now() >= at);
        wait_until(&clock, Moment::EPOCH);
    }
}
