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
use std::time::Duration;

use bytes::Bytes;
use common::{Client, Heard, options, run, say, serve};
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

/// A server with windows of 1,000 bytes per stream that rests for `rest` before it reads a body. To a request
/// without one it says 8 MB, to one of 9 bytes that it is too large, without ever reading it.
async fn tight_server(rest: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            builder.initial_stream_window_size(1_000);
            let service = service_fn(move |request| answer_tightly(request, rest));
            tokio::spawn(builder.serve_connection(TokioIo::new(tcp), service));
        }
    });
    address
}

async fn answer_tightly(
    request: hyper::Request<Incoming>,
    rest: Duration,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let refuse = request.headers().get("content-length").is_some_and(|n| n == "5000");
    if refuse {
        let answer = hyper::Response::builder().status(413).body(Full::default()).unwrap();
        return Ok(answer);
    }
    tokio::time::sleep(rest).await;
    let length = request.into_body().collect().await.unwrap().to_bytes().len();
    let answer = if length == 0 { vec![b'y'; 8_000_000] } else { length.to_string().into_bytes() };
    Ok(hyper::Response::new(Full::from(answer)))
}

#[test]
fn a_body_that_waits_for_the_targets_window_is_timed() {
    run(async {
        let address = tight_server(Duration::from_millis(60)).await;
        let (client, pool) = (client(address, 10), Pool::new());
        let post = async |size: usize| {
            let mut connection =
                pool.acquire(&client.connector, &client.stamper).await.connection.unwrap();
            client.send(&mut connection, "POST", &vec![b'x'; size]).await
        };
        // The first request tells the server's windows; until then those of the RFC hold.
        let (first, _) = post(1).await;
        let (fits, _) = post(1_000).await;
        let (waits, end) = post(20_000).await;
        assert_eq!((first.send_stall, fits.send_stall), (None, None));
        assert_eq!((waits.body, end), (b"20000".to_vec(), Ok(true)));
        let stall = waits.send_stall.unwrap();
        assert!(stall >= Nanos::from_millis(60), "the server rested that long: {stall}");
        let answered = *waits.reads.last().unwrap();
        assert!(waits.sent.unwrap() <= answered && stall < Nanos::from_secs(3));
        // Refused before it was read: the answer is heard though the body never gets out.
        let (refused, end) = post(5_000).await;
        assert_eq!((refused.status, end), (413, Ok(true)));
    });
}

#[test]
fn an_answer_that_fills_our_own_window_is_told() {
    run(async {
        let address = tight_server(Duration::ZERO).await;
        let (client, pool) = (client(address, 10), Pool::new());
        let stalled = async |pause: u64| {
            let mut connection =
                pool.acquire(&client.connector, &client.stamper).await.connection.unwrap();
            let mut heard = Heard::default();
            let mut exchange = Box::pin(client.send_to(&mut connection, "GET", b"", &mut heard));
            if pause > 0 {
                // The request gets out, and nobody reads the answer.
                assert!(futures_once(exchange.as_mut()).await.is_none());
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            assert_eq!(exchange.await, Ok(true));
            assert_eq!(heard.body.len(), 8_000_000);
            heard.receive_stalled
        };
        assert!(stalled(400).await);
    });
}

/// Polls a future once.
async fn futures_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
    std::future::poll_fn(|context| {
        std::task::Poll::Ready(match future.as_mut().poll(context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        })
    })
    .await
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
