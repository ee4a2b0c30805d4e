//! The probe before the load.

use plimsoll_engine::{Control, Run};

use crate::support::{CHAT, mock, plan, run_prepared, url};

#[test]
fn the_probe_tells_what_would_make_the_load_pointless() {
    let probe = |target: &str, profile: &str| {
        Run::prepare(plan(target, &format!("{CHAT}stages: '1:1s'\n{profile}")))
            .unwrap()
            .probe()
            .unwrap()
    };
    let mock = mock("");
    let fine = probe(&url(&mock), "");
    assert_eq!((fine.requests, fine.findings.len()), (1, 0));
    for (profile, fatal, words) in [
        ("headers: {x-mock-status: '401'}", true, "--key"),
        ("headers: {x-mock-status: '404'}", true, "--model"),
        ("headers: {x-mock-status: '429'}", false, "429"),
        ("headers: {x-mock-status: '503'}", false, "503"),
    ] {
        let found = &probe(&url(&mock), profile).findings[0];
        assert_eq!(found.fatal, fatal, "{profile}");
        assert!(found.message.contains(words), "{profile}: {}", found.message);
    }
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = probe(&format!("http://{closed}"), "");
    assert!(nobody.findings[0].fatal && nobody.findings[0].message.contains("correct its URL"));
}

/// Answers each connection with the next of these texts, and closes it.
fn answering(answers: &'static [&'static str]) -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    // The thread ends with the process.
    std::thread::spawn(move || {
        for (stream, answer) in listener.incoming().flatten().zip(answers.iter().cycle()) {
            let mut stream = stream;
            let mut request = [0; 4_096];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    url
}

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n";
const WRONG_KEY: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
    content-length: 45\r\n\r\n{\"error\":{\"message\":\"Invalid API key given\"}}";
const NOT_HTTP2: &str =
    "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

#[test]
fn one_stream_that_is_cut_does_not_stop_the_run_and_three_do_with_the_right_words() {
    for (answers, requests, fatal, words) in [
        (&[CUT, WHOLE][..], 2, Some(false), "in 1 of 2 tries"),
        (&[CUT, CUT, WHOLE], 3, Some(false), "in 2 of 3 tries"),
        (&[CUT], 3, Some(true), "broke off"),
        (&[WHOLE], 1, None, ""),
        (&[WRONG_KEY], 1, Some(true), "--key"),
    ] {
        let profile = format!("{CHAT}stages: '1:1s'\nstream: true\n");
        let report = Run::prepare(plan(&answering(answers), &profile)).unwrap().probe().unwrap();
        assert_eq!(report.requests, requests, "{report:?}");
        assert_eq!(report.findings.first().map(|found| found.fatal), fatal, "{report:?}");
        for found in report.findings {
            assert!(found.message.contains(words), "{words}: {}", found.message);
            assert!(!found.message.contains("support this API format"), "{}", found.message);
        }
    }
}

const OTHER_LIMIT: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
    content-length: 75\r\n\r\n{\"error\":{\"message\":\"max_tokens is unknown: use max_completion_tokens\"}}   ";

/// A model that requires the newer member gets it, and the change is named once.
#[test]
fn the_output_limit_has_the_name_that_the_target_requires() {
    let limited = "stages: '1:1s'\nstream: true\n";
    let profile = format!("{CHAT}{limited}");
    for (answers, fatal) in
        [(&[OTHER_LIMIT, WHOLE][..], vec![false]), (&[OTHER_LIMIT], vec![false, true])]
    {
        let mut run = Run::prepare(plan(&answering(answers), &profile)).unwrap();
        let report = run.probe().unwrap();
        assert_eq!(report.findings.iter().map(|found| found.fatal).collect::<Vec<_>>(), fatal);
        assert!(report.findings[0].message.contains("sending it instead of max_tokens"));
        assert_eq!(report.requests, 2);
        let limit = run.plan().scenarios[0].max_tokens_field;
        assert_eq!(limit, plimsoll_protocol::TokenLimit::MaxCompletionTokens);
    }
    let mut given = Run::prepare(plan(&answering(&[WRONG_KEY]), &profile)).unwrap();
    assert_eq!(given.probe().unwrap().requests, 1, "another refusal changes nothing");
}

/// Refuses small limits, as servers of reasoning models do, and those below `min_tokens`.
#[test]
fn the_probe_asks_for_what_the_load_asks_for() {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4_096];
            let length = stream.read(&mut request).unwrap_or(0);
            let text = String::from_utf8_lossy(&request[..length]);
            let whole = text.contains("\"max_tokens\":1000") && !text.contains("stream_options");
            let _ = stream.write_all(if whole { WHOLE } else { WRONG_LIMIT }.as_bytes());
        }
    });
    let chat = CHAT.replace("max_tokens: 8", "max_tokens: 1000");
    let profile =
        |parameters| format!("{chat}stages: '1:1s'\nstream: true\nparameters: {parameters}\n");
    let probe = |text: &str| Run::prepare(plan(&url, text)).unwrap().probe().unwrap();
    let fine = probe(&profile("{min_tokens: 128, stream_options: null}"));
    assert_eq!(fine.findings, []);
    let refused = probe(&profile("{min_tokens: 128}"));
    let [found] = &refused.findings[..] else { panic!("{refused:?}") };
    let expected =
        format!("POST {url}/v1/chat/completions returned 400: max_tokens is too small; ");
    assert!(found.message.starts_with(&expected), "{}", found.message);
}

const WRONG_LIMIT: &str = "HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\n\
    content-length: 48\r\n\r\n{\"error\":{\"message\":\"max_tokens is too small\"}} ";

#[test]
fn http2_without_tls_to_a_server_of_http1_gets_the_right_words() {
    let profile = format!("{CHAT}stages: '1:1s'\nhttp_version: http2\n");
    let probed = Run::prepare(plan(&answering(&[NOT_HTTP2]), &profile)).unwrap().probe().unwrap();
    let [found] = &probed.findings[..] else { panic!("{probed:?}") };
    assert!(found.fatal && found.message.contains("leave out --http2"), "{}", found.message);
}

/// As llama.cpp's server after a stream: the answer does not say that the connection ends with it,
/// and a request that is sent at once meets the close on its way.
#[test]
fn connections_that_a_target_closes_after_an_answer_are_not_used_again() {
    const HASTY: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
        content-length: 60\r\nkeep-alive: timeout=5\r\n\r\n\
        {\"choices\":[{\"message\":{\"content\":\"hi\"}}],\"usage\":{\"a\":  1}}";
    let target = answering(&[HASTY]);
    let profile = format!("{CHAT}stages: '4:400ms'\n");
    let mut run = Run::prepare(plan(&target, &profile)).unwrap();
    let found = run.probe().unwrap().findings;
    let [found] = &found[..] else { unreachable!("{found:?}") };
    assert!(!found.fatal && found.message.contains("closes its connections after each response"));
    let ran = run_prepared(run, &Control::new(), &mut |_| {});
    assert_eq!(ran.count("completed"), ran.sent(), "{:?}", ran.accounting());
    assert!(ran.sent() > 20 && ran.samples.iter().all(|sample| !sample.reused));
    // A target that keeps them is not suspected.
    let kept = mock("");
    let mut run = Run::prepare(plan(&url(&kept), &profile)).unwrap();
    assert_eq!(run.probe().unwrap().findings, []);
    let ran = run_prepared(run, &Control::new(), &mut |_| {});
    assert!(ran.samples.iter().any(|sample| sample.reused));
}

#[test]
fn levels_last_for_answers_of_every_user() {
    let mock = mock("");
    // An answer of 200 ms: a response head after 200 ms, and no tokens to wait for.
    let profile =
        format!("{CHAT}headers: {{x-mock-ttft: '200ms'}}\nstages: 'w1:100ms,1:400ms,2:5s'\n");
    let lengths = |answers: Option<u32>| {
        let mut plan = plan(&url(&mock), &profile);
        plan.limits.answers_per_user = answers;
        let mut run = Run::prepare(plan).unwrap();
        run.probe().unwrap();
        let stages = run.schedule().stages().iter();
        stages
            .map(|stage| (stage.end.saturating_sub(stage.start)).as_secs_f64())
            .collect::<Vec<_>>()
    };
    assert_eq!(lengths(None), [0.1, 0.4, 5.0]);
    let [warm_up, short, long] = lengths(Some(4))[..] else { panic!("three stages") };
    assert!((0.2..0.4).contains(&warm_up), "{warm_up}");
    assert!((0.8..1.6).contains(&short), "{short}");
    assert!((long - 5.0).abs() < 1e-9, "{long}");
    for length in [warm_up, short] {
        assert!((length * 10.0 - (length * 10.0).round()).abs() < 1e-6, "{length} is a name, too");
    }
}

#[test]
fn levels_are_as_asked_where_a_target_gives_no_sign_of_life() {
    let mock = mock("");
    let profile =
        format!("{CHAT}headers: {{x-mock-fault: hang}}\ntimeout: 1s\nstages: '1:400ms'\n");
    let mut plan = plan(&url(&mock), &profile);
    plan.limits.answers_per_user = Some(4);
    let mut run = Run::prepare(plan).unwrap();
    run.probe().unwrap();
    assert!((run.schedule().stages()[0].end.as_secs_f64() - 0.4).abs() < 1e-9);
}
