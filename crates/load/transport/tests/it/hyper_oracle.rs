//! Our client and hyper's must read the same bytes with the same bodies and errors.

use std::net::SocketAddr;

use crate::support::{Act, Client, run, serve};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use proptest::prelude::*;

/// Status and body, or `None` for any error.
type Parsed = Option<(u16, Vec<u8>)>;

async fn ours(address: SocketAddr, method: &str) -> Parsed {
    let client = Client::new(address);
    let mut connection = client.connect().await;
    let (recorded, end) = client.send(&mut connection, method, b"").await;
    end.ok().map(|_| (recorded.status, recorded.body))
}

async fn hypers(address: SocketAddr, method: &str) -> Parsed {
    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    let driver = tokio::spawn(connection);
    let request = hyper::Request::builder().method(method).uri("/").header("host", "a");
    let response = sender.send_request(request.body(Empty::<Bytes>::new()).unwrap()).await;
    let recorded = match response {
        Err(_) => None,
        Ok(response) => {
            let status = response.status().as_u16();
            response.into_body().collect().await.ok().map(|body| (status, body.to_bytes().to_vec()))
        }
    };
    driver.abort();
    recorded
}

/// The results of both for the same bytes, sent in pieces.
fn both(wire: &[u8], method: &str, pieces: usize) -> (Parsed, Parsed) {
    let size = wire.len().div_ceil(pieces.max(1)).max(1);
    let script: Vec<Act> = wire
        .chunks(size)
        .flat_map(|piece| [Act::Send(piece.to_vec()), Act::Pause(u64::from(pieces > 1))])
        .collect();
    let address = serve(vec![script.clone(), script]);
    run(async { (ours(address, method).await, hypers(address, method).await) })
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn the_corpus_gives_the_same_results() {
    for (sentence, method, wire) in [
        ("a length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
        ("an empty body", "GET", "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        (
            "chunks",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nwiki\r\n5\r\npedia\r\n0\r\n\r\n",
        ),
        (
            "chunks in upper case",
            "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: CHUNKED\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n",
        ),
        (
            "an extension",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n",
        ),
        (
            "trailers",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nx: y\r\n\r\n",
        ),
        ("until close", "GET", "HTTP/1.1 200 OK\r\n\r\nuntil close"),
        ("HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\n\r\nold"),
        ("HEAD with a length", "HEAD", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n"),
        ("204", "GET", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("304 with a length", "GET", "HTTP/1.1 304 Not Modified\r\ncontent-length: 10\r\n\r\n"),
        (
            "100 first",
            "GET",
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        ),
        (
            "103 first",
            "GET",
            "HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok",
        ),
        ("an error status", "GET", "HTTP/1.1 503 Unavailable\r\ncontent-length: 4\r\n\r\nbusy"),
        ("no reason", "GET", "HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok"),
        ("a folded header", "GET", "HTTP/1.1 200 OK\r\nx: a\r\n b\r\ncontent-length: 2\r\n\r\nok"),
        ("a space before the colon", "GET", "HTTP/1.1 200 OK\r\ncontent-length : 2\r\n\r\nok"),
        ("a truncated length", "GET", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort"),
        (
            "truncated chunks",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel",
        ),
        (
            "no last chunk",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n",
        ),
        (
            "a bad chunk size",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nok\r\n0\r\n\r\n",
        ),
        (
            "a chunk size too large",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffffffffffffffff\r\nok\r\n0\r\n\r\n",
        ),
        (
            "two different lengths",
            "GET",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok!",
        ),
        (
            "the same length twice",
            "GET",
            "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok",
        ),
        ("a length that is no number", "GET", "HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok"),
        ("a negative length", "GET", "HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok"),
        ("not HTTP", "GET", "220 smtp ready\r\n\r\n"),
        ("HTTP/2 preface back", "GET", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ("a version of the future", "GET", "HTTP/3.0 200 OK\r\n\r\n"),
        ("bare line feeds", "GET", "HTTP/1.1 200 OK\ncontent-length: 2\n\nok"),
        ("a NUL in a value", "GET", "HTTP/1.1 200 OK\r\nx: a\0b\r\ncontent-length: 2\r\n\r\nok"),
        (
            "both framings",
            "GET",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
        ("an unknown coding", "GET", "HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nzip"),
    ] {
        for pieces in [1, 3] {
            let (ours, hypers) = both(wire.as_bytes(), method, pieces);
            assert_eq!(ours, hypers, "{sentence}, in {pieces} piece(s)");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn random_valid_responses_give_the_same_results(
        status in prop::sample::select(vec![200u16, 201, 400, 404, 429, 500]),
        chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..300), 0..5),
        chunked: bool,
        pieces in 1usize..5,
    ) {
        let body = chunks.concat();
        let mut wire = format!("HTTP/1.1 {status} Said\r\n").into_bytes();
        if chunked {
            wire.extend_from_slice(b"transfer-encoding: chunked\r\n\r\n");
            for chunk in &chunks {
                wire.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                wire.extend_from_slice(chunk);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\n\r\n");
        } else {
            wire.extend_from_slice(format!("content-length: {}\r\n\r\n", body.len()).as_bytes());
            wire.extend_from_slice(&body);
        }
        let (ours, hypers) = both(&wire, "GET", pieces);
        prop_assert_eq!(&ours, &hypers);
        prop_assert_eq!(ours, Some((status, body)));
    }
}
