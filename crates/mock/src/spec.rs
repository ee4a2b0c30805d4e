//! The configuration of the mock.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use smart_default::SmartDefault;

use crate::a2a::A2aSpec;
use crate::check::{check_distribution, check_faults, check_positive, check_share};
use crate::distribution::Distribution;
use crate::duration::HumanDuration;
use crate::error::MockError;
use crate::fault::FaultShare;
use crate::mcp::McpSpec;
use crate::tool_loop::ToolLoop;

/// The configuration of a mock, in YAML or JSON. Every key has a default; unknown keys are errors.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct MockConfig {
    /// Seed of all random numbers.
    pub seed: u64,
    /// The source of a request's random numbers, besides the seed.
    pub draw: DrawBy,
    /// Worker threads, each with its own event loop.
    #[default(1)]
    pub workers: u16,
    /// Time before a deadline at which a worker stops sleeping and spins; `0` never spins. Spinning
    /// gains some microseconds of precision and keeps a core busy.
    pub spin: HumanDuration,
    /// The key for requests below `/v1/` and to `/mcp` and `/a2a`, as `Authorization: Bearer KEY`
    /// or `x-api-key: KEY`. Agent cards need no key.
    pub api_key: Option<String>,
    /// The ground-truth log.
    pub log: LogTarget,
    /// The most records in memory, or waiting to be written to the file. More are counted as lost.
    #[default(1_000_000)]
    pub log_capacity: usize,
    /// Whether the log keeps the first 60 characters of each prompt.
    pub log_text: bool,
    /// Time for requests in flight at shutdown.
    #[default(HumanDuration::from_millis(1_000))]
    pub drain: HumanDuration,
    /// The models by name, as listed by `GET /v1/models`. YAML's `<<: *anchor` shares settings
    /// between them.
    pub models: BTreeMap<String, ModelSpec>,
    /// A folder of recorded answers. Each file is a model of that name, whose requests get its
    /// bytes: `azure.sse`, `overloaded.503.json`, `chat.sse.gzip` (`NAME[.STATUS].TYPE[.CODING]`).
    /// Times and faults are the model's, with events counted instead of tokens; names outside
    /// `models` use `other_models`.
    pub answers: Option<PathBuf>,
    /// The behaviour of all other model names.
    pub other_models: ModelSpec,
    /// The MCP server at `/mcp`.
    pub mcp: McpSpec,
    /// The A2A agents at `/a2a`.
    pub a2a: A2aSpec,
}

/// The source of a request's random numbers, besides the seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrawBy {
    /// Its `x-request-id`, else its number.
    #[default]
    Request,
    /// The last text of its prompt, without the marker before it (five words and `---`). Requests
    /// of one block of `plimsoll versus` then get the same times and lengths through any gateway,
    /// because gateways replace headers, but not prompts.
    Prompt,
}

impl DrawBy {
    /// All variants, for the reference page.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 2] = [Self::Request, Self::Prompt];
}

/// The destination of the ground-truth log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogTarget {
    /// Nowhere.
    #[default]
    None,
    /// To memory, for [`Mock::take_log`](crate::Mock::take_log).
    Memory,
    /// To a file of JSON lines, which is overwritten.
    File(PathBuf),
}

/// The behaviour of a model.
#[derive(Clone, Debug, SmartDefault, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct ModelSpec {
    /// Time from the complete request to the response's head and the events without content.
    /// Default: 5 ms, or half of `ttft` if that is shorter. Real providers never answer at once,
    /// and some proxies abort an answer that arrives before they have seen the end of the request.
    pub preamble: Option<Distribution<HumanDuration>>,
    /// Time from the complete request to the first content event; never less than `preamble`.
    pub ttft: Distribution<HumanDuration>,
    /// Time between consecutive content events.
    pub gap: Distribution<HumanDuration>,
    /// Added to `ttft` for each input token.
    pub prefill_per_token: HumanDuration,
    /// Slowdown under load: while `n > knee` API requests are in flight, `ttft` and `gap` are
    /// multiplied by `1 + slope * (n - knee)`. `n` is counted when the time is sampled.
    pub slowdown: Slowdown,
    /// Number of output tokens.
    pub output: OutputLength,
    /// Output tokens if `output` is `from_request` and the request sets no limit.
    #[default(64)]
    pub default_output: u32,
    /// The most output tokens of any response.
    #[default(32_768)]
    pub output_cap: u32,
    /// Output tokens in each streamed event.
    #[default(1)]
    pub tokens_per_event: u32,
    /// Share of the output tokens that are reasoning, 0 to 1; they come first.
    pub reasoning_share: f64,
    /// Share of the responses with a tool call instead of text, 0 to 1.
    pub tool_call_share: f64,
    /// Makes the model call tools until the conversation contains this many rounds of results, and
    /// then answer with text. Calls without results, and results without calls, get status 400.
    pub tool_loop: Option<ToolLoop>,
    /// Whether token usage is reported.
    #[default(true)]
    pub usage: bool,
    /// Numbers in each embedding.
    #[default(8)]
    pub dimensions: u32,
    /// Injected faults and their shares.
    pub faults: Vec<FaultShare>,
}

/// Slowdown under load, see [`ModelSpec::slowdown`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// The most requests in flight at full speed.
    pub knee: u32,
    /// Slowdown for each further request; 0.01 is 1 %.
    pub slope: f64,
}

impl Slowdown {
    /// The factor on times with `in_flight` requests in flight.
    pub(crate) fn factor(self, in_flight: u64) -> f64 {
        let excess = in_flight.saturating_sub(u64::from(self.knee));
        1.0 + excess as f64 * self.slope
    }
}

/// The number of output tokens.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `from_request`, a number of tokens, or a distribution of them like \
                 `lognormal: {median: 100, p95: 400}`"
)]
pub enum OutputLength {
    /// The request's limit: `output: from_request`.
    FromRequest(FromRequest),
    /// Sampled, up to the request's limit.
    Sampled(Distribution<u32>),
}

/// The word `from_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromRequest {
    /// The only value.
    FromRequest,
}

impl Default for OutputLength {
    fn default() -> Self {
        Self::FromRequest(FromRequest::FromRequest)
    }
}

impl MockConfig {
    /// Reads YAML; JSON is a subset of it.
    ///
    /// # Errors
    /// [`MockError::Syntax`] for wrong syntax, unknown keys or wrong types, [`MockError::Config`]
    /// with all invalid values.
    pub fn from_yaml(text: &str) -> Result<Self, MockError> {
        // An empty file, or one with comments only, is the default configuration.
        let config: Option<Self> =
            serde_saphyr::from_str(text).map_err(|error| MockError::Syntax(error.to_string()))?;
        let config = config.unwrap_or_default();
        config.check()?;
        Ok(config)
    }

    /// Checks all values.
    ///
    /// # Errors
    /// [`MockError::Config`] with all invalid values.
    pub fn check(&self) -> Result<(), MockError> {
        let mut problems = Vec::new();
        if self.workers == 0 {
            problems.push("workers: at least 1 is needed".to_owned());
        }
        for (name, model) in &self.models {
            model.check(&format!("models.{name}"), &mut problems);
        }
        self.other_models.check("other_models", &mut problems);
        self.mcp.check(&mut problems);
        self.a2a.check(&mut problems);
        if problems.is_empty() { Ok(()) } else { Err(MockError::Config(problems)) }
    }
}

impl ModelSpec {
    fn check(&self, path: &str, problems: &mut Vec<String>) {
        if let Some(preamble) = &self.preamble {
            check_distribution(preamble, path, "preamble", problems);
        }
        check_distribution(&self.ttft, path, "ttft", problems);
        check_distribution(&self.gap, path, "gap", problems);
        if let OutputLength::Sampled(distribution) = &self.output {
            check_distribution(distribution, path, "output", problems);
        }
        check_positive(self.tokens_per_event, path, "tokens_per_event", problems);
        if !(self.slowdown.slope >= 0.0 && self.slowdown.slope.is_finite()) {
            problems.push(format!("{path}.slowdown.slope: must not be negative"));
        }
        check_share(self.reasoning_share, path, "reasoning_share", problems);
        check_share(self.tool_call_share, path, "tool_call_share", problems);
        if let Some(tool_loop) = &self.tool_loop {
            tool_loop.check(&format!("{path}.tool_loop"), problems);
            if self.tool_call_share > 0.0 {
                problems.push(format!("{path}.tool_call_share: not together with tool_loop"));
            }
        }
        check_faults(&self.faults, path, problems);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_and_the_default_is_valid() {
        assert_eq!(MockConfig::from_yaml("# nothing\n").unwrap(), MockConfig::default());
        assert_eq!(MockConfig::from_yaml("{}").unwrap(), MockConfig::default());
    }

    #[test]
    fn json_is_read_as_well_and_a_configuration_round_trips() {
        let text = r#"{"log": {"file": "x.jsonl"}, "models": {"m": {"ttft": {"normal":
            {"mean": "1ms", "std": "2us"}}, "faults": [{"fault": "cut@3", "share": 0.5}],
            "output": {"uniform": {"min": 1, "max": 9}}}}}"#;
        let config = MockConfig::from_yaml(text).unwrap();
        assert_eq!(config.models["m"].faults[0].fault.to_string(), "cut@3");
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(MockConfig::from_yaml(&written).unwrap(), config);
    }

    #[test]
    fn output_is_a_word_a_number_or_a_distribution() {
        let read = |text: &str| MockConfig::from_yaml(&format!("other_models: {{output: {text}}}"));
        assert_eq!(read("from_request").unwrap().other_models.output, OutputLength::default());
        assert_eq!(
            read("7").unwrap().other_models.output,
            OutputLength::Sampled(Distribution::Constant(7))
        );
        let distribution = Distribution::Exponential { mean: 50 };
        assert_eq!(
            read("{exponential: {mean: 50}}").unwrap().other_models.output,
            OutputLength::Sampled(distribution)
        );
        let error = read("lots").unwrap_err().to_string();
        assert!(error.contains("from_request"), "{error}");
    }

    #[test]
    fn unknown_keys_and_wrong_types_are_syntax_errors() {
        for text in [
            "sed: 1",
            "models: {m: {tfft: 1ms}}",
            "other_models: {ttft: 5}",
            "other_models: {faults: [{fault: melt, share: 0.1}]}",
            "log: disk",
            "[",
        ] {
            let error = MockConfig::from_yaml(text).unwrap_err();
            assert!(matches!(error, MockError::Syntax(_)), "{text}: {error}");
        }
    }

    #[test]
    fn all_invalid_values_are_reported_at_once() {
        let text = "
workers: 0
models:
  a: {gap: {uniform: {min: 2ms, max: 1ms}}, tokens_per_event: 0}
other_models:
  reasoning_share: 2
  slowdown: {knee: 1, slope: -1}
  tool_call_share: 0.5
  tool_loop: {parallel: 0}
  faults: [{fault: '500', share: 0.6}, {fault: hang, share: 0.6}]
";
        let message = MockConfig::from_yaml(text).unwrap_err().to_string();
        for part in [
            "workers: at least 1",
            "models.a.gap: min",
            "models.a.tokens_per_event",
            "other_models.reasoning_share: 2 is not",
            "other_models.slowdown.slope",
            "other_models.tool_loop.parallel: from 1",
            "other_models.tool_call_share: not together",
            "other_models.faults, added up: 1.2",
        ] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }

    #[test]
    fn the_slowdown_starts_above_the_knee() {
        let slowdown = Slowdown { knee: 10, slope: 0.05 };
        for (in_flight, factor) in [(0, 1.0), (10, 1.0), (11, 1.05), (30, 2.0)] {
            assert!((slowdown.factor(in_flight) - factor).abs() < 1e-12, "{in_flight}");
        }
    }
}
