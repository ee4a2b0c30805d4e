//! Tool servers.

use plimsoll_metrics::RunSummary;

use super::{
    Counts, SdkServer, count, expect_each_request, expect_errors, fixture, gateway, group, load,
    load_with, total,
};

const SESSIONS: &str = "2025-11-25";
const OLDER_SESSIONS: &str = "2025-06-18";
const STATELESS: &str = "2026-07-28";

const PYTHON: Server = Server {
    script: ("mcp", "mcp_server.py"),
    line: None,
    unknown_tool: None,
    unknown_resource: -32_602,
    refuses: true,
};
const TYPESCRIPT: Server = Server {
    script: ("node", "mcp_server.mjs"),
    line: Some("2"),
    unknown_tool: Some(-32_602),
    unknown_resource: -32_602,
    refuses: false,
};
const TYPESCRIPT_1: Server = Server { line: Some("1"), unknown_tool: None, ..TYPESCRIPT };

/// A server and its answers.
#[derive(Clone, Copy)]
struct Server {
    script: (&'static str, &'static str),
    /// Line of the TypeScript SDK.
    line: Option<&'static str>,
    /// The code of the error that a call of an unknown tool gets; without one the result says
    /// `isError`.
    unknown_tool: Option<i32>,
    unknown_resource: i32,
    /// Whether it has the tool `refuse`, which answers with the error -32050.
    refuses: bool,
}

impl Server {
    fn name(&self, form: &str, revision: &str) -> String {
        let (script, line) = (self.script.1, self.line.unwrap_or_default());
        format!("{script} {line} {form} {revision}")
    }

    fn start(&self, fixture: &crate::support::Fixture, form: &str) -> SdkServer {
        let args: Vec<_> = [form].into_iter().chain(self.line).collect();
        SdkServer::start(fixture, self.script, &args)
    }
}

/// Four sessions a second for three seconds. Every kind of step is in it.
fn profile(server: &Server, revision: &str) -> String {
    let refuse = if server.refuses { "- {method: tools/call, name: refuse}" } else { "" };
    let era = if revision == STATELESS { "server/discover" } else { "ping" };
    format!(
        "protocol: mcp
stages: '@4:3s'
drain: 60s
turns: 12
mcp:
  revision: '{revision}'
  steps:
  - {{method: tools/call, name: echo, argument: text, argument_bytes: {{min: 16, max: 4096}}, weight: 5}}
  - {{method: tools/call, name: total, arguments: {{a: 2, b: 40}}}}
  - {{method: tools/call, name: slow, progress: true, weight: 0.5}}
  - {{method: tools/call, name: fail}}
  - {{method: tools/call, name: nobody}}
  {refuse}
  - {{method: tools/list}}
  - {{method: resources/list}}
  - {{method: resources/templates/list}}
  - {{method: resources/read, name: 'mock://notes'}}
  - {{method: resources/read, name: 'mock://nothing'}}
  - {{method: prompts/list}}
  - {{method: prompts/get, name: greeting, arguments: {{name: Ada}}}}
  - {{method: {era}}}
"
    )
}

/// The methods, with the servers' log lines of a request.
const REQUESTS: [(&str, &[&str]); 13] = [
    ("initialize", &["initialize"]),
    ("notifications/initialized", &["notifications/initialized"]),
    ("server/discover", &["server/discover"]),
    ("ping", &["ping"]),
    ("tools/list", &["tools/list"]),
    ("tools/call", &["tools/call "]),
    ("resources/list", &["resources/list"]),
    ("resources/templates/list", &["resources/templates/list"]),
    ("resources/read", &["resources/read"]),
    ("prompts/list", &["prompts/list"]),
    ("prompts/get", &["prompts/get"]),
    ("notifications/cancelled", &["notifications/cancelled"]),
    ("session-end", &["DELETE /mcp"]),
];

/// Checks that each tool ran as often as it was called, and no other.
fn expect_each_call(case: &str, counts: &Counts) {
    let known = ["echo", "total", "slow", "fail", "refuse"];
    for tool in known {
        let called = count(counts, &format!("request tools/call {tool}"));
        assert_eq!(count(counts, &format!("tool {tool}")), called, "{case}: {tool}: {counts:?}");
    }
    assert!(count(counts, "tool echo") > 0 && count(counts, "tool fail") > 0, "{case}: {counts:?}");
}

fn expect_answers(case: &str, server: &Server, summary: &RunSummary, counts: &Counts) {
    let (failed, unknown) =
        (count(counts, "tool fail"), count(counts, "request tools/call nobody"));
    let tool_errors = failed + if server.unknown_tool.is_none() { unknown } else { 0 };
    assert_eq!(summary.results.total.counters.tool_errors, tool_errors, "{case}");
    let no_resource = total(counts, "request resources/read") - total(counts, "resource ");
    assert!(unknown > 0 && no_resource > 0, "{case}: {counts:?}");
    let mut errors = vec![(server.unknown_resource, no_resource)];
    match server.unknown_tool {
        Some(code) if code == server.unknown_resource => errors[0].1 += unknown,
        Some(code) => errors.push((code, unknown)),
        None => {}
    }
    errors.push((-32_050, count(counts, "tool refuse")));
    expect_errors(case, summary, &errors);
    let prompts = total(counts, "request prompts/get");
    assert_eq!(count(counts, "prompt greeting"), prompts, "{case}: {counts:?}");
}

#[expect(clippy::print_stdout, reason = "it says what it did")]
fn tell(case: &str, summary: &RunSummary) {
    let total = &summary.results.total;
    let counters = &total.counters;
    println!(
        "{case}: {} requests, {} good, {} tool errors, errors {:?}",
        counters.scheduled, counters.completed, counters.tool_errors, total.rpc_errors
    );
}

/// Loads a server that answers in this form, and returns how often its slow tool ran.
fn look_at_load(server: &Server, form: &str, revision: &str) -> u64 {
    let case = server.name(form, revision);
    let fixture = fixture();
    let running = server.start(&fixture, form);
    let url = format!("http://127.0.0.1:{}/mcp", running.port);
    let summary = load_with(&fixture, &profile(server, revision), &url);
    let counts = running.counts();
    tell(&case, &summary);
    expect_each_request(&case, &summary, &counts, &REQUESTS);
    expect_each_call(&case, &counts);
    expect_answers(&case, server, &summary, &counts);
    // Progress comes in streams. A server that answers with single documents leaves it out, unless
    // a stream takes the place of the document.
    let slow = count(&counts, "tool slow");
    let streams = form.starts_with("events") || (server.line, revision) == (Some("2"), STATELESS);
    let progress = if streams { 3 * slow } else { 0 };
    let told = group(&summary, "tools/call").map(|group| group.counters.notifications);
    assert_eq!(told, Some(progress), "{case}");
    slow
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn every_request_of_a_load_is_answered_and_counted_as_the_official_server_counts_it() {
    let mut slow = 0;
    for (server, revisions) in [
        (PYTHON, &[SESSIONS, OLDER_SESSIONS, STATELESS][..]),
        (TYPESCRIPT, &[SESSIONS, OLDER_SESSIONS, STATELESS]),
        (TYPESCRIPT_1, &[SESSIONS, OLDER_SESSIONS]),
    ] {
        for revision in revisions {
            slow += look_at_load(&server, "json", revision);
            slow += look_at_load(&server, "events", revision);
        }
        // Servers that keep no session in the era that has them.
        for form in ["json-alone", "events-alone"] {
            slow += look_at_load(&server, form, SESSIONS);
        }
    }
    assert!(slow > 0, "no call reported progress");
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn calls_through_the_gateway_reach_the_official_server_once() {
    for (server, form, protocol) in [
        (PYTHON, "json", "sessions"),
        (PYTHON, "events-alone", "sessions"),
        (PYTHON, "json", "stateless"),
        (TYPESCRIPT, "json", "sessions"),
        (TYPESCRIPT, "events-alone", "sessions"),
        (TYPESCRIPT, "json", "stateless"),
        (TYPESCRIPT_1, "json", "sessions"),
    ] {
        for revision in [SESSIONS, STATELESS] {
            let case = format!("{protocol} behind the gateway, {}", server.name(form, revision));
            let fixture = fixture();
            let running = server.start(&fixture, form);
            let config = format!(
                "tenant: {{}}\ntools: {{allow: {{retail: ['official/*']}}, local: [], \
                 servers: {{official: {{url: 'http://127.0.0.1:{}/mcp', protocol: {protocol}}}}}}}\n",
                running.port
            );
            let gateway = gateway(&fixture, &config, ("/v1/mcp/servers", "\"state\":\"up\""));
            let profile = format!(
                "protocol: mcp
headers: {{x-tenant-id: retail}}
stages: '@4:3s'
drain: 60s
turns: 12
mcp:
  revision: '{revision}'
  steps:
  - {{method: tools/call, name: echo, argument: text, argument_bytes: {{min: 16, max: 4096}}, weight: 5}}
  - {{method: tools/call, name: total, arguments: {{a: 2, b: 40}}}}
  - {{method: tools/call, name: fail}}
  - {{method: tools/call, name: nobody}}
  - {{method: tools/list}}
"
            );
            let summary = load_with(&fixture, &profile, &format!("http://{}/mcp", gateway.address));
            let counts = running.counts();
            tell(&case, &summary);
            expect_each_call(&case, &counts);
            let calls = &group(&summary, "tools/call").unwrap().counters;
            // The gateway itself refuses calls of unknown tools.
            let unknown = calls.scheduled - calls.never_sent - calls.completed;
            assert_eq!(calls.completed, total(&counts, "request tools/call "), "{case}");
            assert_eq!(calls.tool_errors, count(&counts, "tool fail"), "{case}");
            assert!(unknown > 0, "{case}: {calls:?}");
            expect_errors(&case, &summary, &[(-32_602, unknown)]);
        }
    }
}

#[test]
#[ignore = "installs the official SDKs from the package registries"]
fn the_built_in_profile_fits_the_official_servers() {
    for server in [PYTHON, TYPESCRIPT, TYPESCRIPT_1] {
        let case = format!("mcp-tools, {}", server.name("events", SESSIONS));
        let fixture = fixture();
        let running = server.start(&fixture, "events");
        let url = format!("http://127.0.0.1:{}", running.port);
        let bound = "thresholds={success_rate: ['value>0.99']}";
        // Steps of its own: the session that asks for the tools is not counted by the run.
        let steps = "mcp.steps=[{method: tools/call, name: echo, argument_bytes: {min: 16, max: 4096}, weight: 8}, \
             {method: tools/list}, {method: resources/list, weight: 0.5}, \
             {method: resources/read, name: \"mock://notes\"}, \
             {method: prompts/get, name: greeting, arguments: {name: Ada}, weight: 0.5}, {method: ping}]";
        let args = ["mcp-tools", "--stages", "@4:4s", "--set", bound, "--set", steps];
        let summary = load(&fixture, &args, &url);
        let counts = running.counts();
        tell(&case, &summary);
        expect_each_request(&case, &summary, &counts, &REQUESTS);
        expect_errors(&case, &summary, &[]);
        assert_eq!(summary.results.total.counters.tool_errors, 0, "{case}");
        let calls = count(&counts, "request tools/call echo");
        assert_eq!((count(&counts, "tool echo"), calls > 0), (calls, true), "{case}: {counts:?}");
    }
}
