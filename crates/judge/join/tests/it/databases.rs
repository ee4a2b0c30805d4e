//! `ClickHouse` and Postgres: a scripted server in every run of the tests, the real ones in
//! `scripts/test --all`.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use plimsoll_join::Verdict;

use crate::support::{Files, audit_row, id, options, sent, source, total};

/// Answers each request with the next text, and keeps the requests.
fn scripted(answers: Vec<String>) -> (u16, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, seen) = (listener.local_addr().unwrap().port(), Arc::default());
    let kept: Arc<Mutex<Vec<String>>> = Arc::clone(&seen);
    thread::spawn(move || {
        for (stream, answer) in listener.incoming().zip(answers) {
            let mut stream = stream.unwrap();
            let mut head = [0; 8192];
            let read = stream.read(&mut head).unwrap();
            kept.lock().unwrap().push(String::from_utf8_lossy(&head[..read]).into_owned());
            stream.write_all(answer.as_bytes()).unwrap();
        }
    });
    (port, seen)
}

/// A chunked answer, cut into pieces in the middle of lines.
fn chunked(body: &str) -> String {
    let mut out = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned();
    for piece in body.as_bytes().chunks(1_000) {
        write!(out, "{:x}\r\n{}\r\n", piece.len(), std::str::from_utf8(piece).unwrap()).unwrap();
    }
    out + "0\r\n\r\n"
}

#[test]
fn clickhouse_is_asked_for_mapped_columns_of_the_time_of_the_run() {
    let columns = [
        "request_id:String",
        "timestamp:UInt64",
        "latency_us:UInt64",
        "status:UInt16",
        "request_bytes:UInt64",
        "response_bytes:UInt64",
    ];
    let columns: String = columns.iter().filter_map(|column| column.split_once(':')).fold(
        String::new(),
        |mut text, (name, kind)| {
            writeln!(text, "{{\"name\":\"{name}\",\"type\":\"{kind}\"}}").unwrap();
            text
        },
    );
    let rows: String = (0..100).map(|n| audit_row(n, 0, 64) + "\n").collect();
    let (port, seen) = scripted(vec![chunked(&columns), chunked(&rows)]);
    let files = Files::run(100);
    let url = format!("clickhouse:http://127.0.0.1:{port}/logs.audit");
    let join = files.join_with(&source(&url, "me", "geheim"), &options(&[])).unwrap();
    assert_eq!((join.books.matched, join.verdict), (100, Verdict::Agree));
    assert_eq!(join.log, format!("ClickHouse table logs.audit at 127.0.0.1:{port}"));
    let seen = seen.lock().unwrap();
    assert!(seen.iter().all(|request| request.contains("x-clickhouse-key: geheim\r\n")));
    assert!(seen.iter().all(|request| !request.lines().next().unwrap().contains("geheim")));
    let bounds = format!("%60timestamp%60%20%3e%3d%20{}", sent(0) / 1_000_000 - 300_000);
    assert!(seen[1].contains(&bounds), "{}", seen[1]);
    assert!(!seen[1].contains("request_bytes"), "{}", seen[1]);
}

#[test]
fn a_database_that_refuses_or_is_not_there_is_named() {
    let refused = "HTTP/1.1 403 Forbidden\r\ncontent-length: 22\r\n\r\nCode: 516. \x1b[31mWrong\n";
    let (port, _) = scripted(vec![refused.to_owned()]);
    let files = Files::run(5);
    let error = |port: u16| {
        let url = format!("clickhouse:http://127.0.0.1:{port}/t");
        let error = files.join_with(&source(&url, "me", "x"), &options(&[])).unwrap_err();
        assert!(error.is_usage());
        error.to_string()
    };
    let text = error(port);
    assert!(text.contains("status 403: Code: 516. \\u{1b}[31mWrong"), "{text}");
    // Nobody listens where a listener was.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = error(free);
    assert!(
        text.contains("cannot read ClickHouse table default.t") && text.contains("refused"),
        "{text}"
    );
    let (port, _) = scripted(vec![chunked("")]);
    assert!(error(port).contains("has no table default.t"));
}

/// `ClickHouse` tells a failure in the middle of an answer at its end, with status 200.
#[test]
fn an_answer_that_breaks_off_is_no_log() {
    let columns = "{\"name\":\"request_id\",\"type\":\"String\"}\n";
    let rows: Vec<_> = (0..90).map(|n| format!("{{\"request_id\":\"{}\"}}\n", id(n))).collect();
    let broken = rows.concat() + "Code: 241. DB::Exception: Memory limit (total) exceeded\n";
    let (port, _) = scripted(vec![chunked(columns), chunked(&broken)]);
    let files = Files::run(100);
    let url = format!("clickhouse:http://127.0.0.1:{port}/t");
    let error =
        files.join_with(&source(&url, "me", "x"), &options(&["id=request_id"])).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("broke off: Code: 241"), "{error}");
}

#[test]
fn a_database_that_says_nothing_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let files = Files::run(5);
    for kind in ["clickhouse:http", "postgres"] {
        let table = if kind == "postgres" { "db/t" } else { "t" };
        let log = source(&format!("{kind}://127.0.0.1:{port}/{table}"), "me", "x");
        let log = log.with_patience(Duration::from_millis(100));
        let error = files.join_with(&log, &options(&[])).unwrap_err();
        let text = error.to_string();
        let known = text.contains("said nothing for 0.1 s") || text.contains("reads no Postgres");
        assert!(error.is_usage() && known, "{text}");
    }
    drop(listener);
}

/// A server of a test, killed at its end.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[expect(clippy::disallowed_methods, reason = "a test waits for another process")]
fn wait_for(port: u16) {
    for _ in 0..300 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
    }
    panic!("no server at port {port}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The path of a program, if it is installed.
fn program(paths: &[&str]) -> Option<PathBuf> {
    paths.iter().map(PathBuf::from).find(|path| path.is_file())
}

const USERS: &str = "<yandex><profiles><default/></profiles><users><default>\
<password>geheim</password><networks><ip>127.0.0.1</ip></networks><profile>default</profile>\
<quota>default</quota></default></users><quotas><default/></quotas></yandex>";

fn clickhouse(folder: &Path, port: u16) -> Server {
    let path = program(&["/usr/sbin/clickhouse-server", "/usr/bin/clickhouse-server"]);
    let path = path.unwrap_or_else(|| panic!("install clickhouse-server"));
    let home = folder.display();
    // Another zone than UTC, which times must not depend on.
    let config = format!(
        "<yandex><logger><level>none</level><console>1</console></logger><http_port>{port}\
         </http_port><tcp_port>{}</tcp_port><listen_host>127.0.0.1</listen_host><path>{home}/</path>\
         <tmp_path>{home}/tmp/</tmp_path><mark_cache_size>100000000</mark_cache_size>\
         <users_config>{home}/users.xml</users_config><default_profile>default</default_profile>\
         <default_database>default</default_database><timezone>Asia/Tokyo</timezone></yandex>",
        free_port()
    );
    fs::write(folder.join("users.xml"), USERS).unwrap();
    fs::write(folder.join("config.xml"), config).unwrap();
    let mut command = Command::new(path);
    command.arg(format!("--config-file={home}/config.xml")).current_dir(folder);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(port);
    Server(child)
}

fn insert(port: u16, sql: &str) {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    write!(
        stream,
        "POST / HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-clickhouse-user: default\r\n\
         x-clickhouse-key: geheim\r\ncontent-length: {}\r\n\r\n{sql}",
        sql.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
#[ignore = "needs clickhouse-server"]
fn a_real_clickhouse_is_read() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let _server = clickhouse(folder.path(), port);
    insert(
        port,
        "CREATE TABLE default.audit (`the id` String, at DateTime, stamp UInt64, took UInt64, \
         status UInt16) ENGINE = Log",
    );
    let rows: Vec<String> = (0..1_000)
        .filter(|n| n % 100 != 7)
        .map(|n| {
            let (seconds, stamp) = (sent(n) / 1_000_000_000, sent(n) / 1_000_000);
            format!("('{}', toDateTime({seconds}), {stamp}, {}, 200)", id(n), total(n) / 1_000)
        })
        .collect();
    insert(port, &format!("INSERT INTO default.audit VALUES {}", rows.join(", ")));
    // A row of another day.
    insert(port, "INSERT INTO default.audit VALUES ('old', toDateTime(1000000000), 1, 1, 200)");
    let files = Files::run(1_000);
    let url = format!("clickhouse:http://127.0.0.1:{port}/audit");
    let log = source(&url, "default", "geheim");
    for at in ["at=at:iso", "at=stamp:ms"] {
        let map = ["id=the id", at, "total=took:us", "status=status"];
        let join = files.join_with(&log, &options(&map)).unwrap();
        let books = &join.books;
        assert_eq!((books.in_log, books.matched, books.lost), (990, 990, 10), "{at}");
        let clock = join.clock.unwrap();
        assert!(clock.offset_low_ms <= 0.0 && 0.0 <= clock.offset_high_ms, "{at}: {clock:?}");
    }
    let wrong = source(&url, "default", "falsch");
    let error = files.join_with(&wrong, &options(&["id=the id"])).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("status "), "{error}");
}

#[cfg(feature = "postgres")]
fn postgres(folder: &Path, port: u16) -> Server {
    let programs =
        fs::read_dir("/usr/lib/postgresql").map(|found| found.flatten().collect::<Vec<_>>());
    let programs = programs.unwrap_or_default();
    let home = programs.first().unwrap_or_else(|| panic!("install postgresql")).path().join("bin");
    let data = folder.join("data");
    fs::write(folder.join("password"), "geheim\n").unwrap();
    // The server refuses to run as root: then as its own user, to whom the folder must belong.
    let root = nix_is_root();
    if root {
        run(Command::new("chown").args(["-R", "postgres"]).arg(folder));
    }
    let mut init = as_user(root, &home.join("initdb"));
    init.arg("-D").arg(&data).args(["-U", "me", "-A", "scram-sha-256"]);
    run(init.arg(format!("--pwfile={}", folder.join("password").display())));
    let mut command = as_user(root, &home.join("postgres"));
    command.arg("-D").arg(&data).args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    command.arg("-k").arg(folder);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    wait_for(port);
    Server(child)
}

#[cfg(feature = "postgres")]
fn nix_is_root() -> bool {
    let id = Command::new("id").arg("-u").output().unwrap();
    id.stdout.trim_ascii() == b"0"
}

#[cfg(feature = "postgres")]
fn as_user(root: bool, program: &Path) -> Command {
    if !root {
        return Command::new(program);
    }
    // It becomes the program, so that the child can be ended.
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]).arg(program);
    command
}

#[cfg(feature = "postgres")]
fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(feature = "postgres")]
#[test]
#[ignore = "needs postgresql"]
fn a_real_postgres_is_read() {
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let _server = postgres(folder.path(), port);
    let seconds = |n: i64| {
        let micros = sent(n) / 1_000;
        format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
    };
    let rows: Vec<String> = (0..1_000)
        .filter(|n| n % 100 != 7)
        .map(|n| {
            let (at, took) = (seconds(n), total(n) as f64 / 1e9);
            format!("('{}', to_timestamp({at}), to_timestamp({at}) at time zone 'UTC', {took}, 200, true)", id(n))
        })
        .collect();
    let sql = format!(
        "CREATE TABLE \"Spend\" (\"the id\" text, zoned timestamptz, plain timestamp, took double \
         precision, status int, stream boolean); INSERT INTO \"Spend\" VALUES {}, \
         ('old', to_timestamp(1000000000), to_timestamp(1000000000), 1, 200, true);",
        rows.join(", ")
    );
    fs::write(folder.path().join("rows.sql"), sql).unwrap();
    let mut psql = Command::new("psql");
    psql.env("PGPASSWORD", "geheim").args(["-h", "127.0.0.1", "-p", &port.to_string()]);
    let mut load = || {
        let made = psql
            .args(["-U", "me", "-d", "postgres", "-q", "-f"])
            .arg(folder.path().join("rows.sql"));
        made.output().unwrap()
    };
    let made = load();
    assert!(
        made.status.success() && made.stderr.is_empty(),
        "{}",
        String::from_utf8_lossy(&made.stderr)
    );
    let files = Files::run(1_000);
    let url = format!("postgres://127.0.0.1:{port}/postgres/Spend");
    let log = source(&url, "me", "geheim");
    for at in ["at=zoned:iso", "at=plain:iso"] {
        let map = ["id=the id", at, "total=took:s", "status=status", "stream=stream"];
        let join = files.join_with(&log, &options(&map)).unwrap();
        let books = &join.books;
        assert_eq!((books.in_log, books.matched, books.lost), (990, 990, 10), "{at}");
        assert_eq!(books.disagreeing, 0);
        let clock = join.clock.unwrap();
        assert!(clock.offset_low_ms <= 0.0 && 0.0 <= clock.offset_high_ms, "{at}: {clock:?}");
    }
    let wrong = source(&url, "me", "falsch");
    let error = files.join_with(&wrong, &options(&["id=the id"])).unwrap_err();
    assert!(error.is_usage() && error.to_string().contains("password"), "{error}");
    let absent = source(&format!("postgres://127.0.0.1:{port}/postgres/nothing"), "me", "geheim");
    let error = files.join_with(&absent, &options(&[])).unwrap_err().to_string();
    assert!(error.contains("has no table public.nothing"), "{error}");
}
