//! Flags of other tools, and ours in their place: fingers know them, and the nearest word of our
//! own that the parser would propose means something else.

use std::ffi::OsString;

/// A flag that another tool has.
struct ForeignFlag {
    /// As it is typed.
    flag: &'static str,
    /// The tools that have it.
    tools: &'static str,
    /// Commands of ours that the hint is for; empty for every command that makes load.
    commands: &'static [&'static str],
    /// What to type instead, or why there is nothing.
    ours: &'static str,
}

const ANY: &[&str] = &[];
const HTTP: &[&str] = &["http"];
const LLM: &[&str] = &["run", "versus", "knee"];
/// `plimsoll llm`, whose flags are nearly those of its peers.
const ONE_LINE: &[&str] = &["llm"];

const fn row(
    flag: &'static str,
    tools: &'static str,
    commands: &'static [&'static str],
    ours: &'static str,
) -> ForeignFlag {
    ForeignFlag { flag, tools, commands, ours }
}

/// The first row that fits holds.
#[rustfmt::skip]
const FLAGS: &[ForeignFlag] = &[
    // Of a load on an LLM in one line.
    row("--request-rate", "AIPerf and vLLM's benchmark", ONE_LINE, "--rate N,..."),
    row("--stages", "`plimsoll run`", ONE_LINE, "-c N,... or --rate N,..., and -d TIME for each"),
    row("--vus", "k6", ONE_LINE, "-c N"),
    row("-u", "AIPerf", ONE_LINE, "the URL as first argument"),
    row("--url", "AIPerf", ONE_LINE, "the URL as first argument"),
    row("--target", "GuideLLM", ONE_LINE, "the URL as first argument"),
    row("--base-url", "vLLM's benchmark", ONE_LINE, "the URL as first argument"),
    row("--model-names", "AIPerf", ONE_LINE, "--model NAME,..."),
    row("--max-concurrency", "vLLM's benchmark", ONE_LINE, "-c N"),
    row("--benchmark-duration", "AIPerf", ONE_LINE, "-d TIME"),
    row("--max-seconds", "GuideLLM", ONE_LINE, "-d TIME"),
    row("--warmup-request-count", "AIPerf", ONE_LINE, "--warmup TIME"),
    row("--warmup-percent", "GuideLLM", ONE_LINE, "--warmup TIME"),
    row("--rate-type", "GuideLLM", ONE_LINE, "-c N,... for concurrent, --rate N,... for constant, --sweep"),
    row("--profile", "GuideLLM", ONE_LINE, "-c N,... for concurrent, --rate N,... for constant, --sweep"),
    row("--synthetic-input-tokens-mean", "AIPerf", ONE_LINE, "--isl N"),
    row("--random-input-len", "vLLM's benchmark", ONE_LINE, "--isl N"),
    row("--synthetic-input-tokens-stddev", "AIPerf", ONE_LINE, "--isl-stddev N"),
    row("--output-tokens-stddev", "AIPerf", ONE_LINE, "--osl-stddev N"),
    row("--output-tokens-mean", "AIPerf", ONE_LINE, "--osl N"),
    row("--random-output-len", "vLLM's benchmark", ONE_LINE, "--osl N"),
    row("--streaming", "AIPerf", ONE_LINE, "nothing: answers are streamed, unless --no-stream"),
    row("--stream", "providers", ONE_LINE, "nothing: answers are streamed, unless --no-stream"),
    row("--processor", "GuideLLM", ONE_LINE, "--tokenizer FILE, a tokenizer.json"),
    row("--input-file", "AIPerf", ONE_LINE, "--prompts FILE"),
    row("--dataset-path", "vLLM's benchmark", ONE_LINE, "--prompts FILE"),
    row("--data", "GuideLLM", ONE_LINE, "--isl N and --osl N, or --prompts FILE"),
    row("--slo", "`plimsoll knee`", ONE_LINE, "--goodput BOUNDS"),
    // Number and length of requests.
    row("--requests", "ab and bombardier", ANY, "-n N"),
    row("--iterations", "k6", ANY, "-n N"),
    row("-i", "k6", ANY, "-n N"),
    row("--request-count", "AIPerf", ANY, "-n N"),
    row("--num-prompts", "vLLM's benchmark", ANY, "-n N"),
    row("--num-requests", "AIPerf", ANY, "-n N"),
    row("--conversation-num", "AIPerf", ANY, "-n N, which counts turns"),
    row("--num-conversations", "AIPerf", ANY, "-n N, which counts turns"),
    row("-z", "oha and hey", HTTP, "-d TIME, like -d 30s"),
    row("-z", "oha and hey", ANY, "--stages, like --stages 50:30s"),
    row("--duration", "k6, wrk and vegeta", ANY, "--stages, like --stages 50:30s for 50 users"),
    row("-d", "wrk and k6", ANY, "--stages, like --stages 50:30s for 50 users"),
    row("--benchmark-duration", "AIPerf", ANY, "--stages, like --stages 8:60s for 8 users"),
    row("--max-seconds", "GuideLLM", ANY, "--stages, like --stages 8:60s for 8 users"),
    row("-duration", "vegeta", HTTP, "-d TIME, like -d 30s"),
    row("-duration", "vegeta", ANY, "--stages, like --stages @50:30s"),
    row("--warmup-request-count", "AIPerf", ANY, "a warm-up stage in --stages, like w8:10s,8:60s"),
    row("--cooldown", "GuideLLM", ANY, "nothing: requests in flight at the end are counted apart"),
    row("--execution-segment", "k6", ANY, "--shard K/N"),
    // Users, connections, rate.
    row("--vus", "k6", HTTP, "-c N"),
    row("-u", "k6", HTTP, "-c N"),
    row("--vus", "k6", ANY, "--stages N:TIME, like --stages 50:30s"),
    row("-u", "k6", ANY, "--stages N:TIME, like --stages 50:30s"),
    row("--concurrency", "oha and AIPerf", HTTP, "-c N"),
    row("--concurrency", "AIPerf", ANY, "--stages N:TIME, like --stages 8:60s for 8 users"),
    row("-c", "oha, hey and wrk", ANY, "--stages N:TIME, like --stages 50:30s for 50 users"),
    row("--connections", "wrk", ANY, "--stages N:TIME, like --stages 50:30s for 50 users"),
    row("-connections", "vegeta", HTTP, "-c N"),
    row("-max-connections", "vegeta", HTTP, "-c N"),
    row("-max-workers", "vegeta", HTTP, "-c N, which limits the requests in flight"),
    row("-workers", "vegeta", HTTP, "-c N, which limits the requests in flight"),
    row("-t", "wrk", HTTP, "nothing: Plimsoll takes a worker for each core; -c N sets connections"),
    row("--threads", "wrk", ANY, "nothing: Plimsoll takes a worker for each core; `workers` of a profile sets their number"),
    row("-cpus", "hey", ANY, "nothing: Plimsoll takes a worker for each core; `workers` of a profile sets their number"),
    row("-p", "oha", HTTP, "--http2 STREAMS"),
    row("--qps", "oha and fortio", ANY, "--stages @RATE:TIME, like --stages @50:30s"),
    row("--rps", "k6", HTTP, "--rate N"),
    row("--rps", "k6", ANY, "--stages @RATE:TIME, like --stages @50:30s"),
    row("-R", "wrk2", HTTP, "--rate N"),
    row("-R", "wrk2", ANY, "--stages @RATE:TIME, like --stages @50:30s"),
    row("-rate", "vegeta", HTTP, "--rate N"),
    row("-rate", "vegeta", ANY, "--stages @RATE:TIME, like --stages @50:30s"),
    row("--rate", "GuideLLM", &["run", "knee"], "--stages @RATE:TIME, like --stages @5:60s, or N:TIME for users"),
    row("--request-rate", "AIPerf and vLLM's benchmark", HTTP, "--rate N"),
    row("--request-rate", "AIPerf and vLLM's benchmark", ANY, "--stages @RATE:TIME, like --stages @5:60s"),
    row("--request-rate-mode", "AIPerf", HTTP, "--arrivals constant or poisson"),
    row("--request-rate-mode", "AIPerf", ANY, "--set arrivals=constant or poisson"),
    row("--rate-type", "GuideLLM", ANY, "--stages: @RATE:TIME for a rate, N:TIME for users; `plimsoll knee` sweeps"),
    row("--profile", "GuideLLM", ANY, "--stages: @RATE:TIME for a rate, N:TIME for users; `plimsoll knee` sweeps"),
    row("--stage", "k6", ANY, "--stages, like --stages 10:30s,50:1m"),
    row("-s", "k6", LLM, "--stages, like --stages 10:30s,50:1m"),
    row("--burst-rate", "oha", HTTP, "--rate N --arrivals poisson"),
    row("--burst-delay", "oha", HTTP, "--rate N --arrivals poisson"),
    row("--latency-correction", "oha", ANY, "nothing: response times always count from the intended start"),
    row("--latency", "wrk", ANY, "nothing: percentiles are always shown"),
    row("-L", "curl", HTTP, "--redirects N; percentiles, for which wrk2 has -L, are always shown"),
    row("-L", "wrk2", ANY, "nothing: percentiles are always shown"),
    row("-U", "wrk2", ANY, "nothing: service times are in the full report (--full)"),
    row("-w", "oha", ANY, "nothing: requests in flight at the end are waited for, and counted"),
    // The request.
    row("-D", "oha and hey", HTTP, "--body @FILE"),
    row("--data", "curl", HTTP, "--body TEXT"),
    row("-X", "curl", HTTP, "--method NAME"),
    row("-T", "oha and hey", HTTP, "-H 'content-type: TYPE'"),
    row("-A", "oha and hey", HTTP, "-H 'accept: TYPE'"),
    row("--user-agent", "k6", ANY, "-H 'user-agent: NAME'"),
    row("--host", "oha", HTTP, "-H 'host: NAME'"),
    row("-host", "hey", HTTP, "-H 'host: NAME'"),
    row("-F", "oha and curl", HTTP, "--body @FILE with -H 'content-type: multipart/form-data; boundary=...'"),
    row("-body", "vegeta", HTTP, "--body @FILE"),
    row("-header", "vegeta and others", ANY, "-H 'NAME: VALUE'"),
    row("-targets", "vegeta", HTTP, "--urls FILE"),
    row("--urls-from-file", "oha", HTTP, "--urls FILE"),
    row("-targets", "vegeta", ANY, "`plimsoll http --urls FILE`, or the scenarios of a profile"),
    row("--urls-from-file", "oha", ANY, "`plimsoll http --urls FILE`, or the scenarios of a profile"),
    row("--rand-regex-url", "oha", ANY, "`{{random N}}`, `{{seq}}` and `{{uuid}}` in the URL"),
    row("-s", "wrk", HTTP, "a profile: `plimsoll profile init`"),
    row("--script", "wrk", ANY, "a profile: `plimsoll profile init`"),
    row("-timeout", "vegeta", HTTP, "--timeout TIME"),
    row("-timeout", "vegeta", ANY, "--set timeout=TIME"),
    row("--timeout", "wrk", LLM, "--set timeout=TIME"),
    row("--connect-timeout", "oha", ANY, "--set connect_timeout=TIME"),
    row("--request-timeout-seconds", "AIPerf", ANY, "--set timeout=TIME"),
    row("--http-version", "oha", HTTP, "--http2 for HTTP/2; HTTP/1.1 is the default"),
    row("-h2", "hey", HTTP, "--http2"),
    row("-http2", "vegeta", HTTP, "--http2"),
    row("-h2c", "vegeta", HTTP, "--http2 with an http:// URL"),
    row("-keepalive", "vegeta", HTTP, "--no-keepalive for -keepalive=false"),
    row("-keepalive", "vegeta", ANY, "`requests_per_connection: 1` of a profile"),
    row("--disable-keepalive", "oha", HTTP, "--no-keepalive"),
    row("-disable-keepalive", "hey", HTTP, "--no-keepalive"),
    row("--no-connection-reuse", "k6", HTTP, "--no-keepalive"),
    row("--disable-keepalive", "oha", ANY, "`requests_per_connection: 1` of a profile"),
    row("-disable-keepalive", "hey", ANY, "`requests_per_connection: 1` of a profile"),
    row("--no-connection-reuse", "k6", ANY, "`requests_per_connection: 1` of a profile"),
    row("--no-vu-connection-reuse", "k6", ANY, "`requests_per_connection: 1` of a profile"),
    row("--disable-compression", "oha", ANY, "nothing: no compression is asked for"),
    row("-disable-compression", "hey", ANY, "nothing: no compression is asked for"),
    row("-r", "oha", LLM, "--set redirects=N"),
    row("--redirect", "oha", HTTP, "--redirects N"),
    row("-redirects", "vegeta", HTTP, "--redirects N"),
    row("--max-redirects", "k6", HTTP, "--redirects N"),
    row("--max-redirs", "curl", HTTP, "--redirects N"),
    row("--location", "curl", HTTP, "--redirects N"),
    row("--redirect", "oha", ANY, "--set redirects=N"),
    row("-redirects", "vegeta", ANY, "--set redirects=N"),
    row("--max-redirects", "k6", ANY, "--set redirects=N"),
    row("-disable-redirects", "hey", ANY, "nothing: redirects are followed only with `redirects`"),
    row("-unix-socket", "vegeta", ANY, "--unix-socket PATH"),
    row("-proxy-header", "vegeta", ANY, "credentials in --proxy http://USER:PASSWORD@HOST:PORT"),
    row("-connect-to", "vegeta", ANY, "--connect-to HOST1:PORT1:HOST2:PORT2"),
    row("--resolve", "curl", ANY, "--connect-to HOST1:PORT1:HOST2:PORT2"),
    row("--socks5", "curl", ANY, "--proxy socks5://HOST:PORT"),
    row("-cert", "vegeta", ANY, "--cert FILE"),
    row("-key", "vegeta", HTTP, "--cert-key FILE"),
    row("--cacert", "oha and curl", ANY, "--ca-file FILE"),
    row("-root-certs", "vegeta", ANY, "--ca-file FILE"),
    row("-insecure", "vegeta", ANY, "--insecure"),
    row("--insecure-skip-tls-verify", "k6", ANY, "--insecure"),
    row("--key", "oha", HTTP, "--cert-key FILE for the key of a certificate; a bearer key is -H 'authorization: Bearer KEY'"),
    row("--discard-response-bodies", "k6", ANY, "nothing: bodies are read and not kept"),
    // LLM.
    row("-m", "AIPerf", LLM, "--model NAME"),
    row("--model-names", "AIPerf", ANY, "--model NAME"),
    row("--url", "AIPerf", ANY, "--target URL"),
    row("--base-url", "vLLM's benchmark", ANY, "--target URL"),
    row("--api-key", "AIPerf", ANY, "--key KEY, or the variable PLIMSOLL_KEY"),
    row("--endpoint-type", "AIPerf", ANY, "--protocol openai-chat, openai-responses, openai-embeddings or anthropic-messages"),
    row("--request-type", "GuideLLM", ANY, "--protocol openai-chat, openai-responses, openai-embeddings or anthropic-messages"),
    row("--backend", "GuideLLM", ANY, "--protocol openai-chat, openai-responses, openai-embeddings or anthropic-messages"),
    row("--streaming", "AIPerf", ANY, "--set stream=true"),
    row("--isl", "AIPerf", ANY, "another command: plimsoll llm URL --isl N; or --set content.mode=sized --set content.approx_input_tokens=N"),
    row("--synthetic-input-tokens-mean", "AIPerf", ANY, "--set content.mode=sized --set content.approx_input_tokens=N"),
    row("--random-input-len", "vLLM's benchmark", ANY, "--set content.mode=sized --set content.approx_input_tokens=N"),
    row("--osl", "AIPerf", ANY, "another command: plimsoll llm URL --osl N; or --set max_tokens=N"),
    row("--output-tokens-mean", "AIPerf", ANY, "--set max_tokens=N"),
    row("--random-output-len", "vLLM's benchmark", ANY, "--set max_tokens=N"),
    row("--conversation-turn-mean", "AIPerf", ANY, "`turns` of a scenario in a profile"),
    row("--conversation-turn-delay-mean", "AIPerf", ANY, "`think_time` of a scenario in a profile"),
    row("--extra-inputs", "AIPerf", ANY, "--set parameters.NAME=VALUE"),
    row("--tokenizer", "AIPerf", ANY, "--set tokenizer=FILE, a tokenizer.json"),
    row("--processor", "GuideLLM", ANY, "--set tokenizer=FILE, a tokenizer.json"),
    row("--input-file", "AIPerf", ANY, "`content` of a profile, or `trace` for arrival times"),
    row("--data", "GuideLLM", ANY, "`content` of a profile, or `trace` for arrival times"),
    row("--fixed-schedule", "AIPerf", ANY, "`trace` of a profile"),
    row("--goodput", "AIPerf", ANY, "--set 'goodput=ttft<500ms, tpot<50ms'; `plimsoll knee` searches the load that keeps it"),
    row("--random-seed", "AIPerf and GuideLLM", ANY, "--seed N"),
    row("--max-errors", "GuideLLM", ANY, "--abort-on-errors SHARE, like 50%"),
    row("--max-error-rate", "GuideLLM", ANY, "--abort-on-errors SHARE, like 50%"),
    // Output.
    row("--artifact-dir", "AIPerf", ANY, "--out DIR"),
    row("--output-path", "GuideLLM", ANY, "--out DIR"),
    row("--output-dir", "GuideLLM", ANY, "--out DIR"),
    row("--summary-export", "k6", ANY, "--out DIR: summary.json is in the run's folder"),
    row("--output-format", "oha", ANY, "--json, or --out DIR for all files"),
    row("-j", "oha", ANY, "--json"),
    row("-o", "oha and k6", ANY, "--out DIR"),
    row("--output", "oha", ANY, "--out DIR"),
    row("-output", "vegeta", ANY, "--out DIR"),
    row("--no-tui", "oha", ANY, "--ui lines, or --quiet"),
    row("--disable-progress", "GuideLLM", ANY, "--quiet"),
    row("--tag", "k6", ANY, "--name NAME"),
    row("-name", "vegeta", ANY, "--name NAME"),
    row("--env", "k6", ANY, "environment variables: a profile may contain ${NAME}"),
    row("-e", "k6", ANY, "environment variables: a profile may contain ${NAME}"),
    row("--no-thresholds", "k6", ANY, "nothing: only thresholds of the profile are judged"),
    row("--http-debug", "k6", ANY, "exemplars.json in the run's folder, which has single requests"),
    row("--debug", "oha", ANY, "exemplars.json in the run's folder, which has single requests"),
    row("--prometheus-addr", "vegeta", ANY, "--serve-metrics ADDR:PORT"),
    row("-prometheus-addr", "vegeta", ANY, "--serve-metrics ADDR:PORT"),
    // Single dashes, as some programs have them.
    row("-config", "programs with single dashes", ANY, "the profile as first argument: plimsoll run PROFILE"),
    row("--config", "programs with a profile", LLM, "the profile as first argument: plimsoll run PROFILE"),
    row("-profile", "programs with single dashes", ANY, "the profile as first argument: plimsoll run PROFILE"),
    row("-vk", "programs with single dashes", ANY, "--key KEY, or the variable PLIMSOLL_KEY"),
    row("--vk", "programs with virtual keys", ANY, "--key KEY, or the variable PLIMSOLL_KEY"),
    row("-key", "programs with single dashes", ANY, "--key KEY, or the variable PLIMSOLL_KEY"),
    row("-target", "programs with single dashes", ANY, "--target URL"),
    row("-model", "programs with single dashes", ANY, "--model NAME"),
    row("-stages", "programs with single dashes", ANY, "--stages STAGES"),
    row("-out", "programs with single dashes", ANY, "--out DIR"),
    row("-seed", "programs with single dashes", ANY, "--seed N"),
    row("-compare", "programs with single dashes", ANY, "another command: plimsoll compare OLD --new NEW"),
    row("--compare", "programs that compare", ANY, "another command: plimsoll compare OLD --new NEW"),
    row("-regress-pct", "programs with single dashes", ANY, "`plimsoll compare` with --gate, like --gate throughput=5%"),
    row("--regress-pct", "programs that compare", ANY, "`plimsoll compare` with --gate, like --gate throughput=5%"),
    row("-version", "programs with single dashes", ANY, "--version"),
];

/// The hint for the first flag of a command line that another tool has and the parser refuses, or
/// would misread: `-header` would be `-h`, and `-q 50` would be `--quiet` and a URL.
pub(crate) fn hint(arguments: &[OsString], refused: Option<&str>) -> Option<String> {
    let words: Vec<_> = arguments.iter().skip(1).map_while(|word| word.to_str()).collect();
    let command = words.first().copied().unwrap_or_default();
    let typed = words.iter().map(|word| word.split('=').next().unwrap_or_default());
    let single =
        typed.clone().find(|flag| is_single_dash_word(flag) && find(flag, command).is_some());
    let quiet = words.iter().position(|word| *word == "-q");
    let rate = quiet.and_then(|at| words.get(at + 1)).filter(|word| word.parse::<f64>().is_ok());
    if let Some(rate) = rate {
        let ours =
            if matches!(command, "http" | "llm") { "--rate N" } else { "--stages @RATE:TIME" };
        return Some(format!("`-q {rate}` is the rate of oha and hey; here it is {ours}"));
    }
    let refused = refused.map(|flag| flag.split([' ', '=']).next().unwrap_or_default());
    let known = find(single.or(refused)?, command)?;
    let ForeignFlag { flag, tools, ours, .. } = known;
    let nothing = ours.strip_prefix("nothing: ");
    Some(match nothing {
        Some(why) => format!("`{flag}` is of {tools}; there is no such flag here: {why}"),
        None => format!("`{flag}` is of {tools}; here it is {ours}"),
    })
}

/// Whether a word looks like `-rate`: a dash, and more than one letter.
fn is_single_dash_word(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|name| name.len() > 1 && !name.starts_with('-'))
}

fn find(flag: &str, command: &str) -> Option<&'static ForeignFlag> {
    FLAGS.iter().find(|known| {
        let fits = known.commands.is_empty() || known.commands.contains(&command);
        known.flag == flag && fits
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint_for(line: &str, refused: Option<&str>) -> Option<String> {
        hint(&line.split(' ').map(OsString::from).collect::<Vec<_>>(), refused)
    }

    #[test]
    fn flags_of_other_tools_have_a_hint_that_fits_the_command() {
        for (line, refused, part) in [
            ("p run x -header a", None, "here it is -H 'NAME: VALUE'"),
            ("p run -config x", None, "plimsoll run PROFILE"),
            ("p http -q 50 http://a", None, "here it is --rate N"),
            ("p run x --vus 5", Some("--vus"), "--stages N:TIME"),
            ("p http u --vus=5", Some("--vus=5"), "here it is -c N"),
            ("p http u --latency", Some("--latency"), "percentiles are always shown"),
            ("p run x -vk=k", None, "PLIMSOLL_KEY"),
            ("p llm u --url v", Some("--url"), "the URL as first argument"),
            ("p llm u --request-rate 5", Some("--request-rate"), "here it is --rate N,..."),
            ("p run x --goodput a", Some("--goodput"), "--set 'goodput="),
        ] {
            let hint = hint_for(line, refused).unwrap();
            assert!(hint.contains(part), "{line}: {hint}");
        }
    }

    #[test]
    fn our_own_flags_have_none() {
        for line in
            ["p http u -c100 -d 5s", "p http -q u", "p run x -Ha:b", "p run x --stages 5:5s"]
        {
            assert_eq!(hint_for(line, None), None, "{line}");
        }
        assert_eq!(hint_for("p run x --frobnicate", Some("--frobnicate")), None);
    }

    #[test]
    fn a_flag_is_listed_once_for_a_command() {
        for (index, one) in FLAGS.iter().enumerate() {
            let later = &FLAGS[index + 1..];
            let shadowed = later.iter().find(|other| {
                one.flag == other.flag
                    && (one.commands.is_empty() || one.commands == other.commands)
            });
            assert!(shadowed.is_none(), "{} is listed after its row for all commands", one.flag);
        }
    }
}
