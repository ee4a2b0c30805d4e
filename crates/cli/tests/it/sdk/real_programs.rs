//! Programs that others wrote and people run: valid runs, and the counts are theirs.

use plimsoll_metrics::RunSummary;
use plimsoll_mock::{Mock, MockConfig};

use super::*;

#[test]
#[ignore = "installs LiteLLM from the package registry"]
fn tokens_through_the_proxy_of_litellm_are_those_that_the_provider_sent() {
    let text = "{log: memory, models: {m: {ttft: 5ms, output: {uniform: {min: 1, max: 40}}}}}";
    let config = MockConfig::from_yaml(text).unwrap();
    let mock = Mock::spawn(&config, ([127, 0, 0, 1], 0).into()).unwrap();
    let provider = format!("http://{}", mock.addr());
    let start = fixture();
    let proxy = SdkServer::start(&start, ("litellm", "litellm_proxy.py"), &[&provider]);
    let url = format!("http://127.0.0.1:{}", proxy.port);
    for stream in ["stream=true", "stream=false"] {
        let fixture = fixture();
        mock.take_log();
        let own = ["minimal", "--model", "m", "--stages", "4:5s", "--set", stream];
        let summary = load(&fixture, &own, &url);
        assert!(summary.is_valid(), "{stream}: {:?}", summary.findings);
        let log = mock.take_log();
        let total = &summary.results.total.counters;
        assert_eq!(
            total.completed,
            log.len() as u64,
            "{stream}: {:?}",
            summary.results.total.errors
        );
        let output: u64 = log.iter().map(|record| u64::from(record.planned_tokens)).sum();
        let input: u64 = log.iter().map(|record| record.prompt_tokens).sum();
        let found = (total.prompt_tokens_reported, total.output_tokens_reported);
        assert_eq!(found, (input, output), "{stream}");
        println!(
            "LiteLLM, {stream}: {} requests, {output} tokens, as the provider counted",
            log.len()
        );
    }
}

#[test]
#[ignore = "installs the reference server of MCP from the package registry"]
fn the_built_in_profile_fits_the_reference_server_of_mcp() {
    let fixture = fixture();
    let server = SdkServer::start(&fixture, ("node", "mcp_everything.mjs"), &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    let own = ["--stages", "4:4s", "--set", "think_time=10ms", "--set", "thresholds={}"];
    let summary: RunSummary = load(&fixture, &[&["mcp-tools"][..], &own].concat(), &url);
    assert!(summary.is_valid(), "{:?}", summary.findings);
    let total = &summary.results.total;
    assert!(total.errors.is_empty(), "{:?}", total.errors);
    let called = group(&summary, "tools/call").map_or(0, |calls| calls.counters.completed);
    assert!(called > 20, "{called}");
    // Tools that need what only a person has may say that they cannot: few of the calls.
    assert!(total.counters.tool_errors * 4 < called, "{} of {called}", total.counters.tool_errors);
    println!(
        "server-everything: {called} calls of tools, {} say isError",
        total.counters.tool_errors
    );
}

/// A server's own count, by the word before the number.
fn own_count(counts: &Counts, word: &str) -> u64 {
    let line = counts.keys().find_map(|line| line.strip_prefix(&format!("{word} ")));
    line.and_then(|count| count.parse().ok()).unwrap_or_default()
}

#[test]
#[ignore = "installs llama.cpp's server from the package registry"]
fn tokens_of_llama_cpp_are_those_that_it_counts_itself_in_every_dialect() {
    for protocol in ["openai-chat", "openai-responses", "anthropic-messages", "openai-completions"]
    {
        for stream in ["stream=true", "stream=false"] {
            let fixture = fixture();
            let server = SdkServer::start(&fixture, ("llama", "llama_server.py"), &[]);
            let url = format!("http://127.0.0.1:{}", server.port);
            let protocol_key = format!("protocol={protocol}");
            let own = ["minimal", "--model", "m", "--stages", "4:3s", "--set", stream];
            let more = ["--set", &protocol_key, "--set", "max_tokens=24"];
            // With a probe, which sees that the server closes its connections after a stream.
            let fixed = ["run", "--target", &url, "--quiet", "--allow-invalid"];
            fixture.plimsoll(&[&fixed[..], &own, &more].concat()).expect(0);
            let summary = fixture.summary();
            let case = format!("{protocol}, {stream}");
            assert!(summary.is_valid(), "{case}: {:?}", summary.findings);
            let total = &summary.results.total;
            assert!(total.errors.is_empty(), "{case}: {:?}", total.errors);
            let counts = server.counts();
            let (input, output) = (own_count(&counts, "input"), own_count(&counts, "output"));
            let counters = &total.counters;
            // The probe is one request of the same kind.
            let requests = counters.completed;
            let probe_input = input.wrapping_sub(counters.prompt_tokens_reported);
            let probe_output = output - counters.output_tokens_reported;
            // The first event of its Anthropic streams may count the cache of another request.
            let is_exact = (protocol, stream) != ("anthropic-messages", "stream=true");
            let is_one_request = probe_input.abs_diff(input / (requests + 1)) < 30;
            assert!(is_one_request || !is_exact, "{case}: {probe_input}");
            assert!((1..=24).contains(&probe_output), "{case}: {probe_output}");
            println!("llama.cpp, {case}: {requests} requests, {input} and {output} tokens");
        }
    }
}

#[test]
#[ignore = "installs FastMCP and reference servers of MCP from the package registry"]
fn the_built_in_profile_fits_fastmcp_and_the_reference_servers_behind_it() {
    let fixture = fixture();
    let server = SdkServer::start(&fixture, ("fastmcp", "mcp_fastmcp.py"), &[]);
    let url = format!("http://127.0.0.1:{}", server.port);
    let own = ["--stages", "2:5s", "--set", "think_time=10ms", "--set", "thresholds={}"];
    let summary = load(&fixture, &[&["mcp-tools"][..], &own].concat(), &url);
    assert!(summary.is_valid(), "{:?}", summary.findings);
    let total = &summary.results.total;
    assert!(total.errors.is_empty(), "{:?}", total.errors);
    let counts = server.counts();
    let called = group(&summary, "tools/call").map_or(0, |calls| calls.counters.completed);
    // Those in flight at the end may be on one side alone.
    let errors = total.counters.tool_errors;
    let [tools, failed] = ["tool ", "error "].map(|word| super::total(&counts, word));
    assert!(called > 20 && called.abs_diff(tools + failed) <= 2, "{called}: {counts:?}");
    assert!(errors.abs_diff(failed) <= 2, "{errors}: {counts:?}");
    for name in ["tool route", "tool words"] {
        assert!(count(&counts, name) > 0, "{name}: {counts:?}");
    }
    println!("FastMCP: {called} calls of tools, {errors} say isError: {counts:?}");
}
