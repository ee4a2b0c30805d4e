//! A connection to an upstream belongs to one exchange until both sides are done, and the breaker
//! does not count what a client caused.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::Duration;

use plimsoll_gateway_server::Gateway;

use super::support::raw::{OK, connect, eventually, get, head, proxy, read_to_end, upstream};

const UPLOAD: &str = "POST /x HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\nstart";

/// Sends the beginning of an upload, and reads the answer that comes all the same.
fn endless_upload(gateway: &Gateway) -> TcpStream {
    let mut client = connect(gateway);
    client.write_all(UPLOAD.as_bytes()).unwrap();
    assert!(head(&mut client).unwrap().starts_with("HTTP/1.1 200"));
    client.read_exact(&mut [0; 5]).unwrap();
    client
}

#[test]
fn an_upload_that_never_ends_stalls_nobody_else() {
    let (opened, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let counts = (Arc::clone(&opened), Arc::clone(&ended));
    // It answers every head at once, without reading bodies; what it takes for a second head
    // behind a body is not answered.
    let up = upstream(move |mut stream| {
        counts.0.fetch_add(1, Ordering::SeqCst);
        while let Some(head) = head(&mut stream) {
            if !head.starts_with("GET") && !head.starts_with("POST") {
                break;
            }
            stream.write_all(OK.as_bytes()).unwrap();
        }
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        counts.1.fetch_add(1, Ordering::SeqCst);
    });
    let gateway = proxy(up, "timeout: 5s, breaker: {failures: 1, open: 60s}", "");
    for round in 1..=5 {
        let client = endless_upload(&gateway);
        let answer = get(&gateway, "/x");
        assert!(answer.starts_with("HTTP/1.1 200"), "{round}: {answer}");
        eventually("the upload's connection is closed", || ended.load(Ordering::SeqCst) >= round);
        drop(client);
    }
    // Five of the uploads; all others share one.
    assert_eq!(opened.load(Ordering::SeqCst), 6);
}

#[test]
fn a_connection_is_used_again_when_both_sides_are_done() {
    let opened = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&opened);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n";
    let up = upstream(move |mut stream| {
        count.fetch_add(1, Ordering::SeqCst);
        for number in 0.. {
            let Some(head) = head(&mut stream) else { return };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let length = length.map_or(0, |length| length.parse().unwrap());
            stream.read_exact(&mut vec![0; length]).unwrap();
            let answer = if number % 2 == 0 { OK } else { chunked };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    let gateway = proxy(up, "", "");
    for size in [0, 5, 60_000, 300_000, 1_000_000, 5, 0] {
        let mut client = connect(&gateway);
        let start = "POST /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: ";
        client.write_all(format!("{start}{size}\r\n\r\n").as_bytes()).unwrap();
        client.write_all(&vec![b'x'; size]).unwrap();
        assert!(read_to_end(&mut client).contains("hello"), "{size}");
    }
    assert_eq!(opened.load(Ordering::SeqCst), 1);
}

#[test]
fn uploads_that_clients_break_off_do_not_open_the_breaker() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let up = upstream(move |mut stream| {
        let text = head(&mut stream).unwrap_or_default();
        if text.starts_with("GET") {
            stream.write_all(OK.as_bytes()).unwrap();
        }
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        count.fetch_add(1, Ordering::SeqCst);
    });
    let gateway = proxy(up, "timeout: 10s, breaker: {failures: 1, open: 60s}", "");
    for round in 1..=5 {
        let mut client = connect(&gateway);
        client.write_all(UPLOAD.as_bytes()).unwrap();
        sleep(Duration::from_millis(20));
        drop(client);
        eventually("the upload ends", || ended.load(Ordering::SeqCst) >= round);
    }
    let answer = get(&gateway, "/x");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn methods_that_the_server_does_not_know_do_not_open_the_breaker() {
    let up = upstream(|mut stream| {
        while let Some(head) = head(&mut stream) {
            let known = head.starts_with("GET");
            let odd = "HTTP/1.1 501 Not Implemented\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(if known { OK } else { odd }.as_bytes()).unwrap();
        }
    });
    let gateway = proxy(up, "breaker: {failures: 1, open: 60s}", "");
    for _ in 0..5 {
        let mut client = connect(&gateway);
        client.write_all(b"BREW /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        assert!(read_to_end(&mut client).starts_with("HTTP/1.1 501"));
    }
    assert!(get(&gateway, "/x").starts_with("HTTP/1.1 200"));
}

#[test]
fn a_trial_that_its_client_ends_is_made_again() {
    let (well, uploads) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let state = (Arc::clone(&well), Arc::clone(&uploads));
    let up = upstream(move |mut stream| {
        let Some(text) = head(&mut stream) else { return };
        if text.starts_with("GET") {
            let busy = "HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n";
            let answer = if state.0.load(Ordering::SeqCst) { OK } else { busy };
            let _ = stream.write_all(answer.as_bytes());
            return;
        }
        let _ = std::io::copy(&mut stream, &mut std::io::sink());
        state.1.fetch_add(1, Ordering::SeqCst);
    });
    let gateway = proxy(up, "breaker: {failures: 1, open: 3s}", "");
    assert!(get(&gateway, "/x").starts_with("HTTP/1.1 503"));
    well.store(true, Ordering::SeqCst);
    assert!(get(&gateway, "/x").starts_with("HTTP/1.1 503"), "it is open");
    sleep(Duration::from_secs(4));
    let mut client = connect(&gateway);
    client.write_all(UPLOAD.as_bytes()).unwrap();
    sleep(Duration::from_millis(200));
    drop(client);
    eventually("the trial ends", || uploads.load(Ordering::SeqCst) == 1);
    // Without the trial given back, it would stay open for three seconds more.
    assert!(get(&gateway, "/x").starts_with("HTTP/1.1 200"));
}

#[test]
fn idle_connections_are_closed() {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let up = upstream(move |mut stream| {
        while head(&mut stream).is_some() {
            stream.write_all(OK.as_bytes()).unwrap();
        }
        count.fetch_add(1, Ordering::SeqCst);
    });
    let gateway = proxy(up, "keep_alive: 10ms", "");
    assert!(get(&gateway, "/x").starts_with("HTTP/1.1 200"));
    eventually("it is closed", || ended.load(Ordering::SeqCst) == 1);
    assert!(get(&gateway, "/x").starts_with("HTTP/1.1 200"));
}
