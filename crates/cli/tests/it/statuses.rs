//! `plimsoll http` against every status: measured, or a sentence that says why not.

use plimsoll_metrics::Metric;

use crate::plain_server::PlainServer;
use crate::support::{FAST, Fixture, ProcessOutput, summary};

const LOAD: [&str; 8] = ["-c", "1", "-n", "8", "-q", "--allow-invalid", "--out", "runs"];

fn http(fixture: &Fixture, url: &str, flags: &[&str]) -> ProcessOutput {
    fixture.plimsoll(&[&["http", url], flags, &LOAD].concat())
}

#[test]
fn an_expected_status_is_measured_whatever_it_is() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    for (status, expect) in [
        ("304", None),
        ("204", None),
        ("304", Some("200,304,404")),
        ("404", Some("200,304,404")),
        ("500", Some("5xx")),
        ("302", Some("302")),
        ("600", Some("any")),
        ("799", Some("700-799")),
    ] {
        let url = server.url(&format!("/{status}/to/!200"));
        let flags = expect.map_or_else(Vec::new, |expect| vec!["--expect", expect]);
        http(&fixture, &url, &flags).expect(0);
        let run = fixture.runs().pop().unwrap();
        let total = summary(&run).results.total;
        assert_eq!(total.counters.completed, 8, "{status} {expect:?}");
        assert_eq!(total.statuses.get(&status.parse().unwrap()), Some(&8));
        assert_eq!(total.distribution(Metric::ServiceTime).unwrap().count, 8);
        std::fs::remove_dir_all(run).unwrap();
        // One probe, and no request to the place of the redirect.
        assert_eq!(server.take_log().len(), 9);
    }
}

#[test]
fn an_unexpected_status_is_a_sentence_with_the_url_the_answer_and_a_flag_that_exists() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    for (path, flags, parts) in [
        ("/404/x", &[][..], &["GET ", "/404/x", "404", "this is 404", "--expect 404"][..]),
        ("/600/x", &[], &["/600/x", "600", "this is 600", "--expect 600"]),
        ("/500/x", &[], &["/500/x", "500", "this is 500", "--expect 500"]),
        ("/302/to/!200", &[], &["/302/to", "redirects to /200", "--redirects 5", "--expect 302"]),
        ("/308/to/!200", &[], &["redirects to /200", "--redirects 5"]),
        ("/200/x", &["--expect", "404"], &["unexpected status", "200", "--expect 200"]),
    ] {
        let output = http(&fixture, &server.url(path), flags).expect(1);
        let shown = [output.stdout.as_str(), output.stderr.as_str()].join(" ");
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in parts {
            assert!(shown.contains(part), "{path}: {part}: {shown}");
        }
        for absent in ["--protocol", "--model", "--key", "--target"] {
            assert!(!shown.contains(absent), "{path}: {absent}: {shown}");
        }
    }
    let output = fixture.plimsoll(&["http", "127.0.0.1:1", "--expect", "ok"]).expect(2);
    assert!(output.stderr.contains("`200,304,404`"), "{}", output.stderr);
}

#[test]
fn redirects_are_followed_as_far_as_asked_and_credentials_stay_at_home() {
    let fixture = Fixture::with(FAST);
    let (server, other) = (PlainServer::spawn(), PlainServer::spawn());
    let away = other.url("/200/end").replace('/', "!");
    let url = server.url(&format!("/307/to/{away}"));
    let flags =
        ["--redirects", "3", "-m", "POST", "-b", "ping", "-H", "authorization: Bearer abcd"];
    http(&fixture, &url, &flags).expect(0);
    let total = fixture.summary().results.total;
    assert_eq!(total.counters.completed, 8);
    assert_eq!(total.statuses.keys().collect::<Vec<_>>(), [&200]);
    let notes = fixture.summary().metadata.notes;
    let followed = format!("8 redirects followed, the first to {}", other.url("/200/end"));
    assert!(notes.contains(&followed), "{notes:?}");
    let (first, second) = (server.take_log(), other.take_log());
    assert_eq!((first.len(), second.len()), (9, 9));
    for (here, there) in first.iter().zip(&second) {
        assert_eq!(there.line, "POST /200/end");
        assert_eq!((here.body.as_slice(), there.body.as_slice()), (&b"ping"[..], &b"ping"[..]));
        assert_eq!(here.header("authorization"), Some("Bearer abcd"));
        assert_eq!(there.header("authorization"), None);
        assert_eq!(there.header("host"), Some(&*other.addr.to_string()));
    }
}

#[test]
fn a_form_that_is_redirected_becomes_a_get_and_endless_redirects_end() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    let flags = ["--redirects", "2", "-b", "{\"a\": 1}"];
    http(&fixture, &server.url("/303/to/!200!end"), &flags).expect(0);
    let log = server.take_log();
    let (form, page) = (&log[0], &log[1]);
    assert_eq!((form.line.as_str(), page.line.as_str()), ("POST /303/to/!200!end", "GET /200/end"));
    assert_eq!((page.body.as_slice(), page.header("content-type")), (&b""[..], None));
    let endless = server.url("/302/to/");
    let output = http(&fixture, &endless, &["--redirects", "2"]).expect(1);
    assert!(output.stderr.contains("after 2 redirects that were followed"), "{}", output.stderr);
    assert!(output.stderr.contains("is it a redirect loop?"), "{}", output.stderr);
    assert!(!output.stderr.contains("--redirects"), "it was given: {}", output.stderr);
    assert_eq!(server.take_log().len(), 3, "the probe and its two redirects");
}
