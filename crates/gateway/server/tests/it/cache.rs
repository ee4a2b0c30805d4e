//! The cache and its single flight.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::support::client::{post, send};
use super::support::provider::{AnswerKind, Provider, answer, frames};
use super::support::{
    CHAT, MESSAGES, crowd, gateway, llm, metric, question, sleep_ms, streamed, until, with,
};

#[test]
fn the_second_request_hits_with_the_same_frames() {
    let provider = Provider::with_text(&["Hello", " there", " you"]);
    for upstream in ["openai", "anthropic"] {
        let gateway = with(provider.addr, upstream, "cache: {}\nscrub: {}");
        for path in [CHAT, MESSAGES] {
            for body in [question("hi"), streamed("hi")] {
                let before = provider.count();
                let [miss, hit, again] = [(); 3].map(|()| post(gateway.addr(), path, &[], &body));
                let case = format!("{path} to {upstream}");
                let states = [&miss, &hit, &again].map(|reply| reply.header("x-cache"));
                assert_eq!(states, [Some("miss"), Some("hit"), Some("hit")], "{case}");
                assert_eq!(provider.count(), before + 1, "{case}");
                for hit in [hit, again] {
                    assert_eq!(hit.chunks, miss.chunks, "{case}");
                    assert_eq!(hit.header("content-type"), miss.header("content-type"), "{case}");
                    assert_eq!((hit.status, hit.broken), (200, false));
                }
            }
        }
    }
}

#[test]
fn only_an_equal_request_of_the_same_tenant_hits() {
    let provider = Provider::with_text(&["Hello"]);
    let gateway = llm(provider.addr, "cache: {}\ntenant: {}");
    let ask = |tenant: &str, body: serde_json::Value| {
        let reply = post(gateway.addr(), CHAT, &[("x-tenant-id", tenant)], &body);
        reply.header("x-cache").unwrap().to_owned()
    };
    let mut warmer = question("hi");
    warmer["temperature"] = json!(0.5);
    assert_eq!(ask("a", question("hi")), "miss");
    assert_eq!(ask("b", question("hi")), "miss", "another tenant");
    assert_eq!(ask("a", question("ho")), "miss", "another text");
    assert_eq!(ask("a", warmer), "miss", "another temperature");
    assert_eq!(ask("a", streamed("hi")), "miss", "a stream");
    assert_eq!([ask("a", question("hi")), ask("b", question("hi"))], ["hit", "hit"]);
    assert_eq!(metric(&gateway, "gateway_cache_total{state=\"hit\"} "), Some(2.0));
}

#[test]
fn routes_to_different_upstreams_share_no_responses() {
    let (one, two) = (Provider::with_text(&["one"]), Provider::with_text(&["two"]));
    let gateway = gateway(&format!(
        "cache: {{}}
upstreams: {{one: {{addresses: ['{}']}}, two: {{addresses: ['{}']}}}}
routes:
  - {{name: one, path: /one/*, strip: /one, upstream: one, llm: true}}
  - {{name: two, path: /two/*, strip: /two, upstream: two, llm: true}}",
        one.addr, two.addr
    ));
    for name in ["one", "two"] {
        let reply = post(gateway.addr(), &format!("/{name}{CHAT}"), &[], &question("hi"));
        assert_eq!(reply.json()["choices"][0]["message"]["content"], name);
    }
}

#[test]
fn sixty_four_concurrent_requests_reach_the_upstream_once() {
    let provider = Provider::start(|seen, wire| {
        sleep_ms(150);
        answer(seen, wire, &["Hello".to_owned(), " there".to_owned()])
    });
    for workers in [1, 2] {
        let gateway = llm(provider.addr, &format!("cache: {{}}\nworkers: {workers}"));
        for body in [question("hi"), streamed("hi")] {
            let before = provider.count();
            let replies = crowd(|_| post(gateway.addr(), CHAT, &[], &body));
            assert_eq!(provider.count(), before + 1, "{workers} workers");
            assert!(replies.iter().all(|reply| reply.status == 200 && !reply.broken));
            let misses = replies.iter().filter(|reply| reply.header("x-cache") == Some("miss"));
            assert_eq!(misses.count(), 1);
            assert!(
                replies.iter().all(|reply| reply.chunks.concat() == replies[0].chunks.concat())
            );
        }
    }
}

#[test]
fn when_the_first_client_disconnects_another_request_takes_over() {
    let calls = AtomicUsize::new(0);
    let provider = Provider::start(move |seen, wire| {
        if calls.fetch_add(1, Ordering::SeqCst) > 0 {
            return answer(seen, wire, &["whole".to_owned()]);
        }
        wire.stream()?;
        // Until the gateway disconnects.
        let frame = &frames(seen, &["half".to_owned()], AnswerKind::Text)[0];
        for _ in 0..1_000 {
            wire.frame(frame)?;
            sleep_ms(5);
        }
        Err(io::Error::other("the gateway did not disconnect"))
    });
    let gateway = llm(provider.addr, "cache: {}");
    let body = streamed("hi").to_string();
    let mut leader = send(gateway.addr(), &format!("POST {CHAT}"), &[], body.as_bytes());
    assert_eq!(leader.head().status, 200);
    assert!(leader.chunk().is_some());
    let reply = std::thread::scope(|scope| {
        let follower = scope.spawn(|| post(gateway.addr(), CHAT, &[], &streamed("hi")));
        sleep_ms(100);
        assert_eq!(provider.count(), 1, "it waits");
        drop(leader);
        follower.join().unwrap()
    });
    assert!(reply.text().contains("whole") && !reply.broken, "{reply:?}");
    assert_eq!(provider.count(), 2);
    let hit = post(gateway.addr(), CHAT, &[], &streamed("hi"));
    assert_eq!((hit.header("x-cache"), &hit.chunks), (Some("hit"), &reply.chunks));
}

#[test]
fn errors_and_truncated_responses_are_not_cached() {
    let provider = Provider::start(|seen, wire| {
        if seen.body.contains("fail") {
            return wire.json(500, &json!({"error": {"message": "ill", "type": "server_error"}}));
        }
        wire.stream()?;
        wire.frame(&frames(seen, &["half".to_owned()], AnswerKind::Text)[1])?;
        Err(io::Error::other("enough"))
    });
    let gateway = llm(provider.addr, "cache: {}");
    for _ in 0..3 {
        let reply = post(gateway.addr(), CHAT, &[], &question("fail"));
        assert_eq!((reply.status, reply.header("x-cache")), (500, Some("miss")));
    }
    assert_eq!(provider.count(), 3);
    for _ in 0..3 {
        assert!(post(gateway.addr(), CHAT, &[], &streamed("hi")).broken);
    }
    assert_eq!(provider.count(), 6);
    let replies = crowd(|_| post(gateway.addr(), CHAT, &[], &question("fail at once")));
    assert!(replies.iter().all(|reply| reply.status == 500), "nobody waits for ever");
}

#[test]
fn a_stream_that_ends_before_its_last_event_is_not_cached() {
    let provider = Provider::start(|seen, wire| {
        wire.stream()?;
        wire.frame(&frames(seen, &["half".to_owned()], AnswerKind::Text)[1])?;
        wire.end()
    });
    let gateway = llm(provider.addr, "cache: {}");
    for _ in 0..2 {
        let reply = post(gateway.addr(), CHAT, &[], &streamed("hi"));
        assert_eq!(reply.header("x-cache"), Some("miss"));
    }
    assert_eq!(provider.count(), 2);
}

#[test]
fn with_the_cache_upstreams_are_asked_for_uncompressed_responses() {
    let provider = Provider::start(|seen, wire| {
        assert_eq!(seen.header("accept-encoding"), Some("identity"));
        answer(seen, wire, &["Hello".to_owned()])
    });
    let yaml = format!(
        "listen: 127.0.0.1:0\ncache: {{}}\nupstreams: {{p: {{addresses: ['{}']}}}}
routes: [{{name: chat, path: {CHAT}, upstream: p, llm: true}}]",
        provider.addr
    );
    let spec = plimsoll_gateway_server::Spec::from_yaml(&yaml).unwrap();
    let gateway = plimsoll_gateway_server::Gateway::spawn(&spec).unwrap();
    let reply = post(gateway.addr(), CHAT, &[("accept-encoding", "gzip")], &question("hi"));
    assert_eq!(reply.status, 200, "{reply:?}");
}

#[test]
fn a_header_bypasses_the_cache_and_entries_expire() {
    let provider = Provider::with_text(&["Hello"]);
    let gateway = llm(provider.addr, "cache: {ttl: 300ms}");
    let state = |headers| {
        let reply = post(gateway.addr(), CHAT, headers, &question("hi"));
        reply.header("x-cache").map(str::to_owned)
    };
    let result = |state: &str| Some(state.to_owned());
    assert_eq!(state(&[]), result("miss"));
    assert_eq!(state(&[("x-cache-bypass", "1")]), result("bypass"));
    assert_eq!(provider.count(), 2);
    until("the entry expires", || state(&[]) == result("miss"));
    assert_eq!(provider.count(), 3);
}

#[test]
fn the_cache_is_bounded_in_bytes() {
    let provider = Provider::with_text(&[&"x".repeat(4_000)]);
    // Sixteen shards of 8 KiB, each with room for one response.
    let gateway = llm(provider.addr, "cache: {bytes: 128KiB}");
    let ask = |number: usize| {
        let body = question(&format!("question {number}"));
        post(gateway.addr(), CHAT, &[], &body).header("x-cache").unwrap().to_owned()
    };
    assert!((0..100).all(|number| ask(number) == "miss"));
    let kept = (0..100).rev().filter(|number| ask(*number) == "hit").count();
    assert!((1..=32).contains(&kept), "{kept} of 100 responses of 4 kB in 128 KiB");
}

#[test]
fn who_waits_too_long_for_an_equal_question_asks_for_itself() {
    let (go_on, wait) = std::sync::mpsc::channel::<()>();
    let wait = std::sync::Mutex::new(wait);
    let provider = Provider::start(move |seen, wire| {
        let whole = json!({"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]});
        let is_first = seen.header("x-b3-sampled") == Some("1");
        if seen.json()["stream"] == true {
            let frames = frames(seen, &["Hello".to_owned()], AnswerKind::Text);
            wire.stream()?;
            wire.frame(&frames[0])?;
            if is_first {
                wait.lock().unwrap().recv().unwrap();
            }
            frames[1..].iter().try_for_each(|frame| wire.frame(frame))?;
            return wire.end();
        }
        wire.begin("content-type: application/json\r\n", b" ")?;
        if is_first {
            wait.lock().unwrap().recv().unwrap();
        }
        wire.go_on(whole.to_string().as_bytes())?;
        wire.end()
    });
    let gateway = gateway(&format!(
        "cache: {{wait: 100ms}}
upstreams: {{p: {{addresses: ['{}'], timeout: 700ms}}}}
routes: [{{name: chat, path: {CHAT}, upstream: p, llm: true}}]",
        provider.addr
    ));
    // Both are the same question: tracing is no part of it.
    let first = [("x-b3-sampled", "1")];
    for (number, ask) in [streamed("x"), question("x")].iter().enumerate() {
        std::thread::scope(|scope| {
            let leader = scope.spawn(|| post(gateway.addr(), CHAT, &first, ask));
            until("the first is on its way", || provider.count() == 2 * number + 1);
            let reply = post(gateway.addr(), CHAT, &[], ask);
            assert_eq!((reply.status, reply.header("x-cache")), (200, Some("miss")), "{reply:?}");
            assert!(
                !reply.broken && reply.text().contains(if number == 0 { "Hello" } else { "hi" })
            );
            assert!(!leader.is_finished(), "it did not wait to the end");
            go_on.send(()).unwrap();
            assert_eq!(leader.join().unwrap().status, 200);
        });
        assert_eq!(provider.count(), 2 * (number + 1));
        let hit = post(gateway.addr(), CHAT, &[], ask);
        assert_eq!(hit.header("x-cache"), Some("hit"), "the first one's answer was kept");
    }
}

#[test]
fn an_answer_is_kept_as_its_headers_say() {
    for (lines, second) in [
        ("", "hit"),
        ("cache-control: max-age=60\r\n", "hit"),
        ("vary: accept-encoding, origin\r\n", "hit"),
        ("cache-control: max-age=0\r\n", "miss"),
        ("cdn-cache-control: no-store\r\n", "miss"),
        ("cache-control: max-age=60\r\nsurrogate-control: no-store\r\n", "miss"),
        ("cache-control: s-maxage=0, max-age=60\r\n", "miss"),
        ("expires: 0\r\n", "miss"),
        ("pragma: no-cache\r\n", "miss"),
        ("vary: *\r\n", "miss"),
        ("cache-control: private\r\n", "miss"),
    ] {
        let provider = Provider::start(move |_, wire| {
            let whole =
                json!({"choices": [{"finish_reason": "stop", "message": {"content": "hi"}}]});
            wire.with(200, "application/json", lines, &whole.to_string())
        });
        let gateway = llm(provider.addr, "cache: {}");
        assert_eq!(post(gateway.addr(), CHAT, &[], &question("x")).header("x-cache"), Some("miss"));
        let again = post(gateway.addr(), CHAT, &[], &question("x"));
        assert_eq!(again.header("x-cache"), Some(second), "{lines}");
        for asks in [("cache-control", "max-age=0"), ("pragma", "no-cache")] {
            let bypass = post(gateway.addr(), CHAT, &[asks], &question("x"));
            assert_eq!(bypass.header("x-cache"), Some("bypass"), "{asks:?}");
        }
    }
}
