//! The official Python SDKs as clients of the mock. Needs Python and a package registry.

use std::path::{Path, PathBuf};
use std::process::Command;

use plimsoll_mock::{LogRecord, Mock, RequestEnd, RpcOutcome, RpcRecord};

use crate::support::{finish, spawn};

/// The versions that the facts in `src/mcp.rs` and `src/a2a.rs` were read from.
const MCP: &str = "mcp==2.3.0";
const A2A: &str = "a2a-sdk==1.3.0";

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {error}");
    String::from_utf8(output.stdout).unwrap()
}

/// A Python with an SDK: that in `PLIMSOLL_SDK_PYTHON`, or one below `target/`.
fn python(sdk: &str) -> PathBuf {
    if let Some(python) = std::env::var_os("PLIMSOLL_SDK_PYTHON") {
        return python.into();
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(sdk.replace("==", "-"));
    let python = folder.join("bin/python3");
    if !python.exists() {
        run(Command::new("python3").args(["-m", "venv"]).arg(&folder));
    }
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", sdk]));
    python
}

/// Runs a script of `tests/it/sdk` against a path of the mock. Returns the lines that it printed,
/// a version and a number of requests each, and the log.
fn run_client(
    (sdk, script): (&str, &str),
    mock: Mock,
    path: &str,
) -> (Vec<(String, usize)>, Vec<LogRecord>) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/sdk").join(script);
    let url = format!("http://{}{path}", mock.addr());
    let printed = run(Command::new(python(sdk)).arg(script).arg(url));
    let counted = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(version, requests)| (version.to_owned(), requests.parse().unwrap()))
        .collect();
    (counted, finish(mock))
}

fn rpc(log: &[LogRecord]) -> Vec<&RpcRecord> {
    log.iter().filter_map(|record| record.rpc.as_deref()).collect()
}

fn versions(counted: &[(String, usize)]) -> Vec<&str> {
    counted.iter().map(|(version, _)| version.as_str()).collect()
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_client_works_in_both_eras_and_the_log_has_each_of_its_requests() {
    let mock = spawn(
        "{log: memory, mcp: {tools: {slow: {latency: 1s, progress: 4},
            failing: {tool_error_share: 0.25, rpc_error_share: 0.25},
            echo: {echo: true, input: {type: object, properties: {text: {type: string}}, required: [text]}}}}}",
    );
    let (counted, log) = run_client((MCP, "mcp_client.py"), mock, "/mcp");
    assert_eq!(versions(&counted), ["2025-11-25", "2026-07-28"]);
    let rpc = rpc(&log);
    let total: usize = counted.iter().map(|(_, requests)| requests).sum();
    assert_eq!((rpc.len(), log.len()), (total, total), "{counted:?}");
    let stateless = rpc.iter().filter(|rpc| rpc.version.as_deref() == Some("2026-07-28")).count();
    assert_eq!(stateless, counted[1].1, "{counted:?}");
    // In each era: 40 calls of `failing`, 2 of `slow`, 1 of an unknown tool.
    let calls = |name: &str| rpc.iter().filter(|rpc| rpc.name.as_deref() == Some(name)).count();
    assert_eq!((calls("failing"), calls("slow"), calls("no such tool")), (80, 4, 2));
    // Both eras give one call up: by a message in the session, by closing the stream without one.
    let cancelled = rpc.iter().filter(|rpc| rpc.outcome == RpcOutcome::Cancelled).count();
    let gone = log.iter().filter(|record| record.end == Some(RequestEnd::ClientGone)).count();
    assert_eq!((cancelled, gone), (1, 1));
    assert_eq!(rpc.iter().filter(|rpc| rpc.outcome == RpcOutcome::SessionEnded).count(), 1);
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_a2a_client_works_in_both_versions_and_the_log_has_each_of_its_requests() {
    let mock = spawn(
        "{log: memory, workers: 2, a2a: {agents: {echo: {echo: true},
            steps: {answer: task, latency: 60ms, pieces: 4},
            asking: {answer: task, latency: 20ms, input_required_share: 1},
            long: {answer: task, latency: 60s, pieces: 2},
            failing: {answer: task, failed_share: 0.25, rpc_error_share: 0.25}}}}",
    );
    let (counted, log) = run_client((A2A, "a2a_client.py"), mock, "");
    assert_eq!(versions(&counted), ["1.0", "0.3"]);
    let total: usize = counted.iter().map(|(_, requests)| requests).sum();
    assert_eq!(log.len(), total, "{counted:?}");
    let rpc = rpc(&log);
    let cards = log.iter().filter(|record| record.path.ends_with("/agent-card.json")).count();
    assert_eq!(rpc.len() + cards, total);
    for version in ["1.0", "0.3"] {
        let of = |keep: &dyn Fn(&RpcRecord) -> bool| {
            rpc.iter().filter(|rpc| rpc.version.as_deref() == Some(version) && keep(rpc)).count()
        };
        // 40 messages to `failing`, and a refused push configuration.
        assert_eq!(of(&|rpc| rpc.agent.as_deref() == Some("failing")), 41, "{version}");
        // A message and a subscription, both streamed, end with the cancellation.
        let cancelled = |rpc: &RpcRecord| rpc.outcome == RpcOutcome::Cancelled && rpc.streamed;
        assert_eq!(of(&cancelled), 2, "{version}");
        // The asking agent, streamed and not: asked, answered, refused.
        for (state, count) in [("input-required", 2), ("completed", 2)] {
            let state = |rpc: &RpcRecord| {
                rpc.agent.as_deref() == Some("asking") && rpc.state.as_deref() == Some(state)
            };
            assert_eq!(of(&state), count, "{version}");
        }
        assert_eq!(of(&|rpc| rpc.code == Some(-32_004)), 3, "{version}");
        assert_eq!(of(&|rpc| rpc.code == Some(-32_001)), 1, "{version}");
    }
    let lists = rpc.iter().filter(|rpc| rpc.method.as_deref() == Some("ListTasks")).count();
    assert_eq!(lists, 2);
    let ended = |record: &&LogRecord| record.end == Some(RequestEnd::Completed);
    assert_eq!(log.iter().filter(ended).count(), total);
}
