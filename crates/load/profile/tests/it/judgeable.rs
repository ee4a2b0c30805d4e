//! Thresholds that no run can judge are rejected by `check`, and give a note in a run.

use std::path::Path;

use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, builtin_names, load};

use crate::support::base_with;

/// Output of `check` for the small profile with these lines; empty if it is accepted.
fn check(lines: &str) -> String {
    let profile = Profile::new(Path::new("p.yaml"), base_with(lines).into_bytes());
    let checked = load(&profile, &EnvVars::default(), &Overrides::default(), Purpose::Check);
    checked.map_or_else(|problems| problems.to_string(), |_| String::new())
}

#[test]
fn thresholds_that_can_never_be_judged_are_refused_with_the_fix() {
    let mix = "scenarios: [{name: a, weight: 1, stream: true}, {name: b, weight: 9, category: c}]";
    for (lines, says) in [
        // Names.
        ("thresholds: {'ttfb{stage:@5:1s}': ['max<1s']}", "no stage is named `@5:1s`"),
        ("thresholds: {'ttfb{stage:2}': ['max<1s']}", "no stage is named `2`"),
        ("thresholds: {'ttfb{target:elsewhere}': ['max<1s']}", "no target is named `elsewhere`"),
        ("bands: {'ttfb{category:c}': ['max<1s|2s']}", "no category is named `c`"),
        (
            "protocol: mcp\nmcp: {steps: [{method: ping}]}\nthresholds: {'ttfb{operation:tools/cal}': ['max<1s']}",
            "no operation is named `tools/cal`; did you mean `tools/call`?",
        ),
        // Samples: 5/s for 30 s are 150 requests; 0.99^298 is above 5 %, and 0.99^299 below it.
        ("stages: '@5:30s'\nthresholds: {ttfb: ['p(99)<1s']}", "at least 299 samples"),
        ("stages: '@5:30s'\nbands: {ttfb: ['p(99)<1s|2s']}", "at most 151 requests"),
        ("stages: '@0..10:30s'\nthresholds: {ttfb: ['p(99)<1s']}", "at least 299 samples"),
        ("stages: 'w@100:30s,@5:30s'\nthresholds: {ttfb: ['p(99)<1s']}", "at least 299 samples"),
        (
            &format!(
                "stages: '@60:30s'\n{mix}\nthresholds: {{'ttfb{{scenario:a}}': ['p(95)<1s'], 'ttfb{{scenario:b}}': ['p(99)<1s']}}"
            ),
            // About 180 and 1,620.
            "no further line",
        ),
        (
            &format!(
                "stages: '@10:30s'\n{mix}\nthresholds: {{'ttfb{{scenario:a}}': ['p(95)<1s']}}"
            ),
            "at least 59 samples",
        ),
        // Metrics.
        ("thresholds: {ttft: ['max<1s']}", "no scenario streams"),
        (
            &format!("{mix}\nthresholds: {{'itl{{scenario:b}}': ['max<1s']}}"),
            "applies to streaming",
        ),
        ("thresholds: {tls: ['max<1s']}", "the target is `http`"),
        ("thresholds: {dns: ['max<1s']}", "the target is an IP address"),
        ("thresholds: {policy_correctness: ['==100%']}", "no scenario expects one"),
        ("thresholds: {goodput: ['>=10']}", "does not define them; write `goodput:`"),
        ("bands: {good_share: ['>=99%|95%']}", "does not define them"),
        (
            "protocol: a2a\na2a: {steps: [{action: send}]}\nthresholds: {ttft: ['max<1s']}",
            "no scenario streams",
        ),
        // Stages.
        ("stages: 'w1:1s'\nthresholds: {error_rate: ['<1%']}", "every stage is a warm-up"),
    ] {
        let message = check(lines);
        if says == "no further line" {
            assert_eq!(message, "", "{lines}");
        } else {
            assert!(message.contains(says), "{lines}:\n{message}");
            assert!(message.lines().count() == 1 && message.contains("; "), "{message}");
        }
    }
}

#[test]
fn what_may_be_judged_is_accepted() {
    for lines in [
        "stages: '@20:30s'\nthresholds: {ttfb: ['p(98)<1s', 'p(95)<1s'], error_rate: ['<1%']}",
        "stages: '@20:30s'\nturns: 2\nthresholds: {ttfb: ['p(99)<1s']}",
        "stages: '10:30s'\nthresholds: {ttfb: ['p(99.9)<1s']}",
        "stages: '@999:1s'\narrivals: poisson\nthresholds: {ttfb: ['p(99)<1s']}",
        "stream: true\nthresholds: {ttft: ['max<1s'], 'itl{stage:1}': ['p(99)<1s']}",
        "stages: 'w1:1s'\nthresholds: {'error_rate{stage:1}': ['<1%']}",
        "thresholds: {'error_rate{target:127.0.0.1:9000}': ['<1%']}",
        "protocol: a2a\na2a: {steps: [{action: stream}]}\nthresholds: {'ttft{operation:SendStreamingMessage}': ['max<1s']}",
        "goodput: ttfb<1s\nthresholds: {goodput: ['>=10'], good_share: ['>=99%']}",
        "http_version: http2\nthresholds: {send_stall: ['max<1s']}",
        // The number of tool calls of an agent depends on the model.
        "stages: '@20:30s'\nscenarios: [{protocol: mcp, mcp: {steps: [{method: ping}]}}, {agent: {tools: mcp}}]\nthresholds: {'ttfb{operation:tools/call}': ['p(99)<1s']}",
    ] {
        assert_eq!(check(lines), "", "{lines}");
    }
}

/// Flags may make a run shorter than its profile plans, so the run gives a note and continues.
#[test]
fn a_run_gets_a_note_instead() {
    let text = base_with("stages: '@20:30s'\nthresholds: {ttfb: ['p(99.9)<1s']}");
    let profile = Profile::new(Path::new("p.yaml"), text.into_bytes());
    for purpose in [Purpose::Run, Purpose::Show] {
        let plan = load(&profile, &EnvVars::default(), &Overrides::default(), purpose).unwrap();
        assert_eq!(plan.notes.len(), 1, "{:?}", plan.notes);
        // It can be broken: all values may lie beyond it.
        assert_eq!(
            plan.notes[0],
            "thresholds.ttfb[0]: needs at least 2995 samples to pass, but its part of the load has \
             at most 601 requests; bound a lower percentile, or send more requests"
        );
    }
}

#[test]
fn every_built_in_profile_and_example_can_be_judged() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../examples");
    let examples = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let yaml = examples.filter(|path| path.extension().is_some_and(|ending| ending == "yaml"));
    let paths: Vec<_> = yaml.map(|path| path.to_str().unwrap().to_owned()).collect();
    assert!(!paths.is_empty());
    for name in builtin_names().map(str::to_owned).chain(paths) {
        let profile = Profile::open(&name).unwrap();
        let variables = ["GATEWAY_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"];
        let variables = variables.map(|name| (name.to_owned(), "any".to_owned()));
        let checked =
            load(&profile, &EnvVars::from_iter(variables), &Overrides::default(), Purpose::Check);
        assert!(checked.is_ok(), "{name}: {}", checked.unwrap_err());
    }
}
