//! Checks header names and values.

use std::collections::BTreeMap;

use super::{ProfileCheck, top};
use crate::path::ConfigPath;
use plimsoll_plan::names_credential;

/// Headers that frame the message. A wrong value would make the target wait for bytes that never
/// come.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

impl ProfileCheck<'_> {
    pub(super) fn check_all_headers(&mut self) {
        let file = self.file;
        self.check_headers(&top("headers"), &file.headers);
        for (index, target) in file.targets.iter().enumerate() {
            self.check_headers(&top("targets").index(index).key("headers"), &target.headers);
        }
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let path = ConfigPath::root().key("scenarios").index(index).key("headers");
            self.check_headers(&path, &scenario.headers);
            if let Some(http) = &scenario.behaviour.http {
                self.check_headers(
                    &self.layers.behaviour_path(index, "http").key("headers"),
                    &http.headers,
                );
            }
        }
    }

    /// Checks names of response headers. A value under a misspelled name would never be found.
    pub(super) fn check_response_headers(&mut self) {
        let headers = &self.file.response_headers;
        for (key, names) in headers.lists() {
            let wrong = names.iter().enumerate().filter(|(_, name)| !is_name(name));
            for (index, _) in wrong {
                let path = top("response_headers").key(key).index(index);
                let fix = "write letters, digits and `-`, without spaces and colons";
                self.report(path, "is not the name of a header", fix);
            }
        }
    }

    fn check_headers(&mut self, path: &ConfigPath, headers: &BTreeMap<String, String>) {
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in headers {
            let lower = name.to_ascii_lowercase();
            let path = path.key(name);
            if !is_name(name) {
                let fix = "write letters, digits and `-`, without spaces and colons";
                self.report(path.clone(), "is not the name of a header", fix);
            } else if FRAMING.contains(&lower.as_str()) {
                self.report(path.clone(), "is set by Plimsoll itself", "leave it out");
            } else if seen.contains(&lower) {
                self.report(path.clone(), "is given twice, in different case", "leave one out");
            }
            if !is_value(value) {
                let cause = "has a line break or another character that no header can carry";
                self.report(path.clone(), cause, "write one line of text");
            }
            if names_credential(name) {
                self.check_placeholder(path, value.trim_start_matches("Bearer "));
            }
            seen.push(lower);
        }
    }
}

/// Whether a text is a token (RFC 9110, section 5.6.2).
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// Whether a text can be a header's value: no control characters except tab (RFC 9110, section
/// 5.5).
pub(super) fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F))
}
