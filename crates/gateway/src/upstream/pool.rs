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

/// A connection that carries one request at a time.
pub(crate) type Sender = http1::SendRequest<Upload>;

/// Idle connections by address, the last one used on top.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    idle: RefCell<HashMap<Arc<str>, Vec<Sender>>>,
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
    /// Sends a request, over an idle connection if there is one. One that the server closed in the
    /// meantime is replaced without a word, as long as nothing of the request was sent.
    pub(crate) async fn send(
        &self,
        endpoint: &Endpoint,
        mut request: Request<Upload>,
    ) -> Result<(Response<Incoming>, Sender), Fault> {
        while let Some(mut sender) = self.take(endpoint) {
            if sender.ready().await.is_err() {
                continue;
            }
            match exchange(sender, request).await {
                Err(Fault::Broken(Some(unsent), _)) => request = *unsent,
                other => return other,
            }
        }
        exchange(connect(endpoint).await?, request).await
    }

    fn take(&self, endpoint: &Endpoint) -> Option<Sender> {
        self.idle.borrow_mut().get_mut(&endpoint.address)?.pop()
    }

    /// Keeps a connection whose answer was read to its end.
    pub(crate) fn put(&self, endpoint: &Endpoint, sender: Sender) {
        if sender.is_closed() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        if let Some(stack) = idle.get_mut(&endpoint.address) {
            if stack.len() < MOST_IDLE {
                stack.push(sender);
            }
        } else {
            idle.insert(Arc::clone(&endpoint.address), vec![sender]);
        }
    }
}

async fn exchange(
    mut sender: Sender,
    request: Request<Upload>,
) -> Result<(Response<Incoming>, Sender), Fault> {
    match sender.try_send_request(request).await {
        Ok(response) => Ok((response, sender)),
        Err(mut error) => {
            let unsent = error.take_message().map(Box::new);
            Err(Fault::Broken(unsent, error.into_error()))
        }
    }
}

/// A new connection.
pub(super) async fn connect(endpoint: &Endpoint) -> Result<Sender, Fault> {
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
    Ok(sender)
}
