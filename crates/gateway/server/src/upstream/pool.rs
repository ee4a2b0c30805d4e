//! The pool of idle connections to upstreams. Each worker has its own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::spawn_local;
use tokio::time::timeout;

use super::endpoint::Endpoint;
use crate::request_body::RequestBody;

/// Most idle connections for one address.
const MAX_IDLE: usize = 1_024;

/// A connection that carries one request at a time. A separate task reads and writes its socket.
#[derive(Debug)]
pub(crate) struct UpstreamConn(http1::SendRequest<RequestBody>);

/// A response whose body is still on the connection.
pub(crate) type Received = (Response<Incoming>, UpstreamConn);

/// Idle connections by address, the last used one on top.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<Arc<str>, Vec<UpstreamConn>>>,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum UpstreamError {
    /// The connection could not be opened.
    Connect,
    /// The connection broke before a response; the request is returned if nothing of it was sent.
    Broken(Option<Box<Request<RequestBody>>>, hyper::Error),
}

impl Pool {
    /// Sends a request, over an idle connection if there is one. A connection that the server
    /// closed in the meantime is replaced silently, if nothing of the request was sent or the
    /// request is idempotent (RFC 9110, 9.2.2).
    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        mut request: Request<RequestBody>,
    ) -> Result<Received, UpstreamError> {
        while let Some(mut connection) = self.checkout(endpoint) {
            if connection.0.ready().await.is_err() {
                continue;
            }
            let spare = clone_idempotent(&request);
            match (connection.send(request).await, spare) {
                (Err(UpstreamError::Broken(Some(unsent), _)), _) => request = *unsent,
                (Err(UpstreamError::Broken(None, _)), Some(spare)) => {
                    request = spare;
                    break;
                }
                (other, _) => return other,
            }
        }
        connect(endpoint).await?.send(request).await
    }

    fn checkout(&self, endpoint: &Endpoint) -> Option<UpstreamConn> {
        self.idle.borrow_mut().get_mut(&endpoint.address)?.pop()
    }

    /// Returns a connection whose response was read to its end.
    pub(crate) fn release(&self, endpoint: &Endpoint, connection: UpstreamConn) {
        if connection.0.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if let Some(stack) = idle.get_mut(&endpoint.address) {
            if stack.len() < MAX_IDLE {
                stack.push(connection);
            }
        } else {
            idle.insert(Arc::clone(&endpoint.address), vec![connection]);
        }
    }
}

impl UpstreamConn {
    /// Sends a request, and waits for the head of its response.
    pub(super) async fn send(
        mut self,
        request: Request<RequestBody>,
    ) -> Result<Received, UpstreamError> {
        match self.0.try_send_request(request).await {
            Ok(response) => Ok((response, self)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                Err(UpstreamError::Broken(unsent, error.into_error()))
            }
        }
    }
}

/// A copy of the request, if it is idempotent and in memory.
fn clone_idempotent(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    if !request.method().is_idempotent() {
        return None;
    }
    let mut copy = Request::new(request.body().try_clone()?);
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = request.uri().clone();
    *copy.headers_mut() = request.headers().clone();
    Some(copy)
}

/// Opens a connection.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<UpstreamConn, UpstreamError> {
    let stream = TcpStream::connect(&*endpoint.address);
    let stream = timeout(endpoint.connect_timeout.0, stream).await;
    let stream = stream.map_err(|_| UpstreamError::Connect)?.map_err(|_| UpstreamError::Connect)?;
    // Small writes must not wait for one another; this fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let (sender, connection) = http1::Builder::new()
        .writev(false)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| UpstreamError::Broken(None, error))?;
    // Its errors reach the request that it carries.
    spawn_local(async move {
        let _ = connection.with_upgrades().await;
    });
    Ok(UpstreamConn(sender))
}
