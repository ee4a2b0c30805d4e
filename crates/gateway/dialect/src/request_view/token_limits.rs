//! Limits of an answer's length under other names and in other spellings than the dialect's own.
//!
//! Servers that are compatible with a dialect know names of their own, and some read names in any
//! case (Go's `encoding/json`) or as one word (JSON of protocol buffers). A budget that looked at
//! the dialect's names alone would reserve too little for them.

use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;
use serde_json::value::RawValue;

/// Names of limits, folded. The dialects' own are here for their other spellings.
const LIMITS: [&str; 9] = [
    "maxtokens",
    "maxcompletiontokens",
    "maxoutputtokens",
    "maxnewtokens",
    "maxgentokens",
    "maxgenerationtokens",
    "maxtokenstosample",
    "numpredict",
    "npredict",
];

/// Names of the number of answers, folded.
const ANSWERS: [&str; 4] = ["n", "bestof", "numreturnsequences", "candidatecount"];

/// Names of members that hold such settings, folded.
const SETTINGS: [&str; 5] =
    ["options", "parameters", "generationconfig", "inferenceconfig", "extrabody"];

/// A longer name is none of these.
const LONGEST: usize = 32;

/// What members say of the length of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TokenLimits {
    /// The largest number of tokens.
    pub(super) tokens: Option<u64>,
    /// Whether one says that there is no limit.
    pub(super) unlimited: bool,
    /// The largest number of answers.
    pub(super) answers: Option<u64>,
}

impl TokenLimits {
    /// Reads the value of a member, if its name is one of these.
    pub(super) fn read<'de, A: MapAccess<'de>>(
        &mut self,
        name: &str,
        map: &mut A,
    ) -> Result<(), A::Error> {
        let folded = folded(name);
        if SETTINGS.contains(&&*folded) {
            self.settings(map.next_value()?);
        } else if LIMITS.contains(&&*folded) || ANSWERS.contains(&&*folded) {
            self.note(&folded, &map.next_value()?);
        } else {
            map.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }

    /// The members of an object with settings. Where a name is there twice, the last counts, as for
    /// most servers.
    fn settings(&mut self, raw: &RawValue) {
        if let Ok(Value::Object(settings)) = serde_json::from_str(raw.get()) {
            for (name, value) in &settings {
                self.note(&folded(name), value);
            }
        }
    }

    /// A number below zero, and what is no number, is no limit.
    fn note(&mut self, folded: &str, value: &Value) {
        let number = match value {
            Value::Null => return,
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        };
        if LIMITS.contains(&folded) {
            self.tokens = self.tokens.max(number);
            self.unlimited |= number.is_none();
        } else if ANSWERS.contains(&folded) {
            self.answers = self.answers.max(number);
        }
    }
}

/// A name in small letters, without `_` and `-`, with the two letters that Go takes for `k` and
/// `s`; empty for one that is too long.
fn folded(name: &str) -> String {
    if name.len() > LONGEST {
        return String::new();
    }
    let letters = name.chars().filter(|letter| !matches!(letter, '_' | '-'));
    let letters = letters.map(|letter| match letter {
        '\u{212a}' => 'k',
        '\u{17f}' => 's',
        letter => letter.to_ascii_lowercase(),
    });
    letters.collect()
}
