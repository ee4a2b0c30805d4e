//! `plimsoll gateway`: a server until it is told to stop.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{FAST, Fixture, command, rest};

/// A running gateway, killed when the test is over.
struct Gateway {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    address: String,
}

impl Gateway {
    fn start(fixture: &Fixture, args: &[&str]) -> Self {
        let args: Vec<_> = ["gateway"].iter().chain(args).copied().collect();
        let mut child = command(fixture.folder.path(), &args)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        stdout.read_line(&mut greeting).unwrap();
        let address = greeting.split_whitespace().find_map(|word| word.strip_prefix("http://"));
        Self { child, stdout, address: address.unwrap().to_owned() }
    }

    /// Status line and body.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().try_into().unwrap()), signal).unwrap();
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn it_serves_a_persona_until_a_signal() {
    let fixture = Fixture::with(FAST);
    let upstream = fixture.mock.addr().to_string();
    let args = ["--preset", "llm", "--listen", "127.0.0.1:0", "--upstream", &upstream];
    let mut gateway = Gateway::start(&fixture, &args);
    let target = format!("http://{}", gateway.address);
    let run = ["run", "minimal", "--target", &target, "--key", "any", "-q", "--stages", "2:300ms"];
    fixture.plimsoll(&run).expect(0);
    let completed = fixture.summary().accounting().completed;
    // The probe, too, went through.
    assert_eq!(fixture.mock.stats().requests, completed + 1);
    let build = gateway.get("/admin/build");
    assert!(build.contains("\"budgets\"") && build.contains("\"faults\":[]"), "{build}");
    gateway.signal(Signal::SIGTERM);
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    let mut said = String::new();
    gateway.stdout.read_to_string(&mut said).unwrap();
    assert!(said.contains(&format!("{} requests served", completed + 2)), "{said}");
}

#[test]
fn a_configuration_is_read_again_on_sighup_and_a_wrong_one_changes_nothing() {
    let fixture = Fixture::with(FAST);
    let file = fixture.folder.path().join("g.yaml");
    let write = |route: &str| {
        let text = format!(
            "listen: 127.0.0.1:0\nroutes:\n  - {{name: r, path: {route}, respond: {{body: here}}}}\n"
        );
        fs::write(&file, text).unwrap();
    };
    write("/old");
    let gateway = Gateway::start(&fixture, &["--config", "g.yaml"]);
    assert!(gateway.get("/old").contains("here"));
    write("/new");
    gateway.signal(Signal::SIGHUP);
    let there = |path: &str| gateway.get(path).starts_with("HTTP/1.1 200");
    assert!(
        (0..1_000).any(|_| {
            rest();
            there("/new")
        }),
        "it was not read again"
    );
    assert!(!there("/old"));
    fs::write(&file, "listen: nowhere\n").unwrap();
    gateway.signal(Signal::SIGHUP);
    (0..20).for_each(|_| rest());
    assert!(there("/new"), "the old configuration stays in force");
}

#[test]
fn mistakes_are_told_with_their_mend() {
    let fixture = Fixture::with(FAST);
    let taken = fixture.mock.addr().to_string();
    fs::write(fixture.folder.path().join("bad.yaml"), "name: x\nrate_limit: []\n").unwrap();
    fs::write(fixture.folder.path().join("odd.yaml"), "budgets: {}\nworkers: 0\n").unwrap();
    for (args, code, parts) in [
        (&["gateway", "--config", "absent.yaml"][..], 2, &["cannot read absent.yaml"][..]),
        (&["gateway", "--config", "bad.yaml"], 2, &["line 2", "rate_limit"]),
        (&["gateway", "--config", "odd.yaml"], 2, &["section `tenant`", "workers: at least 1"]),
        (&["gateway", "--preset", "nobody"], 2, &["baseline", "policy"]),
        (&["gateway", "--set", "rate_limits.9=1"], 2, &["rate_limits.9"]),
        (&["gateway", "--set", "cache"], 2, &["PATH=VALUE"]),
        (&["gateway", "--listen", &taken], 3, &["cannot listen on", "free port"]),
    ] {
        let ran = fixture.plimsoll(args).expect(code);
        for part in parts {
            assert!(ran.stderr.contains(part), "{args:?}: {}", ran.stderr);
        }
    }
    let printed = fixture.plimsoll(&["gateway", "--preset", "proxy", "--print"]).expect(0);
    assert!(printed.stdout.contains("name: proxy"), "{}", printed.stdout);
}
