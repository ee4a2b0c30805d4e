//! The log of the mock provider: the good answers of each kind, as the other side counts them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use serde_json::Value;

use super::kind::{AGENTS, CHATS, TOOLS};

/// Good answers by kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MockLog(BTreeMap<&'static str, u64>);

impl MockLog {
    /// Reads the log of a provider that has ended; `None` if it is not there or not whole.
    pub(super) fn read(path: &Path) -> Option<Self> {
        let mut log = Self::default();
        for line in BufReader::new(File::open(path).ok()?).lines() {
            let line: Value = serde_json::from_str(&line.ok()?).ok()?;
            if let Some(kind) = kind_of(&line) {
                *log.0.entry(kind).or_default() += 1;
            }
        }
        Some(log)
    }

    /// The good answers of a kind.
    pub(super) fn good(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or(0)
    }
}

/// The kind of a good answer; `docs/reference/mock.md` has all keys of a line. What the gateway
/// asks for itself, like the list of tools, is of none.
fn kind_of(line: &Value) -> Option<&'static str> {
    if line["status"] != 200 || line["end"] != "completed" {
        return None;
    }
    let rpc = &line["rpc"];
    match (line["path"].as_str()?, rpc["method"].as_str(), rpc["outcome"].as_str()) {
        ("/v1/chat/completions", ..) => Some(CHATS),
        ("/mcp", Some("tools/call"), Some("result")) => Some(TOOLS),
        ("/a2a", Some("SendMessage"), Some("result")) => Some(AGENTS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const CHAT: &str =
        r#"{"path":"/v1/chat/completions","status":200,"end":"completed","rpc":null,"sequence":1}"#;
    const CUT: &str =
        r#"{"path":"/v1/chat/completions","status":200,"end":"client_gone","rpc":null}"#;
    const REFUSED: &str =
        r#"{"path":"/v1/chat/completions","status":503,"end":"completed","rpc":null}"#;

    fn rpc(path: &str, method: &str, outcome: &str) -> String {
        let rpc = format!(r#"{{"method":"{method}","outcome":"{outcome}"}}"#);
        format!(r#"{{"path":"{path}","status":200,"end":"completed","rpc":{rpc}}}"#)
    }

    #[test]
    fn only_good_answers_to_what_clients_ask_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mock.jsonl");
        assert_eq!(MockLog::read(&path), None);
        let lines = [
            CHAT.to_owned(),
            CHAT.to_owned(),
            CUT.to_owned(),
            REFUSED.to_owned(),
            rpc("/mcp", "tools/list", "result"),
            rpc("/mcp", "tools/call", "result"),
            rpc("/mcp", "tools/call", "error"),
            rpc("/a2a", "SendMessage", "result"),
            rpc("/a2a", "SendMessage", "result"),
            rpc("/a2a", "SendMessage", "cancelled"),
        ];
        fs::write(&path, lines.join("\n") + "\n").unwrap();
        let log = MockLog::read(&path).unwrap();
        let counts = [CHATS, TOOLS, AGENTS, "approvals"].map(|kind| log.good(kind));
        assert_eq!(counts, [2, 1, 2, 0]);
        // Killed while it wrote.
        fs::write(&path, format!("{CHAT}\n{{\"path\":\"/v1")).unwrap();
        assert_eq!(MockLog::read(&path), None);
    }
}
