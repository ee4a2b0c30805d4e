//! The official Python SDK as a client of the gateway, and as a server behind it. Needs Python and
//! a package registry.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::{call, count, messages, mock, text, up, with_tools};
use crate::support::client::get;

/// The version that the facts were read from.
const SDK: &str = "mcp==2.3.0";

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// A Python with the SDK: that in `PLIMSOLL_SDK_PYTHON`, or one below `target/`.
fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("PLIMSOLL_SDK_PYTHON") {
        return python.into();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("mcp-sdk");
    let python = folder.join("bin/python3");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", SDK]));
    python
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sdk").join(name)
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_client_works_in_both_eras() {
    let mock = mock(
        "tools: {say: {echo: true, input: {type: object, properties: {text: {type: string}}, required: [text]}}, \
         failing: {rpc_error_share: 1}, sad: {tool_error_share: 1}, secret: {}}",
    );
    let gateway = with_tools(
        &format!(
            "servers: {{s: {{url: 'http://{}/mcp'}}}}, \
             allow: {{retail: [say, failing, sad, 'local/*']}}",
            mock.addr()
        ),
        "name: front",
    );
    up(&gateway);
    let url = format!("http://{}/mcp", gateway.addr());
    let printed = run(Command::new(python()).arg(script("mcp_client.py")).arg(url));
    assert_eq!(printed.lines().collect::<Vec<_>>(), ["2025-11-25", "2026-07-28"]);
    drop(gateway);
    // In each era: 3 of `say` with text, 1 without, 1 of `failing`, 1 of `sad`.
    assert_eq!(count(&messages(mock), "tools/call"), 12);
}

/// A server of the SDK, ended with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_server_works_behind_the_gateway() {
    for (protocol, form) in [
        ("sessions", "json"),
        ("sessions", "events"),
        ("stateless", "json"),
        ("stateless", "events"),
    ] {
        let mut command = Command::new(python());
        command.arg(script("mcp_server.py")).arg(form).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = Server(command.spawn().unwrap());
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port: u16 = line.trim().parse().unwrap();
        let gateway = with_tools(
            &format!(
                "allow: {{retail: ['official/*']}}, refresh: 500ms, servers: {{official: \
                 {{url: 'http://127.0.0.1:{port}/mcp', protocol: {protocol}}}}}"
            ),
            "",
        );
        up(&gateway);
        let servers = get(gateway.addr(), "/v1/mcp/servers").json();
        assert_eq!(servers["servers"][0]["tools"], 4, "{protocol} {form}");
        for number in 0..20 {
            let words = format!("héllo {number}");
            let reply = call(&gateway, "say", &json!({"text": words}));
            assert_eq!((reply.status, text(&reply)), (200, words), "{protocol} {form}");
        }
        let sum = call(&gateway, "total", &json!({"a": 2, "b": 40})).json();
        assert_eq!(sum["result"]["structuredContent"], json!({"result": 42}), "{sum}");
        let slow = call(&gateway, "slow", &json!({}));
        assert_eq!((slow.status, text(&slow).as_str()), (200, "done"));
        let failed: Value = call(&gateway, "fail", &json!({})).json();
        assert_eq!(failed["result"]["isError"], true, "{failed}");
    }
}
