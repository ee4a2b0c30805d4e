//! The contents of a file of recorded traffic, as text.

use plimsoll_import::{Summary, Tokens};
use plimsoll_report::format::count;

/// The contents of recorded traffic, and every unused member.
pub(crate) fn traffic_screen(summary: &Summary) -> String {
    let Summary { format, why, also, sessions, requests, most_turns, unused, .. } = summary;
    let span = summary.span_ms.map(|ms| format!("{:.3} s", ms / 1e3));
    let mut rows = vec![
        ("format", format!("{format}: {why}")),
        ("sessions", count(*sessions)),
        ("requests", format!("{} (at most {} in a session)", count(*requests), count(*most_turns))),
        ("input tokens", tokens(summary.in_tokens)),
        ("output tokens", tokens(summary.out_tokens)),
        ("time span", span.unwrap_or_else(|| "no times".to_owned())),
    ];
    if !also.is_empty() {
        rows.insert(1, ("also fits", format!("--as {}", also.join(", --as "))));
    }
    if summary.failed > 0 {
        rows.push(("failed", format!("{} with status 400 or higher; sent", count(summary.failed))));
    }
    if summary.skipped > 0 {
        let first = summary.skipped_first.join("; ");
        rows.push(("broken", format!("{} skipped: {first}", count(summary.skipped))));
    }
    if unused.is_empty() {
        rows.push(("not used", "nothing".to_owned()));
    }
    let names = ["not used"].into_iter().chain(std::iter::repeat(""));
    let unused = unused.iter().map(|(member, times)| format!("{:>7} {member}", count(*times)));
    rows.extend(names.zip(unused));
    let lines = rows.iter().map(|(name, value)| format!("{name:<14} {value}"));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

fn tokens(Tokens { stated, unknown }: Tokens) -> String {
    match (stated, unknown) {
        (0, 1..) => "not recorded".to_owned(),
        (_, 0) => count(stated),
        _ => format!("{}; not recorded for {} requests", count(stated), count(unknown)),
    }
}
