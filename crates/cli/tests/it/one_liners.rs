//! Command lines from the documentation of other tools, typed here: most load as they are, and the
//! hint of the others leads to a load that runs.

use crate::plain_server::PlainServer;
use crate::support::{FAST, Fixture};

/// The lines, a part of the expected message, and the line suggested by the hint, if they are
/// refused. `URL` is a server, `LLM` a provider.
const LINES: [(&str, &str, Option<&str>); 10] = [
    ("http -n 100 -c 4 --latency-correction --disable-keepalive URL", "always count", None),
    ("http -z 1s --rate 20 -m POST -D body.txt -T text/plain URL", "`--body @body.txt`", None),
    ("http -t2 -c4 -d1s -R20 --latency URL", "`--rate 20`", None),
    ("http -duration=1s -rate=20 -header a:b URL", "`-d 1s`", None),
    ("run minimal --vus 4 --duration 1s --target LLM", "`-c 4`", None),
    (
        "llm --model m --url LLM --endpoint-type chat --concurrency 4 --request-count 8 --streaming --output-tokens-mean 4",
        "`--osl 4`",
        None,
    ),
    (
        "llm --target LLM --model m --rate-type constant --rate 5,10 --max-seconds 1 --max-tokens 4",
        "`--arrivals constant`",
        None,
    ),
    ("http -z 1s -q 20 URL", "use --rate N", Some("http -z 1s --rate 20 URL")),
    (
        "http -n 10 --burst-delay 2s --burst-rate 4 URL",
        "--rate N --arrivals poisson",
        Some("http -n 10 --rate 20 --arrivals poisson URL"),
    ),
    (
        "llm --target LLM --max-seconds 1 --data prompt_tokens=256,output_tokens=4",
        "--isl N and --osl N",
        Some("llm LLM -m m --max-seconds 1 --isl 256 --osl 4 -c 2"),
    ),
];

#[test]
fn one_liners_of_other_tools_load_as_they_are_or_by_their_hint() {
    let (fixture, server) = (Fixture::with(FAST), PlainServer::spawn());
    std::fs::write(fixture.folder.path().join("body.txt"), "hello").unwrap();
    let run = |line: &str| {
        let line = line.replace("URL", &server.url("/200/x")).replace("LLM", &fixture.target());
        fixture.plimsoll(&line.split(' ').collect::<Vec<_>>())
    };
    for (typed, says, hinted) in LINES {
        if hinted.is_some() {
            let output = run(typed).expect(2);
            assert!(output.stderr.contains(says), "{typed}: {}", output.stderr);
        }
        let line = hinted.unwrap_or(typed);
        let warmup = if line.starts_with("llm") { " --warmup 0" } else { "" };
        let output = run(&format!("{line} --quiet --allow-invalid --out runs{warmup}"));
        let is_said = hinted.is_some() || output.stderr.contains(says);
        assert!(
            matches!(output.code, Some(0 | 3)) && is_said,
            "{line}: {}{}",
            output.stdout,
            output.stderr
        );
        let summary = crate::support::summary(&fixture.runs().pop().unwrap());
        assert!(summary.results.total.counters.completed > 0, "{line}");
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
