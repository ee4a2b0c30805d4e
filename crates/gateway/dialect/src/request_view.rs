//! Reads the request members that the gateway's layers use.

mod members;
mod prompt;
mod settings;
#[cfg(test)]
mod tests;

use std::fmt;

use members::Members;
use prompt::{PromptCounter, decode};
use serde_json::Value;
pub use settings::Streaming;

use crate::dialect::Endpoint;
use crate::error::DialectError;
use crate::json;

/// A view of a request. No tree of the whole is built.
///
/// It checks the types of what it reads: the model, all texts, `stream`, the token limits and the
/// outer shape of messages. The upstream validates everything else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestView {
    /// The model's name.
    pub model: String,
    /// Whether the response is streamed.
    pub streaming: Streaming,
    /// The maximum number of output tokens: the largest of all that the request names,
    /// in any spelling and under the names of other servers; none where one says that there is
    /// none.
    pub max_tokens: Option<u64>,
    /// The number of answers that are asked for (`n`, in any spelling and under the names of other
    /// servers), each with up to [`max_tokens`](Self::max_tokens).
    pub answers: u64,
    /// An estimate of the prompt tokens: the UTF-8 bytes of each text divided by four, rounded up,
    /// plus the token ids. Budgets reserve this much and settle by the reported usage.
    ///
    /// The texts are system prompts, messages with all their text parts and documents, tool
    /// results, tool call arguments and embedding inputs. Images and tools are not counted.
    pub prompt_tokens: u64,
}

impl RequestView {
    /// Parses the body of a request to an endpoint.
    ///
    /// # Errors
    /// All are the caller's fault (status 400) and name the field: not UTF-8, nested deeper than
    /// [`MAX_DEPTH`](crate::MAX_DEPTH), not JSON, a field missing, duplicate or of a wrong type.
    pub fn read(endpoint: Endpoint, body: &[u8]) -> Result<Self, DialectError> {
        let members = Members::read(json::checked(body)?, &READ);
        let members = members.map_err(DialectError::malformed)?;
        let model = decode(required(members.get("model"), "model")?, FieldPath::Name("model"))?;
        if model.is_empty() {
            return Err(DialectError::invalid("model", "must not be empty"));
        }
        let limits = TokenLimits::read(&members).map_err(DialectError::malformed)?;
        Ok(Self {
            model: model.into_owned(),
            prompt_tokens: prompt_tokens(endpoint, &members)?,
            streaming: members.streaming()?,
            max_tokens: members.max_tokens(endpoint, limits)?,
            answers: members.answers(limits)?,
        })
    }
}

/// The members of all endpoints that are read, at most one of each name.
const READ: [&str; 11] = [
    "model",
    "stream",
    "stream_options",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "system",
    "instructions",
    "messages",
    "input",
];

fn prompt_tokens(endpoint: Endpoint, members: &Members<'_>) -> Result<u64, DialectError> {
    let mut prompt = PromptCounter::default();
    let first = match endpoint {
        Endpoint::Messages => "system",
        Endpoint::Responses => "instructions",
        Endpoint::Chat | Endpoint::Embeddings => "",
    };
    if let Some(content) = members.get(first) {
        prompt.content(content, FieldPath::Name(first))?;
    }
    match endpoint {
        Endpoint::Chat | Endpoint::Messages => {
            prompt.messages(required(members.get("messages"), "messages")?)?;
        }
        Endpoint::Responses | Endpoint::Embeddings => {
            prompt.input(required(members.get("input"), "input")?)?;
        }
    }
    Ok(prompt.tokens)
}

fn required<'a>(value: Option<&'a str>, name: &str) -> Result<&'a str, DialectError> {
    value.ok_or_else(|| DialectError::missing(name))
}

/// The path of a field.
///
/// It lives on the stack and is formatted on demand.
#[derive(Clone, Copy, Debug)]
enum FieldPath<'p> {
    /// A member of the outermost object.
    Name(&'static str),
    /// A member of an object.
    Member(&'p FieldPath<'p>, &'p str),
    /// An item of an array, from 0.
    Item(&'p FieldPath<'p>, usize),
}

impl fmt::Display for FieldPath<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Member(parent, name) => write!(formatter, "{parent}.{name}"),
            Self::Item(parent, index) => write!(formatter, "{parent}[{index}]"),
        }
    }
}

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

/// Members that limit the length of the response.
///
/// Servers that are compatible with a dialect have names of their own, and some accept names in any
/// case (Go's `encoding/json`) or as one word (JSON of protocol buffers). A budget that knew only
/// the dialect's names would reserve too little for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TokenLimits {
    /// The largest number of tokens.
    tokens: Option<u64>,
    /// Whether one says that there is no limit.
    unlimited: bool,
    /// The largest number of answers.
    answers: Option<u64>,
}

impl TokenLimits {
    /// Reads the members in other spellings and names.
    fn read(members: &Members<'_>) -> Result<Self, serde_json::Error> {
        let mut limits = Self::default();
        for (name, json) in members.iter().filter(|(name, _)| !READ.contains(&&**name)) {
            let folded = folded(name);
            if SETTINGS.contains(&&*folded) {
                limits.settings(json);
            } else if LIMITS.contains(&&*folded) || ANSWERS.contains(&&*folded) {
                limits.note(&folded, &serde_json::from_str(json)?);
            }
        }
        Ok(limits)
    }

    /// The members of an object with settings. Where a name is there twice, the last counts, as for
    /// most servers.
    fn settings(&mut self, json: &str) {
        if let Ok(Value::Object(settings)) = serde_json::from_str(json) {
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
