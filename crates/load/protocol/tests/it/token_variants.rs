//! Streams of known truth: what each count of `usage` includes differs between providers, and what
//! a stream shows of its tokens, too. In every one a token of text has four bytes and takes 10 ms.

#![expect(clippy::too_many_lines, clippy::needless_pass_by_value, reason = "tables of streams")]

use plimsoll_measure::{Moment, Nanos, Sample};
use plimsoll_protocol::{Decoder, DecoderOptions, Delta, DeltaKind, Dialect};
use serde_json::{Value, json};

/// The time of an event in milliseconds, and its data.
type Line = (u64, Value);

/// A stream, and the truth about it.
struct Variant {
    name: &'static str,
    dialect: Dialect,
    lines: Vec<Line>,
    /// Tokens that the model made, sent or not.
    output: u32,
    input: Option<u32>,
    cached: u32,
    /// All tokens of the request.
    budget: u32,
}

const fn variant(name: &'static str, dialect: Dialect, lines: Vec<Line>) -> Variant {
    Variant { name, dialect, lines, output: 0, input: Some(50), cached: 0, budget: 0 }
}

const CHAT: Dialect = Dialect::OpenaiChat;
const MESSAGES: Dialect = Dialect::AnthropicMessages;
const RESPONSES: Dialect = Dialect::OpenaiResponses;
const WORDS: [&str; 8] = ["the ", "sun ", "sea ", "ice ", "fog ", "oak ", "elm ", "ash "];

fn words(tokens: usize) -> String {
    WORDS.into_iter().cycle().take(tokens).collect()
}

/// Tokens in pieces of `size`, as the model makes them; the first piece is sent at `first`.
fn spread(first: u64, tokens: usize, size: usize) -> Vec<(u64, String)> {
    let piece = |n: usize| (first + (n * size * 10) as u64, words(size.min(tokens - n * size)));
    (0..tokens.div_ceil(size)).map(piece).collect()
}

fn delta(delta: Value) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
}

/// Pieces in the member of a chat's delta.
fn stream(member: &str, first: u64, tokens: usize, size: usize) -> Vec<Line> {
    let pieces = spread(first, tokens, size).into_iter();
    pieces.map(|(at, text)| (at, delta(json!({ member: text })))).collect()
}

fn call(at: u64, name: &str, arguments: &str) -> Line {
    let function = match name {
        "" => json!({"arguments": arguments}),
        _ => json!({"name": name, "arguments": arguments}),
    };
    (at, delta(json!({"tool_calls": [{"index": 0, "function": function}]})))
}

fn usage(prompt: u32, completion: u32, total: u32, more: Value) -> Value {
    let mut usage = json!({
        "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total,
    });
    for (member, value) in more.as_object().unwrap() {
        usage[member] = value.clone();
    }
    usage
}

/// The finish reason of a chat, and its usage.
fn done(at: u64, usage: Value) -> Vec<Line> {
    let finish = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    vec![(at, finish), (at, json!({"choices": [], "usage": usage}))]
}

fn reasoning(tokens: u32) -> Value {
    json!({"completion_tokens_details": {"reasoning_tokens": tokens}})
}

fn start(usage: Value) -> Line {
    (20, json!({"type": "message_start", "message": {"usage": usage}}))
}

fn block(at: u64, block: Value) -> Line {
    (at, json!({"type": "content_block_start", "content_block": block}))
}

/// Pieces in the member of Anthropic's deltas.
fn parts(member: &str, first: u64, tokens: usize, size: usize) -> Vec<Line> {
    let pieces = spread(first, tokens, size).into_iter();
    let part = |text| json!({"type": "content_block_delta", "delta": { member: text }});
    pieces.map(|(at, text)| (at, part(text))).collect()
}

fn end(at: u64, usage: Value) -> Vec<Line> {
    let reason = json!({"stop_reason": "end_turn"});
    let delta = json!({"type": "message_delta", "delta": reason, "usage": usage});
    vec![(at, delta), (at, json!({"type": "message_stop"}))]
}

/// Pieces in events of the Responses API.
fn deltas(kind: &str, first: u64, tokens: usize, size: usize) -> Vec<Line> {
    let pieces = spread(first, tokens, size).into_iter();
    let event = |text| json!({"type": format!("response.{kind}.delta"), "delta": text});
    pieces.map(|(at, text)| (at, event(text))).collect()
}

fn completed(at: u64, input: u32, output: u32, reasoning: u32, cached: u32) -> Line {
    let usage = json!({
        "input_tokens": input, "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output, "output_tokens_details": {"reasoning_tokens": reasoning},
        "total_tokens": input + output,
    });
    (at, json!({"type": "response.completed", "response": {"status": "completed", "usage": usage}}))
}

fn variants() -> Vec<Variant> {
    [openai(), reasoning_apart(), servers(), anthropic(), responses()]
        .into_iter()
        .flatten()
        .collect()
}

fn openai() -> Vec<Variant> {
    let text = |first| stream("content", first, 20, 1);
    let zero = json!({"prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0}});
    let hidden = json!({"prompt_tokens_details": {"cached_tokens": 32},
        "completion_tokens_details": {"reasoning_tokens": 100}});
    let rejected = json!({"completion_tokens_details": {"reasoning_tokens": 0,
        "accepted_prediction_tokens": 10, "rejected_prediction_tokens": 60}});
    let mut name_first = vec![call(100, "find_city_by_na", "")];
    name_first.extend(spread(110, 30, 1).into_iter().map(|(at, text)| call(at, "", &text)));
    let mut both = stream("content", 100, 40, 8);
    both.push(call(520, "find_city_by_na", ""));
    both.extend(spread(580, 24, 8).into_iter().map(|(at, text)| call(at, "", &text)));
    vec![
        Variant {
            output: 20,
            budget: 70,
            ..variant("plain", CHAT, [text(100), done(290, usage(50, 20, 70, zero))].concat())
        },
        Variant {
            output: 120,
            cached: 32,
            budget: 170,
            ..variant(
                "hidden",
                CHAT,
                [text(1200), done(1390, usage(50, 120, 170, hidden))].concat(),
            )
        },
        Variant {
            output: 100,
            budget: 150,
            ..variant(
                "rejected prediction",
                CHAT,
                [stream("content", 100, 40, 2), done(480, usage(50, 100, 150, rejected))].concat(),
            )
        },
        Variant {
            output: 34,
            budget: 84,
            ..variant(
                "the name of a tool first",
                CHAT,
                [name_first, done(400, usage(50, 34, 84, json!({})))].concat(),
            )
        },
        Variant {
            output: 68,
            budget: 118,
            ..variant(
                "a text, then a call, in large pieces",
                CHAT,
                [both, done(740, usage(50, 68, 118, json!({})))].concat(),
            )
        },
    ]
}

/// xAI and Google count reasoning beside the completion, Perplexity in no sum.
fn reasoning_apart() -> Vec<Variant> {
    let mut xai = reasoning(500);
    xai["prompt_tokens_details"] = json!({"cached_tokens": 5});
    let google = |at, tokens, sum| {
        let finish = json!([{"delta": {"content": words(20)}, "finish_reason": "stop"}]);
        (at, json!({"choices": finish, "usage": usage(50, tokens, sum, json!({}))}))
    };
    let searches = json!({"reasoning_tokens": 700, "citation_tokens": 900});
    vec![
        Variant {
            output: 520,
            cached: 5,
            budget: 570,
            ..variant(
                "xAI, hidden",
                CHAT,
                [stream("content", 5100, 20, 1), done(5290, usage(50, 20, 570, xai))].concat(),
            )
        },
        Variant {
            output: 120,
            budget: 170,
            ..variant(
                "xAI, shown",
                CHAT,
                [
                    stream("reasoning_content", 100, 100, 2),
                    stream("content", 1100, 20, 2),
                    done(1280, usage(50, 20, 170, reasoning(100))),
                ]
                .concat(),
            )
        },
        Variant {
            output: 440,
            budget: 490,
            ..variant("Google", CHAT, vec![google(4100, 20, 470), google(4300, 40, 490)])
        },
        Variant {
            output: 740,
            budget: 790,
            ..variant(
                "Perplexity",
                CHAT,
                [stream("content", 8100, 40, 2), done(8480, usage(50, 40, 90, searches))].concat(),
            )
        },
    ]
}

fn servers() -> Vec<Variant> {
    let shown = |size, tokens: u64| {
        let then = 100 + tokens * 10;
        let tokens = usize::try_from(tokens).unwrap();
        [stream("reasoning_content", 100, tokens, size), stream("content", then, 20, size)].concat()
    };
    let mut deepseek = reasoning(40);
    deepseek["prompt_cache_hit_tokens"] = json!(32);
    deepseek["prompt_cache_miss_tokens"] = json!(18);
    let mut continuous = vec![(20, delta(json!({"role": "assistant", "content": ""})))];
    for ((at, text), n) in spread(100, 60, 3).into_iter().zip(1..) {
        let mut chunk = delta(json!({"content": text}));
        chunk["usage"] = usage(50, 3 * n, 50 + 3 * n, json!({}));
        continuous.push((at, chunk));
    }
    let arguments = format!("{{\"a\":\"{}\"}}", words(26));
    let in_choice = json!([{"index": 0, "delta": {}, "finish_reason": "stop",
        "usage": usage(50, 50, 100, json!({"cached_tokens": 48}))}]);
    let groq = json!({"usage": usage(50, 70, 120, reasoning(50))});
    let magistral = [spread(100, 60, 6).into_iter().map(|(at, text)| {
        let part = json!({"type": "thinking", "thinking": [{"type": "text", "text": text}]});
        (at, delta(json!({"content": [part]})))
    })];
    let magistral = magistral.into_iter().flatten().chain(stream("content", 700, 24, 6));
    vec![
        Variant {
            output: 60,
            cached: 32,
            budget: 110,
            ..variant(
                "DeepSeek",
                CHAT,
                [shown(2, 40), done(680, usage(50, 60, 110, deepseek))].concat(),
            )
        },
        Variant {
            output: 60,
            budget: 110,
            ..variant(
                "vLLM, shown without details",
                CHAT,
                [shown(1, 40), done(690, usage(50, 60, 110, json!({})))].concat(),
            )
        },
        Variant {
            output: 120,
            budget: 170,
            ..variant(
                "vLLM, hidden without details",
                CHAT,
                [stream("content", 1100, 20, 1), done(1290, usage(50, 120, 170, json!({})))]
                    .concat(),
            )
        },
        Variant {
            output: 60,
            budget: 110,
            ..variant(
                "vLLM, speculative, with usage in each chunk",
                CHAT,
                [continuous, done(670, usage(50, 60, 110, json!({})))].concat(),
            )
        },
        Variant {
            output: 32,
            budget: 82,
            ..variant(
                "vLLM, a call in one piece",
                CHAT,
                [vec![call(450, "find_city", &arguments)], done(450, usage(50, 32, 82, json!({})))]
                    .concat(),
            )
        },
        Variant {
            output: 50,
            cached: 48,
            budget: 100,
            ..variant(
                "Moonshot AI, usage in the choice",
                CHAT,
                [shown(1, 30), vec![(590, json!({"choices": in_choice}))]].concat(),
            )
        },
        Variant {
            output: 70,
            budget: 120,
            ..variant(
                "Groq, usage in x_groq",
                CHAT,
                [
                    stream("content", 600, 20, 1),
                    vec![(790, json!({"choices": [{"finish_reason": "stop"}], "x_groq": groq}))],
                ]
                .concat(),
            )
        },
        Variant {
            output: 20,
            input: None,
            ..variant(
                "a gateway that reports zeros",
                CHAT,
                [stream("content", 100, 20, 1), done(290, usage(0, 0, 0, json!({})))].concat(),
            )
        },
        Variant {
            output: 84,
            budget: 134,
            ..variant(
                "Magistral",
                CHAT,
                [magistral.collect(), done(880, usage(50, 84, 134, json!({})))].concat(),
            )
        },
    ]
}

fn anthropic() -> Vec<Variant> {
    let cached = json!({"input_tokens": 10, "cache_read_input_tokens": 900,
        "cache_creation_input_tokens": 90, "output_tokens": 1});
    let told = json!({"output_tokens": 440, "output_tokens_details": {"thinking_tokens": 400}});
    let thinking = || block(500, json!({"type": "thinking", "thinking": "", "signature": ""}));
    let text = || {
        let start = block(5000, json!({"type": "text", "text": ""}));
        [vec![start], parts("text", 5020, 40, 2)].concat()
    };
    let arguments = |at, json: String| {
        (at, json!({"type": "content_block_delta", "delta": {"partial_json": json}}))
    };
    let late = json!({"output_tokens": 100, "cache_read_input_tokens": 9000});
    let searched = json!({"input_tokens": 10682, "output_tokens": 52});
    vec![
        Variant {
            output: 440,
            input: Some(1000),
            cached: 900,
            budget: 1440,
            ..variant(
                "summarised thinking",
                MESSAGES,
                [
                    vec![start(cached), thinking()],
                    parts("thinking", 4600, 30, 3),
                    text(),
                    end(5400, told),
                ]
                .concat(),
            )
        },
        Variant {
            output: 440,
            input: Some(100),
            budget: 540,
            ..variant(
                "omitted thinking without details",
                MESSAGES,
                [
                    vec![start(json!({"input_tokens": 100})), thinking()],
                    text(),
                    end(5400, json!({"output_tokens": 440})),
                ]
                .concat(),
            )
        },
        Variant {
            output: 100,
            input: Some(9899),
            cached: 9000,
            budget: 9999,
            ..variant(
                "a call that is held back, cached tokens at the end",
                MESSAGES,
                [
                    vec![
                        start(json!({"input_tokens": 899})),
                        block(
                            120,
                            json!({"type": "tool_use", "id": "1", "name": "write_file_body_"}),
                        ),
                        arguments(1080, format!("{{\"a\":\"{}", words(46))),
                        arguments(1081, format!("{}\"}}", words(47))),
                    ],
                    end(1081, late),
                ]
                .concat(),
            )
        },
        Variant {
            output: 52,
            input: Some(10682),
            budget: 10734,
            ..variant(
                "a tool of the server between two texts",
                MESSAGES,
                [
                    vec![start(json!({"input_tokens": 2679, "cache_read_input_tokens": 0}))],
                    parts("text", 110, 20, 2),
                    vec![
                        block(
                            320,
                            json!({"type": "server_tool_use", "id": "1", "name": "web_search"}),
                        ),
                        arguments(420, "{\"query\":\"sun sea ice\"}".to_owned()),
                        block(1500, json!({"type": "web_search_tool_result", "content": []})),
                    ],
                    parts("text", 1910, 20, 2),
                    end(2100, searched),
                ]
                .concat(),
            )
        },
    ]
}

fn responses() -> Vec<Variant> {
    let item = |at, item: Value| (at, json!({"type": "response.output_item.added", "item": item}));
    let function = json!({"type": "function_call", "call_id": "1", "name": "find_city_by_na"});
    let code = json!({"type": "code_interpreter_call", "id": "1"});
    let runs = json!({"type": "response.code_interpreter_call.interpreting", "item_id": "1"});
    vec![
        Variant {
            output: 334,
            input: Some(64),
            cached: 32,
            budget: 398,
            ..variant(
                "a summary, then a call",
                RESPONSES,
                [
                    deltas("reasoning_summary_text", 900, 30, 3),
                    vec![item(3120, function)],
                    deltas("function_call_arguments", 3140, 30, 2),
                    vec![completed(3420, 64, 334, 300, 32)],
                ]
                .concat(),
            )
        },
        Variant {
            output: 62,
            input: Some(300),
            budget: 362,
            ..variant(
                "a code interpreter",
                RESPONSES,
                [
                    vec![item(100, code)],
                    deltas("code_interpreter_call_code", 120, 40, 2),
                    vec![(510, runs)],
                    deltas("output_text", 1600, 20, 2),
                    vec![completed(1780, 300, 62, 0, 0)],
                ]
                .concat(),
            )
        },
    ]
}

/// Decodes a stream; `on_delta` gets the time of each piece.
fn decode(variant: &Variant, mut on_delta: impl FnMut(u64, Delta<'_>)) -> Decoder {
    let mut decoder = Decoder::new(variant.dialect, true, DecoderOptions::default());
    decoder.head(200, None);
    for (at, data) in &variant.lines {
        let event = format!("data: {data}\n\n");
        decoder.feed(event.as_bytes(), &mut |delta| on_delta(*at, delta));
    }
    decoder.finish();
    decoder
}

/// The time of a token in milliseconds.
fn tpot(variant: &Variant) -> Option<f64> {
    let mut sample = Sample::unsent(Moment::EPOCH);
    let decoder = decode(variant, |at, delta| {
        let at = Moment::EPOCH + Nanos::from_millis(at);
        let line = &mut sample.timeline;
        sample.gaps.count += u32::from(line.last_token.is_some_and(|last| last < at));
        line.first_token.get_or_insert(at);
        line.last_token = Some(at);
        if delta.kind != DeltaKind::Reasoning {
            line.first_output_token.get_or_insert(at);
        }
    });
    sample.usage = decoder.usage();
    sample.tpot().map(Nanos::as_millis_f64)
}

/// Nothing in these says how long a token took.
const UNTIMED: [&str; 6] = [
    "vLLM, hidden without details",
    "vLLM, a call in one piece",
    "a gateway that reports zeros",
    "omitted thinking without details",
    "a tool of the server between two texts",
    "a code interpreter",
];

#[test]
fn the_time_of_a_token_is_right_or_withheld() {
    // Decoders know events of this form by then.
    for variant in variants().into_iter().chain(variants()) {
        let (name, tpot) = (variant.name, tpot(&variant));
        assert_eq!(tpot.is_none(), UNTIMED.contains(&name), "{name}: {tpot:?}");
        assert!(tpot.is_none_or(|tpot| (8.5..=11.5).contains(&tpot)), "{name}: {tpot:?}");
    }
}

/// Hidden reasoning between a text and a call takes time, and is not a part of either.
#[test]
fn a_pause_for_hidden_reasoning_is_not_the_time_of_a_token() {
    let item = |at, item: Value| (at, json!({"type": "response.output_item.added", "item": item}));
    let function = json!({"type": "function_call", "call_id": "1", "name": "find_city_by_na"});
    let interleaved = [
        vec![item(50, json!({"type": "reasoning"}))],
        deltas("output_text", 1000, 20, 1),
        vec![item(1200, json!({"type": "reasoning"})), item(4000, function)],
        deltas("function_call_arguments", 4010, 20, 1),
        vec![completed(4210, 64, 344, 300, 0)],
    ];
    assert_eq!(tpot(&variant("interleaved", RESPONSES, interleaved.concat())), None);
}

#[test]
fn counts_include_what_the_provider_counts_elsewhere() {
    assert_eq!(variants().len(), 24);
    for variant in variants() {
        let (name, decoder) = (variant.name, decode(&variant, |_, _| {}));
        let usage = decoder.usage();
        assert_eq!(usage.completion.count, variant.output, "{name}");
        assert_eq!(usage.prompt.known(), variant.input, "{name}");
        assert_eq!(usage.cached, variant.cached, "{name}");
        if variant.budget > 0 {
            let sum = usage.prompt.count + usage.completion.count;
            let budget = sum.max(decoder.reported_total().unwrap_or(0));
            assert_eq!(budget, variant.budget, "{name}");
        }
    }
}

#[test]
fn the_name_of_a_call_is_its_first_content_in_every_dialect() {
    for (name, at, first) in [
        ("the name of a tool first", 100, "find_city_by_na"),
        ("a call that is held back, cached tokens at the end", 120, "write_file_body_"),
        ("a summary, then a call", 3120, "find_city_by_na"),
        ("a code interpreter", 120, "the sun "),
    ] {
        let variant = variants().into_iter().find(|variant| variant.name == name).unwrap();
        let mut calls = Vec::new();
        decode(&variant, |at, delta| {
            if delta.kind == DeltaKind::ToolCall {
                calls.push((at, delta.text.to_owned()));
            }
        });
        assert_eq!(calls[0], (at, first.to_owned()), "{name}");
    }
}

#[test]
fn text_between_leading_think_tags_is_reasoning() {
    use DeltaKind::{Reasoning, Text};
    for (texts, kinds) in [
        (["<think>", "so", "</think>", "yes"], [Reasoning, Reasoning, Reasoning, Text]),
        (["\n<think>so</think>", "yes", "or", "no"], [Reasoning, Text, Text, Text]),
        (["The tag", "<think>", "opens", "</think>"], [Text; 4]),
    ] {
        let lines = texts.iter().map(|text| (0, delta(json!({ "content": text }))));
        let mut found = Vec::new();
        decode(&variant("tags", CHAT, lines.collect()), |_, delta| found.push(delta.kind));
        assert_eq!(found, kinds, "{texts:?}");
    }
}
