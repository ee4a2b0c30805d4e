//! Metrics of the tools.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::Labels;

/// Metrics of the tools.
#[derive(Debug)]
pub(super) struct ToolMetrics {
    calls: Family<Labels<2>, Counter>,
    servers: Family<Labels<1>, Gauge>,
}

impl ToolMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let (calls, servers) = (Family::default(), Family::default());
        registry.register("tool_calls", "Calls of tools by server and outcome", calls.clone());
        registry.register("tool_servers", "Tool servers by state", servers.clone());
        Self { calls, servers }
    }

    /// Counts a call of a tool. Calls of tools that do not exist have the server `none`.
    pub(super) fn count_call(&self, server: &str, outcome: &'static str) {
        let labels = [("server", server.to_owned()), ("outcome", outcome.to_owned())];
        self.calls.get_or_create(&labels).inc();
    }

    /// Sets the numbers of servers that are up and down; nothing where there are none.
    pub(super) fn set_servers(&self, up: usize, down: usize) {
        self.servers.clear();
        let states = [("up", up), ("down", down)].into_iter().filter(|_| up + down > 0);
        for (state, count) in states {
            let gauge = self.servers.get_or_create(&[("state", state.to_owned())]);
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }
}
