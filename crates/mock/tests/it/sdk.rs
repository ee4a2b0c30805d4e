//! The official SDKs as clients of the mock. Needs Python, Node.js and package registries.

use std::process::Command;

use plimsoll_mock::{LogRecord, Mock, RequestEnd, RpcOutcome, RpcRecord};

use crate::support::{finish, spawn};

/// Runs a script of `scripts/sdk` against a path of the mock. Returns the lines that it printed, a
/// version and a number of requests each, and the log.
#[expect(clippy::print_stdout, reason = "it says what it did")]
fn run_client(
    sdk: &str,
    script: &str,
    mock: Mock,
    path: &str,
) -> (Vec<(String, usize)>, Vec<LogRecord>) {
    let output = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/sdk/run"))
        .env("PLIMSOLL_SDKS", concat!(env!("CARGO_TARGET_TMPDIR"), "/sdks"))
        .args([sdk, script, &format!("http://{}{path}", mock.addr())])
        .output()
        .unwrap();
    let (printed, errors) = (output.stdout, String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{script}: {errors}");
    let printed = String::from_utf8(printed).unwrap();
    let counted: Vec<_> = printed
        .lines()
        .filter_map(|line| line.split_once(' '))
        .map(|(version, requests)| (version.to_owned(), requests.parse().unwrap()))
        .collect();
    println!("{script}: version and requests: {counted:?}");
    (counted, finish(mock))
}

fn rpc(log: &[LogRecord]) -> Vec<&RpcRecord> {
    log.iter().filter_map(|record| record.rpc.as_deref()).collect()
}

fn versions(counted: &[(String, usize)]) -> Vec<&str> {
    counted.iter().map(|(version, _)| version.as_str()).collect()
}

const TOOLS: &str = "{log: memory, mcp: {tools: {slow: {latency: 1s, progress: 4},
    failing: {tool_error_share: 0.25, rpc_error_share: 0.25},
    echo: {echo: true, input: {type: object, properties: {text: {type: string}}, required: [text]}}}}}";

/// Looks at what an SDK's client of tool servers did: sessions of these versions.
fn look_at_tool_calls(sdk: &str, script: &str, expected: &[&str]) {
    let (counted, log) = run_client(sdk, script, spawn(TOOLS), "/mcp");
    assert_eq!(versions(&counted), expected);
    let rpc = rpc(&log);
    let total: usize = counted.iter().map(|(_, requests)| requests).sum();
    assert_eq!((rpc.len(), log.len()), (total, total), "{counted:?}");
    let stateless = rpc.iter().filter(|rpc| rpc.version.as_deref() == Some("2026-07-28")).count();
    assert_eq!(stateless, counted.last().unwrap().1, "{counted:?}");
    // In each: 40 calls of `failing`, 2 of `slow`, 1 of an unknown tool.
    let calls = |name: &str| rpc.iter().filter(|rpc| rpc.name.as_deref() == Some(name)).count();
    let all = expected.len();
    assert_eq!((calls("failing"), calls("slow"), calls("no such tool")), (40 * all, 2 * all, all));
    // Both eras give one call up: by a message in the session, by closing the stream without one.
    let sessions = all - 1;
    let cancelled = rpc.iter().filter(|rpc| rpc.outcome == RpcOutcome::Cancelled).count();
    let gone = log.iter().filter(|record| record.end == Some(RequestEnd::ClientGone)).count();
    assert_eq!((cancelled, gone), (sessions, 1));
    let ended = rpc.iter().filter(|rpc| rpc.outcome == RpcOutcome::SessionEnded).count();
    assert_eq!(ended, sessions);
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_clients_work_in_both_eras_and_the_log_has_each_of_their_requests() {
    look_at_tool_calls("mcp", "mock_mcp.py", &["2025-11-25", "2026-07-28"]);
    look_at_tool_calls("node", "mock_mcp.mjs", &["2025-11-25", "2025-11-25", "2026-07-28"]);
}

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_a2a_clients_work_in_both_versions_and_the_log_has_each_of_their_requests() {
    for (sdk, script) in [("a2a", "mock_a2a.py"), ("node", "mock_a2a.mjs")] {
        let mock = spawn(
            "{log: memory, workers: 2, a2a: {agents: {echo: {echo: true},
                steps: {answer: task, latency: 60ms, pieces: 4},
                asking: {answer: task, latency: 20ms, input_required_share: 1},
                long: {answer: task, latency: 60s, pieces: 2},
                failing: {answer: task, failed_share: 0.25, rpc_error_share: 0.25}}}}",
        );
        let (counted, log) = run_client(sdk, script, mock, "");
        assert_eq!(versions(&counted), ["1.0", "0.3"]);
        look_at_messages(&counted, &log);
    }
}

fn look_at_messages(counted: &[(String, usize)], log: &[LogRecord]) {
    let total: usize = counted.iter().map(|(_, requests)| requests).sum();
    assert_eq!(log.len(), total, "{counted:?}");
    let rpc = rpc(log);
    let cards = log.iter().filter(|record| record.path.ends_with("/agent-card.json")).count();
    assert_eq!(rpc.len() + cards, total);
    for version in ["1.0", "0.3"] {
        let of = |keep: &dyn Fn(&RpcRecord) -> bool| {
            rpc.iter().filter(|rpc| rpc.version.as_deref() == Some(version) && keep(rpc)).count()
        };
        // 40 messages to `failing`, and a refused push configuration.
        assert_eq!(of(&|rpc| rpc.agent.as_deref() == Some("failing")), 41, "{version}");
        let is_cancelled_stream =
            |rpc: &RpcRecord| rpc.outcome == RpcOutcome::Cancelled && rpc.streamed;
        assert_eq!(of(&is_cancelled_stream), 1, "{version}");
        // The asking agent, streamed and not: asked, answered, refused.
        for (state, count) in [("input-required", 2), ("completed", 2)] {
            assert_eq!(
                of(&|rpc: &RpcRecord| {
                    rpc.agent.as_deref() == Some("asking") && rpc.state.as_deref() == Some(state)
                }),
                count,
                "{version}"
            );
        }
        assert_eq!(of(&|rpc| rpc.code == Some(-32_004)), 2, "{version}");
        assert_eq!(of(&|rpc| rpc.code == Some(-32_001)), 1, "{version}");
    }
    assert_eq!(
        log.iter().filter(|record| record.end == Some(RequestEnd::Completed)).count(),
        total
    );
}
