//! Connections to upstreams that are open and idle. Each worker has its own.

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

use super::Endpoint;
use crate::body::Upload;

/// Idle connections that are kept for one address.
const MOST_IDLE: usize = 1_024;

/// A connection that carries one request at a time. A task of its own reads and writes for it.
#[derive(Debug)]
pub(crate) struct Link(http1::SendRequest<Upload>);

/// An answer's head, its body still on the connection.
pub(crate) type Answer = (Response<Incoming>, Link);

/// Idle connections by address, the last one used on top.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<Arc<str>, Vec<Link>>>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No connection.
    Connect,
    /// The connection broke before an answer; the request comes back if nothing of it was sent.
    Broken(Option<Box<Request<Upload>>>, hyper::Error),
}

impl Pool {
    /// Sends a request, over an idle connection if there is one. One that the server closed in the meantime is replaced
    /// without a word, as long as nothing of the request was sent, or sending it twice does no harm (RFC 9110, 9.2.2).
    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        mut request: Request<Upload>,
    ) -> Result<Answer, Fault> {
        while let Some(mut link) = self.take(endpoint) {
            if link.0.ready().await.is_err() {
                continue;
            }
            let spare = again(&request);
            match (link.exchange(request).await, spare) {
                (Err(Fault::Broken(Some(unsent), _)), _) => request = *unsent,
                (Err(Fault::Broken(None, _)), Some(spare)) => {
                    request = spare;
                    break;
                }
                (other, _) => return other,
            }
        }
        connect(endpoint).await?.exchange(request).await
    }

    fn take(&self, endpoint: &Endpoint) -> Option<Link> {
        self.idle.borrow_mut().get_mut(&endpoint.address)?.pop()
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn put(&self, endpoint: &Endpoint, link: Link) {
        if link.0.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if let Some(stack) = idle.get_mut(&endpoint.address) {
            if stack.len() < MOST_IDLE {
                stack.push(link);
            }
        } else {
            idle.insert(Arc::clone(&endpoint.address), vec![link]);
        }
    }
}

impl Link {
    /// Sends a request, and waits for the head of its answer.
    pub(super) async fn exchange(mut self, request: Request<Upload>) -> Result<Answer, Fault> {
        match self.0.try_send_request(request).await {
            Ok(response) => Ok((response, self)),
            Err(mut error) => {
                let unsent = error.take_message().map(Box::new);
                Err(Fault::Broken(unsent, error.into_error()))
            }
        }
    }
}

/// The same request once more, if that does no harm.
fn again(request: &Request<Upload>) -> Option<Request<Upload>> {
    if !request.method().is_idempotent() {
        return None;
    }
    let mut same = Request::new(request.body().again()?);
    *same.method_mut() = request.method().clone();
    *same.uri_mut() = request.uri().clone();
    *same.headers_mut() = request.headers().clone();
    Some(same)
}

/// A new connection.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<Link, Fault> {
    let stream = TcpStream::connect(&*endpoint.address);
    let stream = timeout(endpoint.connect_timeout.0, stream).await;
    let stream = stream.map_err(|_| Fault::Connect)?.map_err(|_| Fault::Connect)?;
    // Small pieces must not wait for one another; it fails on closed sockets only.
    let _ = stream.set_nodelay(true);
    let (sender, connection) = http1::Builder::new()
        .writev(false)
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| Fault::Broken(None, error))?;
    // What goes wrong on it is told to the request that it carries.
    spawn_local(async move {
        let _ = connection.with_upgrades().await;
    });
    Ok(Link(sender))
}
