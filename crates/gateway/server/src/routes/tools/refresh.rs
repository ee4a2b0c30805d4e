//! Refreshes the tools of all servers periodically.

use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use plimsoll_gateway_mcp::ServerState;
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::exchange::worker::Worker;
use crate::layers::tool_server::{Failure, ServerLink, Services};

/// Time between two requests to an unavailable server.
const RETRY: Duration = Duration::from_secs(2);

/// Refreshes the servers of the configuration in force, including later ones.
pub(crate) async fn refresh(worker: Rc<Worker>) {
    let mut reloaded = worker.state.reloaded.subscribe();
    loop {
        let pause = worker.config().layers.tools.as_ref().map(|layer| layer.refresh.0);
        let Some(pause) = pause else {
            if reloaded.changed().await.is_err() {
                return;
            }
            continue;
        };
        let all_up = look_at_all(&worker).await;
        let pause = if all_up { pause } else { pause.min(RETRY) };
        let is_over = tokio::select! {
            () = sleep(pause) => false,
            changed = reloaded.changed() => changed.is_err(),
        };
        if is_over {
            return;
        }
    }
}

/// Asks all servers at once; returns whether all answered.
async fn look_at_all(worker: &Rc<Worker>) -> bool {
    let registry = worker.state.tools.registry();
    let looks: Vec<_> = registry
        .servers()
        .map(|server| spawn_local(look_at(Rc::clone(worker), Arc::clone(&server.link))))
        .collect();
    for look in looks {
        // A panicked task recorded nothing.
        let _ = look.await;
    }
    let registry = worker.state.tools.registry();
    registry.servers().all(|server| server.state == ServerState::Up)
}

async fn look_at(worker: Rc<Worker>, link: Arc<ServerLink>) {
    let connection = worker.tools.to(&link);
    let services = Services { pool: &worker.pool, memory: &worker.state.memory };
    let listed = timeout(link.timeout, connection.list(services)).await;
    let listed = listed.unwrap_or(Err(Failure::TimedOut));
    worker.state.tools.note(&link, listed.map_err(|failure| failure.reason()));
}
