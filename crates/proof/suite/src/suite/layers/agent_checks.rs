//! Functional checks of layer 3 before its load: sessions, tools, agents and approvals do what they
//! should, for their tenant alone.

use std::time::Duration;

use plimsoll_runner::time;
use serde_json::{Value, json};

use super::TENANT;
use super::agent_layers::{AGENT, layer};
use super::functional::{Checks, OWN};
use super::gateway_layers::bare_with;
use crate::error::SuiteError;
use crate::http_get::HttpResponse;
use crate::report::Contents;
use crate::runner::SuiteRunner;
use crate::suite::redis_server::RedisServer;
use crate::target::Provider;

/// Two keys of the tenant, and one of another.
const KEYS: &str = "auth={header: apikey, keys: [{name: load, key: load-test-key, tenant: retail}, {name: boss, key: boss-test-key, tenant: retail}, {name: other, key: other-test-key, tenant: wholesale}]}";
/// Another key of the same tenant, who may decide what the first one asks for.
const BOSS: [(&str, &str); 2] = [("apikey", "boss-test-key"), TENANT];
const OTHER: [(&str, &str); 2] = [("apikey", "other-test-key"), ("x-tenant-id", "wholesale")];

/// A session of a second must be gone after it.
const GONE_TIMEOUT: Duration = Duration::from_secs(10);
const GONE_POLL: Duration = Duration::from_millis(100);

/// Asks a gateway of its own, with its state in memory or in Redis.
pub(super) fn check(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    store: &str,
    redis: Option<&RedisServer>,
    contents: &mut Contents,
) -> Result<(), SuiteError> {
    let mut sets = bare_with(&[KEYS, "tenant={header: x-tenant-id}"]);
    sets.extend(layer(provider));
    sets.extend(redis.map(RedisServer::setting));
    let gateway = runner.gateway("layers", &sets, Some(provider))?;
    let Some(mut checks) = Checks::of(runner, &gateway, store) else { return Ok(()) };
    let session = checks.sessions();
    checks.tools(&session);
    checks.agents();
    checks.approvals();
    checks.conclude(&format!(" of layer 3, {store}"), contents);
    Ok(())
}

impl Checks {
    /// Returns the path of a session that lives.
    fn sessions(&mut self) -> String {
        let made = self.post("/v1/sessions", &OWN, &json!({"metadata": {"plan": "b"}}));
        let id = text(&json_of(&made)["session_id"]);
        self.note(["sessions", "create", "201, id"], made.status == 201 && !id.is_empty(), &made);
        let path = format!("/v1/sessions/{id}");
        let shown = self.get(&path, &OWN);
        let own = json_of(&shown)["metadata"] == json!({"plan": "b"});
        self.note(["sessions", "own tenant", "metadata"], own, &shown);
        let hidden = self.get(&path, &OTHER);
        self.note(["sessions", "other tenant", "404"], hidden.status == 404, &hidden);
        let short = self.post("/v1/sessions", &OWN, &json!({"ttl_s": 1}));
        let short = format!("/v1/sessions/{}", text(&json_of(&short)["session_id"]));
        let mut last = HttpResponse::default();
        let gone = time::poll(GONE_TIMEOUT, GONE_POLL, || {
            last = self.get(&short, &OWN);
            (last.status == 404).then_some(())
        });
        self.note(["sessions", "after ttl", "404"], gone.is_some(), &last);
        path
    }

    fn tools(&mut self, session: &str) {
        let id = session.rsplit('/').next().unwrap_or_default();
        let add = json!({"name": "add", "arguments": {"a": 2, "b": 3}, "session_id": id});
        let sum = self.post(CALL, &OWN, &add);
        let is_five = json_of(&sum)["result"]["structuredContent"]["sum"] == json!(5);
        self.note(["tools", "own tool", "2+3=5"], is_five, &sum);
        let counted = self.get(session, &OWN);
        let is_counted = json_of(&counted)["tool_calls"] == json!(1);
        self.note(["tools", "session", "call counted"], is_counted, &counted);
        let echo = json!({"name": "echo", "arguments": {"text": "what the tool repeats"}});
        let repeated = self.post(CALL, &OWN, &echo);
        let is_repeated =
            json_of(&repeated)["result"]["content"].to_string().contains("what the tool repeats");
        self.note(["tools", "proxied tool", "text repeated"], is_repeated, &repeated);
        let denied = self.post(CALL, &OTHER, &echo);
        self.note(["tools", "unlisted tenant", "403"], denied.status == 403, &denied);
    }

    fn agents(&mut self) {
        let message = json!({"agent": AGENT, "message": "Name three uses of a message queue."});
        let answer = self.post(SEND, &OWN, &message);
        let found = json_of(&answer);
        let answers = found["agent"] == json!(AGENT) && found["result"].is_object();
        self.note(["agents", "message", "answered"], answers, &answer);
        let denied = self.post(SEND, &OTHER, &message);
        self.note(["agents", "unlisted tenant", "403"], denied.status == 403, &denied);
    }

    fn approvals(&mut self) {
        let asked = self.post("/v1/hitl", &OWN, &json!({"action": "refund"}));
        let found = json_of(&asked);
        let is_pending = asked.status == 201 && found["state"] == json!("pending");
        self.note(["approvals", "create", "201, pending"], is_pending, &asked);
        let approve = format!("/v1/hitl/{}/approve", text(&found["id"]));
        let own = self.post(&approve, &OWN, &json!({}));
        self.note(["approvals", "own key", "403"], own.status == 403, &own);
        let decided = self.post(&approve, &BOSS, &json!({}));
        let is_approved = json_of(&decided)["state"] == json!("approved");
        self.note(["approvals", "other key", "approved"], is_approved, &decided);
        let again = self.post(&approve, &BOSS, &json!({}));
        self.note(["approvals", "second decision", "409"], again.status == 409, &again);
    }
}

const CALL: &str = "/v1/mcp/tools/call";
const SEND: &str = "/v1/a2a/send";

/// The body of a response; null if it is no JSON.
fn json_of(response: &HttpResponse) -> Value {
    serde_json::from_str(&response.body).unwrap_or_default()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
