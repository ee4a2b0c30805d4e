//! Every wait for a client has an end, and what clients do not take is bounded.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

use plimsoll_gateway_server::Gateway;

use super::floods::{BLOCK, HEADERS, PING, PREFACE, RESET, SETTINGS, frame};
use super::support::raw::{
    OK, connect, eventually, fixed_upstream, gateway, get, head, open_connections, proxy, upstream,
};

/// An upstream whose every response is endless, and the number of those that were given up.
fn endless() -> (SocketAddr, Arc<AtomicUsize>) {
    let ended = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ended);
    let up = upstream(move |mut stream| {
        if head(&mut stream).is_none() {
            return;
        }
        let start = "HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n";
        stream.write_all(start.as_bytes()).unwrap();
        while stream.write_all(&[b'x'; 16_384]).is_ok() {}
        count.fetch_add(1, Ordering::SeqCst);
    });
    (up, ended)
}

fn ask(gateway: &Gateway) -> TcpStream {
    let mut client = connect(gateway);
    client.write_all(b"GET /x HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
    client
}

fn memory(gateway: &Gateway) -> u64 {
    let text = get(gateway, "/metrics");
    let line = text.lines().find_map(|line| line.strip_prefix("gateway_memory_bytes "));
    line.unwrap().parse().unwrap()
}

fn alive(gateway: &Gateway) {
    assert!(get(gateway, "/health/live").ends_with("{\"alive\":true}"));
}

#[test]
fn a_client_that_reads_nothing_is_disconnected() {
    let (up, ended) = endless();
    let gateway = proxy(up, "", "metrics: {}\nserver: {write_timeout: 500ms}");
    let clients: Vec<_> = (0..8).map(|_| ask(&gateway)).collect();
    eventually("they hold memory", || memory(&gateway) > 0);
    eventually("they are disconnected", || open_connections(&gateway) == 0);
    eventually("the upstream is told", || ended.load(Ordering::SeqCst) == clients.len());
    assert_eq!(memory(&gateway), 0);
    alive(&gateway);
}

#[test]
fn a_slow_client_that_reads_on_is_served() {
    let (up, ended) = endless();
    let gateway = proxy(up, "", "server: {write_timeout: 2s}");
    let mut client = ask(&gateway);
    let (begin, mut buffer) = (Instant::now(), vec![0; 256 << 10]);
    while begin.elapsed() < Duration::from_secs(6) {
        client.read_exact(&mut buffer).unwrap();
        sleep(Duration::from_millis(100));
    }
    assert_eq!(ended.load(Ordering::SeqCst), 0);
}

/// A client of HTTP/2 that answers every PING; returns the types and streams of all other frames
/// until one that it waits for, or until the connection ends.
fn frames_until(stream: &mut TcpStream, last: Option<u8>) -> Vec<(u8, u32)> {
    let mut seen = Vec::new();
    loop {
        let mut head = [0; 9];
        if let Err(error) = stream.read_exact(&mut head) {
            let timed_out = matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
            assert!(!timed_out, "the connection stays open: {seen:?}");
            return seen;
        }
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        stream.read_exact(&mut payload).unwrap();
        if head[3] == PING && head[4] == 0 {
            let _ = stream.write_all(&frame(PING, 1, 0, &payload));
            continue;
        }
        seen.push((head[3], u32::from_be_bytes([head[5], head[6], head[7], head[8]])));
        if Some(head[3]) == last {
            return seen;
        }
    }
}

/// The setting of the initial window (RFC 9113, 6.5.2), zero.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

#[test]
fn a_stream_without_a_window_is_reset() {
    let (up, ended) = endless();
    let gateway = proxy(up, "", "metrics: {}\nserver: {write_timeout: 500ms}");
    let mut client = connect(&gateway);
    let start = [PREFACE, &frame(SETTINGS, 0, 0, &NO_WINDOW), &frame(HEADERS, 5, 1, BLOCK)];
    client.write_all(&start.concat()).unwrap();
    let seen = frames_until(&mut client, Some(RESET));
    assert!(seen.ends_with(&[(HEADERS, 1), (RESET, 1)]), "{seen:?}");
    eventually("the upstream is told", || ended.load(Ordering::SeqCst) == 1);
    assert_eq!(memory(&gateway), 0);
    // Only the stream ended: the next one is served.
    client.write_all(&frame(HEADERS, 5, 3, BLOCK)).unwrap();
    assert_eq!(frames_until(&mut client, Some(HEADERS)), [(HEADERS, 3)]);
}

#[test]
fn the_last_piece_of_a_response_is_watched_too() {
    let gateway = proxy(fixed_upstream(OK), "", "metrics: {}\nserver: {write_timeout: 500ms}");
    let mut client = connect(&gateway);
    let start = [PREFACE, &frame(SETTINGS, 0, 0, &NO_WINDOW), &frame(HEADERS, 5, 1, BLOCK)];
    client.write_all(&start.concat()).unwrap();
    let seen = frames_until(&mut client, Some(RESET));
    assert!(seen.ends_with(&[(HEADERS, 1), (RESET, 1)]), "{seen:?}");
}

#[test]
fn an_idle_http2_client_that_answers_pings_is_disconnected() {
    let gateway = gateway("metrics: {}\nserver: {header_timeout: 1s}");
    let mut client = connect(&gateway);
    client.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).unwrap();
    let seen = frames_until(&mut client, None);
    assert!(seen.iter().any(|(kind, _)| *kind == 7), "without GOAWAY: {seen:?}");
    eventually("it is closed", || open_connections(&gateway) == 0);
}

#[test]
fn clients_that_read_nothing_cost_no_more_memory_than_allowed() {
    let (up, _) = endless();
    let server = "server: {memory: 2MiB, write_timeout: 60s}";
    let gateway = proxy(up, "", &format!("metrics: {{}}\n{server}"));
    let clients: Vec<_> = (0..100).map(|_| ask(&gateway)).collect();
    let (mut most, begin) = (0, Instant::now());
    while begin.elapsed() < Duration::from_secs(4) {
        most = most.max(memory(&gateway));
        alive(&gateway);
        sleep(Duration::from_millis(20));
    }
    assert!(most > 256 << 10, "they did hold some: {most}");
    assert!(most <= 2 << 20, "{most}");
    // Long before the time limit, most had to go; some of the rest may stay.
    eventually("most are disconnected", || open_connections(&gateway) <= 30);
    drop(clients);
    eventually("the memory is free", || memory(&gateway) == 0);
}

#[test]
fn bodies_that_stall_cost_no_more_memory_than_allowed() {
    let path = "/v1/chat/completions";
    let up = fixed_upstream(OK);
    let gateway = gateway(&format!(
        "metrics: {{}}\nserver: {{memory: 1MiB, body_timeout: 60s}}\n\
         upstreams: {{u: {{addresses: ['{up}']}}}}\n\
         routes: [{{name: chat, path: {path}, upstream: u, llm: true}}]"
    ));
    let start = format!(
        "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n\
         content-length: 300000\r\n\r\n"
    );
    let mut clients: Vec<_> = (0..16)
        .map(|_| {
            let mut client = connect(&gateway);
            let _ = client.write_all(start.as_bytes());
            let _ = client.write_all(&vec![b' '; 200_000]);
            client
        })
        .collect();
    for _ in 0..20 {
        assert!(memory(&gateway) <= 1 << 20);
        alive(&gateway);
        sleep(Duration::from_millis(20));
    }
    // Four have room beside what must stay free; the others are refused, some by a reset because
    // they were still sending.
    eventually("bodies without room are refused", || open_connections(&gateway) <= 4);
    for client in &clients {
        client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    }
    let heads: Vec<_> = clients.iter_mut().filter_map(head).collect();
    assert!(!heads.is_empty() && heads.iter().all(|head| head.starts_with("HTTP/1.1 503")));
    drop(clients);
    eventually("the memory is free", || memory(&gateway) == 0);
}
