//! Flags of other tools, and ours in their place: fingers know them, and the nearest word of our
//! own that the parser would propose means something else.

use std::ffi::OsString;

/// A flag that another tool has.
struct ForeignFlag {
    /// As it is typed; `--audio-*` stands for all that begin so.
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
    row("--endpoint", "AIPerf", ONE_LINE, "the whole path behind the URL, like http://host/v1"),
    row("--custom-endpoint", "AIPerf", ONE_LINE, "the whole path behind the URL, like http://host/v1"),
    row("--endpoint-type", "AIPerf", ONE_LINE, "--protocol openai-chat, openai-completions, openai-responses or anthropic-messages"),
    row("--backend", "GuideLLM", ONE_LINE, "--protocol openai-chat, openai-completions, openai-responses or anthropic-messages"),
    row("--request-type", "GuideLLM", ONE_LINE, "--protocol openai-chat, openai-completions, openai-responses or anthropic-messages"),
    row("--request-format", "GuideLLM", ONE_LINE, "--protocol openai-chat, openai-completions, openai-responses or anthropic-messages"),
    row("--api-key", "AIPerf", ONE_LINE, "--key KEY, or the variable PLIMSOLL_KEY"),
    row("--request-timeout-seconds", "AIPerf", ONE_LINE, "--timeout TIME, like 30s"),
    row("--model-selection-strategy", "AIPerf", ONE_LINE, "nothing: the models of --model NAME,... take turns"),
    row("--extra-inputs", "AIPerf", ONE_LINE, "--set parameters.NAME=VALUE"),
    row("--public-dataset", "AIPerf", ONE_LINE, "--prompts FILE: a file on this machine"),
    row("--custom-dataset-type", "AIPerf", ONE_LINE, "nothing: --prompts FILE tells by the file which kind it is"),
    row("--dataset-sampling-strategy", "AIPerf", ONE_LINE, "--prompts FILE, one at random each time, or with --in-order each once"),
    row("--config", "AIPerf", ONE_LINE, "another command: plimsoll run PROFILE"),
    row("--arrival-pattern", "AIPerf", ONE_LINE, "--set arrivals=poisson, or constant"),
    row("--request-rate-mode", "AIPerf", ONE_LINE, "--set arrivals=poisson, or constant"),
    row("--prompt-input-tokens-mean", "AIPerf", ONE_LINE, "--isl N"),
    row("--prompt-input-tokens-stddev", "AIPerf", ONE_LINE, "--isl-stddev N"),
    row("--prompt-output-tokens-mean", "AIPerf", ONE_LINE, "--osl N"),
    row("--prompt-output-tokens-stddev", "AIPerf", ONE_LINE, "--osl-stddev N"),
    row("-v", "AIPerf", ONE_LINE, "another command: plimsoll run PROFILE --once --verbose"),
    row("-l", "GuideLLM", ONE_LINE, "--metric-label NAME=VALUE"),
    row("--label", "GuideLLM", ONE_LINE, "--metric-label NAME=VALUE"),
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
    row("--execution-segment-sequence", "k6", ANY, "nothing: --shard K/N names a part and their number"),
    row("--paused", "k6", ANY, "--start-at TIME"),
    row("-p", "k6", &["run", "versus", "knee"], "--start-at TIME"),
    row("--no-setup", "k6", ANY, "--no-probe; a profile has no set-up"),
    row("--no-teardown", "k6", ANY, "nothing: a profile has no tear-down"),
    row("--batch", "k6", ANY, "nothing: each request of a virtual user follows the one before"),
    row("--batch-per-host", "k6", ANY, "nothing: each request of a virtual user follows the one before"),
    row("--min-iteration-duration", "k6", ANY, "`think_time` of a scenario in a profile"),
    row("--throw", "k6", ANY, "nothing: failed requests are counted, and never end a run unasked; --abort-on-errors SHARE does"),
    row("--blacklist-ip", "k6", ANY, "nothing: only the target is loaded"),
    row("--block-hostnames", "k6", ANY, "nothing: only the target is loaded"),
    row("--summary-trend-stats", "k6", ANY, "nothing: all percentiles are in the full report (--full)"),
    row("--summary-time-unit", "k6", ANY, "nothing: each figure has the unit that suits it; files have milliseconds"),
    row("--summary-mode", "k6", ANY, "--full for the whole report, --quiet for none"),
    row("--no-summary", "k6", ANY, "--quiet"),
    row("--new-machine-readable-summary", "k6", ANY, "--json"),
    row("--system-tags", "k6", ANY, "nothing: the keys of rows are fixed; see docs/reference/results.md"),
    row("--console-output", "k6", ANY, "nothing: a profile prints nothing"),
    row("--local-ips", "k6", ANY, "nothing: the system chooses the local address"),
    row("--dns", "k6", ANY, "nothing: a name is resolved whenever a connection is opened"),
    row("--include-system-env-vars", "k6", ANY, "nothing: a profile may contain ${NAME}"),
    row("--compatibility-mode", "k6", ANY, "nothing: a profile is YAML and no script"),
    row("--type", "k6", ANY, "nothing: a profile needs no type"),
    row("--traces-output", "k6", ANY, "nothing: no traces are written; rows have the ids of requests"),
    row("--linger", "k6", ANY, "--serve-metrics-linger TIME"),
    row("-l", "k6", ANY, "--serve-metrics-linger TIME"),
    row("--no-usage-report", "k6", ANY, "nothing: no usage is reported"),
    row("--secret-source", "k6", ANY, "the variable PLIMSOLL_KEY, or ${NAME} in a profile"),
    row("--log-output", "k6", ANY, "nothing: progress is on stderr, and results are in the run's folder"),
    row("--log-format", "k6", ANY, "--ui lines"),
    row("--address", "k6", ANY, "--serve-metrics ADDR:PORT"),
    row("-a", "k6", &["run", "versus", "knee"], "--serve-metrics ADDR:PORT"),
    row("--profiling-enabled", "k6", ANY, "nothing: Plimsoll measures itself; see the report's part on the generator"),
    // Users, connections, rate.
    row("--vus", "k6", HTTP, "-c N"),
    row("-u", "k6 and oha", HTTP, "-c N for the users of k6; units of time, as in oha, suit each figure by themselves"),
    row("--vus", "k6", ANY, "--stages N:TIME, like --stages 50:30s"),
    row("-u", "k6", ANY, "--stages N:TIME, like --stages 50:30s"),
    row("--concurrency", "oha and AIPerf", HTTP, "-c N"),
    row("--concurrency", "AIPerf", ANY, "--stages N:TIME, like --stages 8:60s for 8 users"),
    row("-c", "oha, hey, wrk and k6", ANY, "--stages N:TIME, like --stages 50:30s for 50 users; the configuration of k6 is the profile"),
    row("--connections", "wrk", ANY, "--stages N:TIME, like --stages 50:30s for 50 users"),
    row("-connections", "vegeta", HTTP, "-c N"),
    row("-max-connections", "vegeta", HTTP, "-c N"),
    row("-max-workers", "vegeta", HTTP, "-c N, which limits the requests in flight"),
    row("-workers", "vegeta", HTTP, "-c N, which limits the requests in flight"),
    row("-t", "oha, hey and wrk", HTTP, "--timeout TIME for the timeout of oha and hey; the threads of wrk are nothing here: Plimsoll takes a worker for each core"),
    row("-t", "wrk and k6", ANY, "nothing: Plimsoll takes a worker for each core; a profile needs no type"),
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
    row("-v", "wrk", HTTP, "another command: plimsoll --version"),
    row("--version", "all tools", ANY, "another command: plimsoll --version"),
    row("-V", "all tools", ANY, "another command: plimsoll --version"),
    row("-L", "curl", HTTP, "--redirects N; percentiles, which wrk2 shows for it, are always shown"),
    row("-L", "wrk2", ANY, "nothing: percentiles are always shown"),
    row("-U", "hey", HTTP, "-H 'user-agent: NAME'"),
    row("-U", "wrk2", ANY, "nothing: service times are in the full report (--full)"),
    row("-w", "oha", HTTP, "nothing: requests in flight at the end are waited for, and counted"),
    row("--wait-ongoing-requests-after-deadline", "oha", ANY, "nothing: requests in flight at the end are waited for, and counted"),
    row("-w", "k6", ANY, "nothing: failed requests are counted, and never end a run unasked; --abort-on-errors SHARE does"),
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
    row("--form", "oha and curl", HTTP, "--body @FILE with -H 'content-type: multipart/form-data; boundary=...'"),
    row("-Z", "oha", HTTP, "--urls FILE, with a `body` in each line"),
    row("-body", "vegeta", HTTP, "--body @FILE"),
    row("-header", "vegeta and others", ANY, "-H 'NAME: VALUE'"),
    row("-targets", "vegeta", HTTP, "--urls FILE"),
    row("--urls-from-file", "oha", HTTP, "--urls FILE"),
    row("-targets", "vegeta", ANY, "`plimsoll http --urls FILE`, or the scenarios of a profile"),
    row("-format", "vegeta", ANY, "--urls FILE, whose lines are URLs or JSON objects"),
    row("-lazy", "vegeta", ANY, "nothing: a file of requests is read once"),
    row("-chunked", "vegeta", ANY, "nothing: the length of a body is always sent"),
    row("-laddr", "vegeta", ANY, "nothing: the system chooses the local address"),
    row("-max-body", "vegeta", ANY, "nothing: bodies are read and not kept; `max_body` of a profile bounds them"),
    row("-dns-ttl", "vegeta", ANY, "nothing: a name is resolved whenever a connection is opened"),
    row("-resolvers", "vegeta", ANY, "nothing: the system's name servers are asked; --connect-to HOST1:PORT1:HOST2:PORT2 names an address"),
    row("-session-tickets", "vegeta", ANY, "nothing: TLS sessions are resumed; --no-resumption makes every handshake a full one"),
    row("--urls-from-file", "oha", ANY, "`plimsoll http --urls FILE`, or the scenarios of a profile"),
    row("--rand-regex-url", "oha", ANY, "`{{random N}}`, `{{seq}}` and `{{uuid}}` in the URL"),
    row("--max-repeat", "oha", ANY, "`{{random N}}` in the URL, which has a length of its own"),
    row("--dump-urls", "oha", ANY, "exemplars.json in the run's folder, which has single requests"),
    row("--aws-session", "oha", ANY, "nothing: requests are not signed for AWS"),
    row("--aws-sigv4", "oha", ANY, "nothing: requests are not signed for AWS"),
    row("--no-pre-lookup", "oha", ANY, "nothing: a name is resolved whenever a connection is opened"),
    row("--ipv6", "oha", ANY, "nothing: the addresses of a name are tried in turn; --connect-to HOST1:PORT1:HOST2:PORT2 names one"),
    row("--ipv4", "oha", ANY, "nothing: the addresses of a name are tried in turn; --connect-to HOST1:PORT1:HOST2:PORT2 names one"),
    row("--vsock-addr", "oha", ANY, "nothing: sockets of virtual machines are not supported"),
    row("--stats-success-breakdown", "oha", ANY, "nothing: refused and failed requests are always apart"),
    row("--db-url", "oha", ANY, "--out DIR: results.jsonl in the run's folder has a row for each request"),
    row("--time-unit", "oha", ANY, "nothing: each figure has the unit that suits it; files have milliseconds"),
    row("--fps", "oha", ANY, "nothing: the display is drawn four times a second"),
    row("--no-color", "oha and k6", ANY, "the variable NO_COLOR=1"),
    row("--disable-color", "oha", ANY, "the variable NO_COLOR=1"),
    row("--proxy-http-version", "oha", ANY, "nothing: proxies are spoken to in HTTP/1.1"),
    row("--proxy-http2", "oha", ANY, "nothing: proxies are spoken to in HTTP/1.1"),
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
    row("-proxy-header", "vegeta", ANY, "--proxy, with USER:PASSWORD@ before its host"),
    row("--proxy-header", "oha", ANY, "--proxy, with USER:PASSWORD@ before its host"),
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
    row("--endpoint-type", "AIPerf", ANY, "--protocol openai-chat, openai-completions, openai-responses, openai-embeddings or anthropic-messages"),
    row("--request-type", "GuideLLM", ANY, "--protocol openai-chat, openai-completions, openai-responses, openai-embeddings or anthropic-messages"),
    row("--backend", "GuideLLM", ANY, "--protocol openai-chat, openai-completions, openai-responses, openai-embeddings or anthropic-messages"),
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
    // What else GuideLLM has.
    row("--constraint", "GuideLLM", ANY, "-n N, -d TIME or --abort-on-errors SHARE"),
    row("--metrics", "GuideLLM", ANY, "nothing: every metric is in summary.json"),
    row("--override", "GuideLLM", ANY, "-c N,... or --rate N,..., one level after another"),
    // What else AIPerf has.
    row("--url-strategy", "AIPerf", ANY, "`targets` of a profile, which take turns"),
    row("--cache-bust", "AIPerf", ANY, "`cache_mode: bust` of a profile"),
    row("--use-legacy-max-tokens", "AIPerf", ANY, "`max_tokens_field: max_tokens` of a profile, which is the default"),
    row("--use-server-token-count", "AIPerf", ANY, "nothing: the tokens that the target reports count, and others are marked as estimated"),
    row("--per-chunk-usage", "AIPerf", ANY, "`parameters: {stream_options: {...}}` of a profile"),
    row("--connection-reuse-strategy", "AIPerf", ANY, "`requests_per_connection` of a profile"),
    row("--download-video-content", "AIPerf", ANY, "nothing: no videos are asked for"),
    row("--request-content-type", "AIPerf", ANY, "-H 'content-type: TYPE'"),
    row("--session-header", "AIPerf", ANY, "nothing: `x-request-id` has the conversation's id and the turn"),
    row("--uuid-and-strip", "AIPerf", ANY, "nothing: no images are sent"),
    row("--public-dataset", "AIPerf", ANY, "`trace` or `prompts` of a profile: a file on this machine"),
    row("--custom-dataset-type", "AIPerf", ANY, "`trace.format` of a profile"),
    row("--dataset-filter", "AIPerf", ANY, "nothing: data sets are files on this machine"),
    row("--allow-dataset-wrap", "AIPerf", ANY, "nothing: the prompts of a file repeat"),
    row("--no-allow-dataset-wrap", "AIPerf", ANY, "`order: file` of `content` in a profile"),
    row("--ignore-trace-delays", "AIPerf", ANY, "`trace` of a profile, with `stages` for the times"),
    row("--use-think-time-only", "AIPerf", ANY, "`trace` of a profile, with `stages` for the times"),
    row("--max-context-length", "AIPerf", ANY, "nothing: prompts are sent as they are; the target's refusals are counted"),
    row("-f", "AIPerf", ANY, "another command: plimsoll run PROFILE"),
    row("--no-fixed-schedule", "AIPerf", ANY, "nothing: only `trace` of a profile has times of its own"),
    row("--output-artifact-dir", "AIPerf", ANY, "--out DIR"),
    row("--export-level", "AIPerf", ANY, "--out DIR: results.jsonl has a row for each request"),
    row("--export-outputs-json", "AIPerf", ANY, "nothing: answers are not kept; `plimsoll run --once --verbose` shows one"),
    row("--slice-duration", "AIPerf", ANY, "nothing: timeline.json has every second"),
    row("--auto-plot", "AIPerf", ANY, "nothing: report.html is in every run's folder"),
    row("--no-auto-plot", "AIPerf", ANY, "nothing: report.html is in every run's folder"),
    row("--plot-required", "AIPerf", ANY, "nothing: report.html is in every run's folder"),
    row("--gen-ai-provider", "AIPerf", ANY, "--metric-label NAME=VALUE"),
    row("--export-http-trace", "AIPerf", ANY, "nothing: rows have the times of DNS, connection and TLS"),
    row("--show-trace-timing", "AIPerf", ANY, "--full"),
    row("--apply-chat-template", "AIPerf", ANY, "nothing: the tokens that the target reports count"),
    row("--benchmark-grace-period", "AIPerf", ANY, "--set drain=TIME"),
    row("--arrival-smoothness", "AIPerf", ANY, "nothing: arrivals are constant or poisson"),
    row("--vllm-burstiness", "AIPerf", ANY, "nothing: arrivals are constant or poisson"),
    row("--arrival-pattern", "AIPerf", ANY, "--set arrivals=poisson, or constant"),
    row("--concurrency-ramp-duration", "AIPerf", ANY, "another command: plimsoll run PROFILE --stages 1..8:30s,8:60s"),
    row("--request-rate-ramp-duration", "AIPerf", ANY, "another command: plimsoll run PROFILE --stages @1..8:30s,@8:60s"),
    row("--request-rate-series", "AIPerf", ANY, "`stages` of a profile, one for each point"),
    row("--failed-request-threshold", "AIPerf", ANY, "--abort-on-errors SHARE, like 50%"),
    row("--burst-phase-starts", "AIPerf", ANY, "another command: plimsoll run agent-loop"),
    row("--system-idle-gap-cap-seconds", "AIPerf", ANY, "another command: plimsoll run agent-loop"),
    row("--scenario", "AIPerf", ANY, "another command: plimsoll run PROFILE"),
    row("--unsafe-override", "AIPerf", ANY, "nothing: a profile has no locks"),
    row("--user-centric-rate", "AIPerf", ANY, "-c N with --set think_time=TIME"),
    row("--num-users", "AIPerf", ANY, "-c N"),
    row("--num-sessions", "AIPerf", ANY, "-n N, which counts turns"),
    row("--num-dataset-entries", "AIPerf", ANY, "nothing: as many prompts are made as are sent"),
    row("--inter-turn-delay-cap-seconds", "AIPerf", ANY, "`think_time` of a scenario in a profile"),
    row("--max-idle-gap-cap-seconds", "AIPerf", ANY, "`think_time` of a scenario in a profile"),
    row("--replay-speedup", "AIPerf", ANY, "`time_scale` of `trace` in a profile"),
    row("--no-open-loop-replay", "AIPerf", ANY, "-c N: each user waits for the answer"),
    row("--omit-kv-hints", "AIPerf", ANY, "nothing: no hints are sent"),
    row("--force-min-tokens", "AIPerf", ANY, "--set parameters.min_tokens=N"),
    row("--no-force-min-tokens", "AIPerf", ANY, "nothing: no `min_tokens` is sent"),
    row("--seq-dist", "AIPerf", ANY, "`approx_input_tokens: {histogram: ...}` of a profile"),
    row("--sequence-distribution", "AIPerf", ANY, "`approx_input_tokens: {histogram: ...}` of a profile"),
    row("--random-range-ratio", "AIPerf", ANY, "`approx_input_tokens: {min: N, max: N}` of a profile"),
    row("--random-corpus-style", "AIPerf", ANY, "nothing: prompts are made of words of known length"),
    row("--isl-block-size", "AIPerf", ANY, "`block_size` of `trace` in a profile"),
    row("--prompt-input-tokens-block-size", "AIPerf", ANY, "`block_size` of `trace` in a profile"),
    row("--synthetic-input-tokens-block-size", "AIPerf", ANY, "`block_size` of `trace` in a profile"),
    row("--prompt-batch-size", "AIPerf", ANY, "`items` of a scenario of embeddings in a profile"),
    row("--batch-size-text", "AIPerf", ANY, "`items` of a scenario of embeddings in a profile"),
    row("--batch-size", "AIPerf", ANY, "`items` of a scenario of embeddings in a profile"),
    row("-b", "AIPerf", &["llm", "run", "versus", "knee"], "`items` of a scenario of embeddings in a profile"),
    row("--prompt-corpus", "AIPerf", ANY, "--prompts FILE"),
    row("--system-prompt", "AIPerf", ANY, "--set system.text=TEXT"),
    row("--system-prompt-file", "AIPerf", ANY, "`system.text` of a profile"),
    row("--shared-system-prompt-length", "AIPerf", ANY, "`system: {approx_tokens: N}` of a profile"),
    row("--user-context-prompt-length", "AIPerf", ANY, "`prefix_pool` of a profile"),
    row("--num-prefix-prompts", "AIPerf", ANY, "`prefix_pool` of a profile"),
    row("--batch-size-audio", "AIPerf", ANY, "nothing: no audio is sent"),
    row("--batch-size-image", "AIPerf", ANY, "nothing: no images are sent"),
    row("--batch-size-video", "AIPerf", ANY, "nothing: no videos are sent"),
    row("--log-level", "AIPerf", ANY, "--ui lines"),
    row("--verbose", "AIPerf", ANY, "another command: plimsoll run PROFILE --once --verbose"),
    row("-vv", "AIPerf", ANY, "another command: plimsoll run PROFILE --once --verbose"),
    row("--extra-verbose", "AIPerf", ANY, "another command: plimsoll run PROFILE --once --verbose"),
    row("--api-port", "AIPerf", ANY, "--serve-metrics ADDR:PORT"),
    row("--api-host", "AIPerf", ANY, "--serve-metrics ADDR:PORT"),
    row("--stats-interval", "AIPerf", ANY, "nothing: the display is drawn four times a second"),
    row("--no-server-metrics", "AIPerf", ANY, "nothing: only what --watch names is looked at"),
    row("--gpu-telemetry", "AIPerf", ANY, "--watch NAME=URL of its exporter"),
    row("--no-gpu-telemetry", "AIPerf", ANY, "nothing: only what --watch names is looked at"),
    row("--ui-type", "AIPerf", ANY, "--ui KIND"),
    row("--workers-max", "AIPerf", ANY, "nothing: a worker for each core; `workers` of a profile sets their number"),
    row("--max-workers", "AIPerf", ANY, "nothing: a worker for each core; `workers` of a profile sets their number"),
    row("--num-profile-runs", "AIPerf", ANY, "another command: plimsoll compare OLD... --new NEW..., of as many runs as you make"),
    row("--confidence-level", "AIPerf", ANY, "nothing: intervals are those of 95 %"),
    row("--set-consistent-seed", "AIPerf", ANY, "nothing: a run without --seed has the seed of its profile"),
    row("--no-set-consistent-seed", "AIPerf", ANY, "--seed N, another for each run"),
    row("--vary-seed-per-trial", "AIPerf", ANY, "--seed N, another for each run"),
    row("--no-vary-seed-per-trial", "AIPerf", ANY, "--seed N"),
    row("--sweep-type", "AIPerf", ANY, "-c N,... and --rate N,..., one level after another"),
    row("--sweep-variant", "AIPerf", ANY, "-c N,... and --rate N,..., one level after another"),
    row("--variant", "AIPerf", ANY, "-c N,... and --rate N,..., one level after another"),
    row("--no-sweep-table", "AIPerf", ANY, "--quiet"),
    row("--bo-constraint-mode", "AIPerf", ANY, "another command: plimsoll knee, which searches the load that keeps an objective"),
    row("--ttft-sla-ms", "AIPerf", ANY, "--goodput 'ttft<NUMBERms'; `plimsoll knee --slo` searches the load that keeps it"),
    row("--itl-sla-ms", "AIPerf", ANY, "--goodput 'tpot<NUMBERms'; `plimsoll knee --slo` searches the load that keeps it"),
    row("--tpot-sla-ms", "AIPerf", ANY, "--goodput 'tpot<NUMBERms'; `plimsoll knee --slo` searches the load that keeps it"),
    row("--e2e-sla-ms", "AIPerf", ANY, "--goodput 'response_time<NUMBERms'; `plimsoll knee --slo` searches the load that keeps it"),
    row("--error-rate-sla", "AIPerf", ANY, "--threshold 'error_rate: <1%'"),
    row("--slo-attainment-fraction", "AIPerf", ANY, "--threshold 'good_share: value>0.99'"),
    row("--isl-osl-pairs", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--isl-min", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--isl-max", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--isl-steps", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--osl-min", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--osl-max", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--osl-steps", "AIPerf", ANY, "nothing: one length for each call of `plimsoll llm`; --sweep varies the load"),
    row("--concurrency-min", "AIPerf", ANY, "-c N,..., like -c 1,2,4,8, or --sweep"),
    row("--concurrency-max", "AIPerf", ANY, "-c N,..., like -c 1,2,4,8, or --sweep"),
    row("--concurrency-steps", "AIPerf", ANY, "-c N,..., like -c 1,2,4,8, or --sweep"),
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
    // Families of flags: all that begin so.
    row("--data-*", "GuideLLM", ANY, "--prompts FILE, which says by itself what it is"),
    row("--disable-console*", "GuideLLM", ANY, "--quiet"),
    row("--num-warmup-*", "AIPerf", ONE_LINE, "--warmup TIME"),
    row("--warmup-*", "AIPerf", ONE_LINE, "--warmup TIME"),
    row("--wait-for-model-*", "AIPerf", ANY, "nothing: a request before the load shows whether the target answers; --no-probe leaves it out"),
    row("--reset-kv-cache*", "AIPerf", ANY, "`cache_mode: bust` of a profile: no prompt repeats one of an earlier run"),
    row("--server-profiler*", "AIPerf", ANY, "nothing: servers are not profiled; --watch NAME=PID shows what they use"),
    row("--transport*", "AIPerf", ANY, "nothing: HTTP/1.1, or HTTP/2 where `http_version` of a profile says so"),
    row("--hf-*", "AIPerf", ANY, "nothing: data sets are files on this machine"),
    row("--trace-*", "AIPerf", ANY, "`trace` of a profile, with `time_scale`"),
    row("--fixed-schedule*", "AIPerf", ANY, "`trace` of a profile"),
    row("--profile-export-*", "AIPerf", ANY, "--out DIR: the files of a run have fixed names"),
    row("--otel-*", "AIPerf", ANY, "--push-metrics URL or --serve-metrics ADDR:PORT"),
    row("--mlflow-*", "AIPerf", ANY, "nothing: summary.json in the run's folder can be logged as it is"),
    row("--wandb-*", "AIPerf", ANY, "nothing: summary.json in the run's folder can be logged as it is"),
    row("--tokenizer-*", "AIPerf", ANY, "--tokenizer FILE, a tokenizer.json"),
    row("--prefill-concurrency*", "AIPerf", ANY, "nothing: requests are not held back for others' first token"),
    row("--trajectory-*", "AIPerf", ANY, "another command: plimsoll run agent-loop"),
    row("--agentic-*", "AIPerf", ANY, "another command: plimsoll run agent-loop"),
    row("--request-cancellation-*", "AIPerf", ANY, "nothing: requests are given up at --timeout only"),
    row("--session-*", "AIPerf", ANY, "`turns` and `think_time` of a scenario in a profile"),
    row("--conversation-*", "AIPerf", ANY, "`turns` and `think_time` of a scenario in a profile"),
    row("--open-loop-*", "AIPerf", ANY, "--rate N: requests never wait for others"),
    row("--prompt-prefix-*", "AIPerf", ANY, "`prefix_pool` of a profile"),
    row("--prefix-prompt-*", "AIPerf", ANY, "`prefix_pool` of a profile"),
    row("--rankings-*", "AIPerf", ANY, "nothing: rankings are not among the protocols; `http` sends any body"),
    row("--synthesis-*", "AIPerf", ANY, "`trace` of a profile, which is sent as it is"),
    row("--audio-*", "AIPerf", ANY, "nothing: no audio is sent"),
    row("--image-*", "AIPerf", ANY, "nothing: no images are sent"),
    row("--video-*", "AIPerf", ANY, "nothing: no videos are sent"),
    row("--record-processor*", "AIPerf", ANY, "nothing: each worker counts for itself"),
    row("--server-metrics*", "AIPerf", ANY, "--watch NAME=URL"),
    row("--network-latency-*", "AIPerf", ANY, "nothing: rows have the time of each TCP handshake (connect_ms)"),
    row("--zmq-*", "AIPerf", ANY, "nothing: workers share nothing while they run"),
    row("--accuracy-*", "AIPerf", ANY, "nothing: answers are not graded"),
    row("--profile-run-*", "AIPerf", ANY, "another command: plimsoll compare OLD... --new NEW..., of as many runs as you make"),
    row("--no-profile-run-*", "AIPerf", ANY, "another command: plimsoll compare OLD... --new NEW..., of as many runs as you make"),
    row("--convergence-*", "AIPerf", ANY, "another command: plimsoll knee, which measures until its interval is narrow"),
    row("--parameter-sweep-*", "AIPerf", ANY, "-c N,... and --rate N,..., one level after another"),
    row("--no-parameter-sweep-*", "AIPerf", ANY, "-c N,... and --rate N,..., one level after another"),
    row("--search-*", "AIPerf", ANY, "another command: plimsoll knee, which searches the load that keeps an objective"),
    row("--optuna-*", "AIPerf", ANY, "another command: plimsoll knee, which searches the load that keeps an objective"),
    row("--degradation-*", "AIPerf", ANY, "another command: plimsoll knee, which searches the load that keeps an objective"),
];

/// Commands of other tools: the word, whose it is, our command and what to type.
const COMMANDS: [(&str, &str, &str, &str); 4] = [
    ("attack", "vegeta", "http", "plimsoll http URL"),
    ("benchmark", "GuideLLM", "llm", "plimsoll llm URL --model NAME"),
    ("bench", "vLLM and LLMPerf", "llm", "plimsoll llm URL --model NAME"),
    ("profile", "AIPerf", "llm", "plimsoll llm URL --model NAME"),
];

/// The hints for a command line of another tool: for its command, and for each flag that another
/// tool has and the parser refuses, or would misread: `-header` would be `-h`, and `-q 50` would be
/// `--quiet` and a URL. `flags_of` gives the flags of a command of ours.
pub(crate) fn hint(
    arguments: &[OsString],
    refused: Option<&str>,
    flags_of: fn(&str) -> Vec<String>,
) -> Option<String> {
    let words: Vec<_> = arguments.iter().skip(1).map_while(|word| word.to_str()).collect();
    let (foreign, command) = match foreign_command(&words) {
        Some((sentence, ours)) => (Some(sentence), ours),
        None => (None, words.first().copied().unwrap_or_default()),
    };
    let refused = refused.map(flag_of);
    let misread = words.iter().copied().map(flag_of).find(|flag| is_misread(flag, command));
    let rate = rate_of_hey(&words, command);
    let first = misread.or(refused).and_then(|flag| Some((flag, sentence(flag, command)?)));
    if foreign.is_none() && rate.is_none() && first.is_none() {
        return None;
    }
    let first_flag = first.as_ref().map(|(flag, _)| *flag);
    let mut hints: Vec<String> = foreign.into_iter().chain(rate).collect();
    hints.extend(first.map(|(_, hint)| hint));
    let own = flags_of(command);
    for word in words.iter().skip(1).filter(|word| word.starts_with('-')) {
        let flag = flag_of(word);
        let is_own = own.iter().any(|own| *own == flag || is_cluster_of(own, flag));
        if !is_own && Some(flag) != first_flag {
            hints.extend(sentence(flag, command).filter(|hint| !hints.contains(hint)));
        }
    }
    Some(hints.join("\n"))
}

/// The flag of a word like `--rate=5`, or of `-t12`.
fn flag_of(word: &str) -> &str {
    let flag = word.split([' ', '=']).next().unwrap_or_default();
    match flag.as_bytes() {
        [b'-', letter, b'0'..=b'9', ..]
            if letter.is_ascii_alphabetic() && FLAGS.iter().all(|known| known.flag != flag) =>
        {
            &flag[..2]
        }
        _ => flag,
    }
}

/// Whether `-c40` is the flag `-c` with its value.
fn is_cluster_of(own: &str, word: &str) -> bool {
    own.len() == 2 && word.starts_with(own) && !word.starts_with("--")
}

/// Whether our parser would take a word for something else.
fn is_misread(flag: &str, command: &str) -> bool {
    is_single_dash_word(flag) && find(flag, command).is_some()
}

/// `-q 50` of oha and hey.
fn rate_of_hey(words: &[&str], command: &str) -> Option<String> {
    let quiet = words.iter().position(|word| *word == "-q")?;
    let rate = words.get(quiet + 1).filter(|word| word.parse::<f64>().is_ok())?;
    let ours = if matches!(command, "http" | "llm") { "--rate N" } else { "--stages @RATE:TIME" };
    Some(format!(
        "`-q {rate}` is the rate of oha, and of each client of hey; here it is {ours}, of all"
    ))
}

/// What a line that begins with another tool's command, with a URL or with flags should begin
/// with, and which command of ours that is.
fn foreign_command(words: &[&str]) -> Option<(String, &'static str)> {
    let (first, rest) = words.split_first()?;
    let is_url = |word: &&str| word.contains("://");
    if is_url(first) || first.starts_with('-') && rest.iter().any(is_url) {
        let hint = "a command comes first: plimsoll http URL for any service, plimsoll llm URL \
                    --model NAME for a model";
        return Some((hint.to_owned(), "http"));
    }
    let (word, tool, ours, typed) = COMMANDS.iter().find(|(word, ..)| word == first)?;
    let is_ours = *word == "profile"
        && rest
            .first()
            .is_none_or(|next| !next.starts_with('-') || matches!(*next, "-h" | "--help"));
    (!is_ours).then(|| (format!("`{word}` is of {tool}; here it is {typed}"), *ours))
}

/// What to type in place of a flag that another tool has.
fn sentence(flag: &str, command: &str) -> Option<String> {
    let ForeignFlag { tools, ours, .. } = find(flag, command)?;
    Some(match ours.strip_prefix("nothing: ") {
        Some(why) => format!("`{flag}` is of {tools}; there is no such flag here: {why}"),
        None => format!("`{flag}` is of {tools}; here it is {ours}"),
    })
}

/// Whether a word looks like `-rate`: a dash, and more than one letter.
fn is_single_dash_word(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|name| name.len() > 1 && !name.starts_with('-'))
}

fn find(flag: &str, command: &str) -> Option<&'static ForeignFlag> {
    let is_it = |known: &&ForeignFlag| match known.flag.strip_suffix('*') {
        Some(family) => flag.starts_with(family),
        None => known.flag == flag,
    };
    FLAGS
        .iter()
        .filter(|known| known.commands.is_empty() || known.commands.contains(&command))
        .find(is_it)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tools;
