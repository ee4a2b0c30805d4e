//! `plimsoll suite --target` against real servers that would deceive a careless report. The crate
//! of the suites tests the forbidden conclusions for every suite on planned hosts; these tests
//! cover the whole program.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{FAST, Fixture, ProcessOutput, attempt};

/// A server's answer to a path: status, headers, and delay.
type Answer = fn(path: &str, repeat: bool) -> (u16, &'static str, Duration);

/// A server of a thread for each connection, which counts requests by path.
#[derive(Clone)]
struct Server {
    address: SocketAddr,
    counts: Arc<Mutex<BTreeMap<String, u64>>>,
    answer: Answer,
}

impl Server {
    fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, counts: Arc::default(), answer };
        let accepting = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().filter_map(Result::ok) {
                let server = accepting.clone();
                std::thread::spawn(move || server.serve(&stream));
            }
        });
        server
    }

    fn serve(&self, stream: &TcpStream) -> Option<()> {
        let mut reader = BufReader::new(stream);
        loop {
            let (path, body) = request(&mut reader)?;
            let repeat = {
                let mut counts = self.counts.lock().unwrap();
                let seen = counts.entry(format!("{path} {body}")).or_default();
                *seen += 1;
                let repeat = *seen > 1;
                *counts.entry(path.clone()).or_default() += 1;
                repeat
            };
            let (status, headers, delay) = (self.answer)(&path, repeat);
            std::thread::park_timeout(delay);
            let text = r#"{"choices":[{"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}"#;
            let length = text.len();
            let response = format!(
                "HTTP/1.1 {status} X\r\n{headers}content-type: application/json\r\ncontent-length: {length}\r\n\r\n{text}"
            );
            (&mut &*stream).write_all(response.as_bytes()).ok()?;
        }
    }

    fn count(&self, path: &str) -> u64 {
        self.counts.lock().unwrap().get(path).copied().unwrap_or(0)
    }
}

/// Reads a request: its path and body.
fn request(reader: &mut BufReader<&TcpStream>) -> Option<(String, String)> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut length = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok().filter(|bytes| *bytes > 0)?;
        let header = header.trim().to_ascii_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(value) = header.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((path, String::from_utf8_lossy(&body).into_owned()))
}

fn suite(name: &str, server: &Server, more: &[&str]) -> ProcessOutput {
    let fixture = Fixture::with(FAST);
    let target = format!("http://{}/team", server.address);
    let short = ["--short", "--duration", "300ms", "--passes", "1", "--allow-invalid"];
    // Arrivals have no clients.
    let clients: &[&str] = if name == "agents" { &[] } else { &["-c", "4"] };
    let of_target = ["suite", name, "--full", "--target", &target];
    let args = [&of_target, &short[..], clients, more].concat();
    fixture.plimsoll(&args)
}

const NONE: Duration = Duration::ZERO;

#[test]
fn a_server_that_refuses_everything_is_never_praised() {
    let refusals: [(Answer, &str); 2] =
        [(|_, _| (429, "", NONE), "429"), (|_, _| (404, "", NONE), "404")];
    for (answer, status) in refusals {
        for name in ["agents", "baseline", "layers", "policy", "quick", "tiers"] {
            let server = Server::start(answer);
            let output = suite(name, &server, &[]).expect(1);
            for part in ["FAIL: ", "nothing could be measured", status] {
                assert!(output.stdout.contains(part), "{name}: {part} is not in {}", output.stdout);
            }
            for praise in ["PASS:", "COMPLETE:", "  + ", "no errors", "for 1,000/s"] {
                assert!(!output.stdout.contains(praise), "{name}: {praise} in {}", output.stdout);
            }
            let sent: u64 = server.counts.lock().unwrap().values().sum();
            assert!(sent < 60, "{name}: {sent} requests to a server that refuses");
        }
    }
}

#[test]
fn a_costly_route_is_not_loaded_and_every_path_keeps_the_prefix() {
    let server = Server::start(|path, _| match path {
        "/team/health" => (200, "", Duration::from_millis(400)),
        _ => (200, "", NONE),
    });
    let output = suite("baseline", &server, &[]).expect(4);
    // A second time, as the first could have been a pause of this host.
    assert_eq!(server.count("/team/health"), 2);
    assert!(server.count("/team/health/live") > 10 && server.count("/team/metrics") > 10);
    assert_eq!(server.count("/health/live"), 0);
    assert!(
        output.stdout.contains("GET /health: not measured, because a single request took"),
        "{}",
        output.stdout
    );
    assert!(!output.stdout.contains("GET /health, 4 clients"), "{}", output.stdout);
}

#[test]
fn what_is_missing_may_be_accepted_and_what_is_absent_is_no_cache() {
    let server = Server::start(|_, _| (200, "", NONE));
    let output = suite("layers", &server, &[]).expect(4);
    let why = "the second equal request was not faster, no header";
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(why), "{text}");
    for lie in ["Cache-hit", "is a hit", "Layer overhead", "inf%", "session get"] {
        let own = output.stdout.split("Reference: ").next().unwrap();
        assert!(!own.contains(lie), "{lie} is in {own}");
    }
    // The refused exit code alone is lifted: the report says the same.
    let output = suite("layers", &server, &["--allow-missing"]);
    assert!(output.stdout.contains("1 part missing"), "{}", output.stdout);
    assert_ne!(output.code, Some(3), "{}", output.stdout);
}

#[test]
fn a_cache_is_shown_by_its_header_or_by_its_speed() {
    let by_header: Answer = |_, repeat| (200, if repeat { "x-cache: HIT\r\n" } else { "" }, NONE);
    let by_speed: Answer = |path, repeat| {
        let miss = path.contains("chat") && !repeat;
        (200, "", if miss { Duration::from_millis(500) } else { NONE })
    };
    for (answer, proof) in
        [(by_header, "has the header `x-cache: HIT`"), (by_speed, "equal requests took at most")]
    {
        let mut text = String::new();
        // A pause of the host may make an equal request as slow as a different one.
        attempt(4, || {
            let output = suite("layers", &Server::start(answer), &[]);
            text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_shown = [proof, "Cache-hit throughput"].iter().all(|part| text.contains(part));
            if is_shown { Ok(()) } else { Err(format!("{proof}: {text}{}", output.stderr)) }
        });
        // The test shares its machine: the measurement may be invalid, and is then not explained.
        let parts = ["hits not counted; ", "INVALID: "];
        assert!(parts.iter().any(|part| text.contains(part)), "{text}");
    }
}

/// The server answers like a plain reverse proxy before a provider, whose missing routes are not
/// explained.
#[test]
fn a_report_explains_only_the_routes_that_were_loaded() {
    let server = Server::start(|path, _| match path {
        "/team/health" | "/team/metrics" | "/team/v1/chat/completions" => (200, "", NONE),
        _ => (404, "", NONE),
    });
    let output = suite("baseline", &server, &[]);
    let text = output.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for absent in ["/health/live asks for", "/ws/chat: a request is", "POST /v1/runs: a request"] {
        assert!(!text.contains(absent), "{absent} is in {text}");
    }
    for left_out in ["GET /health/live", "/ws/chat", "POST /api/chat", "POST /v1/runs"] {
        let reason = format!("{left_out}: not measured, because no such route: 404");
        // The route is a row of its table, and in the list of skipped parts.
        let (tables, list) = text.split_once(" Left out ").unwrap();
        assert!(tables.contains(&reason), "{reason} is not in a table: {tables}");
        assert!(list.contains(&reason), "{reason} is not in {list}");
    }
}
