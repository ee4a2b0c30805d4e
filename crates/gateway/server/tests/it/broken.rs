//! Responses that break off, and upstream connections that end.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::support::raw::{OK, connect, eventually, get, head, proxy, read_to_end, upstream};

#[test]
fn chunks_before_a_broken_stream_are_sent() {
    let up = upstream(|mut stream| {
        head(&mut stream).unwrap();
        let start = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n";
        stream.write_all(start.as_bytes()).unwrap();
    });
    let seen = get(&proxy(up, "", ""), "/x");
    assert!(seen.ends_with("5\r\nhello\r\n"), "{seen:?}");
}

#[test]
fn an_idle_connection_that_the_server_closed_is_not_used() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    // Closed a while after every second response.
    let up = upstream(move |mut stream| {
        for _ in 0..2 {
            if head(&mut stream).is_none() {
                return;
            }
            counted.fetch_add(1, Ordering::SeqCst);
            stream.write_all(OK.as_bytes()).unwrap();
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    });
    let gateway = proxy(up, "", "");
    for number in 1..=60 {
        let answer = get(&gateway, "/x");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("hello"), "{answer}");
        assert_eq!(asked.load(Ordering::SeqCst), number, "each is asked once");
        std::thread::sleep(std::time::Duration::from_millis(number as u64 % 4 * 5));
    }
}

#[test]
fn connections_that_the_server_closed_are_not_kept_half_open() {
    let ended = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&ended);
    let up = upstream(move |mut stream| {
        head(&mut stream).unwrap();
        stream.write_all(OK.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        // The gateway closes its side, without a further request.
        assert!(head(&mut stream).is_none());
        counted.fetch_add(1, Ordering::SeqCst);
    });
    let gateway = proxy(up, "", "");
    let mut streams: Vec<_> = (0..8).map(|_| connect(&gateway)).collect();
    for stream in &mut streams {
        stream.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    }
    for stream in &mut streams {
        assert!(read_to_end(stream).ends_with("hello"));
    }
    eventually("all are closed", || ended.load(Ordering::SeqCst) == 8);
}
