//! Lines of access logs, and target files of vegeta.

use std::io::{self, BufRead};
use std::ops::ControlFlow;

use serde_json::{Value, json};

use crate::lines::{Place, Sink, read_lines};

/// A line in the combined form as an object, if it has an HTTP request.
pub(crate) fn combined(line: &str) -> Option<Value> {
    let (before, rest) = line.split_once(" [")?;
    let (time, rest) = rest.split_once("] \"")?;
    let (request, rest) = quoted(rest)?;
    let mut words = request.split(' ');
    let (method, url, version) = (words.next()?, words.next()?, words.next()?);
    let known = method.bytes().all(|byte| byte.is_ascii_uppercase()) && !method.is_empty();
    if !known || !version.starts_with("HTTP/") || words.next().is_some() {
        return None;
    }
    let mut numbers = rest.split_whitespace();
    let (status, bytes) = (numbers.next()?, numbers.next()?);
    let mut row = json!({ "time": time, "method": method, "url": url, "status": status });
    let mut who = before.split(' ');
    let mut quotes = rest.split_once('"').and_then(|(_, rest)| quoted(rest));
    let referer = quotes.as_ref().map(|(referer, _)| referer.clone());
    quotes = quotes.and_then(|(_, rest)| rest.split_once('"')).and_then(|(_, rest)| quoted(rest));
    let more = [
        ("bytes", Some(bytes.to_owned())),
        ("client", who.next().map(str::to_owned)),
        ("user", who.nth(1).map(str::to_owned)),
        ("referer", referer),
        ("agent", quotes.map(|(agent, _)| agent)),
    ];
    for (name, value) in more {
        if let Some(value) = value.filter(|value| value != "-") {
            row[name] = value.into();
        }
    }
    Some(row)
}

/// The text up to the closing quote, its escapes undone, and the rest.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        match text.as_bytes().get(at)? {
            b'"' => break,
            b'\\' if text.as_bytes().get(at + 1) == Some(&b'x') => {
                bytes.push(u8::from_str_radix(text.get(at + 2..at + 4)?, 16).ok()?);
                at += 4;
            }
            b'\\' => {
                bytes.push(*text.as_bytes().get(at + 1)?);
                at += 2;
            }
            byte => {
                bytes.push(*byte);
                at += 1;
            }
        }
    }
    Some((String::from_utf8_lossy(&bytes).into_owned(), &text[at + 1..]))
}

/// `METHOD URL`, headers, `@FILE`; comments begin with `#`.
pub(crate) fn read_targets(reader: impl BufRead, sink: &mut Sink<'_>) -> io::Result<()> {
    let mut open: Option<OpenTarget> = None;
    read_lines(reader, &mut |place, line| {
        let line = match line {
            Ok(line) => line,
            Err(error) => return sink(place, Err(error)),
        };
        let mut flow = ControlFlow::Continue(());
        if line.starts_with('#') {
            return flow;
        }
        let target = line.split_once(' ').filter(|(_, url)| url.trim().starts_with("http"));
        if let Some((method, url)) = target.filter(|(method, _)| !method.ends_with(':')) {
            if let Some(target) = open.take() {
                flow = sink(target.place, Ok(target.row));
            }
            let row = json!({ "method": method, "url": url.trim(), "header": {} });
            open = Some(OpenTarget { place, row });
        } else if let (Some(target), Some((name, value))) = (&mut open, line.split_once(':')) {
            target.row["header"][name.trim()] = value.trim().into();
        } else if let (Some(target), Some(file)) = (&mut open, line.strip_prefix('@')) {
            target.row["body_file"] = file.into();
        } else {
            flow = sink(place, Err("is neither a target, a header nor @FILE".to_owned()));
        }
        flow
    })?;
    if let Some(target) = open {
        let _ = sink(target.place, Ok(target.row));
    }
    Ok(())
}

struct OpenTarget {
    place: Place,
    row: Value,
}
