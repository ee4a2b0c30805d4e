//! The official SDKs, as clients of the gateway and as servers behind it. `scripts/sdk/run`
//! installs them when they are needed, and ends each script after ten minutes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

/// A script of `scripts/sdk` with its SDK.
fn script(sdk: &str, name: &str) -> Command {
    let mut command =
        Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/sdk/run"));
    command.env("PLIMSOLL_SDKS", concat!(env!("CARGO_TARGET_TMPDIR"), "/sdks")).args([sdk, name]);
    command
}

/// The output of a client with this URL.
#[expect(clippy::print_stdout, reason = "it says what it did")]
pub(crate) fn run_client(sdk: &str, name: &str, url: &str) -> String {
    let output = script(sdk, name).arg(url).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {error}");
    let printed = String::from_utf8(output.stdout).unwrap();
    println!("{name} worked with {url}: {}", printed.trim().replace('\n', ", "));
    printed
}

/// A server, which ends with the test.
pub(crate) struct SdkServer {
    process: Child,
    pub(crate) port: u16,
}

impl SdkServer {
    pub(crate) fn start(sdk: &str, name: &str, args: &[&str]) -> Self {
        let mut command = script(sdk, name);
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap_or_else(|_| panic!("{name} printed no port"));
        Self { process, port }
    }
}

impl Drop for SdkServer {
    /// A server ends with its standard input.
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}
