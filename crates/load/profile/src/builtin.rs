//! The built-in profiles, to run unchanged or as a starting point.

/// Name and text of a built-in profile.
type Builtin = (&'static str, &'static str);

macro_rules! shipped {
    ($($name:literal: $path:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../profiles/", $path)))),+]
    };
}

const PROFILES: &[Builtin] = shipped![
    "realistic": "realistic.yaml",
    "minimal": "minimal.yaml",
    "cross-ingress": "cross-ingress.yaml",
    "perf-128-nonstream": "perf-128-nonstream.yaml",
    "perf-128-stream": "perf-128-stream.yaml",
    "perf-550-nonstream": "perf-550-nonstream.yaml",
    "perf-550-stream": "perf-550-stream.yaml",
    "perf-hotpath-nonstream": "perf-hotpath-nonstream.yaml",
    "perf-hotpath-stream": "perf-hotpath-stream.yaml",
    "policy": "policy.yaml",
    "policy-llm": "policy-llm.yaml",
    "mcp-tools": "mcp-tools.yaml",
    "a2a": "a2a.yaml",
    "agent-loop": "agent-loop.yaml",
    "azure-trace": "azure-trace.yaml",
    "mooncake-trace": "mooncake-trace.yaml",
];

/// The text of the built-in profile `name`.
pub fn profile(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Names of the built-in profiles, the most general one first.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}
