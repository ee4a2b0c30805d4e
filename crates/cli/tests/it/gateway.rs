//! `plimsoll gateway`: it serves until a signal stops it.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::{FAST, Fixture, command, pause, wait_until};

/// A running gateway, killed when the test is over.
pub(crate) struct Gateway {
    child: Child,
    stdout: BufReader<std::process::ChildStdout>,
    pub(crate) address: String,
}

impl Gateway {
    pub(crate) fn start(fixture: &Fixture, args: &[&str]) -> Self {
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

    /// Restricts the gateway to one CPU that this process may use.
    pub(crate) fn confine(&self) {
        let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
        let first = (0..CpuSet::count()).find(|cpu| own.is_set(*cpu).unwrap()).unwrap();
        let mut one = CpuSet::new();
        one.set(first).unwrap();
        sched_setaffinity(Pid::from_raw(self.child.id().try_into().unwrap()), &one).unwrap();
    }

    /// Status line and body.
    pub(crate) fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).unwrap();
        response
    }

    /// Ends it as a crash does.
    pub(crate) fn crash(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
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
fn it_serves_a_preset_until_a_signal_stops_it() {
    let fixture = Fixture::with(FAST);
    let upstream = fixture.mock.addr().to_string();
    let local = "admin.local=true";
    let args =
        ["--preset", "llm", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--set", local];
    let mut gateway = Gateway::start(&fixture, &args);
    let target = format!("http://{}", gateway.address);
    let run = ["run", "minimal", "--target", &target, "--key", "any", "-q", "--stages", "2:300ms"];
    fixture.run_as_its_summary_says(&run);
    let completed = fixture.summary().results.accounting().completed;
    // The probe went through the gateway, too.
    assert_eq!(fixture.mock.stats().requests, completed + 1);
    let build = gateway.get("/admin/build");
    assert!(build.contains("\"budgets\"") && build.contains("\"faults\":[]"), "{build}");
    gateway.signal(Signal::SIGTERM);
    assert_eq!(gateway.child.wait().unwrap().code(), Some(0));
    let mut output = String::new();
    gateway.stdout.read_to_string(&mut output).unwrap();
    assert!(output.contains(&format!("{} requests served", completed + 2)), "{output}");
}

#[test]
fn of_several_upstreams_the_one_that_is_named_gets_the_address() {
    let fixture = Fixture::with(FAST);
    let text = "upstreams: {a: {addresses: ['127.0.0.1:1']}, b: {addresses: ['127.0.0.1:2']}}\n\
                routes:\n  - {name: a, path: /a/*, strip: /a, upstream: a}\n  \
                - {name: b, path: /b/*, strip: /b, upstream: b}\n";
    fs::write(fixture.folder.path().join("two.yaml"), text).unwrap();
    let named = format!("b={}", fixture.mock.addr());
    let args = ["--config", "two.yaml", "--listen", "127.0.0.1:0", "--upstream", &named];
    let gateway = Gateway::start(&fixture, &args);
    assert!(gateway.get("/b/v1/models").starts_with("HTTP/1.1 200"));
    assert!(gateway.get("/a/v1/models").starts_with("HTTP/1.1 502"), "it was left as it is");
    // The upstreams of this preset are one server, which needs no name.
    let upstream = fixture.mock.addr().to_string();
    let args = ["--preset", "layers", "--listen", "127.0.0.1:0", "--upstream", &upstream];
    Gateway::start(&fixture, &args);
}

#[test]
fn sighup_reloads_the_configuration_and_an_invalid_one_changes_nothing() {
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
    assert!(wait_until(|| there("/new")), "it was not reloaded");
    assert!(!there("/old"));
    fs::write(&file, "listen: nowhere\n").unwrap();
    gateway.signal(Signal::SIGHUP);
    (0..20).for_each(|_| pause());
    assert!(there("/new"), "it did not keep the old configuration");
}

#[test]
fn wrong_usage_prints_the_cause_and_the_fix() {
    let fixture = Fixture::with(FAST);
    let used = fixture.mock.addr().to_string();
    fs::write(fixture.folder.path().join("bad.yaml"), "name: x\nrate_limit: []\n").unwrap();
    fs::write(fixture.folder.path().join("odd.yaml"), "budgets: {}\nworkers: 0\n").unwrap();
    let two = "upstreams: {a: {addresses: ['127.0.0.1:1']}, b: {addresses: ['127.0.0.1:2']}}\n";
    fs::write(fixture.folder.path().join("two.yaml"), two).unwrap();
    for (args, code, parts) in [
        (&["gateway", "--config", "absent.yaml"][..], 2, &["cannot read absent.yaml"][..]),
        (&["gateway", "--config", "bad.yaml"], 2, &["line 2", "rate_limit"]),
        (
            &["gateway", "--config", "odd.yaml"],
            2,
            &["section `tenant`", "workers: must be greater than 0"],
        ),
        (&["gateway", "--preset", "nobody"], 2, &["baseline", "policy"]),
        (&["gateway", "--set", "rate_limits.9=1"], 2, &["rate_limits.9"]),
        (&["gateway", "--set", "cache"], 2, &["PATH=VALUE"]),
        (&["gateway", "--config", "two.yaml", "--upstream", "h:1"], 2, &["a, b", "NAME=HOST:PORT"]),
        (&["gateway", "--upstream", "nobody=h:1"], 2, &["unknown upstream `nobody`", "provider"]),
        (&["gateway", "--listen", &used], 3, &["cannot listen on", "free port"]),
    ] {
        let output = fixture.plimsoll(args).expect(code);
        for part in parts {
            assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
        }
    }
    let printed = fixture.plimsoll(&["gateway", "--preset", "proxy", "--print"]).expect(0);
    assert!(printed.stdout.contains("name: proxy"), "{}", printed.stdout);
}
