//! Every built-in profile, run for a second: the numbers of Plimsoll and of the mock agree.

use crate::support::Fixture;

/// Short responses: the profiles request up to 900 tokens.
const QUICK: &str = "other_models: {ttft: 2ms, gap: 100us, output_cap: 40}";

fn try_profile(name: &str, args: &[&str]) {
    let fixture = Fixture::with(QUICK);
    // The profiles' own thresholds need more data than a second gives.
    let bound = "thresholds={success_rate: ['value>0.99']}";
    fixture.run(&[&[name, "--set", bound], args].concat()).expect(0);
    let summary = fixture.summary();
    let accounting = summary.results.accounting();
    assert!(accounting.balanced(), "{accounting}");
    assert!(accounting.completed > 0, "{accounting}");
    let sent = accounting.scheduled - accounting.never_sent;
    let before = u64::from(summary.metadata.run.probes) + discovery(name);
    assert_eq!(fixture.mock.stats().requests, sent + before, "{accounting}");
}

/// The requests that ask a tool server for its tools: a session with a list, or a list alone.
fn discovery(profile: &str) -> u64 {
    match profile {
        "mcp-tools" => 4,
        "agent-loop" => 1,
        _ => 0,
    }
}

macro_rules! profiles {
    ($($test:ident: $name:literal, $stages:literal $(, $set:literal)?;)+) => {$(
        #[test]
        fn $test() {
            try_profile($name, &["--stages", $stages $(, "--set", $set)?]);
        }
    )+

        #[test]
        fn every_built_in_profile_has_a_test() {
            let tried = [$($name),+];
            // Those for policy gateways are tested in `policy.rs`.
            let elsewhere = |name: &&str| name.starts_with("policy");
            let names = plimsoll_profile::builtin_names().filter(|name| !elsewhere(name));
            assert_eq!(names.collect::<Vec<_>>(), tried);
        }
    };
}

profiles! {
    realistic: "realistic", "w2:300ms,10:1s";
    minimal: "minimal", "w2:300ms,5:700ms";
    cross_ingress: "cross-ingress", "w2:300ms,5:1s";
    perf_128_nonstream: "perf-128-nonstream", "w2:300ms,5:700ms";
    perf_128_stream: "perf-128-stream", "w2:300ms,5:700ms";
    perf_550_nonstream: "perf-550-nonstream", "w2:300ms,5:700ms";
    perf_550_stream: "perf-550-stream", "w2:300ms,5:700ms";
    perf_hotpath_nonstream: "perf-hotpath-nonstream", "w2:300ms,5:700ms";
    perf_hotpath_stream: "perf-hotpath-stream", "w2:300ms,5:700ms";
    mcp_tools: "mcp-tools", "w2:300ms,5:1s";
    a2a: "a2a", "w2:300ms,5:1s";
    agent_loop: "agent-loop", "w@5:300ms,@20:700ms";
    azure_trace: "azure-trace", "w@5:300ms,trace:1s", "trace.time_scale=60";
    mooncake_trace: "mooncake-trace", "w@2:300ms,trace:1s", "trace.time_scale=60";
}
