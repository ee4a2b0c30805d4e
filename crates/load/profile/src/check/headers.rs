//! Header names and values.

use std::collections::BTreeMap;

use super::{Check, top};
use crate::place::ConfigPath;
use crate::secret::is_sensitive;

/// Headers that frame the message: a wrong one makes the target wait for bytes that never come.
const FRAMING: [&str; 3] = ["content-length", "transfer-encoding", "connection"];

impl Check<'_> {
    pub(super) fn all_headers(&mut self) {
        let file = self.file;
        self.headers(&top("headers"), &file.headers);
        for (index, scenario) in file.scenarios.iter().enumerate() {
            let place = ConfigPath::top().key("scenarios").index(index).key("headers");
            self.headers(&place, &scenario.headers);
            if let Some(http) = &scenario.behaviour.http {
                self.headers(&self.draft.place_of(index, "http").key("headers"), &http.headers);
            }
        }
    }

    fn headers(&mut self, place: &ConfigPath, headers: &BTreeMap<String, String>) {
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in headers {
            let lower = name.to_ascii_lowercase();
            let place = place.key(name);
            if !is_name(name) {
                let mend = "write letters, digits and `-`, without blanks and colons";
                self.report(place.clone(), "is not the name of a header", mend);
            } else if FRAMING.contains(&lower.as_str()) {
                self.report(place.clone(), "is set by Plimsoll itself", "leave it out");
            } else if seen.contains(&lower) {
                self.report(place.clone(), "is there twice, in other letters", "leave one out");
            }
            if !is_value(value) {
                let cause = "has a line break or another character that no header can carry";
                self.report(place.clone(), cause, "write one line of text");
            }
            if is_sensitive(name) {
                self.placeholder(place, value.trim_start_matches("Bearer "));
            }
            seen.push(lower);
        }
    }
}

/// Is this a token of RFC 9110, section 5.6.2?
pub(super) fn is_name(text: &str) -> bool {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(token)
}

/// May this be the value of a header: no control characters but tab (RFC 9110, section 5.5)?
pub(super) fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7F))
}
