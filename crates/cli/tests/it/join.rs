//! `plimsoll join` of real runs: with the audit rows of our gateway, and with the log of our mock.

use std::fs;
use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use crate::gateway::Gateway;
use crate::support::{Fixture, wait_until};

/// Rows of a log that are requests of the load, and not of a probe or of the test.
fn rows_of(path: &Path, ids: &[String]) -> usize {
    let text = fs::read_to_string(path).unwrap_or_default();
    let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    rows.filter(|row: &Value| ids.iter().any(|id| Some(id.as_str()) == row["request_id"].as_str()))
        .count()
}

#[test]
fn a_run_is_matched_with_the_gateways_rows_and_with_the_mocks_log() {
    let folder = tempfile::tempdir().unwrap();
    let (truth, audit) = (folder.path().join("mock.jsonl"), folder.path().join("audit.jsonl"));
    let fixture = Fixture::with(&format!(
        "{{other_models: {{ttft: 5ms}}, log: {{file: '{}'}}, log_text: true}}",
        truth.display()
    ));
    let config = format!(
        "listen: 127.0.0.1:0\nrequest_id: {{}}\naudit: {{path: '{}'}}\n\
         upstreams: {{p: {{addresses: ['{}']}}}}\n\
         routes:\n  - {{name: chat, path: /v1/chat/completions, upstream: p, llm: true}}\n",
        audit.display(),
        fixture.mock.addr()
    );
    fs::write(fixture.folder.path().join("g.yaml"), config).unwrap();
    let gateway = Gateway::start(&fixture, &["--config", "g.yaml"]);
    let target = format!("http://{}", gateway.address);
    let args = ["run", "minimal", "--target", &target, "--key", "any", "-q", "--stages", "4:400ms"];
    fixture.plimsoll(&[&args[..], &["--allow-invalid"]].concat());
    let run = fixture.only_run();
    let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
    let ids: Vec<String> = rows
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|row| row["status"] == 200)
        .map(|row| row["request_id"].as_str().unwrap().to_owned())
        .collect();
    assert!(!ids.is_empty());
    assert!(
        wait_until(|| rows_of(&audit, &ids) == ids.len() && rows_of(&truth, &ids) == ids.len()),
        "{} of {}",
        rows_of(&audit, &ids),
        ids.len()
    );
    for (log, place) in [(&audit, "gateway"), (&truth, "upstream")] {
        let args = ["join", run.to_str().unwrap(), "--log", log.to_str().unwrap(), "--json"];
        let output = fixture.plimsoll(&args).expect(0);
        assert!(output.stderr.contains("map: id=request_id"), "{}", output.stderr);
        let join: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(join["log_of"], place);
        assert_eq!(join["books"]["matched"], ids.len(), "{join}");
        for none in ["lost", "twice", "disagreeing"] {
            assert_eq!(join["books"][none], 0, "{none}: {join}");
        }
        let stored = fs::read_to_string(run.join("join.json")).unwrap();
        assert_eq!(stored, output.stdout);
    }
    // The folder of runs means its latest run, as in `report` and `why`.
    let args = ["join", "runs", "--log", audit.to_str().unwrap(), "-q"];
    let output = fixture.plimsoll(&args).expect(0);
    assert!(output.stderr.contains("the latest of 1 run"), "{}", output.stderr);
    // A row is taken away: one request is lost.
    let text = fs::read_to_string(&audit).unwrap();
    let taken = &ids[ids.len() / 2];
    let kept = text.lines().filter(|line| !line.contains(taken)).map(|line| format!("{line}\n"));
    let less = folder.path().join("less.jsonl");
    fs::write(&less, kept.collect::<String>()).unwrap();
    let join = ["join", run.to_str().unwrap(), "--log", less.to_str().unwrap(), "--wait", "0s"];
    let output = fixture.plimsoll(&join).expect(1);
    assert!(output.stdout.contains("1 lost by the log, 0 twice"), "{}", output.stdout);
    assert!(output.stdout.contains(taken), "{}", output.stdout);
    a_wrong_call_writes_nothing(&fixture, &run, &join);
    a_log_that_is_still_written_is_waited_for(&fixture, &run, &text);
}

/// The log is empty at first, and its end is written later than its beginning.
#[expect(clippy::disallowed_methods, reason = "a log that is written in parts")]
fn a_log_that_is_still_written_is_waited_for(fixture: &Fixture, run: &Path, log: &str) {
    let late = run.join("late.jsonl");
    fs::write(&late, "").unwrap();
    let half = log.len() / 2;
    let writer = {
        let (late, log) = (late.clone(), log.to_owned());
        thread::spawn(move || {
            for part in [&log[..half], &log[half..]] {
                thread::sleep(Duration::from_millis(700));
                let mut file = fs::OpenOptions::new().append(true).open(&late).unwrap();
                file.write_all(part.as_bytes()).unwrap();
            }
        })
    };
    let paths = [run, &late].map(|path| path.to_str().unwrap());
    let join = ["join", paths[0], "--log", paths[1], "--wait", "60s"];
    let output = fixture.plimsoll(&join).expect(0);
    writer.join().unwrap();
    assert_eq!(output.stderr.matches("waiting up to").count(), 1, "{}", output.stderr);
}

fn a_wrong_call_writes_nothing(fixture: &Fixture, run: &Path, join: &[&str]) {
    fs::remove_file(run.join("join.json")).unwrap();
    for (args, part) in [
        (["--map", "total=latency_us:s"], "seems to be in us"),
        (["--map", "id=nothing"], "no column `nothing`"),
        (["--id-header", "x-own"], "x-own"),
        (["--allow-lost", "2"], ""),
    ] {
        let code = if part.is_empty() { 1 } else { 2 };
        let output = fixture.plimsoll(&[join, &args].concat());
        let output = if code == 2 { output.expect(2) } else { output };
        assert!(output.stderr.contains(part), "{args:?}: {}", output.stderr);
        assert_eq!(run.join("join.json").exists(), part.is_empty(), "{args:?}");
    }
}

/// A real nginx in front of the mock: one server that forwards no id, one that replaces our id with
/// its own, and one that returns its own in another header and forwards none.
struct Nginx(Child);

impl Nginx {
    /// `None` where nginx is not installed.
    fn start(folder: &Path, mock: SocketAddr, ports: [u16; 3]) -> Option<Self> {
        let home = folder.display();
        let ways = [
            "proxy_set_header X-Request-Id '';",
            "proxy_set_header X-Request-Id $request_id; add_header X-Request-Id $request_id always;",
            "proxy_set_header X-Request-Id ''; add_header X-Call-Id $request_id always;",
        ];
        let servers: String = ports.into_iter().zip(ways).enumerate().fold(
            String::new(),
            |text, (number, (port, way))| {
                format!(
                    "{text}server {{ listen 127.0.0.1:{port}; access_log {home}/log-{number} rows; \
                     location / {{ proxy_pass http://mock; proxy_http_version 1.1; \
                     proxy_set_header Connection ''; proxy_buffering off; \
                     proxy_hide_header X-Request-Id; {way} }} }}\n"
                )
            },
        );
        let config = format!(
            "daemon off; pid {home}/pid; error_log {home}/errors crit; worker_processes 1;
             events {{ worker_connections 256; }}
             http {{
               log_format rows escape=json '{{\"msec\":\"$msec\",\"request_time\":\"$request_time\",\"upstream_response_time\":\"$upstream_response_time\",\"request_id\":\"$request_id\",\"status\":\"$status\"}}';
               client_body_temp_path {home}/b; proxy_temp_path {home}/p; fastcgi_temp_path {home}/f;
               uwsgi_temp_path {home}/u; scgi_temp_path {home}/s;
               upstream mock {{ server {mock}; keepalive 16; }}
               {servers}
             }}"
        );
        fs::write(folder.join("nginx.conf"), config).unwrap();
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder).args(["-c", "nginx.conf"]).stderr(Stdio::null());
        let nginx = Self(command.spawn().ok()?);
        assert!(wait_until(|| TcpStream::connect(("127.0.0.1", ports[0])).is_ok()));
        Some(nginx)
    }
}

/// SIGTERM, so that its worker ends, too.
impl Drop for Nginx {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0.id()).unwrap();
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn free_ports() -> [u16; 3] {
    let listeners = [(); 3].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
}

#[test]
fn ids_that_a_real_proxy_strips_or_replaces_are_matched_all_the_same() {
    let (folder, ports) = (tempfile::tempdir().unwrap(), free_ports());
    let truth = folder.path().join("mock.jsonl");
    let fixture = Fixture::with(&format!(
        "{{other_models: {{ttft: 5ms}}, log: {{file: '{}'}}, log_text: true}}",
        truth.display()
    ));
    let Some(_nginx) = Nginx::start(folder.path(), fixture.mock.addr(), ports) else { return };
    let mut joined = Vec::new();
    for (way, port) in ports.into_iter().enumerate() {
        let (target, before) = (format!("http://127.0.0.1:{port}"), fixture.runs());
        let args = ["run", "realistic", "--model", "some", "--key", "any", "-q", "--allow-invalid"];
        let record = "response_headers.record=[x-request-id,x-call-id]";
        let more = ["--target", &target, "--stages", "4:400ms", "--set", record];
        fixture.plimsoll(&[&args[..], &more].concat());
        let run = fixture.runs().into_iter().find(|run| !before.contains(run)).unwrap();
        let rows = fs::read_to_string(run.join("results.jsonl")).unwrap();
        let answered = rows.lines().filter(|row| row.contains(r#""status":200"#)).count();
        assert!(answered > 10, "{answered}");
        joined.push((way, run, answered));
    }
    let logged = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    let all: usize = joined.iter().map(|(.., answered)| answered).sum();
    assert!(wait_until(|| logged(&truth) >= all));
    for (way, run, answered) in joined {
        let log = folder.path().join(format!("log-{way}"));
        assert!(wait_until(|| logged(&log) >= answered));
        let join = |log: &Path, header: Option<&str>, code: i32| {
            let mut args =
                vec!["join", run.to_str().unwrap(), "--log", log.to_str().unwrap(), "--json"];
            args.extend(header.iter().flat_map(|header| ["--id-header", header]));
            let output = fixture.plimsoll(&args).expect(code);
            let json = serde_json::from_str::<Value>(&output.stdout).ok();
            json.map_or(Value::Null, |json| json["books"].clone())
        };
        let header = ["x-other", "X-Request-Id", "x-call-id"][way];
        // The id in the prompt reaches the mock regardless of the proxy's handling of ids.
        let mut books = vec![join(&truth, None, 0)];
        if way == 0 {
            // No header: neither log nor answer has an id that both sides know.
            join(&log, None, 2);
            join(&log, Some(header), 2);
        } else {
            books.extend([join(&log, Some(header), 0), join(&truth, Some(header), 0)]);
        }
        for books in books {
            assert_eq!(books["matched"], answered, "{way}: {books}");
            assert_eq!((&books["lost"], &books["twice"]), (&0.into(), &0.into()), "{way}: {books}");
        }
    }
}
