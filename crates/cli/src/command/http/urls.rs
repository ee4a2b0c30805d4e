//! A file of requests: a line for each, with a weight.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::body::{Body, is_content_type};
use super::split;
use crate::exit::UsageError;
use crate::flags::with_scheme;

/// Maximum number of malformed lines to name.
const NAMED: usize = 3;

/// The requests of a file.
#[derive(Debug)]
pub(super) struct Requests {
    /// The server of all of them.
    pub(super) origin: String,
    pub(super) list: Vec<ListedRequest>,
}

/// One request of a file.
#[derive(Debug)]
pub(super) struct ListedRequest {
    /// Method and path, unique in the file.
    pub(super) name: String,
    pub(super) method: String,
    /// With the query.
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Body,
    /// How often, relative to the others.
    pub(super) weight: f64,
}

/// A line that is an object.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    url: String,
    method: Option<String>,
    body: Option<Value>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    weight: Option<f64>,
}

/// Reads a file of requests.
///
/// # Errors
/// The file cannot be read, has no request, has a malformed line, or has requests to several
/// servers.
pub(super) fn read(file: &Path) -> Result<Requests, UsageError> {
    plimsoll_input::read_text(file)
        .map_err(|error| format!("{error}; name a file of UTF-8 text"))
        .and_then(|text| requests(&text))
        .map_err(|why| UsageError(format!("--urls {}: {why}", file.display())))
}

fn requests(text: &str) -> Result<Requests, String> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    let lines: Vec<_> =
        lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')).collect();
    let (mut broken, mut origins, mut list) = (Vec::new(), Vec::new(), Vec::new());
    for (number, line) in &lines {
        match request(line) {
            Ok((origin, request)) => {
                if !origins.contains(&origin) {
                    origins.push(origin);
                }
                list.push(request);
            }
            Err(why) => broken.push(format!("line {number}: {why}")),
        }
    }
    if !broken.is_empty() {
        let named: Vec<_> = broken.iter().take(NAMED).map(String::as_str).collect();
        let more = if broken.len() > NAMED { ", ..." } else { "" };
        return Err(format!(
            "{} of {} lines are not requests ({}{more}); write `[METHOD] URL [WEIGHT]`, or an object \
             with `url`",
            broken.len(),
            lines.len(),
            named.join(", ")
        ));
    }
    let [origin] = origins.as_slice() else {
        return Err(match origins.as_slice() {
            [] => "has no request; write a URL on each line".to_owned(),
            several => format!(
                "contains requests to {} servers ({}); split it into one file per server",
                several.len(),
                several.join(", ")
            ),
        });
    };
    number_equal_names(&mut list);
    Ok(Requests { origin: origin.clone(), list })
}

/// The server of a line, and its request.
fn request(line: &str) -> Result<(String, ListedRequest), String> {
    let line = if line.starts_with('{') {
        serde_json::from_str(line).map_err(|error| error.to_string())?
    } else {
        words(line)?
    };
    let url = with_scheme(&line.url);
    let (origin, path) = split(&url);
    let has_type = line.headers.keys().any(|name| is_content_type(name));
    let body = match &line.body {
        None => Body::text(String::new(), true),
        Some(Value::String(text)) => Body::text(text.clone(), has_type),
        Some(value) => Body::text(value.to_string(), has_type),
    };
    let default = if line.body.is_some() { "POST" } else { "GET" };
    let method = line.method.unwrap_or_else(|| default.to_owned());
    let weight = line.weight.unwrap_or(1.0);
    if !(weight.is_finite() && weight >= 0.0) {
        return Err(format!("the weight {weight} is not 0 or more"));
    }
    let shown = path.split(['?', '#']).next().unwrap_or_default();
    let name = format!("{method} {}", if shown.is_empty() { "/" } else { shown });
    let (path, headers) = (path.to_owned(), line.headers);
    Ok((origin.to_owned(), ListedRequest { name, method, path, headers, body, weight }))
}

/// `[METHOD] URL [WEIGHT]`.
fn words(line: &str) -> Result<Line, String> {
    let mut words: Vec<_> = line.split_whitespace().collect();
    let weight = match words.as_slice() {
        [_, .., last] => last.parse().ok(),
        _ => None,
    };
    if weight.is_some() {
        words.pop();
    }
    let (method, url) = match words.as_slice() {
        [url] => (None, *url),
        [method, url] if method.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            (Some((*method).to_owned()), *url)
        }
        _ => return Err(format!("`{}`", line.chars().take(40).collect::<String>())),
    };
    Ok(Line { url: url.to_owned(), method, body: None, headers: BTreeMap::new(), weight })
}

/// The second of the same name is `NAME#2`.
fn number_equal_names(list: &mut [ListedRequest]) {
    let mut seen: BTreeMap<String, u32> = BTreeMap::new();
    for request in list {
        let count = seen.entry(request.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            request.name = format!("{}#{count}", request.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_url_with_a_method_and_a_weight_or_an_object() {
        let text = "# comment\n\nhttp://a:1/x\nPOST a:1/y?k=v 3\nhttp://a:1/x 0.5\n\
            {\"url\": \"http://a:1/z\", \"body\": {\"b\": 1}, \"headers\": {\"k\": \"v\"}}\n";
        let read = requests(text).unwrap();
        assert_eq!(read.origin, "http://a:1");
        let list: Vec<_> = read
            .list
            .iter()
            .map(|own| (own.name.as_str(), own.path.as_str(), own.weight))
            .collect();
        assert_eq!(
            list,
            [
                ("GET /x", "/x", 1.0),
                ("POST /y", "/y?k=v", 3.0),
                ("GET /x#2", "/x", 0.5),
                ("POST /z", "/z", 1.0)
            ]
        );
        let body = read.list[3].body.spec();
        assert_eq!(body["body"], "{\"b\":1}");
        assert_eq!(body["headers"]["content-type"], "application/json");
    }

    #[test]
    fn what_is_no_request_is_named() {
        for (text, part) in [
            ("http://a/x\nhello big world\n", "1 of 2 lines are not requests (line 2: `hello big"),
            ("{\"url\": 5}", "line 1: invalid type"),
            ("http://a/ -1", "the weight -1 is not 0 or more"),
            ("http://a/\nhttp://b/", "2 servers (http://a, http://b)"),
            ("# nothing", "has no request"),
        ] {
            let error = requests(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
