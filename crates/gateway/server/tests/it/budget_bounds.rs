//! Every end of a request charges its tokens, and concurrent requests cannot exceed a budget.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_gateway_server::Gateway;
use serde_json::{Value, json};

use super::support::client::{get, post, send};
use super::support::provider::{Provider, ResponseWriter};
use super::support::{CHAT, MESSAGES, gateway, question, sleep_ms, until};

const RESPONSES: &str = "/v1/responses";
const A: super::support::client::Headers<'_> = &[("x-tenant-id", "a")];

fn budgets(provider: &Provider, budget: &str, upstream: &str) -> Gateway {
    let routes = [CHAT, MESSAGES, RESPONSES]
        .map(|path| format!("  - {{name: '{path}', path: {path}, upstream: p, llm: true}}\n"))
        .concat();
    gateway(&format!(
        "upstreams: {{p: {{addresses: ['{}'], {upstream}}}}}\nroutes:\n{routes}\
         tenant: {{}}\nbudgets: {{{budget}}}",
        provider.addr
    ))
}

/// A member of the budget's state, which are whole numbers.
#[expect(clippy::cast_possible_truncation, reason = "small and not negative")]
fn state(gateway: &Gateway, name: &str) -> u64 {
    get(gateway.addr(), "/v1/budget/a").json()[name].as_f64().unwrap() as u64
}

/// The cost of a request sent by `ask`.
fn cost_of(gateway: &Gateway, ask: impl FnOnce()) -> u64 {
    let before = state(gateway, "spent");
    ask();
    until("it is settled", || state(gateway, "reserved") == 0);
    state(gateway, "spent") - before
}

/// The prompt of the requests here, and what a body takes beside its text.
const PROMPT: std::ops::RangeInclusive<u64> = 1..=60;

fn is_near(cost: u64, completion: u64) -> bool {
    (PROMPT.start() + completion..=PROMPT.end() + completion).contains(&cost)
}

#[test]
fn a_request_that_is_given_up_before_the_answer_costs_its_reservation() {
    let provider = Provider::start(|_, wire| {
        sleep_ms(30_000);
        wire.json(200, &json!({}))
    });
    let slow = budgets(&provider, "default: 10000", "timeout: 60s");
    let body = question("hi").to_string();
    let cost = cost_of(&slow, || {
        let sent = send(slow.addr(), &format!("POST {CHAT}"), A, body.as_bytes());
        until("the upstream has it", || provider.count() == 1);
        drop(sent);
    });
    assert!(is_near(cost, 100), "cancelled: {cost}");
    let late = budgets(&provider, "default: 10000", "timeout: 300ms");
    let cost = cost_of(&late, || {
        assert_eq!(post(late.addr(), CHAT, A, &question("hi")).status, 504);
    });
    assert!(is_near(cost, 100), "timed out: {cost}");
}

#[test]
fn a_request_that_no_upstream_had_costs_nothing() {
    let ill = Provider::start(|_, wire| wire.json(503, &json!({"error": {"message": "ill"}})));
    let gone = "breaker: {failures: 2, open: 60s}";
    let refusing = budgets(&ill, "default: 10000", gone);
    for _ in 0..4 {
        let cost = cost_of(&refusing, || {
            assert_eq!(post(refusing.addr(), CHAT, A, &question("hi")).status, 503);
        });
        assert_eq!(cost, 0);
    }
    assert_eq!(ill.count(), 2, "then the breaker is open");
}

#[test]
fn a_connection_that_breaks_before_the_answer_costs_the_reservation() {
    let rude = Provider::start(|_, _| Err(io::Error::other("enough")));
    let gateway = budgets(&rude, "default: 10000", "");
    let cost = cost_of(&gateway, || {
        assert_eq!(post(gateway.addr(), CHAT, A, &question("hi")).status, 502);
    });
    assert!(is_near(cost, 100), "{cost}");
}

/// An answer of a chat of 400 bytes, with this usage.
fn long_answer(usage: &Value) -> Value {
    json!({"id": "x", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "abcd".repeat(100)}}], "usage": usage})
}

#[test]
fn usage_that_is_not_reported_is_estimated() {
    let lies = [
        json!(null),
        json!({}),
        json!({"prompt_tokens": 0, "completion_tokens": 0}),
        json!({"completion_tokens": 1}),
        json!({"prompt_tokens": "5", "completion_tokens": "5"}),
        json!({"prompt_tokens": -5, "completion_tokens": -5}),
        json!({"prompt_tokens": 5.5, "completion_tokens": 1e300}),
        json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}),
        json!([1, 2]),
        json!("many"),
    ];
    let script = lies.clone();
    let provider = Provider::start(move |seen, wire| {
        let ask = seen.json();
        let usage = &script[usize::try_from(ask["seed"].as_u64().unwrap()).unwrap()];
        if ask["stream"] != true {
            return wire.json(200, &long_answer(usage));
        }
        wire.stream()?;
        for _ in 0..10 {
            let delta = json!({"choices": [{"delta": {"content": "abcd".repeat(10)}}]});
            wire.frame(&format!("data: {delta}\n\n"))?;
        }
        wire.frame(&format!("data: {}\n\n", json!({"choices": [], "usage": usage})))?;
        wire.frame("data: [DONE]\n\n")?;
        wire.end()
    });
    let gateway = budgets(&provider, "default: 100000", "");
    for (number, lie) in lies.iter().enumerate() {
        for stream in [false, true] {
            let mut body = question("hi");
            body["seed"] = json!(number);
            body["stream"] = json!(stream);
            let cost = cost_of(&gateway, || {
                assert_eq!(post(gateway.addr(), CHAT, A, &body).status, 200);
            });
            assert!(is_near(cost, 100), "{lie}, stream {stream}: {cost}");
        }
    }
}

#[test]
fn a_reservation_covers_all_that_a_request_can_cost() {
    let provider = Provider::with_text(&["Hello"]);
    let gateway = budgets(&provider, "default: 1000, max_tokens: 700", "");
    let tools: Vec<_> = (0..50)
        .map(|n| json!({"type": "function", "name": format!("{n}{}", "x".repeat(80))}))
        .collect();
    for (members, fits) in [
        (json!({"max_tokens": 100}), true),
        (json!({"max_tokens": 100, "n": 11}), false),
        (json!({"max_tokens": 100, "n": 9}), true),
        (json!({"max_tokens": 1, "max_completion_tokens": 1_100}), false),
        (json!({"max_tokens": 1_100, "max_completion_tokens": 1}), false),
        (json!({"max_tokens": 100, "tools": tools}), false),
        (json!({}), true),
        (json!({"n": 2}), false),
        (json!({"max_tokens": null, "max_completion_tokens": null, "n": 2}), false),
        (json!({"max_tokens": u64::MAX, "n": u64::MAX}), false),
    ] {
        // Each case has a budget of its own.
        let tenant = format!("t{:x}", members.to_string().len() * 31 + usize::from(fits));
        let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "hi"}]});
        body.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        let headers = [("x-tenant-id", tenant.as_str())];
        let status = post(gateway.addr(), CHAT, &headers, &body).status;
        assert_eq!(status == 200, fits, "{status}: {members}");
    }
    for wrong in [json!(0), json!("3"), json!(2.5), json!(-1)] {
        let mut body = question("hi");
        body["n"] = wrong;
        assert_eq!(post(gateway.addr(), CHAT, A, &body).status, 400, "{body}");
    }
}

#[test]
fn the_responses_api_is_charged() {
    let provider = Provider::start(|seen, wire| {
        let ask = seen.json();
        let usage = json!({"input_tokens": 30, "output_tokens": 40});
        let text = json!([{"type": "message", "content": [{"text": "abcd".repeat(100)}]}]);
        match ask["input"].as_str().unwrap() {
            "usage" => {
                wire.json(200, &json!({"status": "completed", "output": text, "usage": usage}))
            }
            "none" => wire.json(200, &json!({"status": "completed", "output": text})),
            "background" => wire.json(200, &json!({"status": "queued", "output": []})),
            streamed => {
                wire.stream()?;
                for _ in 0..10 {
                    let delta =
                        json!({"type": "response.output_text.delta", "delta": "abcd".repeat(10)});
                    wire.frame(&format!("event: response.output_text.delta\ndata: {delta}\n\n"))?;
                }
                let mut response = json!({"status": "completed"});
                if streamed == "stream with usage" {
                    response["usage"] = usage;
                }
                let end = json!({"type": "response.completed", "response": response});
                wire.frame(&format!("event: response.completed\ndata: {end}\n\n"))?;
                wire.end()
            }
        }
    });
    let gateway = budgets(&provider, "default: 10000", "");
    for (input, completion) in [
        ("usage", 40),
        ("none", 100),
        ("background", 500),
        ("stream", 100),
        ("stream with usage", 40),
    ] {
        let body = json!({"model": "m", "input": input, "max_output_tokens": 500,
            "stream": input.starts_with("stream")});
        let cost = cost_of(&gateway, || {
            assert_eq!(post(gateway.addr(), RESPONSES, A, &body).status, 200);
        });
        assert!(is_near(cost, completion), "{input}: {cost}");
    }
}

/// A random number generator, the same in each run (Marsaglia's xorshift, 2003).
struct Rng(u64);

impl Rng {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 33) % below
    }
}

/// The most that a request without a maximum gets.
const DEFAULT_MAX: u64 = 60;

/// A provider that does what it is asked, tells lies about it, and keeps the truth to itself: the
/// tokens that it generated. One token is four bytes of text.
fn liar(truth: &Arc<AtomicU64>) -> Provider {
    let truth = Arc::clone(truth);
    Provider::start(move |seen, wire| {
        let ask = seen.json();
        let mut rng = Rng(ask["seed"].as_u64().unwrap() * 2 + 1);
        rng.roll(2);
        let limits = ["max_tokens", "max_completion_tokens"].map(|name| ask[name].as_u64());
        let most = limits.into_iter().flatten().max().unwrap_or(DEFAULT_MAX);
        let tokens = (0..ask["n"].as_u64().unwrap_or(1)).map(|_| rng.roll(most) + 1).sum::<u64>();
        let prompt = ask["messages"][0]["content"].as_str().unwrap().len() as u64 / 4;
        if rng.roll(12) == 0 {
            return wire.json(500, &json!({"error": {"message": "ill"}}));
        }
        truth.fetch_add(prompt, Ordering::SeqCst);
        if ask["stream"] == true {
            return lie_in_pieces(wire, &mut rng, tokens, &truth);
        }
        truth.fetch_add(tokens, Ordering::SeqCst);
        sleep_ms(rng.roll(40));
        if rng.roll(8) == 0 {
            return Err(io::Error::other("broken"));
        }
        let mut answer = long_answer(&lie(&mut rng, prompt, tokens));
        let text = "abcd".repeat(usize::try_from(tokens).unwrap());
        answer["choices"][0]["message"]["content"] = json!(text);
        wire.json(200, &answer)
    })
}

/// The usage that is reported.
fn lie(rng: &mut Rng, prompt: u64, tokens: u64) -> Value {
    match rng.roll(6) {
        0 => json!(null),
        1 => json!({}),
        2 => json!({"prompt_tokens": 0, "completion_tokens": 0}),
        3 => json!({"prompt_tokens": "1", "completion_tokens": "1"}),
        4 => json!({"prompt_tokens": u64::MAX, "completion_tokens": u64::MAX}),
        _ => json!({"prompt_tokens": prompt, "completion_tokens": tokens}),
    }
}

fn lie_in_pieces(
    wire: &mut ResponseWriter,
    rng: &mut Rng,
    tokens: u64,
    truth: &AtomicU64,
) -> io::Result<()> {
    wire.stream()?;
    let breaks_at = if rng.roll(6) == 0 { rng.roll(tokens) } else { tokens };
    let mut made = 0;
    while made < tokens {
        let piece = (rng.roll(4) + 1).min(tokens - made);
        let text = "abcd".repeat(usize::try_from(piece).unwrap());
        let delta = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
        wire.frame(&format!("data: {delta}\n\n"))?;
        made += piece;
        truth.fetch_add(piece, Ordering::SeqCst);
        if made > breaks_at {
            return Err(io::Error::other("broken"));
        }
        sleep_ms(2);
    }
    let usage = lie(rng, 0, tokens);
    wire.frame(&format!("data: {}\n\n", json!({"choices": [], "usage": usage})))?;
    wire.frame("data: [DONE]\n\n")?;
    wire.end()
}

/// Sends a request of some kind, and may give it up at some time. Says whether it was a stream
/// that was given up.
fn one_request(gateway: &Gateway, rng: &mut Rng) -> bool {
    let text = "word ".repeat(usize::try_from(rng.roll(20) + 1).unwrap());
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
    body["seed"] = json!(rng.roll(1 << 30));
    for name in ["max_tokens", "max_completion_tokens"] {
        if rng.roll(2) == 0 {
            body[name] = json!(rng.roll(80) + 1);
        }
    }
    if rng.roll(3) == 0 {
        body["n"] = json!(rng.roll(3) + 1);
    }
    let stream = rng.roll(2) == 0;
    body["stream"] = json!(stream);
    let body = body.to_string();
    let mut sent = send(gateway.addr(), &format!("POST {CHAT}"), A, body.as_bytes());
    match rng.roll(4) {
        0 => {
            sleep_ms(rng.roll(20));
            stream
        }
        1 => {
            sent.head();
            if stream {
                sent.chunk();
            }
            stream
        }
        _ => {
            sent.reply();
            false
        }
    }
}

/// A stream that its client gives up is charged by the tokens that passed; what was on its way at
/// that time is not seen. This is the most that is allowed for, for each of them.
const ON_ITS_WAY: u64 = 40;

#[test]
fn sixty_four_clients_with_cancels_and_lies_do_not_get_over_a_budget() {
    const BUDGET: u64 = 15_000;
    let truth = Arc::<AtomicU64>::default();
    let provider = liar(&truth);
    let gateway = budgets(
        &provider,
        &format!("default: {BUDGET}, max_tokens: {DEFAULT_MAX}"),
        "timeout: 30s",
    );
    let given_up = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for client in 0..64_u64 {
            let (gateway, given_up) = (&gateway, &given_up);
            scope.spawn(move || {
                let mut rng = Rng(client * 7_919 + 1);
                for _ in 0..12 {
                    given_up.fetch_add(one_request(gateway, &mut rng).into(), Ordering::SeqCst);
                }
            });
        }
    });
    until("all is settled", || state(&gateway, "reserved") == 0);
    sleep_ms(200);
    let (truth, spent) = (truth.load(Ordering::SeqCst), state(&gateway, "spent"));
    let unseen = given_up.into_inner() * ON_ITS_WAY;
    assert!(truth <= BUDGET + unseen, "{truth} tokens of a budget of {BUDGET}, {unseen} unseen");
    assert!(truth <= spent + unseen, "{truth} tokens were made, {spent} charged");
    assert!(truth > BUDGET / 3, "it was tried: {truth}");
    let last = post(
        gateway.addr(),
        CHAT,
        A,
        &json!({"model": "m", "max_tokens": BUDGET,
        "messages": [{"role": "user", "content": "hi"}], "seed": 1}),
    );
    assert_eq!(last.status, 429);
}
