//! Command lines from the documentation of other tools, typed here: following the hints alone leads
//! to a load that runs.

use crate::plain_server::PlainServer;
use crate::support::{FAST, Fixture};

/// A command line that is refused, and what its hint says to write in place of what.
type Step = (&'static str, &'static str);

/// The command lines, each up to the one that runs. `URL` is a server, `LLM` a provider.
const LINES: [(&str, &[Step], &str); 10] = [
    (
        "oha -n 100 -c 4 --latency-correction --disable-keepalive URL",
        &[
            ("http -n 100 -c 4 --latency-correction --disable-keepalive URL", "always count"),
            ("http -n 100 -c 4 --disable-keepalive URL", "--no-keepalive"),
        ],
        "http -n 100 -c 4 --no-keepalive URL",
    ),
    (
        "oha -n 10 --burst-delay 2s --burst-rate 4 URL",
        &[("http -n 10 --burst-delay 2s --burst-rate 4 URL", "--rate N --arrivals poisson")],
        "http -n 10 --rate 20 --arrivals poisson URL",
    ),
    (
        "hey -z 1s -q 20 -m POST -D body.txt -T text/plain URL",
        &[
            ("http -z 1s -q 20 -m POST -D body.txt -T text/plain URL", "--rate N"),
            ("http -z 1s --rate 20 -m POST -D body.txt -T text/plain URL", "-d TIME"),
            ("http -d 1s --rate 20 -m POST -D body.txt -T text/plain URL", "--body @FILE"),
            (
                "http -d 1s --rate 20 -m POST --body @body.txt -T text/plain URL",
                "-H 'content-type: TYPE'",
            ),
        ],
        "http -d 1s --rate 20 -m POST --body @body.txt -H content-type:text/plain URL",
    ),
    (
        "wrk -t12 -c4 -d1s --latency URL",
        &[
            ("http -t12 -c4 -d1s --latency URL", "takes a worker for each core"),
            ("http -c4 -d1s --latency URL", "percentiles are always shown"),
        ],
        "http -c4 -d1s URL",
    ),
    (
        "wrk -t2 -c4 -d1s -R20 URL",
        &[
            ("http -t2 -c4 -d1s -R20 URL", "takes a worker for each core"),
            ("http -c4 -d1s -R20 URL", "--rate N"),
        ],
        "http -c4 -d1s --rate 20 URL",
    ),
    (
        "vegeta attack -duration=1s -rate=20 -header 'a: b'",
        &[
            ("http -duration=1s -rate=20 -header a:b URL", "-d TIME"),
            ("http -d 1s -rate=20 -header a:b URL", "--rate N"),
            ("http -d 1s --rate 20 -header a:b URL", "-H 'NAME: VALUE'"),
        ],
        "http -d 1s --rate 20 -H a:b URL",
    ),
    (
        "k6 run --vus 4 --duration 1s script.js",
        &[
            ("run minimal --vus 4 --duration 1s --target LLM", "--stages N:TIME"),
            ("run minimal --stages 4:1s --duration 1s --target LLM", "--stages"),
        ],
        "run minimal --stages 4:1s --target LLM",
    ),
    (
        "k6 run -s 1s:4 -s 1s:0 --summary-export s.json script.js",
        &[
            ("run minimal -s 1s:4 --summary-export s.json --target LLM", "--stages"),
            ("run minimal --stages 4:1s --summary-export s.json --target LLM", "--out DIR"),
        ],
        "run minimal --stages 4:1s --target LLM",
    ),
    (
        "aiperf profile --model m --url LLM --endpoint-type chat --concurrency 4 --request-count 8 --streaming --output-tokens-mean 4",
        &[
            (
                "llm LLM --model m --url LLM --endpoint-type chat --concurrency 4 --request-count 8 --streaming --output-tokens-mean 4",
                "the URL as first argument",
            ),
            (
                "llm LLM --model m --endpoint-type chat --concurrency 4 --request-count 8 --streaming --output-tokens-mean 4",
                "--protocol openai-chat",
            ),
            (
                "llm LLM --model m --protocol openai-chat --concurrency 4 --request-count 8 --streaming --output-tokens-mean 4",
                "-n N",
            ),
            (
                "llm LLM --model m --protocol openai-chat --concurrency 4 -n 8 --streaming --output-tokens-mean 4",
                "answers are streamed",
            ),
            (
                "llm LLM --model m --protocol openai-chat --concurrency 4 -n 8 --output-tokens-mean 4",
                "--osl N",
            ),
        ],
        "llm LLM --model m --protocol openai-chat --concurrency 4 -n 8 --osl 4",
    ),
    (
        "guidellm benchmark --target LLM --rate-type sweep --max-seconds 1 --data prompt_tokens=256,output_tokens=4",
        &[
            (
                "llm --target LLM --rate-type sweep --max-seconds 1 --data prompt_tokens=256,output_tokens=4 --model m",
                "the URL as first argument",
            ),
            (
                "llm LLM --rate-type sweep --max-seconds 1 --data prompt_tokens=256,output_tokens=4 --model m",
                "--rate N,... for constant",
            ),
            (
                "llm LLM --rate 5,10 --max-seconds 1 --data prompt_tokens=256,output_tokens=4 --model m",
                "-d TIME",
            ),
            (
                "llm LLM --rate 5,10 -d 1s --data prompt_tokens=256,output_tokens=4 --model m",
                "--isl N and --osl N",
            ),
        ],
        "llm LLM --rate 5,10 -d 1s --isl 256 --osl 4 --model m",
    ),
];

#[test]
fn one_liners_of_other_tools_are_translated_by_the_hints_alone() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    std::fs::write(fixture.folder.path().join("body.txt"), "hello").unwrap();
    let run = |line: &str| {
        let line = line.replace("URL", &server.url("/200/x")).replace("LLM", &fixture.target());
        fixture.plimsoll(&line.split(' ').collect::<Vec<_>>())
    };
    for (typed, steps, end) in LINES {
        for (line, says) in steps {
            let output = run(line).expect(2);
            assert!(output.stderr.contains(says), "{typed}\n{line}: {}", output.stderr);
            assert!(!output.stderr.contains("tip:"), "{typed}\n{line}: {}", output.stderr);
        }
        let warmup = if end.starts_with("llm") { " --warmup 0" } else { "" };
        let output = run(&format!("{end} --quiet --allow-invalid --out runs{warmup}"));
        assert!(
            matches!(output.code, Some(0 | 3)),
            "{typed}\n{end}: {}{}",
            output.stdout,
            output.stderr
        );
        let summary = crate::support::summary(&fixture.runs().pop().unwrap());
        assert!(summary.results.total.counters.completed > 0, "{typed}\n{end}");
    }
}

/// A tip for a flag that only looks like it sends people the wrong way.
#[test]
fn tips_are_for_slips_of_the_finger_alone() {
    let fixture = Fixture::with(FAST);
    for (line, tip) in [
        ("http u --threasds 3", None),
        ("http u --frobnicate", None),
        ("run minimal --stage-count 3", None),
        ("run minimal --stagse 5:5s", Some("--stages")),
        ("http u --redirecst 3", Some("--redirects")),
    ] {
        let output = fixture.plimsoll(&line.split(' ').collect::<Vec<_>>()).expect(2);
        match tip {
            Some(tip) => assert!(output.stderr.contains(tip), "{line}: {}", output.stderr),
            None => assert!(!output.stderr.contains("tip:"), "{line}: {}", output.stderr),
        }
    }
}
