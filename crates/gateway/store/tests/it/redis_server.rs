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
        let server = Self { child: launch(port, &folder), port, folder };
        server.wait();
        server
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Until it listens.
    fn wait(&self) {
        for _ in 0..1_000 {
            if TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_ok() {
                return;
            }
            let (_silent, pause) = std::sync::mpsc::channel::<()>();
            let _ = pause.recv_timeout(Duration::from_millis(10));
        }
        panic!("redis-server did not listen on port {} within 10 s", self.port);
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Again, empty, on the same port.
    pub(crate) fn restart(&mut self) {
        self.child = launch(self.port, &self.folder);
        self.wait();
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

/// Ends with the thread that started it too, so that a test that is killed leaves nothing behind.
fn launch(port: u16, folder: &tempfile::TempDir) -> Child {
    let installed = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
    let remedy = "redis-server is not installed: apt-get install redis-server (scripts/test does)";
    assert!(installed.is_ok_and(|status| status.success()), "{remedy}");
    let mut server = Command::new("setpriv");
    server.args(["--pdeathsig", "KILL", "redis-server"]);
    server.args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", ""]);
    server.args(["--appendonly", "no", "--maxmemory", "256mb", "--dir"]).arg(folder.path());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    server.spawn().expect("setpriv (util-linux) starts redis-server")
}

/// A worker's runtime.
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
