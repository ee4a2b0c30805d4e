//! The reference gateway with a tool and an agent of the mock behind it.

use crate::error::SuiteError;
use crate::runner::SuiteRunner;
use crate::suite::RedisServer;
use crate::target::{Gateway, Provider};

/// Starts it, without keys and limits, with its state in memory or in Redis; `more` are further
/// settings. Chats are passed on; `/mcp` is the gateway's own.
pub(super) fn start(
    runner: &mut SuiteRunner<'_>,
    provider: &Provider,
    redis: Option<&RedisServer>,
    more: Option<String>,
) -> Result<Gateway, SuiteError> {
    let more: Vec<_> = redis.map(RedisServer::setting).into_iter().chain(more).collect();
    let mut gateway = runner.gateway("baseline", "echo", &more, Some(provider))?;
    gateway.target.store_pid = redis.and_then(RedisServer::pid);
    Ok(gateway)
}
