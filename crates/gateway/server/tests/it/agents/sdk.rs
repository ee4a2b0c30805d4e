//! The official Python SDK of A2A on both sides of the gateway. Needs Python and a package
//! registry.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::support::client::post;
use crate::support::{gateway, until};

/// The version that the facts in `src/agent_routes/rpc.rs` were read from.
const PACKAGES: [&str; 3] = ["a2a-sdk[http-server]==1.3.0", "httpx", "uvicorn"];

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
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("a2a-sdk");
    let python = folder.join("bin/python3");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet"]).args(PACKAGES));
    python
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/agents/sdk").join(name)
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_client_talks_to_the_official_agent_through_the_gateway() {
    let python = python();
    let mut agent = Command::new(&python)
        .arg(script("a2a_agent.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(agent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let port: u16 = line.trim().parse().unwrap();
    for layers in ["", "policy: {}\nscrub: {}\n"] {
        let gateway = gateway(&format!(
            "{layers}agents: {{agents: {{known: {{loud: {{url: 'http://127.0.0.1:{port}/rpc'}}}}, \
             allow: {{'*': ['*']}}}}}}"
        ));
        let url = format!("http://{}", gateway.addr());
        let counted = run(Command::new(&python).arg(script("a2a_client.py")).arg(url));
        let counted: u64 = counted.trim().parse().unwrap();
        until("all are counted", || gateway.served() >= counted);
        assert_eq!(gateway.served(), counted, "the gateway saw each of its requests");
        let body = json!({"agent": "loud", "message": "hi\n"});
        let reply = post(gateway.addr(), "/v1/a2a/send", &[], &body);
        assert_eq!(reply.status, 200, "{reply:?}");
        let pieces = reply.json()["result"]["artifacts"][0]["parts"].as_array().cloned();
        let text: String = pieces
            .into_iter()
            .flatten()
            .filter_map(|part: Value| part["text"].as_str().map(str::to_owned))
            .collect();
        assert_eq!(text, "HI\n");
    }
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
}
