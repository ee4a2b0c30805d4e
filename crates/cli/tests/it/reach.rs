//! Other ways to a target: another host, a Unix socket, proxies; and the requests sent there.

#![expect(clippy::excessive_nesting, reason = "small servers in threads")]

use std::fs;
use std::io::{BufReader, Read as _, Write as _, copy};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use crate::plain_server::{self, PlainServer};
use crate::support::{FAST, Fixture, ProcessOutput, command};

const LOAD: [&str; 8] = ["-c", "2", "-n", "12", "-q", "--allow-invalid", "--out", "runs"];

fn http(fixture: &Fixture, args: &[&str]) -> ProcessOutput {
    fixture.plimsoll(&[&["http"], args, &LOAD].concat())
}

fn completed(fixture: &Fixture) -> u64 {
    fixture.summary().results.total.counters.completed
}

#[test]
fn connections_go_to_another_place_and_names_stay() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    let place = format!("api.invalid:80:127.0.0.1:{}", server.addr.port());
    http(&fixture, &["http://api.invalid/200/x", "--connect-to", &place]).expect(0);
    assert_eq!(completed(&fixture), 12);
    let log = server.take_log();
    assert!(log.iter().all(|request| request.header("host") == Some("api.invalid")), "{log:?}");
    let wrong = http(&fixture, &["http://a", "--connect-to", "b:80"]).expect(2);
    assert!(wrong.stderr.contains("HOST1:PORT1:HOST2:PORT2"), "{}", wrong.stderr);
}

#[test]
fn a_unix_socket_is_loaded_like_a_port() {
    let fixture = Fixture::with(FAST);
    let path = fixture.folder.path().join("app.sock");
    let path = path.to_str().unwrap();
    let missing = http(&fixture, &["http://localhost/x", "--unix-socket", path]).expect(1);
    assert!(missing.stderr.contains("app.sock"), "{}", missing.stderr);
    fs::remove_dir_all(fixture.folder.path().join("runs")).unwrap();
    let listener = UnixListener::bind(path).unwrap();
    let hosts: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = Arc::clone(&hosts);
    std::thread::spawn(move || {
        for socket in listener.incoming() {
            let (mut socket, seen) = (socket.unwrap(), Arc::clone(&seen));
            std::thread::spawn(move || {
                let mut reader = BufReader::new(socket.try_clone().unwrap());
                while let Some(request) = plain_server::read(&mut reader) {
                    seen.lock().unwrap().push(request.header("host").unwrap().to_owned());
                    socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
                }
            });
        }
    });
    http(&fixture, &["http://localhost/x", "--unix-socket", path]).expect(0);
    assert_eq!(completed(&fixture), 12);
    let hosts = hosts.lock().unwrap();
    assert_eq!((hosts.len(), &*hosts[0]), (13, "localhost"));
}

/// A proxy that notes the first line and the credentials of each connection's first request, and
/// connects to `to`, whatever it is asked for.
fn http_proxy(to: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (own, log) = (listener.local_addr().unwrap(), Arc::<Mutex<Vec<String>>>::default());
    let notes = Arc::clone(&log);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (mut tcp, notes) = (tcp.unwrap(), Arc::clone(&notes));
            std::thread::spawn(move || {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    let mut byte = [0];
                    if tcp.read(&mut byte).unwrap() == 0 {
                        return;
                    }
                    head.push(byte[0]);
                }
                let text = String::from_utf8(head.clone()).unwrap();
                let line = text.lines().next().unwrap().to_owned();
                let own = text.lines().find(|line| line.starts_with("proxy-authorization"));
                notes.lock().unwrap().push(format!("{line} {}", own.unwrap_or("none")));
                let mut upstream = TcpStream::connect(to).unwrap();
                if line.starts_with("CONNECT") {
                    tcp.write_all(b"HTTP/1.1 200 Fine\r\n\r\n").unwrap();
                } else {
                    upstream.write_all(&head).unwrap();
                }
                join(tcp, upstream);
            });
        }
    });
    (own, log)
}

fn join(mut one: TcpStream, mut other: TcpStream) {
    let (mut from, mut to) = (other.try_clone().unwrap(), one.try_clone().unwrap());
    let back = std::thread::spawn(move || {
        let _ = copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Both);
    });
    let _ = copy(&mut one, &mut other);
    let _ = other.shutdown(std::net::Shutdown::Both);
    back.join().unwrap();
}

#[test]
fn an_http_proxy_reads_plain_requests_and_tunnels_the_rest() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    let (proxy, log) = http_proxy(server.addr);
    let url = format!("http://me:pa%20ss@{proxy}");
    http(&fixture, &["http://api.invalid/200/x", "--proxy", &url]).expect(0);
    assert_eq!(completed(&fixture), 12);
    let seen = std::mem::take(&mut *log.lock().unwrap());
    // `me:pa ss` in base64.
    let first = "GET http://api.invalid/200/x HTTP/1.1 proxy-authorization: Basic bWU6cGEgc3M=";
    assert!(seen.iter().all(|line| line == first), "{seen:?}");
    for file in ["plan.json", "summary.json"] {
        let text = fs::read_to_string(fixture.only_run().join(file)).unwrap();
        assert!(!text.contains("pa ss") && !text.contains("pa%20ss"), "{file}: {text}");
    }
    let wrong = http(&fixture, &["http://a", "-x", "ftp://p:1"]).expect(2);
    assert!(wrong.stderr.contains("socks5://HOST:PORT"), "{}", wrong.stderr);
}

#[test]
fn tls_goes_through_a_tunnel_and_a_refusal_is_a_sentence() {
    let fixture = Fixture::with(FAST);
    // The server behind the tunnel speaks no TLS, which the error reports for the target's side.
    let server = PlainServer::spawn();
    let (proxy, log) = http_proxy(server.addr);
    let url = format!("http://{proxy}");
    http(&fixture, &["https://api.invalid/", "-k", "-x", &url, "--set", "connect_timeout=1s"])
        .expect(1);
    let seen = log.lock().unwrap().clone();
    assert_eq!(seen, ["CONNECT api.invalid:443 HTTP/1.1 none"]);
    // The server answers `CONNECT` itself.
    let refusing = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = format!("http://{}", refusing.local_addr().unwrap());
    std::thread::spawn(move || {
        for tcp in refusing.incoming() {
            let mut tcp = tcp.unwrap();
            tcp.write_all(b"HTTP/1.1 407 Who are you\r\ncontent-length: 0\r\n\r\n").unwrap();
            let _ = tcp.read(&mut [0; 4096]);
        }
    });
    let output = http(&fixture, &["https://api.invalid/", "-k", "-x", &own]).expect(1);
    let sentence = "(407); write USER:PASSWORD@ before the host of --proxy";
    assert!(output.stderr.contains(sentence), "{}", output.stderr);
}

#[test]
fn a_socks_proxy_gets_the_name_and_the_password() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let proxy = listener.local_addr().unwrap();
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let (notes, to) = (Arc::clone(&asked), server.addr);
    std::thread::spawn(move || {
        for tcp in listener.incoming() {
            let (mut tcp, notes) = (tcp.unwrap(), Arc::clone(&notes));
            std::thread::spawn(move || {
                let mut read = |length: usize| {
                    let mut bytes = vec![0; length];
                    tcp.read_exact(&mut bytes).unwrap();
                    bytes
                };
                assert_eq!(read(4), [5, 2, 0, 2], "no credentials, or a password");
                tcp.write_all(&[5, 2]).unwrap();
                let text = |tcp: &mut TcpStream| {
                    let mut length = [0];
                    tcp.read_exact(&mut length).unwrap();
                    let mut bytes = vec![0; length[0].into()];
                    tcp.read_exact(&mut bytes).unwrap();
                    String::from_utf8(bytes).unwrap()
                };
                let mut one = [0];
                tcp.read_exact(&mut one).unwrap();
                let own = [text(&mut tcp), text(&mut tcp)].join(":");
                tcp.write_all(&[1, u8::from(own != "u:p")]).unwrap();
                if own != "u:p" {
                    return;
                }
                let mut head = [0; 4];
                tcp.read_exact(&mut head).unwrap();
                assert_eq!(head, [5, 1, 0, 3], "a connection to a name");
                let name = text(&mut tcp);
                let mut port = [0; 2];
                tcp.read_exact(&mut port).unwrap();
                notes.lock().unwrap().push(format!("{name}:{}", u16::from_be_bytes(port)));
                tcp.write_all(&[5, 0, 0, 1, 127, 0, 0, 1, 0, 9]).unwrap();
                join(tcp, TcpStream::connect(to).unwrap());
            });
        }
    });
    let url = format!("socks5://u:p@{proxy}");
    http(&fixture, &["http://api.invalid:81/200/x", "--proxy", &url]).expect(0);
    assert_eq!(completed(&fixture), 12);
    let asked = asked.lock().unwrap();
    assert!(asked.iter().all(|place| place == "api.invalid:81"), "{asked:?}");
    assert!(server.take_log().iter().all(|request| request.line == "GET /200/x"));
    let url = format!("socks5://u:wrong@{proxy}");
    let refused = http(&fixture, &["http://api.invalid:81/", "--proxy", &url]).expect(1);
    let sentence = "the proxy rejected the user and password";
    assert!(refused.stderr.contains(sentence), "{}", refused.stderr);
}

#[test]
fn a_body_is_sent_byte_by_byte_and_its_type_is_said() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    fs::write(fixture.folder.path().join("picture.png"), &bytes).unwrap();
    let url = server.url("/200/x");
    let load = ["-c", "1", "-n", "3", "--allow-invalid", "--ui", "lines", "--warmup", "0"];
    let output =
        fixture.plimsoll(&[&["http", &url, "-b", "@picture.png"], &load[..]].concat()).expect(0);
    assert!(output.stderr.contains("the body is sent as image/png"), "{}", output.stderr);
    let log = server.take_log();
    assert_eq!(log.len(), 4);
    for request in &log {
        assert!(request.body == bytes, "{} bytes", request.body.len());
        assert_eq!(request.header("content-type"), Some("image/png"));
    }
    // The same from standard input, to two URLs.
    let args = [&["http", &url, &url, "-b", "@-"], &load[..]].concat();
    let mut child =
        command(fixture.folder.path(), &args).stdin(Stdio::piped()).stdout(Stdio::null()).spawn();
    let child = child.as_mut().unwrap();
    child.stdin.take().unwrap().write_all(&bytes).unwrap();
    assert!(child.wait().unwrap().success());
    let log = server.take_log();
    assert_eq!(log.len(), 8);
    assert!(log.iter().all(|request| request.body == bytes
        && request.header("content-type") == Some("application/octet-stream")));
    let form = [&["http", &url, "-b", "a=b&c=1"], &load[..]].concat();
    fixture.plimsoll(&form).expect(0);
    let form = server.take_log();
    let form = form[0].header("content-type");
    assert_eq!(form, Some("application/x-www-form-urlencoded"));
}

#[test]
fn the_requests_of_a_file_are_sent_by_their_weights() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    let text = format!(
        "# three to one\n{} 3\n{{\"url\": \"{}\", \"body\": {{\"n\": 1}}}}\n",
        server.url("/200/a"),
        server.url("/200/b")
    );
    fs::write(fixture.folder.path().join("requests.txt"), text).unwrap();
    let load = ["-c", "2", "-n", "400", "-q", "--allow-invalid", "--no-probe", "--out", "runs"];
    fixture.plimsoll(&[&["http", "--urls", "requests.txt"], &load[..]].concat()).expect(0);
    let log = server.take_log();
    let count = |line: &str| log.iter().filter(|request| request.line == line).count();
    let (often, seldom) = (count("GET /200/a"), count("POST /200/b"));
    assert_eq!(often + seldom, 400);
    // Four standard deviations around a quarter of 400.
    assert!((66..=134).contains(&seldom), "{seldom}");
    let json = log.iter().find(|request| request.line == "POST /200/b").unwrap();
    assert_eq!(json.body, b"{\"n\":1}");
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(fixture.summary().metadata.scenarios, ["GET /200/a", "POST /200/b"]);
    fs::write(fixture.folder.path().join("broken.txt"), "http://a/ b c d\n").unwrap();
    let broken = fixture.plimsoll(&["http", "--urls", "broken.txt"]).expect(2);
    assert!(broken.stderr.contains("line 1"), "{}", broken.stderr);
}
