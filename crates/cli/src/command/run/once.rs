//! `plimsoll run --once`: one request of each scenario and its answer, as curl would show them.

use std::fmt::Write as _;

use anyhow::Result;
use plimsoll_engine::{ExchangedOnce, discover, exchange_once};
use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_runner::Secrets;

use crate::console;
use crate::exit::Exit;

/// Maximum number of bytes of a body shown without --verbose.
const SHORT: usize = 400;

/// Sends the requests and prints them.
pub(super) fn run(plan: Plan, verbose: bool) -> Result<Exit> {
    let secrets = Secrets::of(&plan);
    let exchanged = exchange_once(discover(plan)?)?;
    let mut text = String::new();
    for one in &exchanged {
        text.push_str(&secrets.redact(&shown(one, verbose)));
    }
    console::print(&text)?;
    let answered = exchanged.iter().all(|one| one.failure.is_none() && one.status < 400);
    Ok(if answered { Exit::Pass } else { Exit::Fail })
}

fn shown(one: &ExchangedOnce, verbose: bool) -> String {
    let ExchangedOnce { scenario, target, status, .. } = one;
    let mut text = format!("# {scenario}, to {target}\n");
    let head = printable(&one.request_head);
    let lines = head.trim_end().lines();
    let most = if verbose { usize::MAX } else { 1 };
    for line in lines.take(most) {
        text.push_str(&line_of('>', line));
    }
    body(&mut text, &one.request_body, verbose);
    if *status > 0 {
        text.push_str(&line_of('<', &format!("HTTP {status}")));
        for (name, value) in one.headers.iter().take(most.saturating_sub(1)) {
            text.push_str(&line_of('<', &format!("{name}: {value}")));
        }
        body(&mut text, &one.body, verbose);
    }
    let times: Vec<_> =
        [("connected", one.connected), ("first byte", one.first_byte), ("end", one.finished)]
            .into_iter()
            .filter_map(|(name, time): (_, Option<Nanos>)| Some(format!("{name} {}", time?)))
            .collect();
    if !times.is_empty() {
        let _ = writeln!(text, "* {}", times.join(", "));
    }
    if let Some(failure) = &one.failure {
        let _ = writeln!(text, "* failed: {failure}");
    }
    text.push('\n');
    text
}

/// One line with its mark; the credentials of a request are not shown.
fn line_of(mark: char, line: &str) -> String {
    let name = line.split(':').next().unwrap_or_default();
    let hidden = mark == '>'
        && line.contains(':')
        && !line.contains(" HTTP/1.1")
        && plimsoll_plan::names_credential(name);
    if hidden {
        format!("{mark} {name}: {}\n", plimsoll_plan::REDACTED)
    } else {
        format!("{mark} {line}\n")
    }
}

fn body(text: &mut String, bytes: &[u8], verbose: bool) {
    if bytes.is_empty() {
        return;
    }
    let most = if verbose { bytes.len() } else { bytes.len().min(SHORT) };
    text.push_str(printable(&bytes[..most]).trim_end());
    if most < bytes.len() {
        let _ = write!(text, " ... ({} bytes; --verbose shows all)", bytes.len());
    }
    text.push('\n');
}

/// Removes control characters that a terminal would interpret.
fn printable(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_and_its_answer_are_shown_without_credentials() {
        let one = ExchangedOnce {
            scenario: "s".to_owned(),
            target: "t".to_owned(),
            request_head: b"POST /x HTTP/1.1\r\nauthorization: Bearer abc\r\naccept: a\r\n\r\n"
                .to_vec(),
            request_body: b"{}".to_vec(),
            status: 200,
            headers: vec![("server".to_owned(), "nginx".to_owned())],
            body: b"\x1b[31mfine".to_vec(),
            first_byte: Some(Nanos::from_millis(5)),
            ..ExchangedOnce::default()
        };
        assert_eq!(
            shown(&one, true),
            "# s, to t\n> POST /x HTTP/1.1\n> authorization: <redacted>\n> accept: a\n{}\n< HTTP 200\n\
             < server: nginx\n[31mfine\n* first byte 5ms\n\n"
        );
        let short = ExchangedOnce { body: vec![b'x'; 500], ..one };
        let text = shown(&short, false);
        assert!(text.contains("(500 bytes; --verbose shows all)") && !text.contains("accept"));
    }
}
