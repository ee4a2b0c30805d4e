//! The pool of idle connections to upstreams. Each worker has its own.

use std::cell::RefCell;
use std::iter;
use std::sync::Arc;

use hashbrown::HashMap;
use hyper::Request;
use tokio::time::timeout;

use super::connection::{Broken, Received, UpstreamConn, UpstreamError};
use super::endpoint::Endpoint;
use crate::base::clock;
use crate::http::request_body::RequestBody;

/// Most idle connections for one address.
const MAX_IDLE: usize = 1_024;

/// Idle connections by address, the last used one on top.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<Arc<str>, Vec<IdleConn>>>,
}

/// An idle connection.
#[derive(Debug)]
struct IdleConn {
    connection: UpstreamConn,
    /// Monotonic nanoseconds.
    expires: u64,
}

impl Pool {
    /// Sends a request, over an idle connection if it `may_reuse` one. Connections that the server
    /// closed before any byte of the request was sent are skipped. A request is never sent twice
    /// here, because the server may have acted on it.
    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        mut request: Box<Request<RequestBody>>,
        may_reuse: bool,
    ) -> Result<Received, UpstreamError> {
        while let Some(idle) = may_reuse.then(|| self.checkout(endpoint)).flatten() {
            match idle.send(request).await {
                Err(UpstreamError::Broken(Broken { unsent: Some(unsent), .. })) => request = unsent,
                Err(UpstreamError::Broken(broken)) => {
                    return Err(UpstreamError::Broken(Broken { reused: true, ..broken }));
                }
                other => return other,
            }
        }
        // Rare, so its state is boxed to keep other futures small.
        Box::pin(connect(endpoint)).await?.send(request).await
    }

    /// The most recently used idle connection that is still good.
    fn checkout(&self, endpoint: &Endpoint) -> Option<UpstreamConn> {
        let mut idle = self.idle.borrow_mut();
        let stack = idle.get_mut(&endpoint.address)?;
        iter::from_fn(|| stack.pop()).map(|idle| idle.connection).find(UpstreamConn::is_free)
    }

    /// Takes back a connection whose exchange is complete in both directions, and closes others. A
    /// server may answer before it has the whole request, and the next request must not wait for a
    /// client that is still sending.
    pub(crate) fn release(&self, endpoint: &Endpoint, connection: UpstreamConn) {
        if !connection.is_free() {
            return;
        }
        let expires = clock::now().saturating_add(endpoint.keep_alive);
        let mut idle = self.idle.borrow_mut();
        if let Some(stack) = idle.get_mut(&endpoint.address) {
            if stack.len() < MAX_IDLE {
                stack.push(IdleConn { connection, expires });
            }
        } else {
            let connections = vec![IdleConn { connection, expires }];
            idle.insert(Arc::clone(&endpoint.address), connections);
        }
    }

    /// Closes connections that exceeded the idle time or were closed by the server, and frees the
    /// memory of a peak.
    pub(crate) fn sweep(&self, now: u64) {
        self.idle.borrow_mut().retain(|_, stack| {
            stack.retain(|idle| idle.expires > now && idle.connection.is_free());
            if stack.capacity() > 2 * stack.len().max(16) {
                stack.shrink_to_fit();
            }
            !stack.is_empty()
        });
    }
}

/// Opens a connection.
async fn connect(endpoint: &Endpoint) -> Result<UpstreamConn, UpstreamError> {
    let opened = timeout(endpoint.connect_timeout.0, UpstreamConn::open(endpoint)).await;
    opened.map_err(|_| UpstreamError::Connect)?
}
