//! Tests which requests count as lost, duplicated or foreign.

use std::fs;

use plimsoll_join::{LogOf, MapChoice, Options, RunChoice, Verdict};

use crate::support::{Files, audit_row, id, ms, options, run_row, sent, service, total};

/// Requests of the run without an answer, rejected ones, and those never sent are not lost.
#[test]
fn only_answered_requests_can_be_lost() {
    let answerless = |outcome: &str, rest: &str| format!(r#""outcome":"{outcome}"{rest}"#);
    let plain = r#""status":200,"outcome":"completed""#;
    let mut rows: Vec<_> = (0..100).map(run_row).collect();
    rows[10] = rows[10].replace(plain, &answerless("in_flight", ""));
    rows[11] = rows[11].replace(plain, &answerless("never_sent", ""));
    rows[12] = rows[12].replace(plain, &answerless("timed_out", ""));
    rows[13] = rows[13].replace(plain, &answerless("failed", r#","error":"connect_refused""#));
    let files = Files::of(rows);
    files.lines("log", (0..100).filter(|n| !(10..15).contains(n)).map(|n| audit_row(n, 0, 64)));
    let books = files.join("log", &[]).unwrap().books;
    assert_eq!((books.lost, books.in_flight, books.unanswered), (1, 1, 2), "{books:?}");
    files.lines("log", (0..100).map(|n| audit_row(n, 0, 64)));
    let join = files.join("log", &[]).unwrap();
    assert_eq!((join.books.never_sent_in_log, join.verdict), (1, Verdict::Disagree));
}

#[test]
fn what_the_target_answered_by_itself_is_not_lost_behind_it() {
    let mut rows: Vec<_> = (0..100).map(run_row).collect();
    let hit = r#""cache":"hit","bytes_out""#;
    rows[3] = rows[3].replace(r#""bytes_out""#, hit);
    rows[4] = rows[4].replace(r#""policy_decision":"allow""#, r#""policy_decision":"block""#);
    let files = Files::of(rows);
    files.lines("log", (0..100).filter(|n| !(3..6).contains(n)).map(|n| audit_row(n, 0, 64)));
    let map = MapChoice { log_of: Some(LogOf::Upstream), ..MapChoice::default() };
    let options = Options { map, ..Options::default() };
    let books = files.join_with(&files.path("log"), &options).unwrap().books;
    assert_eq!((books.lost, books.kept, books.matched), (1, 2, 97));
    assert_eq!(files.join("log", &[]).unwrap().books.lost, 3);
}

#[test]
fn attempts_and_repeated_requests_are_retries() {
    let mut rows: Vec<_> = (0..50).map(run_row).collect();
    rows[8] = rows[8].replace(r#""bytes_out""#, r#""retried_after_ms":3.5,"bytes_out""#);
    let files = Files::of(rows);
    let row = |n: i64, attempt: u32, status: u32| {
        format!(r#"{{"rid":"{}","try":{attempt},"code":{status}}}"#, id(n))
    };
    let mut log: Vec<_> = (0..50).map(|n| row(n, 1, 200)).collect();
    log[7] = row(7, 1, 503);
    log.extend([row(7, 2, 200), row(8, 1, 200), row(9, 1, 200)]);
    files.lines("log", log);
    let join = files.join("log", &["id=rid", "attempt=try", "status=code"]).unwrap();
    let books = &join.books;
    assert_eq!((books.retried, books.twice, books.rows_twice), (2, 1, 3), "{books:?}");
    assert_eq!(join.examples.twice, [id(9)]);
    // The first attempt failed at the gateway's upstream; the client received the last one.
    assert!(
        join.disagreements.iter().all(|found| found.field != "status") || books.disagreeing == 1
    );
}

#[test]
fn every_row_of_a_request_is_counted() {
    let files = Files::run(30);
    let again = std::iter::repeat_n(audit_row(3, 0, 64), 1_000);
    files.lines("log", (0..30).map(|n| audit_row(n, 0, 64)).chain(again));
    let books = files.join("log", &[]).unwrap().books;
    assert_eq!((books.in_log, books.matched, books.twice, books.rows_twice), (1_030, 30, 1, 1_000));
}

#[test]
fn a_log_of_half_the_run_is_not_judged() {
    let files = Files::run(400);
    files.lines("log", (200..400).map(|n| audit_row(n, 0, 64)));
    let join = files.join("log", &[]).unwrap();
    let Verdict::Unjudged(why) = &join.verdict else { panic!("{:?}", join.verdict) };
    assert!(why.starts_with("200 of 200 missing requests"), "{why}");
    // The first request of a short run is lost; one is too few to conclude that the log begins
    // later.
    let short = Files::run(40);
    short.lines("log", (1..40).map(|n| audit_row(n, 0, 64)));
    let join = short.join("log", &[]).unwrap();
    assert_eq!((join.books.lost, join.verdict), (1, Verdict::Disagree));
    // The same number of requests, spread over the run, are lost.
    files.lines("log", (0..400).filter(|n| n % 2 == 0).map(|n| audit_row(n, 0, 64)));
    let join = files.join("log", &[]).unwrap();
    assert_eq!((join.books.lost, join.verdict), (200, Verdict::Disagree));
}

#[test]
fn of_several_targets_one_must_be_named() {
    let target = |name: &str, n| {
        run_row(n).replace(r#""target":"default""#, &format!(r#""target":"{name}""#))
    };
    let files = Files::of((0..100).map(|n| target(if n % 2 == 0 { "a" } else { "b" }, n)));
    files.lines("log", (0..100).filter(|n| n % 2 == 0).map(|n| audit_row(n, 0, 64)));
    assert!(
        files.usage("log", &[]).contains("the targets a, b: choose the log's target with --target")
    );
    let of = |name: &str| {
        let run = RunChoice { target: Some(name.to_owned()), ..RunChoice::default() };
        files.join_with(&files.path("log"), &Options { run, ..options(&[]) })
    };
    let books = of("a").unwrap().books;
    assert_eq!((books.in_run, books.matched, books.lost), (50, 50, 0));
    assert!(of("c").unwrap_err().to_string().contains("no target `c`"));
}

#[test]
fn gateways_with_ids_of_their_own_are_matched_by_a_recorded_header() {
    let header = |n: i64| format!(r#""response_headers":{{"x-call-id":"call-{n}"}},"bytes_out""#);
    let files = Files::of((0..60).map(|n| run_row(n).replace(r#""bytes_out""#, &header(n))));
    files.lines("log", (0..60).map(|n| format!(r#"{{"call":"call-{n}"}}"#)));
    let by = |name: &str| {
        let run = RunChoice { id_header: Some(name.to_owned()), ..RunChoice::default() };
        files.join_with(&files.path("log"), &Options { run, ..options(&["id=call"]) })
    };
    assert_eq!(by("X-Call-Id").unwrap().books.matched, 60);
    let error = by("x-other").unwrap_err().to_string();
    assert!(error.contains("recorded: x-call-id"), "{error}");
    assert!(files.usage("log", &["id=call"]).contains("--id-header"));
}

#[test]
fn answers_without_an_id_of_their_own_are_never_called_lost() {
    let header =
        |call: i64| format!(r#""response_headers":{{"x-call-id":"call-{call}"}},"bytes_out""#);
    let by_header = RunChoice { id_header: Some("x-call-id".to_owned()), ..RunChoice::default() };
    let options = || Options { run: by_header.clone(), ..options(&["id=call"]) };
    // One in 200 responses comes from a cache, with the headers of the first one; the last ones
    // lack the header.
    let run = |without: i64| {
        Files::of((0..1_000).map(|n: i64| match n {
            _ if n >= 1_000 - without => run_row(n),
            _ if n % 200 == 199 => run_row(n).replace(r#""bytes_out""#, &header(0)),
            _ => run_row(n).replace(r#""bytes_out""#, &header(n)),
        }))
    };
    let log = |n: i64| format!(r#"{{"call":"call-{n}"}}"#);
    let files = run(2);
    files.lines("log", (0..1_000).filter(|n| *n != 500).map(log));
    let source = files.path("log");
    let join = files.join_with(&source, &options()).unwrap();
    let books = &join.books;
    // Request 999 has no header, so 4 of the 5 are from the cache.
    assert_eq!((books.lost, books.unnamed, books.foreign), (1, 6, 6), "{books:?}");
    assert!(
        join.notes.iter().any(|note| note.starts_with("4 responses repeat the id")),
        "{join:?}"
    );
    let files = run(100);
    files.lines("log", (0..1_000).map(log));
    let join = files.join_with(&files.path("log"), &options()).unwrap();
    assert!(matches!(&join.verdict, Verdict::Unjudged(why) if why.contains("no id header")));
    // A header with the same value everywhere is not an id.
    let files = Files::of((0..100).map(|n| run_row(n).replace(r#""bytes_out""#, &header(n / 2))));
    files.lines("log", (0..100).map(log));
    let error = files.join_with(&files.path("log"), &options()).unwrap_err();
    assert!(error.to_string().contains("50 of 100 responses repeat an earlier value"), "{error}");
}

/// The words that stand for the bytes 0 to 79.
const FIRST_WORDS: &str = "\
    the and for are but not you all any can had her was one our out day get has him his how man \
    new now old see two way who boy did its let put say she too use act add age ago aid aim air \
    art ask bad bag bar bed big bit box bus buy car cat cup cut dog dry due ear eat egg end eye \
    far few fit fix fly fun gas got guy hat hit";

/// The mock's log behind a gateway that does not forward ids: the prompt identifies the
/// conversation, and the number of messages its turn.
#[test]
fn the_mocks_log_is_matched_by_prompts() {
    let conversation = |n: i64| id(n / 2 * 2).strip_suffix("-0").unwrap().to_owned();
    // The marker has the first five bytes of the id, each as a word of the vocabulary.
    let words: Vec<&str> = FIRST_WORDS.split_whitespace().collect();
    let marker =
        |n: i64| format!("the the the {} the --- ", words[usize::try_from(n / 2 * 2).unwrap()]);
    let own = |n: i64| format!("{}-{}", conversation(n), n % 2);
    let files = Files::of((0..80).map(|n| run_row(n).replace(&id(n), &own(n))));
    files.lines("mock.jsonl", (0..80).filter(|n| *n != 33).map(|n: i64| {
        let (arrived, messages) = (sent(n) + 200_000, n % 2 * 2 + 1);
        format!(
            r#"{{"sequence":{n},"request_id":null,"stream":true,"messages":{messages},"prompt_tokens":128,"prompt_hash":17446744073709551615,"prompt_head":"{}some words","arrived":{arrived},"body_complete":{arrived},"status":200,"planned_tokens":64,"finished":{}}}"#,
            marker(n),
            arrived + total(n)
        )
    }));
    let join = files.join("mock.jsonl", &[]).unwrap();
    assert_eq!((join.books.matched, join.books.lost, join.books.disagreeing), (79, 1, 0));
    assert_eq!((join.log_of, &join.examples.lost), (LogOf::Upstream, &vec![own(33)]));
    assert!(join.times[0].upstream.is_some() && join.times[0].gateway.is_none());
    let stage = &join.stages[0];
    assert_eq!((stage.completed, stage.matched, stage.gateway_ms), (80, 79, None));
    assert!((stage.outside_ms + stage.upstream_ms - stage.client_ms).abs() < 1e-9, "{stage:?}");
    assert_eq!(ms(total(0)).len(), 9);
}

/// A mean of parts needs every part, so warm-ups, failures and rows without an upstream time are
/// excluded.
#[test]
fn means_of_a_stage_are_of_completed_requests_with_every_part() {
    let mut rows: Vec<_> = (0..100).map(run_row).collect();
    rows[0] =
        rows[0].replace("@100:10s", "w@9:1s").replace(r#""warmup":false"#, r#""warmup":true"#);
    let failed = r#""status":500,"outcome":"failed","error":"server_error""#;
    rows[1] = rows[1].replace(r#""status":200,"outcome":"completed""#, failed);
    let files = Files::of(rows);
    let log = |n: i64| match n {
        1 => audit_row(n, 0, 64).replace(r#""status":200"#, r#""status":500"#),
        2 => audit_row(n, 0, 64).replace(r#""upstream_us""#, r#""other_us""#),
        _ => audit_row(n, 0, 64),
    };
    files.lines("log", (0..100).map(log));
    fs::write(files.path("plan.json"), r#"{"metadata":{"run":{"run_id":"abc"}}}"#).unwrap();
    let join = files.join("log", &[]).unwrap();
    assert_eq!(join.run_id.as_deref(), Some("abc"));
    let [stage] = join.stages.as_slice() else { panic!("{:?}", join.stages) };
    assert_eq!((stage.completed, stage.matched), (98, 97));
    let mean = (3..100).map(service).sum::<i64>() as f64 / 97.0 / 1e6;
    assert!((stage.client_ms - mean).abs() < 1e-6, "{stage:?} {mean}");
    // Without a column of upstream times there is no breakdown.
    let without = files.join("log", &["upstream="]).unwrap();
    assert!(without.stages.is_empty() && !without.times.is_empty(), "{without:?}");
}
