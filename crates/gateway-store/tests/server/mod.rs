//! A real Redis on a free port, for one test.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Killed when dropped.
pub(crate) struct Redis {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Redis {
    /// Starts one; a machine without it fails the test.
    pub(crate) fn start() -> Self {
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = tempfile::tempdir().unwrap();
        let child = launch(port, &folder);
        Self { child, port, folder }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Again, empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.child = launch(self.port, &self.folder);
    }

    pub(crate) fn cli(&self, arguments: &[&str]) -> String {
        let port = self.port.to_string();
        let run = Command::new("redis-cli").args(["-p", &port]).args(arguments).output().unwrap();
        String::from_utf8(run.stdout).unwrap()
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn launch(port: u16, folder: &tempfile::TempDir) -> Child {
    let mut server = Command::new("redis-server");
    server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    server.args(["--appendonly", "no", "--maxmemory", "256mb", "--dir"]).arg(folder.path());
    let mut child =
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(
            "redis-server is not installed: apt-get install redis-server (scripts/test does)",
        );
    let up = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    let tries = 1_000;
    let came = (0..tries).any(|_| up() || pause());
    if !came {
        let _ = child.kill();
        panic!("redis-server did not listen on port {port} within 10 s");
    }
    child
}

fn pause() -> bool {
    runtime().block_on(async { tokio::time::sleep(Duration::from_millis(10)).await });
    false
}

/// A worker's runtime.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
