//! Markdown, as far as tables, headings, lists of `label: value`, sentences and code need it. A
//! table may follow its sentence without a blank line, as on the pages of code hosts; a parser of
//! `CommonMark` takes such a table for text (ADR 0065).

use super::parts;
use crate::document::{Document, Grid};

pub(super) fn read(text: &str) -> Document {
    let lines: Vec<&str> = text.lines().map(quoted).collect();
    let mut document = Document::default();
    let mut pairs = Vec::new();
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        let number = at + 1;
        let pair = parts::pair(&plain_text(line));
        let is_table = is_table(&lines, at);
        if pair.is_none() || is_table {
            document.pairs(None, std::mem::take(&mut pairs));
        }
        if let Some(fence) = fence(line) {
            let end = closing(&lines, at, fence);
            let code = lines.get(at + 1..end).unwrap_or_default();
            parts::read_code(&code.join("\n"), number + 1, &mut document);
            at = end + 1;
            continue;
        }
        if is_table {
            let end = table_end(&lines, at);
            document.grid(table(&lines, at, end));
            at = end;
            continue;
        }
        if line.starts_with('#') {
            document.heading(number, &plain_text(line.trim_start_matches('#')));
        } else {
            pairs.extend(pair.map(|(label, value)| (number, label, value)));
            document.line(number, &plain_text(line), false);
        }
        at += 1;
    }
    document.pairs(None, pairs);
    document
}

/// Whether a text has anything of Markdown.
pub(super) fn is_likely(text: &str) -> bool {
    text.lines().any(|line| {
        is_rule(line)
            || line.starts_with("# ")
            || line.starts_with("## ")
            || line.starts_with("```")
    })
}

fn quoted(line: &str) -> &str {
    let body = line.trim_start();
    body.strip_prefix("> ").unwrap_or(line)
}

fn fence(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    ["```", "~~~"].into_iter().find(|fence| line.starts_with(*fence))
}

fn closing(lines: &[&str], open: usize, fence: &str) -> usize {
    let rest = lines.iter().enumerate().skip(open + 1);
    let close = rest.clone().find(|(_, line)| line.trim_start().starts_with(fence));
    close.map_or(lines.len(), |(at, _)| at)
}

/// The line between the header and the rows of a table.
fn is_rule(line: &str) -> bool {
    let line = line.trim();
    line.contains('|')
        && line.contains("--")
        && line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '))
}

fn is_table(lines: &[&str], at: usize) -> bool {
    let header = lines.get(at).copied().unwrap_or_default();
    header.contains('|') && lines.get(at + 1).is_some_and(|line| is_rule(line))
}

fn table_end(lines: &[&str], at: usize) -> usize {
    let rows = lines.iter().skip(at + 2).take_while(|line| line.contains('|'));
    at + 2 + rows.count()
}

fn table(lines: &[&str], at: usize, end: usize) -> Grid {
    let header = cells(lines.get(at).copied().unwrap_or_default());
    let rows = (at + 2..end)
        .map(|at| (at + 1, cells(lines.get(at).copied().unwrap_or_default())))
        .collect();
    Grid { line: at + 1, header, rows, ..Grid::default() }
}

/// The cells of a row; `\|` is no border.
fn cells(line: &str) -> Vec<String> {
    let line = line.trim();
    let body = line.strip_prefix('|').unwrap_or(line);
    let mut cells = vec![String::new()];
    let mut escaped = false;
    for c in body.chars() {
        match (c, escaped, cells.last_mut()) {
            ('|', false, _) => cells.push(String::new()),
            ('\\', false, _) => escaped = true,
            (c, _, Some(cell)) => {
                cell.push(c);
                escaped = false;
            }
            _ => {}
        }
    }
    if line.ends_with('|') && cells.len() > 1 {
        cells.pop();
    }
    cells.iter().map(|cell| plain_text(cell)).collect()
}

/// Without emphasis, links and entities.
fn plain_text(text: &str) -> String {
    let text = text.trim().replace("**", "").replace('`', "").replace("<br>", " ");
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ");
    let text = text.replace("&amp;", "&");
    let mut plain = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("](") {
        let Some((name, close)) = before.rsplit_once('[').zip(after.split_once(')')) else { break };
        plain.push_str(name.0);
        plain.push_str(name.1);
        rest = close.1;
    }
    plain.push_str(rest);
    plain.trim().to_owned()
}
