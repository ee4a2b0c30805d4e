//! The reference gateway with a tool and an agent of the mock behind it.

use serde_json::json;

use crate::error::SuiteError;
use crate::runner::SuiteRunner;
use crate::suite::redis_server::RedisServer;
use crate::target::{Gateway, Provider};

/// The tool, which repeats a text.
pub(super) const TOOL: &str = "echo";

/// Chats are passed on; `/mcp` is the gateway's own.
const ROUTES: &str =
    "routes=[{name: chat, path: /v1/chat/completions, upstream: provider, llm: true}]";

/// Starts it, without keys and limits, with its state in memory or in Redis; `more` are further
/// settings.
pub(super) fn start(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    redis: Option<&RedisServer>,
    more: Option<String>,
) -> Result<Gateway, SuiteError> {
    let tools = json!({
        "local": [],
        "servers": {"mock": {"url": format!("http://{}/mcp", provider.address())}},
        "allow": {"*": [TOOL]},
    });
    let tools = format!("tools={tools}");
    let own = ["auth=null", "rate_limits=[]", ROUTES, &tools].map(str::to_owned);
    let sets: Vec<_> = own.into_iter().chain(redis.map(RedisServer::setting)).chain(more).collect();
    let mut gateway = runner.gateway("baseline", &sets, Some(provider))?;
    gateway.target.store_pid = redis.and_then(RedisServer::pid);
    Ok(gateway)
}
