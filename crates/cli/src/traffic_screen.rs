//! What a file of recorded traffic has, as text.

use std::fmt::Write as _;

use plimsoll_import::{Summary, Tokens};
use plimsoll_report::format::count;

/// What recorded traffic has, and every member of it that is not used.
pub(crate) fn traffic_screen(summary: &Summary) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: String| {
        let _ = writeln!(text, "{name:<14} {value}");
    };
    row("format", format!("{}: {}", summary.format, summary.why));
    if !summary.also.is_empty() {
        row("fits as well", format!("--as {}", summary.also.join(", --as ")));
    }
    row("sessions", count(summary.sessions));
    let turns = format!(" (at most {} in a session)", count(summary.most_turns));
    row("requests", count(summary.requests) + &turns);
    row("input tokens", tokens(summary.in_tokens));
    row("output tokens", tokens(summary.out_tokens));
    row(
        "time span",
        summary.span_ms.map_or_else(|| "no times".to_owned(), |ms| format!("{:.3} s", ms / 1e3)),
    );
    if summary.failed > 0 {
        row("failed", format!("{} with status 400 or higher; kept", count(summary.failed)));
    }
    if !summary.hosts.is_empty() {
        let hosts = summary.hosts.iter().map(|(host, requests)| format!("{host} ({requests})"));
        row("hosts", hosts.collect::<Vec<_>>().join(", "));
    }
    if summary.skipped > 0 {
        let first = summary.skipped_first.join("; ");
        row("broken", format!("{} skipped: {first}", count(summary.skipped)));
    }
    if summary.unused.is_empty() {
        row("not used", "nothing: every member is in the file".to_owned());
    }
    for (index, (member, times)) in summary.unused.iter().enumerate() {
        row(if index == 0 { "not used" } else { "" }, format!("{:>7} {member}", count(*times)));
    }
    text
}

/// Stated tokens, and an estimate with its mark.
fn tokens(tokens: Tokens) -> String {
    let Tokens { stated, estimated, unknown } = tokens;
    let mut text = match (stated, estimated) {
        (0, 0) if unknown > 0 => return "not recorded".to_owned(),
        (stated, 0) => count(stated),
        (stated, estimated) => format!(
            "~{} (of which {} are estimated, 4 bytes of text each)",
            count(stated + estimated),
            count(estimated)
        ),
    };
    if unknown > 0 {
        let _ = write!(text, "; not recorded for {} requests", count(unknown));
    }
    text
}
