//! The official SDKs as clients of the gateway, and as servers behind it. Needs Python, Node.js and
//! package registries.

use serde_json::{Value, json};

use super::{RETAIL, call, count, messages, mock, text, up, with_tools};
use crate::support::client::ask;
use crate::support::sdk::{SdkServer, run_client};

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_clients_work_in_both_eras() {
    for (script, versions) in [
        (("mcp", "gateway_mcp.py"), &["2025-11-25", "2026-07-28"][..]),
        (("node", "gateway_mcp.mjs"), &["2025-11-25", "2025-11-25", "2026-07-28"]),
    ] {
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
        let printed = run_client(script.0, script.1, &format!("http://{}/mcp", gateway.addr()));
        assert_eq!(printed.lines().collect::<Vec<_>>(), versions);
        drop(gateway);
        // In each: 3 of `say` with text, 1 without, 1 of `failing`, 1 of `sad`.
        assert_eq!(count(&messages(mock), "tools/call"), 6 * versions.len());
    }
}

const PYTHON: (&str, &str) = ("mcp", "mcp_server.py");
const TYPESCRIPT: (&str, &str) = ("node", "mcp_server.mjs");

#[test]
#[ignore = "installs the official SDK from the package registry"]
fn the_official_servers_work_behind_the_gateway() {
    for (script, line, protocols) in [
        (PYTHON, None, &["sessions", "stateless", "auto"][..]),
        (TYPESCRIPT, Some("2"), &["sessions", "stateless", "auto"]),
        (TYPESCRIPT, Some("1"), &["sessions", "auto"]),
    ] {
        for form in ["json", "events"] {
            let args: Vec<_> = [form].into_iter().chain(line).collect();
            let server = SdkServer::start(script.0, script.1, &args);
            for protocol in protocols {
                let case = format!("{} {line:?} {form} {protocol}", script.1);
                use_tools(server.port, protocol, &case);
                println!("{case}: 23 calls");
            }
        }
    }
}

/// Calls the tools of a server through the gateway, which speaks this protocol to it.
fn use_tools(port: u16, protocol: &str, case: &str) {
    let gateway = with_tools(
        &format!(
            "allow: {{retail: ['official/*']}}, local: [], refresh: 500ms, servers: {{official: \
             {{url: 'http://127.0.0.1:{port}/mcp', protocol: {protocol}}}}}"
        ),
        "",
    );
    up(&gateway);
    let tools = ask(gateway.addr(), "GET /v1/mcp/tools", &[RETAIL], b"").text();
    for name in ["echo", "total", "slow", "fail"] {
        assert!(tools.contains(&format!("\"{name}\"")), "{case}: {tools}");
    }
    for number in 0..20 {
        let words = format!("héllo {number}");
        let reply = call(&gateway, "echo", &json!({"text": words}));
        assert_eq!((reply.status, text(&reply)), (200, words), "{case}");
    }
    let sum = call(&gateway, "total", &json!({"a": 2, "b": 40})).json();
    assert_eq!(sum["result"]["structuredContent"], json!({"result": 42}), "{case}: {sum}");
    let slow = call(&gateway, "slow", &json!({}));
    assert_eq!((slow.status, text(&slow).as_str()), (200, "done"), "{case}");
    let failed: Value = call(&gateway, "fail", &json!({})).json();
    assert_eq!(failed["result"]["isError"], true, "{case}: {failed}");
}
