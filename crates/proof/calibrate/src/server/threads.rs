//! Starts the threads of the reference servers.

use std::io::{self, BufRead};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread::{Builder, JoinHandle};

use super::rx_timestamp;

/// Starts a named thread.
pub(super) fn spawn_named<T: Send + 'static>(
    name: &str,
    body: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(body)
}

/// Listens, with the kernel's timestamps, and serves each connection in a thread of its own. The
/// threads end with their connections, and the process. Returns where it listens.
pub(super) fn serve_connections(
    addr: SocketAddr,
    serve: impl Fn(TcpStream) -> io::Result<()> + Clone + Send + 'static,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(addr)?;
    rx_timestamp::enable(&listener)?;
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
pub(super) fn read_request(reader: &mut impl BufRead) -> io::Result<bool> {
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
