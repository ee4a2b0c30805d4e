//! HTTP/1.1 exchanges with servers that behave well, badly and unusually.

use crate::support::{Act, Client, Recorded, options, run, send, serve, wait_until};
use plimsoll_measure::{Clock as _, ErrorClass, MonotonicClock, Nanos};
use plimsoll_transport::{Connection, Connector, Endpoint, SocketOptions};

pub(crate) const SMALL: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn a_connection_is_reused_and_each_response_is_complete() {
    run(async {
        let client = Client::new(serve(vec![vec![
            send(SMALL),
            Act::ReadRequest,
            send(SMALL),
            Act::Pause(200),
        ]]));
        let mut connection = client.connect().await;
        assert!(!connection.was_used());
        for _ in 0..2 {
            let (recorded, end) = client.get(&mut connection).await;
            assert_eq!(
                (recorded.status, recorded.body.as_slice(), end),
                (200, &b"ok"[..], Ok(true))
            );
            // The order is uncertain: over loopback the kernel can stamp the response before this
            // thread has returned from its write and read the clock.
            assert!(recorded.sent.is_some() && !recorded.reads.is_empty());
        }
        assert!(connection.was_used());
    });
}

/// Server behaviors after a request, as a description and a script, with the expected end of the
/// exchange.
pub(crate) fn ends() -> Vec<(&'static str, Vec<Act>, Result<bool, ErrorClass>)> {
    vec![
        ("close before any response", vec![], Err(ErrorClass::ClosedEarly)),
        ("close in the head", vec![send("HTTP/1.1 2")], Err(ErrorClass::ClosedEarly)),
        (
            "close in the body",
            vec![send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc")],
            Err(ErrorClass::BodyTruncated),
        ),
        (
            "reset in the body",
            vec![
                send("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"),
                Act::Pause(20),
                Act::Reset,
            ],
            Err(ErrorClass::Reset),
        ),
        ("close as the end of the body", vec![send("HTTP/1.1 200 OK\r\n\r\nabc")], Ok(false)),
        (
            "garbage",
            vec![send("\x16\x03\x01 hello"), Act::Pause(50)],
            Err(ErrorClass::MalformedHead),
        ),
        (
            "an announced close",
            vec![send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")],
            Ok(false),
        ),
    ]
}

#[test]
fn the_ends_of_a_connection_are_distinguished() {
    run(async {
        for (sentence, script, expected) in ends() {
            let client = Client::new(serve(vec![script]));
            let mut connection = client.connect().await;
            assert_eq!(client.get(&mut connection).await.1, expected, "{sentence}");
        }
    });
}

#[test]
fn a_response_before_the_end_of_the_request_is_received() {
    run(async {
        // The server never reads the 8 MiB body, so a client that writes first and reads later
        // would hang.
        let refusal = "HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let client = Client::new(serve(vec![vec![send(refusal), Act::Pause(1_000)]]));
        let mut connection = client.connect().await;
        let body = vec![b'x'; 8 << 20];
        let (recorded, end) = client.send(&mut connection, "POST", &body).await;
        assert_eq!((recorded.status, end, recorded.sent), (413, Ok(false), None));
    });
}

#[test]
fn a_response_that_the_handler_stops_is_not_read_further() {
    run(async {
        let endless =
            [send("HTTP/1.1 200 OK\r\n\r\n"), send("x".repeat(1000)), Act::Pause(60_000)].to_vec();
        let client = Client::new(serve(vec![endless]));
        let mut connection = client.connect().await;
        let mut recorded = Recorded { stop_after: Some(10), ..Recorded::default() };
        let end = client.send_to(&mut connection, "GET", b"", &mut recorded).await;
        assert_eq!(end, Ok(false));
    });
}

#[test]
fn the_pool_drops_connections_that_were_closed_or_have_unexpected_data() {
    run(async {
        let client = Client::new(serve(vec![
            vec![send(SMALL), Act::Pause(10_000)],
            vec![send(SMALL), Act::Pause(20)],
            vec![
                send(SMALL),
                Act::Pause(20),
                send("HTTP/1.1 408 Timeout\r\n\r\n"),
                Act::Pause(10_000),
            ],
        ]));
        let pool = client.pool();
        let mut leases = Vec::new();
        for number in 0..3 {
            let mut lease = pool.checkout(client.demand()).await.connection.unwrap();
            assert_eq!(client.get(&mut lease).await.1, Ok(true));
            if number > 0 {
                wait_until(|| !lease.is_idle()).await;
            }
            leases.push(lease);
        }
        for lease in leases {
            lease.release(client.clock.now());
        }
        let first = pool.checkout(client.demand()).await;
        assert!(first.connection.unwrap().was_used(), "the first is still open");
        let second = pool.checkout(client.demand()).await;
        assert!(second.phases.tcp.is_some(), "the others are not to be used");
    });
}

#[test]
fn failed_connections_have_a_class() {
    run(async {
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let fails = async |host: &str, port| {
            let connector = Connector::new(
                Endpoint::new(host.to_owned(), port),
                None,
                options(Nanos::from_millis(300)),
            );
            let client = Client::with(connector.unwrap());
            client.connector.connect(&client.clock).await.connection.unwrap_err().class
        };
        assert_eq!(fails("127.0.0.1", closed.port()).await, ErrorClass::ConnectRefused);
        assert_eq!(fails("no-such-host.invalid", 80).await, ErrorClass::Dns);
    });
}

#[test]
fn names_and_both_address_families_are_reached() {
    run(async {
        let listener = std::net::TcpListener::bind("[::1]:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let connector = Connector::new(
            Endpoint::new("::1".to_owned(), port),
            None,
            options(Nanos::from_secs(1)),
        )
        .unwrap();
        let client = Client::with(connector);
        let connected = client.connector.connect(&client.clock).await;
        assert!(
            connected.connection.is_ok()
                && connected.phases.dns.is_none()
                && connected.phases.tcp.is_some()
        );

        let address = serve(vec![vec![send(SMALL)], vec![send(SMALL)]]);
        let endpoint = Endpoint::new("localhost".to_owned(), address.port());
        let client =
            Client::with(Connector::new(endpoint, None, options(Nanos::from_secs(1))).unwrap());
        let first = client.connector.connect(&client.clock).await;
        assert!(first.connection.is_ok() && first.phases.dns.is_some());
        let second = client.connector.connect(&client.clock).await;
        assert!(second.connection.is_ok() && second.phases.dns.is_none(), "the result is cached");
    });
}

#[test]
fn connections_use_the_configured_local_addresses_in_turn() {
    run(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let bind = vec!["127.0.0.2".parse().unwrap(), "127.0.0.3".parse().unwrap()];
        let options = SocketOptions { bind, ..options(Nanos::from_secs(1)) };
        let endpoint = Endpoint::new(address.ip().to_string(), address.port());
        let client = Client::with(Connector::new(endpoint, None, options).unwrap());
        let mut seen = Vec::new();
        for _ in 0..4 {
            let _connection = client.connect().await;
            seen.push(listener.accept().await.unwrap().1.ip().to_string());
        }
        assert_eq!(seen, ["127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3"]);
    });
}

#[test]
fn a_connection_is_closed_after_its_number_of_requests() {
    run(async {
        let script = [
            send(SMALL),
            Act::ReadRequest,
            send(SMALL),
            Act::ReadRequest,
            send(SMALL),
            Act::Pause(200),
        ]
        .to_vec();
        let address = serve(vec![script]);
        let options =
            SocketOptions { requests_per_connection: Some((3, 3)), ..options(Nanos::from_secs(1)) };
        let endpoint = Endpoint::new(address.ip().to_string(), address.port());
        let client = Client::with(Connector::new(endpoint, None, options).unwrap());
        let mut connection = client.connect().await;
        let mut reusable = Vec::new();
        for _ in 0..3 {
            reusable.push(client.get(&mut connection).await.1.unwrap());
        }
        assert_eq!(reusable, [true, true, false]);
    });
}

#[test]
fn an_exchange_holds_little_while_it_waits() {
    fn size<A, B, C, D, E, F>(_: impl FnOnce(A, B, C, D, E) -> F) -> usize {
        size_of::<F>()
    }
    // This makes the task of a virtual user 2,048 bytes. With 8 more, the allocator gives it 2,560,
    // for each waiting stream.
    assert!(size(Connection::exchange::<MonotonicClock, Recorded>) <= 168);
}
