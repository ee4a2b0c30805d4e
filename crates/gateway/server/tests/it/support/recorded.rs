//! Requests of the official SDKs' clients, and answers of their servers, as `scripts/sdk/record`
//! recorded them.

use serde_json::Value;

use super::client::ClientResponse;

/// A request as it came.
pub(crate) struct Recorded {
    head: String,
    pub(crate) body: String,
}

/// The recorded requests of a client.
pub(crate) fn recorded(name: &str) -> Vec<Recorded> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proof/test-support/recorded/clients");
    let text = std::fs::read_to_string(format!("{folder}/{name}.http")).unwrap();
    let (mut rest, mut all) = (&text[..], Vec::new());
    while let Some((head, behind)) = rest.split_once("\r\n\r\n") {
        let mut request = Recorded { head: head.to_owned(), body: String::new() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        let (body, next) = behind.split_at(length);
        body.clone_into(&mut request.body);
        all.push(request);
        rest = next;
    }
    assert!(rest.is_empty() && !all.is_empty(), "{name}");
    all
}

impl Recorded {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let headers = self.head.lines().filter_map(|line| line.split_once(':'));
        headers
            .into_iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim())
    }

    /// The method of HTTP.
    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    /// The body; `null` where there is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    /// The bytes with a further header, and with another text in place of one that the server had
    /// made then.
    pub(crate) fn bytes(&self, header: &str, old: Option<&str>, new: Option<&str>) -> Vec<u8> {
        let replaced = |text: &str| match (old, new) {
            (Some(old), Some(new)) => text.replace(old, new),
            _ => text.to_owned(),
        };
        let (head, body) = (replaced(&self.head), replaced(&self.body));
        let lines = head.lines().map(|line| match line.split_once(':') {
            Some((name, _)) if name.eq_ignore_ascii_case("content-length") => {
                format!("{name}: {}\r\n", body.len())
            }
            _ => format!("{line}\r\n"),
        });
        format!("{}{header}\r\n{body}", lines.collect::<String>()).into_bytes()
    }
}

/// A response of a server as it came, without its framing.
pub(crate) struct RecordedAnswer {
    head: Recorded,
    pub(crate) body: String,
}

impl RecordedAnswer {
    pub(crate) fn status(&self) -> u16 {
        self.head.path().parse().unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.header(name)
    }
}

/// The recorded responses of a server.
pub(crate) fn recorded_answers(name: &str) -> Vec<RecordedAnswer> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../proof/test-support/recorded/servers");
    let text = std::fs::read_to_string(format!("{folder}/{name}.http")).unwrap();
    let (mut rest, mut all) = (&text[..], Vec::new());
    while let Some((head, behind)) = rest.split_once("\r\n\r\n") {
        let head = Recorded { head: head.to_owned(), body: String::new() };
        let length = head.header("content-length").map(|length| length.parse().unwrap());
        let chunked = head.header("transfer-encoding").is_some();
        let mut body = String::new();
        rest = match length {
            None if chunked => chunks(behind, &mut body),
            length => {
                let (whole, next) = behind.split_at(length.unwrap_or(0));
                body.push_str(whole);
                next
            }
        };
        all.push(RecordedAnswer { head, body });
    }
    assert!(rest.is_empty() && !all.is_empty(), "{name}");
    all
}

/// Takes the chunks of a body; returns what is behind them.
fn chunks<'t>(mut rest: &'t str, body: &mut String) -> &'t str {
    loop {
        let (size, behind) = rest.split_once("\r\n").unwrap();
        let (chunk, next) = behind.split_at(usize::from_str_radix(size, 16).unwrap());
        body.push_str(chunk);
        rest = next.strip_prefix("\r\n").unwrap();
        if chunk.is_empty() {
            return rest;
        }
    }
}

/// The documents of an answer: the only one, or those of a stream.
pub(crate) fn documents(reply: &ClientResponse) -> Vec<Value> {
    let text = reply.text();
    let lines = text.lines().map(|line| line.strip_prefix("data: ").unwrap_or(line));
    lines.filter_map(|line| serde_json::from_str(line).ok()).collect()
}
