//! Errors in scenarios, traces and tokenizers.

use std::fmt;
use std::io;
use std::path::PathBuf;

use plimsoll_measure::Nanos;

/// Maximum number of tokens in a text. More would be tens of megabytes in every request.
pub const MAX_TOKENS: u32 = 10_000_000;

/// Maximum size of an argument in bytes.
pub const MAX_ARGUMENT_BYTES: u32 = 16 << 20;

/// Why a workload cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadError {
    /// Invalid scenarios, with all their problems.
    #[error("{}", OnePerLine(.0))]
    Scenarios(Vec<ScenarioProblem>),
    /// An unusable tokenizer: give another `tokenizer.json`, or omit it to count every word as one
    /// token.
    #[error("{}: the tokenizer {cause}: give a `tokenizer.json` of another model, or leave `tokenizer` out (every word then counts as one token)", file.display())]
    Tokenizer {
        /// The file.
        file: PathBuf,
        /// The cause.
        cause: String,
    },
    /// An unreadable file: check its path and permissions.
    #[error("{}: cannot be read ({source}): check the path and the permissions", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// Recorded traffic that cannot be imported or replayed, with the reason.
    #[error("{0}")]
    Import(String),
    /// A trace whose window or speed is invalid.
    #[error("{}: {fault}", file.display())]
    Window {
        /// The file.
        file: PathBuf,
        /// The fault.
        fault: WindowFault,
    },
}

/// A problem of a scenario.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("scenario `{scenario}`, `{field}`: {fault}")]
pub struct ScenarioProblem {
    /// Name of the scenario.
    pub scenario: String,
    /// The key inside the scenario, like `http.body`.
    pub field: String,
    /// The fault.
    pub fault: ScenarioFault,
}

/// Why a scenario cannot be played. The message ends with the fix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ScenarioFault {
    /// The number of scenarios is 0 or too high: write between 1 and 65,535.
    #[error("there are {0} scenarios: write between 1 and 65535")]
    Number(usize),
    /// The weight is negative or not finite: write a number from 0 up.
    #[error("the weight {0} is not valid: write a number from 0 up")]
    Weight(f64),
    /// No scenario has a weight: give at least one.
    #[error("no scenario has a weight above 0: give at least one")]
    NoWeight,
    /// The conversation lacks turns: ask for at least one.
    #[error("there are no turns: ask for at least 1")]
    NoTurns,
    /// The list is empty: write at least one text.
    #[error("the list is empty: write at least one text")]
    NoTexts,
    /// Recorded traffic that cannot be replayed, with the reason.
    #[error("{0}")]
    Traffic(String),
    /// All recorded requests are for other protocols.
    #[error("has requests for {0}, but none for {1}: set `protocol` to one of them")]
    Dialects(String, &'static str),
    /// Ordered prompts require a single scenario and one prompt per conversation.
    #[error(
        "`order: file` is for a single scenario with conversations of one turn: leave out the others and `turns`, or write `order: random`"
    )]
    OrderedPrompts,
    /// The script is shorter than the conversation: write more lines or ask for fewer turns.
    #[error(
        "the script has {lines} lines for {turns} turns: write a line for every turn, or ask for {lines} turns"
    )]
    ShortScript {
        /// Lines of the script.
        lines: usize,
        /// Number of turns.
        turns: u16,
    },
    /// The file of a body cannot be read.
    #[error("`{file}` cannot be read ({cause}): name a file that can")]
    BodyFile {
        /// The file.
        file: String,
        /// The reason.
        cause: String,
    },
    /// Both a body and a body file: omit one.
    #[error("there is a `body` as well: leave one of the two out")]
    TwoBodies,
    /// An invalid distribution of lengths; the message contains the fix.
    #[error("{0}")]
    Length(&'static str),
    /// The text would have no tokens, or more than a request can carry.
    #[error("{0} tokens are out of range: ask for 1 to {MAX_TOKENS}")]
    Tokens(u32),
    /// The pool is empty: ask for at least one prefix.
    #[error("the pool is empty: ask for at least 1 prefix, or leave the pool out")]
    NoPrefixes,
    /// The share is not between 0 and 1.
    #[error("invalid share {0}: write a number from 0 to 1, such as 0.6")]
    Share(f64),
    /// The `http` protocol needs a request: write one.
    #[error(
        "the protocol `http` has no request: write `http` with `method`, `path`, `headers` and `body` as needed"
    )]
    NoRequest,
    /// The protocol needs steps: write them.
    #[error(
        "the protocol `{0}` has no steps: write `{0}` with at least one of `steps` that has a weight above 0"
    )]
    NoSteps(&'static str),
    /// A step lacks the name of its tool, prompt or resource.
    #[error(
        "the step has no `name`: write the name of the tool or prompt, or the URI of the resource"
    )]
    NoStepName,
    /// A step has a key that its method does not support.
    #[error("steps of this method have no `{0}`: leave it out, or change the `method`")]
    StepKey(&'static str),
    /// A method that the revision does not support.
    #[error("revision {0} does not have this method: leave the step out, or change the `revision`")]
    StepOfOtherRevision(&'static str),
    /// No length can be drawn, or it is too long for a request.
    #[error(
        "the lengths are in the wrong order or too large: write `min` <= `max`, and at most {MAX_ARGUMENT_BYTES} bytes"
    )]
    Bytes,
    /// No duration can be drawn: swap the ends of the range, or start above zero.
    #[error(
        "the durations are in the wrong order or zero: write `min` <= `max`, and 0 < `median` <= `p95`"
    )]
    Duration,
    /// An agent that cannot be played.
    #[error("{0}")]
    Agent(&'static str),
    /// A template that cannot be filled in.
    #[error(transparent)]
    Template(#[from] TemplateFault),
}

/// Why a template cannot be filled in. Positions are characters, counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// An unknown placeholder: write a known one.
    #[error(
        "`{{{{{name}}}}}` at character {position} is not a placeholder: write {{{{uuid}}}}, {{{{seq}}}}, {{{{turn}}}}, {{{{random N}}}} (N from 1 up), {{{{prompt}}}}, or {{{{open}}}} for two braces"
    )]
    Unknown {
        /// Where its braces open.
        position: usize,
        /// The text in the braces.
        name: String,
    },
    /// Braces that are never closed: write `}}`.
    #[error(
        "the `{{{{` at character {position} is never closed: write `}}}}` after the placeholder"
    )]
    Open {
        /// Where they open.
        position: usize,
    },
}

/// Why a trace cannot be played as requested. The message ends with the fix.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WindowFault {
    /// The time scale is zero, negative or not finite.
    #[error(
        "invalid time_scale {0}: write a number above 0, such as 10 to replay ten minutes in one"
    )]
    Scale(f64),
    /// The window ends before it starts.
    #[error("the window from {from} to {to} is empty: write `from` before `to`")]
    EmptyWindow {
        /// Its start.
        from: Nanos,
        /// Its end.
        to: Nanos,
    },
    /// The file is empty.
    #[error("the trace has no requests: is this the right file?")]
    NoRows,
    /// No session starts in the window.
    #[error(
        "no session starts in the window from {from}: the recording lasts {length}, so write an earlier `from` or a later `to`"
    )]
    Outside {
        /// Start of the window.
        from: Nanos,
        /// From the first row to the last.
        length: Nanos,
    },
}

struct OnePerLine<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for OnePerLine<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(line, problem)| {
            let separator = if line == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")
        })
    }
}
