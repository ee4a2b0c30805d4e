//! A busy worker works in batches, with the same results.

use std::cell::RefCell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use plimsoll_measure::{MonotonicClock, Nanos};
use plimsoll_transport::{
    Connection, Connector, EncodedRequest, Endpoint, LookTimes, Request, RequestHead, SendQueue,
};
use tokio::task::{spawn_local, yield_now};

use crate::exchange::{SMALL, ends};
use crate::support::{Act, Client, Recorded, options, run, send, serve};

/// More requests without a sleep between them than any worker has that is not busy.
const MANY: usize = 40;

/// A client whose worker is busy.
async fn busy_client(address: SocketAddr) -> Client {
    let queue = Rc::new(SendQueue::new(Arc::new(LookTimes::default())));
    let client = client_of(address, &queue);
    let driver = Rc::clone(&queue);
    spawn_local(async move { driver.drive(&MonotonicClock::start()).await });
    yield_now().await;
    let mut script = vec![[send(SMALL), Act::ReadRequest]; MANY].concat();
    script.push(send(SMALL));
    let warm = client_of(serve(vec![script]), &queue);
    let mut connection = warm.connect().await;
    for _ in 0..MANY {
        assert_eq!(warm.get(&mut connection).await.1, Ok(true));
    }
    client
}

fn client_of(address: SocketAddr, queue: &Rc<SendQueue>) -> Client {
    let endpoint = Endpoint::new(address.ip().to_string(), address.port());
    let connector = Connector::new(endpoint, None, options(Nanos::from_secs(2))).unwrap();
    Client::with(connector.sending_through(queue))
}

#[test]
fn the_ends_of_a_connection_are_the_same() {
    run(async {
        for (sentence, script, expected) in ends() {
            let client = busy_client(serve(vec![script])).await;
            let mut connection = client.connect().await;
            let (recorded, end) = client.get(&mut connection).await;
            assert_eq!((end, recorded.sent.is_some()), (expected, true), "{sentence}");
        }
    });
}

#[test]
fn a_response_before_the_end_of_the_request_is_received() {
    run(async {
        let refusal = "HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
        let client = busy_client(serve(vec![vec![send(refusal), Act::Pause(1_000)]])).await;
        let mut connection = client.connect().await;
        let (recorded, end) = client.send(&mut connection, "POST", &vec![b'x'; 8 << 20]).await;
        assert_eq!((recorded.status, end, recorded.sent), (413, Ok(false), None));
    });
}

/// A body whose bytes show their position.
fn body_of(length: usize) -> Vec<u8> {
    (b'a'..=b'w').cycle().take(length).collect()
}

#[test]
fn bodies_are_whole_however_large_and_however_split() {
    run(async {
        for length in [0, 1, 4_000, 4_096, 5_000, 70_000, 300_000] {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n");
            let whole = [head.as_bytes(), &body_of(length)].concat();
            for piece in [whole.len(), whole.len().div_ceil(3)] {
                let parts = whole.chunks(piece).flat_map(|part| [send(part), Act::Pause(3)]);
                let mut script: Vec<_> = parts.collect();
                script.push(Act::Pause(100));
                let client = busy_client(serve(vec![script])).await;
                let mut connection = client.connect().await;
                let (recorded, end) = client.get(&mut connection).await;
                assert_eq!(end, Ok(true), "{length} in pieces of {piece}");
                assert!(recorded.body == body_of(length), "{length} in pieces of {piece}");
                assert!(recorded.reads.is_sorted() && recorded.sent.is_some());
            }
        }
    });
}

#[test]
fn each_of_many_exchanges_at_once_gets_its_own_response() {
    run(async {
        let client = Rc::new(
            busy_client(serve(
                (0..MANY)
                    .map(|number: usize| {
                        let body = "x".repeat(number);
                        vec![send(format!(
                            "HTTP/1.1 200 OK\r\ncontent-length: {number}\r\n\r\n{body}"
                        ))]
                    })
                    .collect(),
            ))
            .await,
        );
        let mut connections = Vec::new();
        for _ in 0..MANY {
            // One after the other, so that they receive the scripts in this order.
            connections.push(client.connect().await);
        }
        let lengths = Rc::new(RefCell::new(Vec::new()));
        let exchanges = connections.into_iter().map(|mut connection| {
            let (client, lengths) = (Rc::clone(&client), Rc::clone(&lengths));
            spawn_local(async move {
                let (recorded, end) = client.get(&mut connection).await;
                assert_eq!((end, recorded.sent.is_some()), (Ok(true), true));
                lengths.borrow_mut().push(recorded.body.len());
            })
        });
        for exchange in exchanges.collect::<Vec<_>>() {
            exchange.await.unwrap();
        }
        lengths.borrow_mut().sort_unstable();
        assert_eq!(*lengths.borrow(), (0..MANY).collect::<Vec<_>>());
    });
}

#[test]
fn a_request_that_is_given_up_is_sent_only_if_others_had_their_turn() {
    run(async {
        for (may_wait, turns, is_sent) in
            [(true, 0, false), (true, 1, true), (true, 2, true), (false, 0, true)]
        {
            let client = busy_client(serve(vec![vec![Act::Pause(1_000)]])).await;
            let mut connection = client.connect().await;
            let recorded = given_up(&client, &mut connection, may_wait, turns).await;
            assert_eq!(recorded.sent.is_some(), is_sent, "{may_wait} {turns}");
        }
    });
}

/// The handler's record of an exchange that is dropped after the other tasks had this many turns.
async fn given_up(
    client: &Client,
    connection: &mut Connection,
    may_wait: bool,
    turns: u32,
) -> Recorded {
    let mut recorded = Recorded::default();
    let head = RequestHead::new("GET", "/", "http://a", []).unwrap();
    let mut encoded = EncodedRequest::default();
    head.render(None, 0, &mut encoded.head);
    let request = Request { head: &head, id: None, encoded, may_wait };
    {
        let exchange =
            connection.exchange(&client.rx_clock, &client.buffers, request, &mut recorded);
        let mut exchange = pin!(exchange);
        let is_pending =
            poll_fn(|context| Poll::Ready(exchange.as_mut().poll(context).is_pending()));
        assert!(is_pending.await);
        for _ in 0..turns {
            yield_now().await;
        }
    }
    recorded
}
