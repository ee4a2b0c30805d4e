//! A connection that reconnects by itself.

use parking_lot::Mutex;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError, RedisResult};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Pause between connection attempts: doubles from the first value to the second.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// Commands that wait to be written.
const QUEUE: usize = 1_024;

/// One worker's connection, shared by its requests.
///
/// While it is lost every call fails at once instead of waiting for an unreachable server. A task
/// of the worker's runtime reconnects. The library's own manager is not used because its callers
/// wait for the reconnection.
#[derive(Debug)]
pub(super) struct ReconnectingClient {
    client: Client,
    timeout: Duration,
    state: Mutex<State>,
    /// The number of workers without a connection.
    lost: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<MultiplexedConnection>,
    /// Counts connections, so that a late failure of an old one does not close a new one.
    generation: u64,
}

impl ReconnectingClient {
    /// Connects once, and retries in the background after a failure.
    pub(super) async fn open(
        client: Client,
        timeout: Duration,
        lost: Arc<AtomicUsize>,
    ) -> Arc<Self> {
        let client = Arc::new(Self { client, timeout, state: Mutex::default(), lost });
        match connect(&client.client, timeout).await {
            Some(connection) => client.connected(connection),
            None => client.reconnect(),
        }
        client
    }

    /// Runs an operation within the time limit; `None` without an answer.
    pub(super) async fn call<T>(
        self: &Arc<Self>,
        operation: impl AsyncFnOnce(&mut MultiplexedConnection) -> RedisResult<T>,
    ) -> Option<T> {
        let (mut connection, generation) = self.connection()?;
        match tokio::time::timeout(self.timeout, operation(&mut connection)).await {
            Ok(Ok(answer)) => Some(answer),
            Ok(Err(error)) if !is_loss(&error) => None,
            _ => {
                self.lost(generation);
                None
            }
        }
    }

    fn connection(&self) -> Option<(MultiplexedConnection, u64)> {
        let state = self.state.lock();
        state.connection.clone().map(|connection| (connection, state.generation))
    }

    fn connected(&self, connection: MultiplexedConnection) {
        let mut state = self.state.lock();
        state.generation += 1;
        state.connection = Some(connection);
    }

    fn lost(self: &Arc<Self>, generation: u64) {
        let mut state = self.state.lock();
        if state.generation == generation && state.connection.take().is_some() {
            drop(state);
            self.reconnect();
        }
    }

    /// Reconnects in the background, until it succeeds or the client is dropped.
    fn reconnect(self: &Arc<Self>) {
        self.lost.fetch_add(1, Ordering::Relaxed);
        let waiting = Arc::downgrade(self);
        tokio::spawn(reconnect(waiting, self.client.clone(), self.timeout));
    }
}

async fn reconnect(waiting: Weak<ReconnectingClient>, client: Client, timeout: Duration) {
    let mut pause = FIRST_PAUSE;
    while waiting.strong_count() > 0 {
        if let Some(connection) = connect(&client, timeout).await {
            if let Some(waiting) = waiting.upgrade() {
                waiting.lost.fetch_sub(1, Ordering::Relaxed);
                waiting.connected(connection);
            }
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Connects and shakes hands; the time limit is longer than that of an operation.
async fn connect(client: &Client, timeout: Duration) -> Option<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_pipeline_buffer_size(QUEUE)
        .set_connection_timeout(None)
        .set_response_timeout(None);
    let connecting = client.get_multiplexed_async_connection_with_config(&config);
    // On the heap: the handshake's future is large and rare.
    tokio::time::timeout(timeout * 5, Box::pin(connecting)).await.ok()?.ok()
}

/// Whether the connection is unusable, and not only this operation failed.
fn is_loss(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped() || error.is_timeout()
}
