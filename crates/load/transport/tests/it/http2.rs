//! HTTP/2 against hyper's server.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::support::{Client, Recorded, options, run, send, serve};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_measure::{Clock as _, ErrorClass, Nanos};
use plimsoll_transport::{Adds, Connector, Demand, Endpoint, SocketOptions};
use tokio::net::TcpListener;

/// Responds with the request's method, `x-test`, `x-request-id` and body length, then as many
/// bytes.
async fn echo_request(
    request: hyper::Request<Incoming>,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let header = |name: &str| {
        request.headers().get(name).map_or("-", |value| value.to_str().unwrap()).to_owned()
    };
    let line = format!("{} {} {}", request.method(), header("x-test"), header("x-request-id"));
    let body = request.into_body().collect().await.unwrap().to_bytes();
    let text = format!("{line} {} {}", body.len(), "z".repeat(body.len()));
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
            tokio::spawn(builder.serve_connection(TokioIo::new(tcp), service_fn(echo_request)));
        }
    });
    (address, accepted)
}

/// A server with windows of 1,000 bytes per stream that waits for `delay` before it reads a body.
/// To a request without a body it sends 8 MB. One of 5,000 bytes it rejects without reading the
/// body.
async fn small_window_server(delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::task::spawn_local(async move {
        loop {
            let (tcp, _) = listener.accept().await.unwrap();
            let mut builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            builder.initial_stream_window_size(1_000);
            let service = service_fn(move |request| respond_slowly(request, delay));
            tokio::spawn(builder.serve_connection(TokioIo::new(tcp), service));
        }
    });
    address
}

async fn respond_slowly(
    request: hyper::Request<Incoming>,
    delay: Duration,
) -> Result<hyper::Response<Full<Bytes>>, Infallible> {
    let reject = request.headers().get("content-length").is_some_and(|n| n == "5000");
    if reject {
        let response = hyper::Response::builder().status(413).body(Full::default()).unwrap();
        return Ok(response);
    }
    tokio::time::sleep(delay).await;
    let length = request.into_body().collect().await.unwrap().to_bytes().len();
    let body = if length == 0 { vec![b'y'; 8_000_000] } else { length.to_string().into_bytes() };
    Ok(hyper::Response::new(Full::from(body)))
}

#[test]
fn a_body_that_waits_for_the_targets_window_is_measured() {
    run(async {
        let address = small_window_server(Duration::from_millis(60)).await;
        let client = client(address, 10);
        let pool = client.pool();
        let post = async |size: usize| {
            let mut connection = pool.checkout(client.demand()).await.connection.unwrap();
            client.send(&mut connection, "POST", &vec![b'x'; size]).await
        };
        // The server's windows are known after the first request. Until then the RFC's defaults
        // apply.
        let (first, _) = post(1).await;
        let (fits, _) = post(1_000).await;
        let (waits, end) = post(20_000).await;
        assert_eq!((first.send_stall, fits.send_stall), (None, None));
        assert_eq!((waits.body, end), (b"20000".to_vec(), Ok(true)));
        let stall = waits.send_stall.unwrap();
        assert!(stall >= Nanos::from_millis(60), "the server waited that long: {stall}");
        let responded = *waits.reads.last().unwrap();
        assert!(waits.sent.unwrap() <= responded && stall < Nanos::from_secs(3));
        // Rejected before it was read, so the response arrives although the body is never sent.
        let (rejected, end) = post(5_000).await;
        assert_eq!((rejected.status, end), (413, Ok(true)));
    });
}

#[test]
fn a_response_that_fills_our_own_window_is_reported() {
    run(async {
        let address = small_window_server(Duration::ZERO).await;
        let client = client(address, 10);
        let pool = client.pool();
        let stalled = async |pause: u64| {
            let mut connection = pool.checkout(client.demand()).await.connection.unwrap();
            let mut recorded = Recorded::default();
            let mut exchange = Box::pin(client.send_to(&mut connection, "GET", b"", &mut recorded));
            if pause > 0 {
                // The request is sent, and the response is not read.
                assert!(poll_once(exchange.as_mut()).await.is_none());
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
            assert_eq!(exchange.await, Ok(true));
            assert_eq!(recorded.body.len(), 8_000_000);
            recorded.receive_stalled
        };
        // The longer pauses are for busy machines.
        let mut reported = false;
        for pause in [400, 1_600, 6_400] {
            reported = reported || stalled(pause).await;
        }
        assert!(reported);
    });
}

/// Polls a future once.
async fn poll_once<F: Future>(mut future: std::pin::Pin<&mut F>) -> Option<F::Output> {
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
fn exchanges_share_connections_up_to_their_stream_limit() {
    run(async {
        let (address, accepted) = server().await;
        let client = client(address, 10);
        let pool = client.pool();
        let exchange = async |size: usize| {
            let checked_out = pool.checkout(client.demand()).await;
            let mut connection = checked_out.connection.unwrap();
            let (recorded, end) = client.send(&mut connection, "POST", &vec![b'x'; size]).await;
            connection.release(client.clock.now());
            let expected = format!("POST 1 id {size} {}", "z".repeat(size));
            assert_eq!(
                (recorded.status, end, recorded.body.len()),
                (201, Ok(true), expected.len())
            );
            assert!(
                recorded.body == expected.as_bytes()
                    && recorded.sent.unwrap() <= *recorded.reads.last().unwrap()
            );
            checked_out.phases.tcp.is_some()
        };
        // Larger than HTTP/2's initial windows.
        let sizes = (0..35).map(|n| n * 20_000);
        let opened =
            join_all(sizes.map(&exchange)).await.into_iter().filter(|opened| *opened).count();
        // A request that opens a connection may receive a slot on another that is freed first.
        let connections = accepted.get();
        assert!((1..=4).contains(&connections), "35 exchanges, 10 to a connection: {connections}");
        assert!((1..=connections as usize).contains(&opened), "{opened} of {connections}");
        assert!(!exchange(5).await, "and the next finds a free slot");
        assert_eq!(accepted.get(), connections);
    });
}

#[test]
fn virtual_users_have_room_from_the_start() {
    run(async {
        let (address, accepted) = server().await;
        let client = client(address, 10);
        let pool = client.pool();
        let user = async |_| {
            let mut waits = 0;
            for _ in 0..20 {
                let demand = Demand { adds: Adds::AtOnce, ..client.demand() };
                let acquired = pool.checkout(demand).await;
                waits += usize::from(acquired.phases.wait.is_some());
                let mut connection = acquired.connection.unwrap();
                assert_eq!(client.send(&mut connection, "POST", b"x").await.1, Ok(true));
                connection.release(client.clock.now());
            }
            waits
        };
        let waits: usize = join_all((0..35).map(user)).await.into_iter().sum();
        assert_eq!(accepted.get(), 4, "35 users, 10 to a connection");
        assert!(waits <= 35, "each waits once at most: {waits}");
    });
}

/// Runs all futures at once, in one task.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
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
fn a_target_without_http_2_fails_with_its_class() {
    run(async {
        let talks_http_1 =
            serve(vec![vec![send("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")]]);
        let client = client(talks_http_1, 10);
        let pool = client.pool();
        let checked_out = pool.checkout(client.demand()).await;
        let class = match checked_out.connection {
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
fn sequential_requests_share_a_connection() {
    run(async {
        let (address, accepted) = server().await;
        let client = client(address, 10);
        let pool = client.pool();
        for _ in 0..3 {
            let mut connection = pool.checkout(client.demand()).await.connection.unwrap();
            assert_eq!(client.get(&mut connection).await.1, Ok(true));
        }
        assert_eq!(accepted.get(), 1);
    });
}
