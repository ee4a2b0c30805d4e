//! An audit row and its JSON line.

use std::net::IpAddr;

use serde::ser::SerializeSeq as _;
use serde::{Serialize, Serializer};

/// The longest path, in bytes. Longer paths are cut, so that a flood of long URLs cannot fill the
/// queue.
const PATH: usize = 2048;
/// The longest of all other texts, in bytes.
const TEXT: usize = 256;
/// The most that the rules of a row take, in bytes.
const RULES: usize = 2048;
/// Marks omitted rules.
const MORE: &str = "...";

/// One request, written as a JSON object with these fields, omitting `None` and empty ones.
///
/// Prompts, answers and keys have no field. The query of the path is not written, because some
/// clients put their key there. Texts are cut: the path and all rules together at 2,048 bytes, all
/// others at 256, escapes included. So no row is longer than 8 KiB.
#[serde_with::apply(
    Option => #[serde(skip_serializing_if = "Option::is_none")],
    &'a str => #[serde(skip_serializing_if = "str::is_empty", serialize_with = "text")],
)]
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Row<'a> {
    /// When the request arrived, in milliseconds since 1970 UTC.
    pub timestamp: u64,
    /// Tenant.
    pub tenant: &'a str,
    /// Name of the route.
    pub route: &'a str,
    /// Method.
    #[serde_with(skip_apply)]
    #[serde(serialize_with = "text")]
    pub method: &'a str,
    /// Path; its query is not written.
    #[serde_with(skip_apply)]
    #[serde(serialize_with = "path")]
    pub path: &'a str,
    /// Status of the answer; 0 if the client got none.
    pub status: u16,
    /// From the first byte of the request to the last byte of the answer, in microseconds.
    pub latency_us: u64,
    /// From the first attempt to send the request upstream to the last byte read of the answer, in
    /// microseconds, including retries and pauses. `None` if the gateway sent nothing upstream.
    pub upstream_us: Option<u64>,
    /// Bytes of the request's body.
    pub request_bytes: u64,
    /// Bytes of the answer's body.
    pub response_bytes: u64,
    /// Address of the client.
    pub client: Option<IpAddr>,
    /// Its `user-agent`.
    pub user_agent: &'a str,
    /// Request id or trace id.
    pub request_id: &'a str,
    /// The policy's decision.
    pub policy_decision: &'a str,
    /// The rules that matched, by id.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "rules")]
    pub rules: &'a [&'a str],
    /// Model.
    pub model: &'a str,
    /// Tokens of the prompt.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Cache state, like `hit`.
    pub cache: &'a str,
    /// The tool that was called, as `SERVER/TOOL`.
    pub tool: &'a str,
    /// Outcome of the call, such as `ok`.
    pub outcome: &'a str,
    /// Members of the request that a translation left out, by name.
    pub left_out: &'a str,
    /// Why the answer was cut short.
    pub ended_early: &'a str,
    /// The layer of the gateway that refused the request.
    pub refused_by: &'a str,
}

impl Row<'_> {
    /// Appends the row as one line.
    pub(crate) fn write_line(&self, line: &mut Vec<u8>) {
        let start = line.len();
        // Writing to memory cannot fail; if it did, a partial row must not stay.
        if serde_json::to_writer(&mut *line, self).is_err() {
            line.truncate(start);
            line.extend_from_slice(b"{}");
        }
        line.push(b'\n');
    }
}

/// The bytes of a character inside a JSON text.
const fn size(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
        '\0'..='\u{1f}' => 6,
        other => other.len_utf8(),
    }
}

/// Cuts a text to a maximum length, escapes included.
fn cut(value: &str, longest: usize) -> &str {
    // The longest escape of a byte has six.
    if value.len() * 6 <= longest {
        return value;
    }
    let mut left = longest;
    let end = value.char_indices().find(|(_, character): &(usize, char)| {
        left.checked_sub(size(*character)).map(|rest| left = rest).is_none()
    });
    end.and_then(|(at, _)| value.get(..at)).unwrap_or(value)
}

fn text<S: Serializer>(value: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(cut(value, TEXT))
}

fn path<S: Serializer>(value: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let path = value.split_once('?').map_or(value, |(path, _)| path);
    serializer.serialize_str(cut(path, PATH))
}

fn rules<S: Serializer>(rules: &[&str], serializer: S) -> Result<S::Ok, S::Error> {
    let mut list = serializer.serialize_seq(None)?;
    let mut written = 1;
    for rule in rules {
        if written > RULES - TEXT - MORE.len() {
            list.serialize_element(MORE)?;
            break;
        }
        let rule = cut(rule, TEXT);
        list.serialize_element(rule)?;
        // Its quotes and the comma behind it.
        written += rule.chars().map(size).sum::<usize>() + 3;
    }
    list.end()
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
            upstream_us: Some(1400),
            request_bytes: 10,
            response_bytes: 20,
            client: Some("10.0.0.7".parse().unwrap()),
            user_agent: "a \"b\"\n",
            request_id: "r-1",
            policy_decision: "redact",
            rules: &["pii.card", "pii.mail"],
            model: "m",
            input_tokens: Some(3),
            output_tokens: Some(4),
            cache: "hit",
            tool: "search/find",
            outcome: "ok",
            left_out: "seed",
            ended_early: "why",
            refused_by: "auth",
        };
        let expected = concat!(
            r#"{"timestamp":1763700000123,"tenant":"retail","route":"chat","method":"POST","#,
            r#""path":"/v1/chat","status":200,"latency_us":1500,"upstream_us":1400,"request_bytes":10,"#,
            r#""response_bytes":20,"client":"10.0.0.7","user_agent":"a \"b\"\n","#,
            r#""request_id":"r-1","policy_decision":"redact","rules":["pii.card","pii.mail"],"#,
            r#""model":"m","input_tokens":3,"output_tokens":4,"cache":"hit","#,
            r#""tool":"search/find","outcome":"ok","left_out":"seed","ended_early":"why","#,
            r#""refused_by":"auth"}"#,
            "\n"
        );
        assert_eq!(line(&row), expected);
    }

    #[test]
    fn numbers_addresses_and_odd_texts_are_what_a_json_reader_makes_of_them() {
        let rows = [
            (0, "::1", "plain"),
            (u64::MAX, "255.0.10.255", "quote \" backslash \\ tab \t del \u{7f}"),
            (10, "2001:db8::ff", "é \u{1f600} \u{0} \u{1f}"),
        ];
        for (count, client, text) in rows {
            let address = client.parse().unwrap();
            let row = Row {
                timestamp: count,
                status: 65_535,
                latency_us: count,
                client: Some(address),
                tenant: text,
                rules: &[text],
                input_tokens: Some(count),
                ..Row::default()
            };
            let read: serde_json::Value = serde_json::from_str(&line(&row)).unwrap();
            assert_eq!(read["timestamp"].as_u64(), Some(count));
            assert_eq!(
                (read["status"].as_u64(), read["latency_us"].as_u64()),
                (Some(65_535), Some(count))
            );
            assert_eq!(
                (read["client"].as_str(), read["tenant"].as_str()),
                (Some(client), Some(text))
            );
            assert_eq!(
                (read["rules"][0].as_str(), read["input_tokens"].as_u64()),
                (Some(text), Some(count))
            );
        }
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
    fn no_row_is_longer_than_eight_kibibytes() {
        let long = "\u{1}\"é".repeat(1000);
        let rules = vec![long.as_str(); 1000];
        let row = Row {
            timestamp: u64::MAX,
            tenant: &long,
            route: &long,
            method: &long,
            path: &long,
            status: u16::MAX,
            latency_us: u64::MAX,
            upstream_us: Some(u64::MAX),
            request_bytes: u64::MAX,
            response_bytes: u64::MAX,
            client: Some("ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff".parse().unwrap()),
            user_agent: &long,
            request_id: &long,
            policy_decision: &long,
            rules: &rules,
            model: &long,
            input_tokens: Some(u64::MAX),
            output_tokens: Some(u64::MAX),
            cache: &long,
            tool: &long,
            outcome: &long,
            left_out: &long,
            ended_early: &long,
            refused_by: &long,
        };
        let text = line(&row);
        assert!(text.len() <= 8 << 10, "{}", text.len());
        let read: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(read["rules"].as_array().unwrap().last().unwrap(), "...");
        assert!(long.starts_with(read["path"].as_str().unwrap()));
        assert!(read["path"].as_str().unwrap().len() > 700);
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
