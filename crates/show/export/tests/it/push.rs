//! The push, to a small server of the tests' own, and to a real Pushgateway where there is one.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_export::PushTarget;

const PAGE: &str = "# HELP a_total Of a.\n# TYPE a_total counter\na_total{x=\"y\"} 3\n";

/// A server that gives these answers, one for each connection, and keeps the requests.
struct Receiver {
    address: SocketAddr,
    requests: JoinHandle<Vec<String>>,
}

impl Receiver {
    fn start(answers: &'static [&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = thread::spawn(move || {
            answers
                .iter()
                .map(|answer| {
                    let (mut stream, _) = listener.accept().unwrap();
                    let request = request(&mut stream);
                    stream.write_all(answer.as_bytes()).unwrap();
                    request
                })
                .collect()
        });
        Self { address, requests }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

/// A request with a body of the announced length.
fn request(stream: &mut TcpStream) -> String {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let (mut text, mut piece) = (String::new(), [0; 1_024]);
    loop {
        let read = stream.read(&mut piece).unwrap();
        text.push_str(std::str::from_utf8(&piece[..read]).unwrap());
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if read == 0 || body.len() >= length.unwrap().parse().unwrap() {
            return text;
        }
    }
}

fn push(url: &str) -> Result<(), String> {
    let target: PushTarget = url.parse().unwrap();
    target.push("chat", "host-1", PAGE).map_err(|error| error.to_string())
}

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
const BUSY: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 4\r\n\r\nbusy";
const BAD: &str = "HTTP/1.1 400 Bad Request\r\ncontent-length: 9\r\n\r\nbad line\n";

#[test]
fn the_page_is_put_into_the_group_of_the_run() {
    let receiver = Receiver::start(&[OK]);
    let url = receiver.url().replace("http://", "http://me:secret@");
    push(&url).unwrap();
    let requests = receiver.requests.join().unwrap();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("PUT /metrics/job/plimsoll/instance/host-1/run/chat HTTP/1.1\r\n"),
        "{head}"
    );
    // printf 'me:secret' | base64
    assert!(head.contains("authorization: Basic bWU6c2VjcmV0"), "{head}");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert_eq!(body, PAGE);
}

#[test]
fn what_may_pass_is_tried_twice_and_what_may_not_once() {
    let receiver = Receiver::start(&[BUSY, OK]);
    push(&receiver.url()).unwrap();
    assert_eq!(receiver.requests.join().unwrap().len(), 2);

    let receiver = Receiver::start(&[BUSY, BUSY]);
    let error = push(&receiver.url()).unwrap_err();
    assert!(error.contains("status 503: busy") && error.contains(&receiver.url()), "{error}");
    assert_eq!(receiver.requests.join().unwrap().len(), 2);

    // Only one answer: a second attempt would be refused by the kernel, and be the error.
    let receiver = Receiver::start(&[BAD]);
    let error = push(&receiver.url().replace("http://", "http://me:secret@")).unwrap_err();
    assert!(error.contains("status 400: bad line") && !error.contains("secret"), "{error}");
    assert_eq!(receiver.requests.join().unwrap().len(), 1);

    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = push(&format!("http://{free}")).unwrap_err();
    assert!(error.contains("refused"), "{error}");
}

/// A process that ends with the test.
struct Pushgateway(Child);

impl Drop for Pushgateway {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// `scripts/test --all` installs it.
#[test]
#[ignore = "needs prometheus-pushgateway"]
fn a_real_pushgateway_takes_the_page_and_replaces_it() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut command = Command::new("prometheus-pushgateway");
    command.arg(format!("--web.listen-address={address}"));
    let process = command.stderr(Stdio::null()).stdout(Stdio::null()).spawn();
    let _pushgateway = Pushgateway(process.unwrap());
    let is_up = (0..400).any(|_| {
        pause();
        TcpStream::connect(address).is_ok()
    });
    assert!(is_up, "it does not listen on {address}");
    let target: PushTarget = format!("http://{address}").parse().unwrap();
    let get = || exchange(address, "GET /metrics HTTP/1.0\r\n\r\n");
    // A name that is no part of a path by itself.
    for (value, gone) in [(3, 4), (4, 3)] {
        let page = PAGE.replace('3', &value.to_string());
        target.push("a/b c", "host-1", &page).unwrap();
        let (page, labels) = (get(), r#"instance="host-1",job="plimsoll",run="a/b c",x="y""#);
        assert!(page.contains(&format!("a_total{{{labels}}} {value}\n")), "{page}");
        assert!(!page.contains(&format!("a_total{{{labels}}} {gone}\n")), "{page}");
    }
    let error = target.push("a", "b", "no metrics\n").unwrap_err().to_string();
    assert!(error.contains("status 400"), "{error}");
}

#[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
fn pause() {
    thread::sleep(Duration::from_millis(25));
}

/// Sends bytes, and reads until the connection ends.
fn exchange(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    // A reset after the answer does not matter.
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}
