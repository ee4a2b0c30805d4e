//! Permissions of tools over REST, and local tools.

use serde_json::{Value, json};

use super::{CALL, call, call_as, kind, text, with_tools};
use crate::support::client::{ask, get, post, send};
use crate::support::metric;

const LISTS: &str = "allow: {retail: [echo, add], wholesale: ['local/*'], empty: []}";

#[test]
fn what_no_list_names_is_denied() {
    let gateway = with_tools(LISTS, "");
    for (tenant, tool, status, error) in [
        ("retail", "echo", 200, ""),
        ("retail", "add", 200, ""),
        ("retail", "time", 403, "tool_denied"),
        ("retail", "nothing", 404, "tool_not_found"),
        ("wholesale", "time", 200, ""),
        ("wholesale", "json_get", 200, ""),
        ("empty", "echo", 403, "tool_denied"),
        ("unknown", "echo", 403, "tool_denied"),
        ("unknown", "nothing", 404, "tool_not_found"),
    ] {
        let reply = call_as(&gateway, tenant, &json!({"name": tool}));
        assert_eq!((reply.status, kind(&reply).as_str()), (status, error), "{tenant} {tool}");
    }
    let nobody = post(gateway.addr(), CALL, &[], &json!({"name": "echo"}));
    assert_eq!((nobody.status, kind(&nobody).as_str()), (403, "tool_denied"), "without a tenant");
    let calls = |labels: &str| metric(&gateway, &format!("gateway_tool_calls_total{{{labels}}} "));
    // Without their arguments `echo`, `add` and `json_get` say that they failed.
    assert_eq!(calls("server=\"local\",outcome=\"tool_error\""), Some(3.0));
    assert_eq!(calls("server=\"local\",outcome=\"ok\""), Some(1.0));
    assert_eq!(calls("server=\"local\",outcome=\"tool_denied\""), Some(4.0));
    assert_eq!(calls("server=\"none\",outcome=\"tool_not_found\""), Some(2.0));
}

#[test]
fn local_tools_answer() {
    let gateway = with_tools("allow: {retail: ['local/*']}", "");
    let reply = call(&gateway, "add", &json!({"a": 2, "b": 40}));
    assert_eq!(
        reply.json(),
        json!({"name": "add", "server": "local", "result": {
            "content": [{"type": "text", "text": "42"}], "isError": false,
            "structuredContent": {"sum": 42},
        }})
    );
    assert_eq!(text(&call(&gateway, "echo", &json!({"text": "a\"é\n"}))), "a\"é\n");
    let failed = call(&gateway, "add", &json!({"a": 2})).json();
    assert_eq!(failed["result"]["isError"], true);
}

#[test]
fn lists_show_what_a_tenant_may_call() {
    let gateway = with_tools(LISTS, "");
    let names = |tenant: &str| -> Vec<String> {
        let list = ask(gateway.addr(), "GET /v1/mcp/tools", &[("x-tenant-id", tenant)], b"").json();
        let tools = list["tools"].as_array().unwrap().clone();
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("retail"), ["add", "echo"]);
    assert_eq!(names("wholesale"), ["add", "echo", "json_get", "time"]);
    assert_eq!(names("unknown"), Vec::<String>::new());
    let list = ask(gateway.addr(), "GET /v1/mcp/tools", &[("x-tenant-id", "retail")], b"").json();
    let echo = &list["tools"][1];
    assert_eq!(echo["server"], "local");
    assert_eq!(echo["input_schema"]["required"], json!(["text"]));
    assert!(echo["description"].is_string());
    assert_eq!(get(gateway.addr(), "/health").json()["mcp_servers"], 0);
    let plain = crate::support::gateway("");
    assert_eq!(get(plain.addr(), "/health").json().get("mcp_servers"), None);
    assert_eq!(get(plain.addr(), "/v1/mcp/tools").status, 404, "the layer is off");
}

#[test]
fn policies_are_for_the_tenant_and_for_administrators() {
    let gateway = with_tools(LISTS, "admin: {key: sesame}");
    let show = |path: &str, headers: &[(&str, &str)]| {
        ask(gateway.addr(), &format!("GET {path}"), headers, b"")
    };
    let retail = "/v1/policies/retail";
    let own = show(retail, &[("x-tenant-id", "retail")]).json();
    assert_eq!(own, json!({"tenant": "retail", "tools": ["add", "echo"], "max_tool_calls": 20}));
    assert_eq!(show(retail, &[("x-tenant-id", "wholesale")]).status, 403);
    assert_eq!(show(retail, &[]).status, 401);
    let by_key = show(retail, &[("authorization", "Bearer sesame")]);
    assert_eq!((by_key.status, by_key.json()["tools"].clone()), (200, json!(["add", "echo"])));
    let unknown = show("/v1/policies/nobody", &[("authorization", "Bearer sesame")]).json();
    assert_eq!(unknown["tools"], json!([]), "deny by default");
}

#[test]
fn bodies_that_are_no_call_are_refused() {
    let gateway = with_tools("allow: {retail: ['local/*']}", "server: {body_bytes: 64KiB}");
    let deep = format!(
        "{{\"name\":\"echo\",\"arguments\":{}{}}}",
        "{\"a\":".repeat(65),
        "1".to_owned() + &"}".repeat(65)
    );
    let deeper = format!("{{\"name\":\"echo\",\"arguments\":{}", "[".repeat(60_000));
    let wide =
        format!("{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{}\"}}}}", "x".repeat(70_000));
    for (body, status) in [
        ("", 400),
        ("{", 400),
        ("[]", 400),
        ("[\"echo\"]", 400),
        ("{}", 400),
        ("{\"name\":7}", 400),
        ("{\"name\":\"echo\",\"name\":\"add\"}", 400),
        ("{\"name\":\"echo\",\"session\":\"typo\"}", 400),
        ("{\"name\":\"echo\",\"arguments\":[]}", 400),
        ("{\"name\":\"echo\",\"arguments\":\"{}\"}", 400),
        ("{\"name\":\"echo\",\"arguments\":{\"text\":\"\u{0}\"}}", 400),
        (&deep, 400),
        (&deeper, 400),
        (&wide, 413),
        ("{\"name\":\"echo\",\"session_id\":\"nobody\"}", 404),
        ("{\"name\":\"\",\"arguments\":{}}", 404),
        ("{\"name\":\"echo\\u0000\",\"arguments\":{}}", 404),
        ("{\"name\":\"local/*\",\"arguments\":{}}", 404),
    ] {
        let headers = [super::RETAIL];
        let reply = ask(gateway.addr(), &format!("POST {CALL}"), &headers, body.as_bytes());
        assert_eq!(reply.status, status, "{}", &body[..body.len().min(60)]);
        assert!(reply.json()["error"]["message"].is_string());
    }
    let broken =
        ask(gateway.addr(), &format!("POST {CALL}"), &[super::RETAIL], b"{\"name\":\"\xff\"}");
    assert_eq!(broken.status, 400, "not UTF-8");
    let headers = [super::RETAIL, ("content-type", "text/plain")];
    assert_eq!(ask(gateway.addr(), &format!("POST {CALL}"), &headers, b"{}").status, 415);
    let headers = [super::RETAIL, ("content-encoding", "gzip")];
    assert_eq!(ask(gateway.addr(), &format!("POST {CALL}"), &headers, b"{}").status, 415);
    for line in
        [format!("GET {CALL}"), "DELETE /v1/mcp/tools".to_owned(), "PUT /v1/mcp/servers".to_owned()]
    {
        assert_eq!(ask(gateway.addr(), &line, &[], b"").status, 405, "{line}");
    }
}

#[test]
fn a_client_that_leaves_takes_nothing_with_it() {
    let gateway = with_tools("allow: {retail: ['local/*']}", "");
    let body = json!({"name": "echo", "arguments": {"text": "x".repeat(100_000)}}).to_string();
    for _ in 0..20 {
        drop(send(gateway.addr(), &format!("POST {CALL}"), &[super::RETAIL], body.as_bytes()));
    }
    let reply = call(&gateway, "echo", &json!({"text": "still there"}));
    assert_eq!(text(&reply), "still there");
    let none: Value = json!(null);
    assert_eq!(reply.json()["session_id"], none);
}
