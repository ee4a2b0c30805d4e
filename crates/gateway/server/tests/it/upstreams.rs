//! Upstreams that fail, stall and recover; streams; faults; the end of a gateway.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use plimsoll_gateway_server::Gateway;

use super::support::raw::{self, eventually, head, read_to_end, upstream};

/// A server whose responses are a function of the request's number.
struct Upstream {
    addr: SocketAddr,
    asked: Arc<AtomicUsize>,
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy";

impl Upstream {
    /// `answer` gets the number of the request, from 0, and its head; an empty response closes the
    /// connection.
    fn start(answer: impl Fn(usize, &str) -> String + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream =
            Self { addr: listener.local_addr().unwrap(), asked: Arc::new(AtomicUsize::new(0)) };
        let (asked, answer) = (Arc::clone(&upstream.asked), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (asked, answer) = (Arc::clone(&asked), Arc::clone(&answer));
                thread::spawn(move || serve(stream.unwrap(), &asked, &*answer));
            }
        });
        upstream
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn serve(mut stream: TcpStream, asked: &AtomicUsize, answer: &dyn Fn(usize, &str) -> String) {
    while let Some(head) = head(&mut stream) {
        let answer = answer(asked.fetch_add(1, Ordering::SeqCst), &head);
        if answer.is_empty() || stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

fn gateway(upstreams: &[&Upstream], settings: &str, more: &str) -> Gateway {
    let addresses: Vec<_> = upstreams.iter().map(|up| format!("'{}'", up.addr)).collect();
    raw::gateway(&format!(
        "upstreams: {{u: {{addresses: [{}], {settings}}}}}\n\
         routes: [{{name: all, path: /*, upstream: u}}]\n{more}",
        addresses.join(", ")
    ))
}

/// Status and body of a GET.
fn get(gateway: &Gateway, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(gateway.addr()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body).to_owned();
    (answer[9..12].parse().unwrap(), body)
}

#[test]
fn round_robin_spreads_requests_evenly() {
    let ups: Vec<_> = (0..3).map(|_| Upstream::start(|_, _| OK.to_owned())).collect();
    let gateway = gateway(&ups.iter().collect::<Vec<_>>(), "", "");
    (0..30).for_each(|_| assert_eq!(get(&gateway, "/x").0, 200));
    assert_eq!(ups.iter().map(Upstream::asked).collect::<Vec<_>>(), [10, 10, 10]);
}

#[test]
fn retries_happen_within_their_budget_only() {
    let up = Upstream::start(|number, _| if number == 0 { BUSY } else { OK }.to_owned());
    let retrying = gateway(&[&up], "retry: {attempts: 2, budget: 0, backoff: 1ms}", "");
    assert_eq!((get(&retrying, "/x"), up.asked()), ((200, "ok".to_owned()), 2));
    let busy = Upstream::start(|_, _| BUSY.to_owned());
    let retrying = gateway(&[&busy], "retry: {attempts: 2, budget: 0, backoff: 1ms}", "");
    (0..30).for_each(|_| assert_eq!(get(&retrying, "/x").0, 503));
    // Ten retries are free, and a budget of nothing grants no more.
    assert_eq!(busy.asked(), 40);
    let plain = gateway(&[&busy], "", "");
    assert_eq!((get(&plain, "/x").0, busy.asked()), (503, 41));
}

#[test]
fn an_unreachable_upstream_gets_502_and_a_slow_one_504() {
    let gone = Upstream { addr: closed(), asked: Arc::default() };
    assert_eq!(get(&gateway(&[&gone], "", ""), "/x").0, 502);
    let silent = upstream(|mut stream| drop(std::io::copy(&mut stream, &mut std::io::sink())));
    let silent = Upstream { addr: silent, asked: Arc::default() };
    assert_eq!(get(&gateway(&[&silent], "timeout: 100ms", ""), "/x").0, 504);
    let rude = Upstream::start(|_, _| String::new());
    assert_eq!(get(&gateway(&[&rude], "", ""), "/x").0, 502);
}

/// An address on which nothing listens.
fn closed() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

#[test]
fn a_breaker_opens_after_failures_and_closes_on_success() {
    let well = Arc::new(AtomicBool::new(false));
    let state = Arc::clone(&well);
    let up = Upstream::start(move |_, _| {
        if state.load(Ordering::SeqCst) { OK } else { BUSY }.to_owned()
    });
    let gateway = gateway(&[&up], "breaker: {failures: 3, open: 200ms}", "");
    (0..10).for_each(|_| assert_eq!(get(&gateway, "/x").0, 503));
    let before = up.asked();
    assert!(before < 6, "{before} requests reached an upstream whose breaker is open");
    well.store(true, Ordering::SeqCst);
    eventually("the breaker closes", || get(&gateway, "/x").0 == 200);
    assert_eq!(get(&gateway, "/x").0, 200);
}

#[test]
fn a_connection_closed_by_the_upstream_is_replaced_silently() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closing = Upstream { addr: listener.local_addr().unwrap(), asked: Arc::default() };
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            head(&mut stream).unwrap();
            stream.write_all(OK.as_bytes()).unwrap();
        }
    });
    let gateway = gateway(&[&closing], "", "");
    for _ in 0..20 {
        assert_eq!(get(&gateway, "/x"), (200, "ok".to_owned()));
        sleep(Duration::from_millis(2));
    }
}

/// The upstream writes each event only when the client has received the one before.
#[test]
fn a_stream_passes_chunk_by_chunk_and_byte_for_byte() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let up = Upstream { addr: listener.local_addr().unwrap(), asked: Arc::default() };
    let gateway = gateway(&[&up], "", "");
    let mut client = TcpStream::connect(gateway.addr()).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    client.write_all(b"GET /s HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    head(&mut server).unwrap();
    let start =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
    server.write_all(start.as_bytes()).unwrap();
    assert!(head(&mut client).unwrap().contains("text/event-stream"));
    for number in 0..50 {
        let event = format!("data: {{\"n\":{number},\"t\":\"\u{e9}\"}}\n\n");
        let chunk = format!("{:x}\r\n{event}\r\n", event.len());
        server.write_all(chunk.as_bytes()).unwrap();
        let mut seen = vec![0; chunk.len()];
        client.read_exact(&mut seen).unwrap();
        assert_eq!(String::from_utf8(seen).unwrap().to_lowercase(), chunk.to_lowercase());
    }
    // Broken off in the middle, it must not look complete.
    drop(server);
    let mut rest = Vec::new();
    let _ = client.read_to_end(&mut rest);
    assert!(!rest.ends_with(b"0\r\n\r\n"), "a broken stream was ended politely");
}

#[test]
fn a_client_that_disconnects_closes_the_upstreams_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let up = Upstream { addr: listener.local_addr().unwrap(), asked: Arc::default() };
    let gateway = gateway(&[&up], "", "");
    let mut client = TcpStream::connect(gateway.addr()).unwrap();
    client.write_all(b"GET /s HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    head(&mut server).unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n").unwrap();
    head(&mut client).unwrap();
    drop(client);
    server.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The connection ends, with an end or a reset, and nothing more arrives on it.
    assert_eq!(read_to_end(&mut server), "");
}

#[test]
fn a_slow_client_throttles_the_upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let up = Upstream { addr: listener.local_addr().unwrap(), asked: Arc::default() };
    let gateway = gateway(&[&up], "", "");
    let mut client = TcpStream::connect(gateway.addr()).unwrap();
    client.write_all(b"GET /s HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let (mut server, _) = listener.accept().unwrap();
    head(&mut server).unwrap();
    server.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n").unwrap();
    server.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let mut written = 0;
    while let Ok(length) = server.write(&[b'x'; 16_384]) {
        written += length;
        assert!(written < 100_000_000, "the gateway takes in what nobody reads");
    }
    assert!(written > 0);
}

#[test]
fn a_stopping_gateway_finishes_requests_and_accepts_no_more() {
    let (release, released) = channel();
    let released = Mutex::new(released);
    let up = Upstream::start(move |_, _| {
        released.lock().unwrap().recv().unwrap();
        OK.to_owned()
    });
    let mut gateway = gateway(&[&up], "", "");
    let addr = gateway.addr();
    let mut client = TcpStream::connect(addr).unwrap();
    client.write_all(b"GET /x HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    eventually("the request is in flight", || up.asked() == 1);
    thread::scope(|scope| {
        scope.spawn(|| gateway.shutdown());
        eventually("no more connections are accepted", || TcpStream::connect(addr).is_err());
        release.send(()).unwrap();
    });
    let mut answer = String::new();
    client.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("ok"), "{answer}");
    assert!(TcpStream::connect(addr).is_err());
}

#[test]
fn injected_faults_have_the_configured_frequency_and_length() {
    let up = Upstream::start(|_, _| OK.to_owned());
    let failing = gateway(&[&up], "", "faults: {error_share: 0.5, seed: 3}");
    let failed = (0..200).filter(|_| get(&failing, "/x").0 == 500).count();
    // Four standard deviations of 200 draws.
    assert!((72..=128).contains(&failed), "{failed}");
    assert_eq!(up.asked(), 200 - failed);
    let late = gateway(&[&up], "", "faults: {delay: 20ms}");
    let begin = Instant::now();
    (0..5).for_each(|_| assert_eq!(get(&late, "/x").0, 200));
    assert!(begin.elapsed() >= Duration::from_millis(100));
    assert!(get(&late, "/admin/build").1.contains("\"faults\":[\"delay\"]"));
}

/// The status of a request with this method and these headers.
fn send_x(gateway: &Gateway, method: &str, headers: &str) -> u16 {
    let request = format!(
        "{method} /x HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: 2\r\n\r\nhi"
    );
    raw::send_raw(gateway, request)[9..12].parse().unwrap()
}

/// RFC 9110, 9.2.2: what a server may have acted on is not sent again, unless that changes nothing.
#[test]
fn a_request_on_a_reused_connection_that_closes_is_sent_again_only_if_idempotent() {
    let retry = |attempts: u32| format!("retry: {{attempts: {attempts}, budget: 1, backoff: 1ms}}");
    for (method, headers, settings, sent) in [
        ("POST", "", String::new(), 1),
        ("PATCH", "", String::new(), 1),
        ("POST", "", retry(3), 1),
        ("PATCH", "", retry(3), 1),
        ("POST", "idempotency-key: 7\r\n", String::new(), 2),
        ("GET", "", String::new(), 2),
        ("PUT", "", String::new(), 2),
        ("DELETE", "", String::new(), 2),
        ("GET", "", retry(1), 1),
        ("GET", "", retry(2), 2),
        ("PUT", "", retry(3), 3),
    ] {
        let up = Upstream::start(|number, _| if number == 0 { OK } else { "" }.to_owned());
        let gateway = gateway(&[&up], &settings, "metrics: {}");
        assert_eq!(get(&gateway, "/warm").0, 200);
        let what = format!("{method} {headers} {settings}");
        assert_eq!((send_x(&gateway, method, headers), up.asked() - 1), (502, sent), "{what}");
        let counted = format!("gateway_retries_total {}\n", sent - 1);
        assert!(get(&gateway, "/metrics").1.contains(&counted), "{what}");
    }
}

/// Each connection is good for one request, and the second breaks it.
#[test]
fn a_connection_that_breaks_when_it_is_reused_is_replaced_by_a_new_one() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let addr = upstream(move |mut stream| {
        for answer in [OK, ""] {
            if head(&mut stream).is_some() {
                counted.fetch_add(1, Ordering::SeqCst);
                stream.write_all(answer.as_bytes()).unwrap();
            }
        }
    });
    let gateway = raw::proxy(addr, "breaker: {failures: 1, open: 60s}", "");
    for number in 1..=10 {
        assert_eq!(get(&gateway, "/x"), (200, "ok".to_owned()));
        // Every connection but the last is asked twice, once in vain.
        assert_eq!(asked.load(Ordering::SeqCst), 2 * number - 1, "{number}");
    }
}

#[test]
fn a_request_is_retried_after_an_answer_only_if_idempotent() {
    let key = "idempotency-key: 7\r\n";
    for (method, headers, status, sent) in [
        ("POST", "", 503, 1),
        ("POST", "", 502, 1),
        ("PATCH", "", 503, 1),
        ("POST", key, 503, 2),
        ("POST", key, 502, 2),
        ("POST", key, 500, 1),
        ("GET", "", 503, 2),
        ("GET", "", 502, 2),
        ("GET", "", 500, 1),
    ] {
        let up = Upstream::start(move |number, _| match number {
            0 => format!("HTTP/1.1 {status} X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"),
            _ => OK.to_owned(),
        });
        let gateway = gateway(&[&up], "retry: {attempts: 3, budget: 1, backoff: 1ms}", "");
        let expected = if sent == 2 { 200 } else { status };
        assert_eq!(
            (send_x(&gateway, method, headers), up.asked()),
            (expected, sent),
            "{method} {headers} {status}"
        );
    }
    let gone = Upstream { addr: closed(), asked: Arc::default() };
    let well = Upstream::start(|_, _| OK.to_owned());
    let gateway = gateway(&[&gone, &well], "retry: {attempts: 2, budget: 1, backoff: 1ms}", "");
    (0..4).for_each(|_| assert_eq!(send_x(&gateway, "POST", ""), 200));
}

/// A server that answers 503 with this line, and then 200; and how often it was asked.
fn busy(line: &'static str) -> (SocketAddr, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let addr = upstream(move |mut stream| {
        while head(&mut stream).is_some() {
            let answer = match counted.fetch_add(1, Ordering::SeqCst) {
                0 => format!("HTTP/1.1 503 X\r\n{line}content-length: 0\r\n\r\n"),
                _ => OK.to_owned(),
            };
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (addr, asked)
}

#[test]
fn the_pause_that_a_server_wants_is_kept_or_it_is_not_asked_again() {
    for (line, status, least) in [
        ("", 200, 0),
        ("retry-after: 0\r\n", 200, 0),
        ("retry-after-ms: 300\r\n", 200, 300),
        ("retry-after: 7\r\n", 503, 0),
        ("retry-after: Fri, 31 Dec 2100 23:59:59 GMT\r\n", 503, 0),
    ] {
        let (up, asked) = busy(line);
        let gateway = raw::proxy(up, "retry: {attempts: 3, budget: 1, backoff: 1ms}", "");
        let begin = Instant::now();
        let answer = raw::get(&gateway, "/x");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {answer}");
        assert!(begin.elapsed() >= Duration::from_millis(least), "{line}");
        assert_eq!(asked.load(Ordering::SeqCst), if status == 200 { 2 } else { 1 }, "{line}");
        assert!(status == 200 || answer.contains(line), "the client is told: {answer}");
    }
}

#[test]
fn a_switch_of_protocols_that_nobody_asked_for_is_no_answer() {
    let switch =
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\nsmuggled";
    let up = Upstream::start(|_, _| switch.to_owned());
    let gateway = gateway(&[&up], "", "");
    for _ in 0..2 {
        let (status, body) = get(&gateway, "/x");
        assert_eq!((status, body.contains("smuggled")), (502, false), "{body}");
    }
}

/// RFC 9110, 9.3.1: such a body has no meaning, but what was sent is what the upstream gets.
#[test]
fn the_body_of_a_get_is_passed_on() {
    let addr = upstream(|mut stream| {
        let head = head(&mut stream).unwrap();
        let mut body = [0; 3];
        stream.read_exact(&mut body).unwrap();
        assert!(head.starts_with("GET /x") && head.contains("content-length: 3"), "{head}");
        let echo = String::from_utf8_lossy(&body);
        write!(stream, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n{echo}").unwrap();
    });
    let gateway = raw::proxy(addr, "", "");
    let mut stream = TcpStream::connect(gateway.addr()).unwrap();
    write!(stream, "GET /x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 3\r\n\r\nabc").unwrap();
    let answer = head(&mut stream).unwrap();
    let mut body = [0; 3];
    stream.read_exact(&mut body).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && body == *b"abc", "{answer}");
}
