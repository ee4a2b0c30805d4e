//! Ten thousand generated spellings of a protected path, with nginx as upstream: nginx's own log
//! says which path it served.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::support::{gateway, sleep_ms, until};

/// Change it to draw other spellings.
const SEED: u64 = 12;
const SPELLINGS: usize = 10_000;

/// An nginx that serves every path, and logs who asked for which.
struct Nginx {
    process: Child,
    addr: SocketAddr,
    folder: tempfile::TempDir,
}

impl Nginx {
    /// `None` where nginx is not installed.
    fn start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let home = folder.path().display();
        let config = format!(
            "daemon off; pid {home}/pid; error_log {home}/errors crit; worker_processes 1;
             events {{ worker_connections 256; }}
             http {{
               log_format paths escape=none '$http_x_who $http_x_number $uri';
               access_log {home}/paths paths;
               client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
               uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
               keepalive_requests 1000000;
               server {{ listen {addr}; location / {{ return 200 served; }} }}
             }}"
        );
        fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let spawned = Command::new("nginx")
            .arg("-p")
            .arg(folder.path())
            .args(["-c", "nginx.conf"])
            .stderr(Stdio::null())
            .spawn();
        let process = spawned.ok()?;
        let nginx = Self { process, addr, folder };
        until("nginx listens", || TcpStream::connect(addr).is_ok());
        Some(nginx)
    }

    /// Callers that were served a path below the protected prefix, by number.
    fn protected(&self, who: &str) -> Vec<usize> {
        let log = fs::read(self.folder.path().join("paths")).unwrap();
        let text = String::from_utf8_lossy(&log);
        let lines = text.lines().filter_map(|line| line.strip_prefix(who)?.strip_prefix(' '));
        let served = lines.filter_map(|line| line.split_once(' '));
        let below = served.filter(|(_, path)| is_protected(path));
        below.filter_map(|(number, _)| number.parse().ok()).collect()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = fs::read_to_string(self.folder.path().join("pid")).unwrap_or_default();
        // SIGTERM, so that the worker process ends, too.
        let stop = ["-p", &path_text(self.folder.path()), "-c", "nginx.conf", "-s", "stop"];
        if !pid.is_empty() {
            let _ = Command::new("nginx").args(stop).stderr(Stdio::null()).status();
        }
        let _ = self.process.wait();
    }
}

fn path_text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn is_protected(path: &str) -> bool {
    let rest = path.strip_prefix("/files/private");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// A client with a connection that it opens again when the server has closed it.
struct Client {
    addr: SocketAddr,
    who: &'static str,
    key: &'static str,
    connection: Option<BufReader<TcpStream>>,
}

impl Client {
    const fn new(addr: SocketAddr, who: &'static str, key: &'static str) -> Self {
        Self { addr, who, key, connection: None }
    }

    /// The status of the response; 0 if there is none.
    fn ask(&mut self, number: usize, target: &str) -> u16 {
        let (who, key) = (self.who, self.key);
        let request = format!(
            "GET {target} HTTP/1.1\r\nhost: gateway\r\napikey: {key}\r\nx-who: {who}\r\nx-number: {number}\r\n\r\n"
        );
        let mut connection = self.connection.take().unwrap_or_else(|| {
            let stream = TcpStream::connect(self.addr).unwrap();
            stream.set_nodelay(true).unwrap();
            stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            BufReader::new(stream)
        });
        if connection.get_mut().write_all(request.as_bytes()).is_err() {
            return 0;
        }
        let (mut length, mut closes, mut status) = (0, false, 0);
        loop {
            let mut line = String::new();
            if connection.read_line(&mut line).unwrap_or(0) == 0 {
                return status;
            }
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(rest) = line.strip_prefix("http/1.1 ") {
                status = rest[..3].parse().unwrap();
            }
            if let Some(rest) = line.strip_prefix("content-length: ") {
                length = rest.parse().unwrap();
            }
            closes |= line == "connection: close";
            if line.is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        let whole = connection.read_exact(&mut body).is_ok();
        self.connection = (whole && !closes).then_some(connection);
        status
    }
}

/// Spellings of a slash, suffixes and prefixes of a path.
const AROUND: [&str; 24] = [
    "//",
    "///",
    "/./",
    "/%2e/",
    "/%2E/",
    "/zz/../",
    "/zz/%2e%2e/",
    "/zz/.%2E/",
    "/..;/",
    "/;/",
    "/;a=b/",
    "%2f",
    "%2F",
    "/%2f",
    "%5c",
    "\\",
    "/.%00/",
    "%252f",
    "/%c0%ae/",
    "/zz/..%2f",
    "/zz%2f../",
    "/zz%2f%2e%2e%2f",
    "/.//",
    "%2f%2f",
];
const BEHIND: [&str; 14] =
    ["/", "//", "/.", "/y/..", "?", "?a=b", "#", "%20", "%00", ";", ";a", "%3f", "/%2e", "%0a"];
const BEFORE: [&str; 8] =
    ["/", "/.", "/zz/..", "/%2e", "/files/..", "http://gateway", "/files/public/../..", "/;"];

struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        // An xorshift generator (Marsaglia 2003), so that a seed gives the same spellings anywhere.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % count as u64).unwrap()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    /// A spelling of a path below `/files/private`.
    fn spelling(&mut self) -> String {
        let mut path =
            self.pick(&["/files/private/x", "/files/private", "/files/private/"]).to_owned();
        for _ in 0..=self.below(4) {
            self.change(&mut path);
        }
        path
    }

    fn change(&mut self, path: &mut String) {
        let letters: Vec<usize> = path
            .char_indices()
            .filter(|(_, c)| c.is_ascii_alphanumeric())
            .map(|(at, _)| at)
            .collect();
        match self.below(8) {
            0..=3 => {
                let at = letters[self.below(letters.len())];
                let byte = path.as_bytes()[at];
                let mut code = String::new();
                let start = self.pick(&["%", "%", "%", "%", "%", "%25"]);
                if self.below(2) == 0 {
                    write!(code, "{start}{byte:02x}").unwrap();
                } else {
                    write!(code, "{start}{byte:02X}").unwrap();
                }
                path.replace_range(at..=at, &code);
            }
            4 | 5 => {
                let slashes: Vec<usize> = path.match_indices('/').map(|(at, _)| at).collect();
                if !slashes.is_empty() {
                    let at = slashes[self.below(slashes.len())];
                    path.replace_range(at..=at, self.pick(&AROUND));
                }
            }
            6 => path.push_str(self.pick(&BEHIND)),
            _ => path.insert_str(0, self.pick(&BEFORE)),
        }
    }
}

#[test]
fn no_generated_spelling_of_a_protected_path_reaches_nginx() {
    let Some(nginx) = Nginx::start() else {
        eprintln!("nginx is not installed: this test did nothing");
        return;
    };
    let gateway = gateway(&format!(
        "server: {{connections: 1000}}
auth: {{header: apikey, keys: [{{name: owner, key: owner-key}}, {{name: guest, key: guest-key}}]}}
upstreams: {{u: {{addresses: ['{}']}}}}
routes:
  - {{name: private, path: /files/private/*, upstream: u, consumers: [owner]}}
  - {{name: all, path: /*, upstream: u}}",
        nginx.addr
    ));
    println!("seed {SEED}, {SPELLINGS} spellings");
    let mut draw = Draw(SEED);
    let spellings: Vec<String> = (0..SPELLINGS).map(|_| draw.spelling()).collect();
    let mut direct = Client::new(nginx.addr, "direct", "none");
    let mut guest = Client::new(gateway.addr(), "guest", "guest-key");
    let mut owner = Client::new(gateway.addr(), "owner", "owner-key");
    let (mut forbidden, mut owned, mut passed) = (0, 0, 0);
    for (number, target) in spellings.iter().enumerate() {
        direct.ask(number, target);
        let status = guest.ask(number, target);
        forbidden += usize::from(status == 403);
        passed += usize::from(status == 200);
        assert!([200, 400, 403].contains(&status), "{number}: {target} gets {status}");
        owned += usize::from(status == 403 && owner.ask(number, target) == 200);
    }
    until("nginx has written its log", || nginx.protected("owner").len() >= owned);
    sleep_ms(100);
    let bypasses = nginx.protected("guest");
    let bypassed = bypasses.first().map(|number| &spellings[*number]);
    assert!(bypasses.is_empty(), "{} bypasses, as {bypassed:?}", bypasses.len());
    // The attack is one: nginx itself takes many of these spellings for the protected path, and the
    // gateway serves those to the owner that have a normal form.
    let real = nginx.protected("direct").len();
    assert!(real > SPELLINGS / 2, "{real} of {SPELLINGS} mean the protected path to nginx");
    assert!(forbidden > SPELLINGS / 20 && owned == forbidden, "{forbidden} {owned}");
    assert_eq!(nginx.protected("owner").len(), owned, "each is served under the protected path");
    println!("{real} mean the protected path to nginx, {forbidden} are forbidden, {passed} pass");
}
