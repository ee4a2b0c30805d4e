//! Outputs of wrk, hey, oha, ab and k6 as tables.

use crate::document::{Document, Grid, Tool};

type Pairs = Vec<(usize, String, String)>;

/// Adds what the outputs in this text say; false if there is none.
pub(super) fn read(text: &str, first: usize, document: &mut Document) -> bool {
    let before = document.grids.len();
    let mut block: Vec<(usize, &str)> = Vec::new();
    let mut tool = None;
    for (at, line) in text.lines().enumerate() {
        if let Some(next) = begins(line, text) {
            finish(tool, &block, document);
            block.clear();
            tool = Some(next);
        }
        block.push((first + at, line));
    }
    finish(tool, &block, document);
    document.grids.len() > before
}

/// The tool whose output begins in this line.
fn begins(line: &str, text: &str) -> Option<Tool> {
    let line = line.trim();
    if line.starts_with("Running ") && line.contains(" test @ ") {
        Some(Tool::Wrk)
    } else if line == "Summary:" {
        Some(if text.contains("Success rate:") { Tool::Oha } else { Tool::Hey })
    } else if line.starts_with("This is ApacheBench") || line.starts_with("Server Software:") {
        Some(Tool::Ab)
    } else if (line.starts_with("http_req_") && line.contains("..:"))
        || line.contains("TOTAL RESULTS")
    {
        Some(Tool::K6)
    } else {
        None
    }
}

fn finish(tool: Option<Tool>, block: &[(usize, &str)], document: &mut Document) {
    match tool {
        Some(Tool::Wrk) => document.pairs(tool, wrk(block)),
        Some(Tool::Hey | Tool::Oha) => document.pairs(tool, hey(block)),
        Some(Tool::Ab) => document.pairs(tool, ab(block)),
        Some(Tool::K6) => k6(block, document),
        Some(Tool::Plimsoll) | None => {}
    }
}

fn pair(line: usize, label: &str, value: &str) -> (usize, String, String) {
    (line, label.to_owned(), value.to_owned())
}

fn wrk(block: &[(usize, &str)]) -> Pairs {
    let mut pairs = Vec::new();
    for (line, text) in block.iter().copied() {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            [threads, "threads", "and", connections, "connections"] => {
                pairs.push(pair(line, "threads", threads));
                pairs.push(pair(line, "connections", connections));
            }
            // Stdev and the share within it follow.
            ["Latency", mean, _, max, _] => {
                pairs.push(pair(line, "mean latency", mean));
                pairs.push(pair(line, "max latency", max));
            }
            [share, value] if share.ends_with('%') => {
                pairs.push(pair(line, &format!("p{}", share.trim_end_matches('%')), value));
            }
            [count, "requests", "in", time, ..] => {
                pairs.push(pair(line, "requests", count));
                pairs.push(pair(line, "test duration", time.trim_end_matches(',')));
            }
            ["Non-2xx", .., count] => pairs.push(pair(line, "errors", count)),
            ["Requests/sec:", rate] => pairs.push(pair(line, "requests/s", rate)),
            ["Transfer/sec:", rate] => pairs.push(pair(line, "transfer/sec", &format!("{rate}/s"))),
            _ => {}
        }
    }
    pairs
}

fn hey(block: &[(usize, &str)]) -> Pairs {
    let mut pairs = Vec::new();
    let (mut answers, mut last) = (0_u64, 0);
    for (line, text) in block.iter().copied() {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["Total:", value, unit] => {
                pairs.push(pair(line, "test duration", &format!("{value} {unit}")));
            }
            [name @ ("Slowest:" | "Fastest:" | "Average:"), value, unit] => {
                let name = name.trim_end_matches(':');
                pairs.push(pair(line, name, &format!("{value} {unit}")));
            }
            ["Requests/sec:", rate] => pairs.push(pair(line, "requests/s", rate)),
            ["Success", "rate:", share] => pairs.push(pair(line, "success rate", share)),
            [share, "in", value, unit] if share.ends_with('%') => {
                let percentile =
                    format!("p{}", share.trim_end_matches('%').trim_end_matches(".00"));
                pairs.push(pair(line, &percentile, &format!("{value} {unit}")));
            }
            [status, count, "responses"] if status.starts_with('[') => {
                answers = answers.saturating_add(count.parse().unwrap_or(0));
                last = line;
            }
            ["Error", "distribution:"] => break,
            _ => {}
        }
    }
    if answers > 0 {
        pairs.push(pair(last, "samples", &answers.to_string()));
    }
    pairs
}

fn ab(block: &[(usize, &str)]) -> Pairs {
    let mut pairs = Vec::new();
    for (line, text) in block.iter().copied() {
        let words: Vec<&str> = text.split_whitespace().collect();
        match words.as_slice() {
            ["Concurrency", "Level:", clients] => pairs.push(pair(line, "connections", clients)),
            ["Time", "taken", "for", "tests:", time, _] => {
                pairs.push(pair(line, "test duration", &format!("{time} s")));
            }
            ["Complete", "requests:", count] => pairs.push(pair(line, "requests", count)),
            ["Requests", "per", "second:", rate, ..] => pairs.push(pair(line, "requests/s", rate)),
            ["Total:", min, mean, _, _, max] => {
                pairs.push(pair(line, "min", &format!("{min} ms")));
                pairs.push(pair(line, "mean", &format!("{mean} ms")));
                pairs.push(pair(line, "max", &format!("{max} ms")));
            }
            [share, value] if share.ends_with('%') => {
                let percentile = format!("p{}", share.trim_end_matches('%'));
                pairs.push(pair(line, &percentile, &format!("{value} ms")));
            }
            _ => {}
        }
    }
    pairs
}

/// `name....: avg=1ms min=0s med=1ms max=5ms p(90)=2ms p(95)=3ms`
fn k6(block: &[(usize, &str)], document: &mut Document) {
    const STATISTICS: [&str; 8] =
        ["avg=", "min=", "med=", "max=", "p(90)=", "p(95)=", "p(99)=", "p(99.9)="];
    let mut rows = Vec::new();
    let mut counts = Vec::new();
    for (line, text) in block.iter().copied() {
        let Some((name, values)) = text.split_once(':') else { continue };
        let name = name.trim().trim_start_matches(['{', ' ']).trim_end_matches(['.', ' ']);
        let words: Vec<&str> = values.split_whitespace().collect();
        if words.iter().any(|word| word.starts_with("avg=")) {
            let cells = STATISTICS.iter().map(|name| {
                words
                    .iter()
                    .find_map(|word| word.strip_prefix(*name))
                    .unwrap_or_default()
                    .to_owned()
            });
            rows.push((line, std::iter::once(name.to_owned()).chain(cells).collect()));
        }
        if let ("http_reqs", [count, rate]) = (name, words.as_slice()) {
            counts.push(pair(line, "requests", count));
            counts.push(pair(line, "requests/s", rate));
        }
    }
    let names = STATISTICS.iter().map(|name| name.trim_end_matches('=').to_owned());
    let header = std::iter::once(String::new()).chain(names).collect();
    let line = rows.first().map_or(1, |row: &(usize, Vec<String>)| row.0);
    document.grid(Grid { line, header, rows, tool: Some(Tool::K6), ..Grid::default() });
    document.pairs(Some(Tool::K6), counts);
}
