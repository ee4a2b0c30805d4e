//! A server that answers every request with one scripted stream, write by write.

use std::io::{self, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use serde::{Deserialize, Serialize};

use super::{GroundTruth, RunningServer, read_request, rx_timestamp, serve_connections};
use crate::error::CalibrateError;
use crate::precise_wait;

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

pub(super) fn start(addr: SocketAddr, script: Script) -> io::Result<Box<dyn RunningServer>> {
    let addr = serve_connections(addr, move |stream| serve(&stream, &script))?;
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

fn serve(stream: &TcpStream, script: &Script) -> io::Result<()> {
    let clock = MonotonicClock::start();
    let mut reader = BufReader::new(stream);
    loop {
        // The reader is empty between requests: our client does not pipeline.
        let arrived = rx_timestamp::wait_for_bytes(stream)?;
        if !read_request(&mut reader)? {
            return Ok(());
        }
        let origin = clock.now() - Nanos::new(rx_timestamp::now().saturating_sub(arrived));
        let mut head = HEAD.to_owned();
        for step in &script.steps {
            let chunk = format!("{:x}\r\n{}\r\n", step.text.len(), step.text);
            let bytes = std::mem::take(&mut head) + &chunk;
            precise_wait::wait_until(&clock, origin + Nanos::from(step.at));
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
