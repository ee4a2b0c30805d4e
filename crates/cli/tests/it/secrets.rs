//! No file and no message contains credentials.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

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

/// The parser of the command line quotes rejected values, and so do the readers of URLs.
#[test]
fn values_that_are_refused_are_not_quoted() {
    let fixture = Fixture::with(FAST);
    let run = ["run", "minimal", "--target", "http://127.0.0.1:1"];
    for flag in [
        format!("--watch=gw=http://me:{KEY}@h:1/metrics"),
        format!("--watch=gw=http://{KEY}@h:1/metrics"),
        format!("--watch=gw=http://me:a/{KEY}@h:1/metrics"),
        format!("--watch=gw=http://h:x/metrics?token={KEY}"),
        format!("--push-metrics=http://me:{KEY}@:1"),
        format!("--push-metrics=http://h/?key={KEY}"),
        format!("--push-metrics=ftp://me:{KEY}@h"),
        format!("--header={KEY}"),
        format!("-H{KEY}"),
        format!("--target=http://me:{KEY}@h"),
        format!("--set=targets.0.url=http://me:{KEY}@h"),
    ] {
        let output = fixture.plimsoll(&[&run[..], &[&flag]].concat()).expect(2);
        assert_no_credentials(&output, fixture.folder.path());
        assert!(!output.stderr.is_empty(), "{flag}");
    }
    for args in [
        &["join", "runs", "--log", &format!("postgres://me:{KEY}@h/db/t")][..],
        &["join", "runs", "--log", &format!("clickhouse:http://me:{KEY}@h:1/t")],
        &["join", "runs", "--log", &format!("clickhouse:http://h:1/t?password={KEY}")],
        &["http", "http://127.0.0.1:1", "-a", &format!("{KEY}\n")],
        &["knee", "--direct", &format!("http://127.0.0.1:1,key={KEY}")],
    ] {
        let output = fixture.plimsoll(args);
        assert!(matches!(output.code, Some(1..=3)), "{args:?}: {}", output.stderr);
        assert_no_credentials(&output, fixture.folder.path());
    }
}

/// Query parameters and headers are secret by their place, whatever they are called.
#[test]
fn queries_and_headers_with_harmless_names_are_not_shown() {
    let fixture = Fixture::with(FAST);
    for (target, code) in [(fixture.target(), 1), ("http://127.0.0.1:1".to_owned(), 1)] {
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

/// A target that refuses every key and quotes it in its error message, spelled in its own way.
fn quoting_target(spell: fn(&str) -> String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || refuse(stream.unwrap(), spell));
        }
    });
    format!("http://{address}")
}

fn refuse(stream: TcpStream, spell: fn(&str) -> String) {
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
    let quoted = spell(&authorization);
    let body = format!(r#"{{"error":{{"message":"Incorrect key: {quoted}","type":"auth"}}}}"#);
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
    let target = quoting_target(str::to_owned);
    let args =
        ["run", "minimal", "--target", &target, "--key", KEY, "--quiet", "--stages", "1:300ms"];
    let probed = fixture.plimsoll(&args).expect(1);
    assert!(
        probed.stderr.contains("401") && probed.stderr.contains("<redacted>"),
        "{}",
        probed.stderr
    );
    assert_no_credentials(&probed, fixture.folder.path());
    let loaded = fixture.plimsoll(&[&args[..], &["--no-probe"]].concat()).expect(1);
    assert!(loaded.stdout.contains("Incorrect key"), "{}", loaded.stdout);
    assert_no_credentials(&loaded, fixture.folder.path());
}

/// The last word of a header, as servers quote it: for a URL, in base64, in capitals, in part, and
/// as PHP writes JSON.
fn in_every_spelling(authorization: &str) -> String {
    let key = authorization.split_whitespace().next_back().unwrap_or_default();
    let percent: String = key
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(byte).to_string(),
            byte => format!("%{byte:02X}"),
        })
        .collect();
    let base64 = STANDARD.encode(key);
    let (upper, part, escaped) = (key.to_uppercase(), key.get(..12), key.replace('/', "\\/"));
    let hex = key.bytes().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
    format!("{percent} {base64} {upper} {}... {escaped} {hex}", part.unwrap_or_default())
}

#[test]
fn a_key_that_a_target_quotes_in_another_spelling_is_not_shown() {
    let fixture = Fixture::with(FAST);
    let target = quoting_target(in_every_spelling);
    let key = "sk/Ab+cd12=zz/9Q";
    let args = ["run", "minimal", "--target", &target, "--key", key, "--stages", "1:300ms"];
    for (more, code) in [(&[][..], 1), (&["--no-probe"][..], 1)] {
        let output = fixture.plimsoll(&[&args[..], more].concat()).expect(code);
        let files = files(&fixture.folder.path().join("runs"));
        let files = files.iter().map(|file| fs::read(file).unwrap());
        let texts: Vec<_> = [output.stdout.into_bytes(), output.stderr.into_bytes()]
            .into_iter()
            .chain(files)
            .map(|text| String::from_utf8_lossy(&text).into_owned())
            .collect();
        assert!(texts.iter().any(|text| text.contains("Incorrect key: <redacted>")), "{texts:?}");
        for part in ["Ab+cd12", "Ab%2Bcd12", "AB+CD12", "c2svQWIrY2Qx", "736b2f4162"] {
            let shown = texts.iter().find(|text| text.contains(part));
            assert!(shown.is_none(), "{part} in {shown:?}");
        }
    }
}
