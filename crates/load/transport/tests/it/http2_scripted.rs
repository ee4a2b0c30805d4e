//! HTTP/2 against scripted servers and the `h2` crate: stream limits, cancelled and rejected
//! requests, closed connections, and malicious targets.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use crate::support::{Client, Recorded, TestLease, TestPool, options, run, wait_until};
use bytes::Bytes;
use plimsoll_measure::{Clock as _, ErrorClass, Nanos};
use plimsoll_transport::{Adds, Connector, Demand, Endpoint, PoolLimits, SocketOptions};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;

fn client(address: SocketAddr) -> Client {
    let endpoint = Endpoint::new(address.ip().to_string(), address.port());
    let options = SocketOptions { http2_streams: Some(10), ..options(Nanos::from_secs(2)) };
    Client::with(Connector::new(endpoint, None, options).unwrap())
}

async fn checkout<'p>(pool: &'p TestPool, client: &Client) -> TestLease<'p> {
    pool.checkout(client.demand()).await.connection.unwrap()
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let head = [&length[1..], &[kind, flags], &stream.to_be_bytes()].concat();
    [&head, payload].concat()
}

/// A server that sends its settings, and the given bytes after the first request of each
/// connection. It records what it receives.
async fn scripted(wire: Vec<u8>, then_close: bool) -> (SocketAddr, Rc<RefCell<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, received) = (listener.local_addr().unwrap(), Rc::new(RefCell::new(Vec::new())));
    let keep = Rc::clone(&received);
    spawn_local(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            spawn_local(serve_connection(tcp, wire.clone(), then_close, Rc::clone(&keep)));
        }
    });
    (address, received)
}

async fn serve_connection(
    mut tcp: TcpStream,
    wire: Vec<u8>,
    then_close: bool,
    received: Rc<RefCell<Vec<u8>>>,
) {
    tcp.write_all(&frame(4, 0, 0, b"")).await.unwrap();
    let (mut buffer, mut sent) = (vec![0; 65_536], false);
    loop {
        let length = tcp.read(&mut buffer).await.unwrap_or(0);
        if length == 0 {
            return;
        }
        received.borrow_mut().extend_from_slice(&buffer[..length]);
        let requests =
            received.borrow().windows(6).any(|bytes| bytes == b"x-test" || bytes == b"\x80");
        if !requests || std::mem::replace(&mut sent, true) {
            continue;
        }
        if tcp.write_all(&wire).await.is_err() || then_close {
            return;
        }
    }
}

#[test]
fn errors_of_a_target_have_their_class() {
    const OK: &[u8] = &[0x88];
    let continuations: Vec<u8> = (0..2_000).flat_map(|_| frame(9, 0, 1, &[0; 1_000])).collect();
    for (sentence, wire, class) in [
        ("a reset", frame(3, 0, 1, &[0, 0, 0, 2]), ErrorClass::Reset),
        ("a refusal", frame(3, 0, 1, &[0, 0, 0, 7]), ErrorClass::Reset),
        ("a GOAWAY", frame(7, 0, 0, &[0; 8]), ErrorClass::ClosedEarly),
        ("the end", Vec::new(), ErrorClass::ClosedEarly),
        ("the end in mid-body", frame(1, 4, 1, OK), ErrorClass::ClosedEarly),
        ("no HPACK", frame(1, 5, 1, b"\x80"), ErrorClass::MalformedHead),
        ("a push", frame(5, 4, 1, b"\0\0\0\x02\x88"), ErrorClass::MalformedHead),
        ("no status", frame(1, 5, 1, b"\x40\x01a\x01b"), ErrorClass::MalformedHead),
        (
            "a short body",
            [frame(1, 4, 1, b"\x88\x5c\x015"), frame(0, 1, 1, b"a")].concat(),
            ErrorClass::BodyTruncated,
        ),
        (
            "a head without an end",
            [frame(1, 0, 1, OK), continuations].concat(),
            ErrorClass::MalformedHead,
        ),
        (
            "a head that is too large",
            frame(1, 5, 1, &[b"\x88".to_vec(), b"\x00\x01a\x01b".repeat(101)].concat()),
            ErrorClass::HeadTooLarge,
        ),
    ] {
        run(async {
            let (address, _) = scripted(wire, true).await;
            let client = client(address);
            let pool = client.pool();
            let mut connection = checkout(&pool, &client).await;
            let (recorded, end) = client.get(&mut connection).await;
            assert_eq!(end, Err(class), "{sentence}");
            assert!(recorded.sent.is_some(), "{sentence}: the request was sent");
        });
    }
}

#[test]
fn a_connection_with_a_violation_gets_a_goaway_and_is_replaced() {
    run(async {
        let (address, received) = scripted(frame(6, 0, 1, &[0; 8]), false).await;
        let client = client(address);
        let pool = client.pool();
        let mut connection = checkout(&pool, &client).await;
        let end = client.get(&mut connection).await.1;
        assert_eq!((end, connection.is_idle()), (Err(ErrorClass::MalformedHead), false));
        wait_until(|| received.borrow().ends_with(&frame(7, 0, 0, &[0, 0, 0, 0, 0, 0, 0, 1])))
            .await;
        connection.release(client.clock.now());
        let again = checkout(&pool, &client).await;
        assert!(!again.was_used(), "a new connection");
    });
}

#[test]
fn a_cancelled_request_is_reset() {
    run(async {
        let (address, received) = scripted(Vec::new(), false).await;
        let client = client(address);
        let pool = client.pool();
        let mut connection = checkout(&pool, &client).await;
        let mut recorded = Recorded::default();
        let first = client.send_to(&mut connection, "GET", b"", &mut recorded);
        assert!(tokio::time::timeout(Duration::from_millis(30), first).await.is_err());
        assert!(recorded.sent.is_some(), "reported although the exchange was dropped");
        wait_until(|| received.borrow().ends_with(&frame(3, 0, 1, &[0, 0, 0, 8]))).await;
    });
}

#[test]
fn a_connection_stays_usable_after_a_cancelled_request() {
    run(async {
        let client = client(limited(10, Duration::from_millis(40)).await);
        let pool = client.pool();
        let mut connection = checkout(&pool, &client).await;
        let first = client.get(&mut connection);
        assert!(tokio::time::timeout(Duration::from_millis(20), first).await.is_err());
        assert!(connection.was_used() && connection.is_idle());
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
    });
}

/// A server with the `h2` crate and a stream limit. It responds to each request after a delay, with
/// the number of requests that were open.
async fn limited(most: u32, delay: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    spawn_local(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            spawn_local(serve_limited(tcp, most, delay));
        }
    });
    address
}

async fn serve_limited(tcp: TcpStream, most: u32, delay: Duration) {
    let mut builder = h2::server::Builder::new();
    builder.max_concurrent_streams(most);
    let mut connection = builder.handshake::<_, Bytes>(tcp).await.unwrap();
    let open = Rc::new(RefCell::new(0_u32));
    while let Some(Ok((_, respond))) = connection.accept().await {
        *open.borrow_mut() += 1;
        spawn_local(respond_late(respond, delay, Rc::clone(&open)));
    }
}

async fn respond_late(
    mut respond: h2::server::SendResponse<Bytes>,
    delay: Duration,
    open: Rc<RefCell<u32>>,
) {
    tokio::time::sleep(delay).await;
    let at_once = open.borrow().to_string();
    *open.borrow_mut() -= 1;
    // A cancelled request accepts no response.
    if let Ok(mut stream) = respond.send_response(http::Response::new(()), false) {
        let _ = stream.send_data(at_once.into(), true);
    }
}

#[test]
fn requests_beyond_the_targets_stream_limit_wait_in_order() {
    run(async {
        let address = limited(2, Duration::from_millis(20)).await;
        let client = Rc::new(client(address));
        let one = PoolLimits { max_connections: 1, ..PoolLimits::default() };
        let pool = Rc::new(client.pool_with(one));
        let order = Rc::new(RefCell::new(Vec::new()));
        let tasks: Vec<_> = (0..6)
            .map(|number| {
                let (client, pool, order) =
                    (Rc::clone(&client), Rc::clone(&pool), Rc::clone(&order));
                spawn_local(async move {
                    let acquired = pool.checkout(client.demand()).await;
                    let mut connection = acquired.connection.unwrap();
                    let (recorded, end) = client.get(&mut connection).await;
                    order.borrow_mut().push(number);
                    assert!(end == Ok(true) && recorded.body <= b"2".to_vec(), "{recorded:?}");
                    assert_eq!(recorded.send_stall, None, "it waits where another may be found");
                    acquired.phases.wait
                })
            })
            .collect();
        let mut waits = Vec::new();
        for task in tasks {
            waits.push(task.await.unwrap());
        }
        assert_eq!(*order.borrow(), [0, 1, 2, 3, 4, 5], "first come, first served");
        let long = |wait: &Option<Nanos>| wait.is_some_and(|wait| wait >= Nanos::from_millis(15));
        assert!(waits[2..].iter().all(long), "{waits:?}");
        assert_eq!(pool.opened(), 1);
    });
}

#[test]
fn a_target_that_allows_few_streams_gets_more_connections() {
    run(async {
        let address = limited(2, Duration::from_millis(100)).await;
        let client = Rc::new(client(address));
        let pool = Rc::new(client.pool());
        let tasks: Vec<_> = (0..6)
            .map(|_| {
                let (client, pool) = (Rc::clone(&client), Rc::clone(&pool));
                spawn_local(async move {
                    let demand = Demand { adds: Adds::AtOnce, ..client.demand() };
                    let mut connection = pool.checkout(demand).await.connection.unwrap();
                    client.get(&mut connection).await.1
                })
            })
            .collect();
        let began = client.clock.now();
        for task in tasks {
            assert_eq!(task.await.unwrap(), Ok(true));
        }
        let took = client.clock.now().since(began);
        assert!(pool.opened() >= 3, "{} connections of two streams", pool.opened());
        assert!(took < Nanos::from_millis(300), "not one after another: {took}");
    });
}

#[test]
fn a_request_that_waits_for_a_stream_can_be_cancelled_without_delaying_others() {
    run(async {
        let address = limited(1, Duration::from_millis(30)).await;
        let client = client(address);
        let one = PoolLimits { max_connections: 1, ..PoolLimits::default() };
        let pool = client.pool_with(one);
        let get = || async {
            let mut connection = checkout(&pool, &client).await;
            client.get(&mut connection).await.1
        };
        assert_eq!(get().await, Ok(true));
        let (first, waiting, last) =
            tokio::join!(get(), tokio::time::timeout(Duration::from_millis(10), get()), get(),);
        assert_eq!((first, waiting.is_err(), last), (Ok(true), true, Ok(true)));
    });
}

#[test]
fn after_a_goaway_open_streams_complete_and_no_new_ones_are_opened() {
    run(async {
        let wire = [
            frame(7, 0, 0, b"\x7f\xff\xff\xff\0\0\0\0"),
            frame(7, 0, 0, b"\0\0\0\x01\0\0\0\0"),
            frame(1, 4, 1, b"\x88"),
            frame(0, 1, 1, b"bye"),
        ];
        let (address, _) = scripted(wire.concat(), false).await;
        let client = client(address);
        let pool = client.pool();
        let (mut a, mut b) = (checkout(&pool, &client).await, checkout(&pool, &client).await);
        let ((recorded, end), (_, left)) = tokio::join!(client.get(&mut a), client.get(&mut b));
        assert_eq!(
            (recorded.body, end, left),
            (b"bye".to_vec(), Ok(true), Err(ErrorClass::ClosedEarly))
        );
        assert!(!a.is_idle(), "it is not used again");
    });
}

#[test]
fn an_unused_connection_is_closed_with_a_goaway() {
    run(async {
        let (address, received) = scripted(frame(1, 5, 1, b"\x88"), false).await;
        let client = client(address);
        let pool = client.pool();
        let mut connection = checkout(&pool, &client).await;
        assert_eq!(client.get(&mut connection).await.1, Ok(true));
        drop(connection);
        drop(pool);
        wait_until(|| received.borrow().ends_with(&frame(7, 0, 0, &[0; 8]))).await;
    });
}

/// A response of a server with the `h2` crate.
#[derive(Clone, Debug, PartialEq)]
struct Response {
    status: u16,
    headers: Vec<(String, Vec<u8>)>,
    data: Vec<Vec<u8>>,
    trailers: bool,
}

fn responses() -> impl Strategy<Value = Vec<Response>> {
    let name =
        prop::sample::select(vec!["a", "x-y", "server", "etag", "set-cookie", "cache-control"]);
    let value =
        prop::string::bytes_regex("[!-~\\x80-\\xff]([ -~\\x80-\\xff]{0,40}[!-~])?").unwrap();
    let headers = prop::collection::vec((name.prop_map(str::to_owned), value), 0..20);
    let data = prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40_000), 0..4);
    let planned = (200_u16..600, headers, data, any::<bool>()).prop_map(
        |(status, headers, data, trailers)| {
            let data = if matches!(status, 204 | 205 | 304) { Vec::new() } else { data };
            Response { status, headers, data, trailers }
        },
    );
    prop::collection::vec(planned, 1..6)
}

/// Serves the responses in order on one connection. Returns the received requests.
async fn serve_all(tcp: TcpStream, responses: Vec<Response>) -> Vec<(String, String, usize)> {
    let mut connection = h2::server::handshake(tcp).await.unwrap();
    let (requests, mut responses) = (Rc::new(RefCell::new(Vec::new())), responses.into_iter());
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        let (Some(planned), requests) = (responses.next(), Rc::clone(&requests)) else { break };
        spawn_local(async move {
            let header =
                |name: &str| request.headers().get(name).unwrap().to_str().unwrap().to_owned();
            let (test, id) = (header("x-test"), header("x-request-id"));
            let (mut body, mut length) = (request.into_body(), 0);
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                length += data.len();
                body.flow_control().release_capacity(data.len()).unwrap();
            }
            requests.borrow_mut().push((test, id, length));
            let mut response = http::Response::builder().status(planned.status);
            for (name, value) in &planned.headers {
                response = response.header(name, &value[..]);
            }
            let ends = planned.data.is_empty() && !planned.trailers;
            let mut stream = respond.send_response(response.body(()).unwrap(), ends).unwrap();
            let last = planned.data.len();
            for (index, data) in planned.data.into_iter().enumerate() {
                stream.send_data(data.into(), !planned.trailers && index + 1 == last).unwrap();
            }
            if planned.trailers {
                let mut trailers = http::HeaderMap::new();
                trailers.insert("x-end", "1".parse().unwrap());
                stream.send_trailers(trailers).unwrap();
            }
        });
    }
    requests.take()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn requests_and_responses_match_those_of_the_h2_crate(
        responses in responses(),
        sizes in prop::collection::vec(0_usize..100_000, 6),
    ) {
        run(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let client = client(listener.local_addr().unwrap());
            let server = responses.clone();
            let server = spawn_local(async move { serve_all(listener.accept().await.unwrap().0, server).await });
            let pool = client.pool();
            let mut connection = checkout(&pool, &client).await;
            let mut expected = Vec::new();
            for (planned, size) in responses.iter().zip(&sizes) {
                let (recorded, end) = client.send(&mut connection, "POST", &vec![b'x'; *size]).await;
                assert_eq!((recorded.status, end), (planned.status, Ok(true)));
                assert!(recorded.body == planned.data.concat());
                expected.push(("1".to_owned(), "id".to_owned(), *size));
                let headers: Vec<_> = planned.headers.iter().map(|(_, value)| value.clone()).collect();
                let lines: Vec<_> = recorded.headers.iter().map(|(_, value)| value.clone()).collect();
                // The crate groups fields with the same name.
                let sorted = |mut values: Vec<Vec<u8>>| { values.sort(); values };
                assert_eq!(sorted(lines), sorted(headers));
            }
            drop(connection);
        drop(pool);
            assert_eq!(server.await.unwrap(), expected);
        });
    }
}
