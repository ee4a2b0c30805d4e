//! What is written about a request.

use std::net::IpAddr;

use serde::{Serialize, Serializer};

/// The longest path, in bytes. What is longer is cut: a flood of headers must not fill the queue.
const PATH: usize = 2048;
/// The longest of all other texts, in bytes.
const TEXT: usize = 256;

/// One request, as it is written: a JSON object with these fields, without those that are `None` or empty.
///
/// There is no field for prompts, answers or keys. Of the path, what follows `?` is not written, since some
/// clients put their key there. Texts are cut: the path at 2,048 bytes, all others at 256.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Row<'a> {
    /// When the request arrived, in milliseconds since 1970 UTC.
    pub timestamp: u64,
    /// Who pays.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub tenant: &'a str,
    /// Name of the route.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub route: &'a str,
    /// Method.
    #[serde(serialize_with = "text")]
    pub method: &'a str,
    /// Path, of which the query is not written.
    #[serde(serialize_with = "path")]
    pub path: &'a str,
    /// Status of the answer; 0 for none.
    pub status: u16,
    /// From the first byte of the request to the last byte of the answer, in microseconds.
    pub latency_us: u64,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// Bytes of the answer's body.
    pub response_bytes: u64,
    /// Address of the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<IpAddr>,
    /// Its `user-agent`.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub user_agent: &'a str,
    /// Request id or trace id.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub request_id: &'a str,
    /// The policy's verdict.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub verdict: &'a str,
    /// The rules that matched, by id.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub rules: &'a [&'a str],
    /// Model.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub model: &'a str,
    /// Tokens of the prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// What the cache did, like `hit`.
    #[serde(serialize_with = "text", skip_serializing_if = "str::is_empty")]
    pub cache: &'a str,
}

impl Row<'_> {
    /// Appends the row as one line.
    pub(crate) fn write_line(&self, line: &mut Vec<u8>) {
        let start = line.len();
        // Neither the vector nor these types can fail; were it so, no half of a line would stay.
        if serde_json::to_writer(&mut *line, self).is_err() {
            line.truncate(start);
            line.extend_from_slice(b"{}");
        }
        line.push(b'\n');
    }
}

fn cut(text: &str, longest: usize) -> &str {
    text.get(..text.floor_char_boundary(longest)).unwrap_or_default()
}

fn text<S: Serializer>(text: &&str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cut(text, TEXT))
}

fn path<S: Serializer>(path: &&str, serializer: S) -> Result<S::Ok, S::Error> {
    let end = memchr::memchr(b'?', path.as_bytes()).unwrap_or(path.len());
    serializer.serialize_str(cut(path.get(..end).unwrap_or_default(), PATH))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(row: &Row<'_>) -> String {
        let mut line = Vec::new();
        row.write_line(&mut line);
        String::from_utf8(line).unwrap()
    }

    #[test]
    fn a_full_row_is_one_line_of_json() {
        let row = Row {
            timestamp: 1_763_700_000_123,
            tenant: "retail",
            route: "chat",
            method: "POST",
            path: "/v1/chat",
            status: 200,
            latency_us: 1500,
            request_bytes: 10,
            response_bytes: 20,
            client: Some("10.0.0.7".parse().unwrap()),
            user_agent: "a \"b\"\n",
            request_id: "r-1",
            verdict: "redact",
            rules: &["pii.card", "pii.mail"],
            model: "m",
            input_tokens: Some(3),
            output_tokens: Some(4),
            cache: "hit",
        };
        let expected = concat!(
            r#"{"timestamp":1763700000123,"tenant":"retail","route":"chat","method":"POST","#,
            r#""path":"/v1/chat","status":200,"latency_us":1500,"request_bytes":10,"#,
            r#""response_bytes":20,"client":"10.0.0.7","user_agent":"a \"b\"\n","#,
            r#""request_id":"r-1","verdict":"redact","rules":["pii.card","pii.mail"],"#,
            r#""model":"m","input_tokens":3,"output_tokens":4,"cache":"hit"}"#,
            "\n"
        );
        assert_eq!(line(&row), expected);
    }

    #[test]
    fn what_is_not_known_is_not_written() {
        let row = Row { method: "GET", path: "/", ..Row::default() };
        let expected = concat!(
            r#"{"timestamp":0,"method":"GET","path":"/","status":0,"latency_us":0,"#,
            r#""request_bytes":0,"response_bytes":0}"#,
            "\n"
        );
        assert_eq!(line(&row), expected);
    }

    #[test]
    fn a_key_in_the_query_is_not_written() {
        let row = Row { path: "/v1/models?key=secret", ..Row::default() };
        assert!(line(&row).contains(r#""path":"/v1/models","#));
        assert!(!line(&row).contains("secret"));
    }

    #[test]
    fn long_texts_are_cut_between_characters() {
        let long = "é".repeat(2000);
        let row = Row { path: &long, user_agent: &long, ..Row::default() };
        let text = line(&row);
        assert!(text.contains(&format!(r#""path":"{}","#, "é".repeat(1024))));
        assert!(text.contains(&format!(r#""user_agent":"{}"}}"#, "é".repeat(128))));
    }
}
