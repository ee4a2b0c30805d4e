//! The answer for people: at most 24 lines of 80 columns.

use plimsoll_report::format::{count, cut, digits, percent, time, wrap_at_most};
use plimsoll_report::printable;

use crate::result::{Finding, OwnWord, Split, State, Why};

const WIDTH: usize = 80;
/// Lines of all, so that they fit a terminal with its prompt.
const LINES: usize = 24;
/// Processes that are listed; more of them are counted.
const LISTED: usize = 8;
/// Columns of the name of a process.
const NAME: usize = 24;
/// Columns before the evidence.
const COLUMN: usize = 23;

/// The answer, then each suspect with its evidence, then the split.
pub fn text(why: &Why) -> String {
    let mut lines = paragraph("why: ", &why.sentence, 2);
    if let Some(load) = &why.load {
        let in_flight = load
            .in_flight
            .map_or_else(String::new, |mean| format!(", {} in flight on average", digits(mean)));
        lines.extend(paragraph("  ", &format!("{}: {}{in_flight}", load.stage, load.because), 2));
    }
    let shown = why.findings.len().min(LISTED);
    // A long list gets a line each.
    let most = if shown > 5 { 1 } else { 2 };
    lines.extend(why.findings.iter().take(LISTED).flat_map(|found| of_finding(found, most)));
    let more = why.findings.len() - shown;
    lines.extend((more > 0).then(|| format!("  {more} more in why.json")));
    lines.extend(why.split.iter().flat_map(of_split));
    lines.extend(why.own_word.iter().flat_map(of_own_word));
    let missing = why.missing.iter().take(3);
    lines.extend(missing.flat_map(|how| paragraph("  would tell: ", how, 2)));
    lines.extend(why.notes.iter().flat_map(|note| paragraph("  note: ", note, 1)));
    let refused = why.split_refused.iter();
    lines.extend(refused.flat_map(|reason| paragraph("  no split: ", reason, 2)));
    lines.truncate(LINES);
    printable(&(lines.join("\n") + "\n")).into_owned()
}

fn of_finding(found: &Finding, most: usize) -> Vec<String> {
    let state = match found.state {
        State::Saturated => "SATURATED",
        State::Clear => "clear",
        State::Unknown => "unknown",
    };
    let suspect = found.suspect.name();
    let named = found.process.as_deref().filter(|name| *name != suspect);
    let named = named.map_or_else(String::new, |name| format!("`{}`: ", cut(name, NAME)));
    let evidence = format!("{named}{}", found.evidence.join(", "));
    paragraph(&format!("  {suspect:<9}  {state:<9}  "), &evidence, most)
}

fn of_split(split: &Split) -> Vec<String> {
    let parts: Vec<_> = split
        .parts
        .iter()
        .map(|part: &crate::result::Part| format!("{} {}", part.place, digits(part.in_flight)))
        .collect();
    let words = format!("{} (adds up to {})", parts.join(", "), percent(split.adds_up_to));
    let mut lines = paragraph(&format!("  of {} in flight: ", digits(split.in_flight)), &words, 3);
    let by = split.evidence.iter();
    lines.extend(by.flat_map(|evidence| paragraph("  told by: ", evidence, 2)));
    lines
}

fn of_own_word(own_word: &OwnWord) -> Vec<String> {
    let parts = own_word.parts.iter();
    let parts = parts.map(|part| format!("{} {}", cut(&part.name, NAME), time(part.mean_ms)));
    let parts: Vec<_> = parts.collect();
    let words = format!(
        "{}, network and rest {} (by the target's own headers, {} responses)",
        parts.join(", "),
        time(own_word.rest_ms),
        count(own_word.responses)
    );
    paragraph(&format!("  of {} to the first byte: ", time(own_word.ttfb_ms)), &words, 3)
}

/// A text behind a lead; its further lines are indented as far, but not beyond the column of
/// evidence.
fn paragraph(lead: &str, text: &str, most: usize) -> Vec<String> {
    let lead_width = lead.chars().count();
    let indent = lead_width.min(COLUMN);
    let lines = wrap_at_most(text, WIDTH - lead_width, most);
    lines
        .into_iter()
        .enumerate()
        .map(|(number, line): (usize, String)| match number {
            0 => format!("{lead}{line}"),
            _ => format!("{:indent$}{line}", ""),
        })
        .collect()
}
