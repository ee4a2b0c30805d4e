//! HTTP/2 against hyper's server.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::disallowed_methods,
    dead_code,
    unreachable_pub,
    reason = "tests may fail loudly, and use a part of the common server"
)]

mod common;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use common::{Client, options, run, say, serve};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_measure::{ErrorClass, Nanos};
use plimsoll_transport::{Connector, Endpoint, Pool, SocketOptions};
use tokio::net::TcpListener;

/// Says what it was asked: method, `x-test`, `x-request-id`, length of the body; then as many bytes as asked for.
async fn answer(
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let header = |name: &str| {
        request.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned()
    };
    let said = format!("{} {} {}", request.method(), header("x-test"), header("x-request-id"));
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let text = format!("{said} {} {}", body.len(), "z".repeat(body.len()));
    Ok(hyper::Response::builder().status(201).body(Full::from(text)).unwrap())
}

/// A server on the current runtime; its address and the number of connections it has accepted.
async fn server() -> (SocketAddr, Rc<std::cell::Cell<u32>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, accepted) = (listener.local_addr().unwrap(), Rc::new(std::cell::Cell::new(0)));
    let count = Rc::clone(&accepted);
    tokio::task::spawn_local(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            count.set(count.get() + 1);
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(tcp), service_fn(answer)));
        }
    });
    (address, accepted)
}

fn client(address: SocketAddr, streams: u32) -> Client {
    let endpoint = Endpoint::new(address.ip().to_string(), address.port());
    let options = SocketOptions { http2_streams: Some(streams), ..options(Nanos::from_secs(2)) };
    Client::with(Connector::new(endpoint, None, options).unwrap())
}

#[test]
fn exchanges_share_connections_up_to_their_streams_and_are_heard_whole() {
    run(async {
        let (address, accepted) = server().await;
        let (client, pool) = (client(address, 10), Pool::new());
        let exchange = async |size: usize| {
            let acquired = pool.acquire(&client.connector, &client.stamper).await;
            let mut connection = acquired.connection.unwrap();
            let (heard, end) = client.send(&mut connection, "POST", &vec![b'x'; size]).await;
            pool.give(connection);
            let expected = format!("POST 1 id {size} {}", "z".repeat(size));
            assert_eq!((heard.status, end, heard.body.len()), (201, Ok(true), expected.len()));
            assert!(
                heard.body == expected.as_bytes()
                    && heard.sent.unwrap() <= *heard.reads.last().unwrap()
            );
            acquired.phases.tcp.is_some()
        };
        // Larger than the windows that HTTP/2 starts with.
        let sizes = (0..35).map(|n| n * 20_000);
        let opened =
            futures_all(sizes.map(&exchange)).await.into_iter().filter(|opened| *opened).count();
        assert_eq!((opened, accepted.get()), (4, 4), "35 exchanges, 10 to a connection");
        assert!(!exchange(5).await, "and the next finds room");
        assert_eq!(accepted.get(), 4);
    });
}

/// All at once, in one task.
async fn futures_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        for (future, output) in &mut pending {
            if output.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *output = Some(value);
            }
        }
        if pending.iter().all(|(_, output)| output.is_some()) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

#[test]
fn a_target_that_does_not_speak_http_2_is_named_as_such() {
    run(async {
        let talks_http_1 =
            serve(vec![vec![say("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")]]);
        let (client, pool) = (client(talks_http_1, 10), Pool::new());
        let acquired = pool.acquire(&client.connector, &client.stamper).await;
        let class = match acquired.connection {
            Err(failure) => failure.class,
            Ok(mut connection) => client.get(&mut connection).await.1.unwrap_err(),
        };
        assert!(
            matches!(
                class,
                ErrorClass::MalformedHead | ErrorClass::ClosedEarly | ErrorClass::Reset
            ),
            "{class:?}"
        );
    });
}

#[test]
fn a_connection_that_was_closed_is_replaced() {
    run(async {
        let (address, accepted) = server().await;
        let (client, pool) = (client(address, 10), Pool::new());
        for _ in 0..3 {
            let mut connection =
                pool.acquire(&client.connector, &client.stamper).await.connection.unwrap();
            assert_eq!(client.get(&mut connection).await.1, Ok(true));
        }
        assert_eq!(accepted.get(), 1);
    });
}
