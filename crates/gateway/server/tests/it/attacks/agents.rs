//! The layer of agents: who reaches which agent, by which spelling, and what chains of agents may
//! do.

use super::{GUEST, Range};

/// Name of the attack; line and headers; the body, in which `~` is an honest message; the status;
/// and the messages that reached the agents. A refusal of JSON-RPC has status 200 as well.
pub(super) const CASES: &[(&str, &str, &str, u16, &[&str])] = &[
    // Allowed to guests.
    ("an agent that is allowed", "POST /a2a/planner", "~", 200, PLANNER),
    ("with an encoded letter", "POST /a2a/%70lanner", "~", 200, PLANNER),
    ("with a path of others", "POST /a2a/planner\r\nx-agent-path: a, b", "~", 200, PLANNER),
    ("by its text", "POST /v1/a2a/send", r#"{"agent":"planner","message":"x"}"#, 502, PLANNER),
    // Another tenant's agent.
    ("an agent that is not", "POST /a2a/private", "~", 200, NONE),
    ("encoded", "POST /a2a/%70rivate", "~", 200, NONE),
    ("in capitals", "POST /a2a/PRIVATE", "~", 200, NONE),
    ("below an allowed one", "POST /a2a/planner/../private", "~", 400, NONE),
    ("below an allowed one, encoded", "POST /a2a/planner/%2e%2e/private", "~", 400, NONE),
    ("with an encoded slash", "POST /a2a/planner%2f..%2fprivate", "~", 400, NONE),
    ("with a parameter", "POST /a2a/planner;x=/private", "~", 400, NONE),
    ("with an empty segment", "POST /a2a//private", "~", 400, NONE),
    ("with a slash at its end", "POST /a2a/planner/", "~", 404, NONE),
    ("of another case", "POST /A2A/planner", "~", 404, NONE),
    ("by its text, denied", "POST /v1/a2a/send", r#"{"agent":"private","message":"x"}"#, 403, NONE),
    (
        "two agents, the allowed one first",
        "POST /v1/a2a/send",
        r#"{"agent":"planner","agent":"private","message":"x"}"#,
        400,
        NONE,
    ),
    ("a key twice", "POST /a2a/private\r\napikey: owner-key", "~", 400, NONE),
    ("another tenant's name", "POST /a2a/private\r\nx-tenant-id: a", "~", 403, NONE),
    ("a key in other letters", "POST /a2a/private\r\nx_tenant_id: a", "~", 400, NONE),
    ("its card", "GET /a2a/private/.well-known/agent-card.json", "", 403, NONE),
    // Chains.
    ("a loop", "POST /a2a/planner\r\nx-agent-path: planner", "~", 200, NONE),
    ("a loop in the middle", "POST /a2a/planner\r\nx-agent-path: a,planner,b", "~", 200, NONE),
    ("too deep", "POST /a2a/planner\r\nx-agent-path: a,b,c,d,e", "~", 200, NONE),
    ("two paths", "POST /a2a/planner\r\nx-agent-path: a\r\nx-agent-path: b", "~", 400, NONE),
    ("a path in other letters", "POST /a2a/planner\r\nx_agent_path: planner", "~", 400, NONE),
    (
        "a path for one hop",
        "POST /a2a/planner\r\nx-agent-path: planner\r\nconnection: x-agent-path",
        "~",
        400,
        NONE,
    ),
    ("an empty path", "POST /a2a/planner\r\nx-agent-path:", "~", 200, NONE),
    ("a path of nonsense", "POST /a2a/planner\r\nx-agent-path: a;b", "~", 200, NONE),
    (
        "a path that the body forgets",
        "POST /v1/a2a/send\r\nx-agent-path: planner",
        r#"{"agent":"planner","message":"x","path":[]}"#,
        400,
        NONE,
    ),
    // Messages of which two readers may take different ones.
    (
        "two methods",
        "POST /a2a/planner",
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","method":"message/send"}"#,
        200,
        NONE,
    ),
    ("a batch", "POST /a2a/planner", "[~]", 200, NONE),
    ("two documents", "POST /a2a/planner", "~~", 200, NONE),
    ("a mark before it", "POST /a2a/planner", "\u{feff}~", 200, NONE),
    ("two lengths", "POST /a2a/planner\r\ncontent-length: 5", "~", 400, NONE),
    ("a length and chunks", "POST /a2a/planner\r\ntransfer-encoding: chunked", "~", 400, NONE),
    ("encoded", "POST /a2a/planner\r\ncontent-encoding: gzip", "~", 415, NONE),
    ("two versions", "POST /a2a/planner\r\na2a-version: 0.3\r\na2a-version: 1.0", "~", 400, NONE),
    // Methods and other spellings of the routes.
    ("a method for another", "GET /a2a/planner\r\nx-original-method: POST", "", 400, NONE),
    ("a route for another", "POST /a2a/planner\r\nx-original-url: /a2a/private", "~", 400, NONE),
    ("a GET", "GET /a2a/planner", "", 405, NONE),
    ("a DELETE of nothing", "DELETE /v1/sessions/x", "", 404, NONE),
    ("a session above", "GET /v1/sessions/x/..", "", 400, NONE),
    ("an approval by a slash", "POST /v1/hitl/x%2fapprove", "{}", 400, NONE),
    ("an approval that is pending", "POST /v1/hitl/pending/approve", "{}", 404, NONE),
];

const PLANNER: &[&str] = &["POST /agent"];
const NONE: &[&str] = &[];

const MESSAGE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{}}"#;

#[test]
fn no_spelling_of_a_request_reaches_an_agent_past_a_rule() {
    let range = Range::new();
    for (what, lines, body, status, seen) in CASES {
        let body = body.replace('~', MESSAGE);
        let (first, rest) = lines.split_once("\r\n").unwrap_or((lines, ""));
        let rest = if rest.is_empty() { String::new() } else { format!("{rest}\r\n") };
        let length = if lines.starts_with("POST") {
            format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len())
        } else {
            String::new()
        };
        let request = format!("{first} HTTP/1.1\r\n{GUEST}{rest}{length}\r\n{body}");
        // The table has no `@`.
        range.run_one(what, &request, *status, seen);
    }
    range.settle();
}
