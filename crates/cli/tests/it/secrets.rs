//! No file and no message contains credentials.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use crate::support::{FAST, Fixture, ProcessOutput};

const KEY: &str = "sk-verysecretkey";
const COOKIE: &str = "session=verysecretcookie";

fn assert_no_credentials(output: &ProcessOutput, folder: &Path) {
    let assert_without_secrets = |text: &str, origin: &str| {
        for secret in [KEY, "verysecretcookie"] {
            assert!(!text.contains(secret), "{secret} in {origin}:\n{text}");
        }
    };
    assert_without_secrets(&output.stdout, "stdout");
    assert_without_secrets(&output.stderr, "stderr");
    for file in files(&folder.join("runs")) {
        let text = fs::read(&file).unwrap();
        assert_without_secrets(&String::from_utf8_lossy(&text), &file.display().to_string());
    }
}

/// Every file in a folder and below it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn no_file_of_a_run_contains_a_credential() {
    let fixture = Fixture::with(FAST);
    let target = fixture.target();
    let output = fixture.plimsoll(&[
        "run",
        "minimal",
        "--target",
        &target,
        "--key",
        KEY,
        "--header",
        &format!("Cookie: {COOKIE}"),
        "--stages",
        "2:300ms",
        "--allow-invalid",
    ]);
    assert_no_credentials(&output.expect(0), fixture.folder.path());
    assert_eq!(fixture.runs().len(), 1);
}

#[test]
fn shown_plans_and_error_messages_contain_no_credentials() {
    let fixture = Fixture::with(FAST);
    let shown = fixture.plimsoll(&["profile", "show", "minimal", "--key", KEY]).expect(0);
    assert!(shown.stdout.contains("<redacted>"), "{}", shown.stdout);
    assert_no_credentials(&shown, fixture.folder.path());
    let refused =
        fixture.plimsoll(&["run", "minimal", "--key", &format!("{KEY}\n"), "--header", COOKIE]);
    assert_no_credentials(&refused.expect(2), fixture.folder.path());
    let url = format!("http://me:{KEY}@127.0.0.1:1/");
    assert_no_credentials(&fixture.plimsoll(&["http", &url]).expect(2), fixture.folder.path());
}

/// Query parameters and headers are secret by their place, whatever they are called.
#[test]
fn queries_and_headers_with_harmless_names_are_not_shown() {
    let fixture = Fixture::with(FAST);
    for (target, code) in [(fixture.target(), 3), ("http://127.0.0.1:1".to_owned(), 3)] {
        let url = format!("{target}/absent?sig={KEY}&api-version=2024-06-01");
        let header = format!("x-harmless: {KEY}");
        let args =
            ["http", &url, "-H", &header, "-H", "x-monkey: absent", "-d", "300ms", "-c", "1"];
        let out = ["--out", "runs", "-q"];
        let output = fixture.plimsoll(&[&args[..], &out].concat()).expect(code);
        assert_no_credentials(&output, fixture.folder.path());
    }
    let plan =
        fixture.runs().into_iter().map(|run| fs::read_to_string(run.join("plan.json")).unwrap());
    let plan: Vec<_> = plan.collect();
    assert!(!plan.is_empty());
    for plan in plan {
        assert!(plan.contains("/absent?sig=<redacted>&api-version=2024-06-01"), "{plan}");
    }
}

/// Several targets are shown side by side, and the report of a suite names its own.
#[test]
fn queries_of_targets_are_not_shown_beside_figures() {
    let fixture = Fixture::with(FAST);
    let url = |path: &str| format!("{}{path}?api-version={KEY}&key={KEY}", fixture.target());
    let (a, b) = (url("/health"), url("/v1/models"));
    let args = ["http", &a, &b, "-d", "300ms", "-c", "1", "--allow-invalid"];
    let output = fixture.plimsoll(&args);
    assert!(output.stdout.contains("/health?api-version=<redacted>&key=<redacted>"));
    assert_no_credentials(&output, fixture.folder.path());
    let args = ["suite", "quick", "--full", "--short", "--target", &url(""), "--duration", "200ms"];
    let output = fixture.plimsoll(&[&args[..], &["--out", "runs"]].concat());
    assert!(output.stdout.contains("?api-version=<redacted>&key=<redacted>"), "{}", output.stdout);
    assert_no_credentials(&output, fixture.folder.path());
}

/// A target that refuses every key and quotes it in its error message.
fn quoting_target() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || refuse(stream.unwrap()));
        }
    });
    format!("http://{address}")
}

fn refuse(stream: TcpStream) {
    let (mut reader, mut writer) = (BufReader::new(stream.try_clone().unwrap()), stream);
    let mut authorization = String::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line == "\r\n" {
            break;
        }
        if line.to_lowercase().starts_with("authorization:") {
            line.trim().clone_into(&mut authorization);
        }
    }
    let body =
        format!(r#"{{"error":{{"message":"Incorrect key: {authorization}","type":"auth"}}}}"#);
    let head = format!(
        "HTTP/1.1 401 Unauthorized\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    // The client may have gone away: it is interrupted or has read enough.
    let _ = writer.write_all(head.as_bytes()).and_then(|()| writer.write_all(body.as_bytes()));
}

#[test]
fn error_messages_of_a_target_are_shown_without_the_key() {
    let fixture = Fixture::with(FAST);
    let target = quoting_target();
    let args =
        ["run", "minimal", "--target", &target, "--key", KEY, "--quiet", "--stages", "1:300ms"];
    let probed = fixture.plimsoll(&args).expect(3);
    assert!(
        probed.stderr.contains("401") && probed.stderr.contains("<redacted>"),
        "{}",
        probed.stderr
    );
    assert_no_credentials(&probed, fixture.folder.path());
    let loaded = fixture.plimsoll(&[&args[..], &["--no-probe"]].concat()).expect(3);
    assert!(loaded.stdout.contains("Incorrect key"), "{}", loaded.stdout);
    assert_no_credentials(&loaded, fixture.folder.path());
}
