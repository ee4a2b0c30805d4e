//! What the mock can be asked to be.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::error::MockError;
use crate::fault::Fault;
use crate::law::{Distribution, Quantity};
use crate::span::HumanDuration;

/// The configuration of a mock, YAML or JSON. Everything has a default; unknown keys are errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MockConfig {
    /// Seed of every draw.
    pub seed: u64,
    /// Threads that serve, each with an event loop of its own.
    pub workers: u16,
    /// How long before a deadline a worker stops sleeping and spins; `0` never spins. Spinning buys
    /// some microseconds of precision for a busy core.
    pub spin: HumanDuration,
    /// The key that API requests must bring, as `Authorization: Bearer KEY` or `x-api-key: KEY`.
    pub api_key: Option<String>,
    /// The ground-truth log.
    pub log: LogTarget,
    /// Most records that the memory log holds, or that wait for the file; more are counted as lost.
    pub log_capacity: usize,
    /// Does the log keep the first 60 characters of each prompt?
    pub log_text: bool,
    /// How long requests in flight may still take at shutdown.
    pub drain: HumanDuration,
    /// The models that `GET /v1/models` lists, by name. What an entry leaves out takes the built-in
    /// default; YAML's `<<: *anchor` shares settings between entries.
    pub models: BTreeMap<String, ModelSpec>,
    /// How every other name is served.
    pub other_models: ModelSpec,
}

impl Default for MockConfig {
    fn default() -> Self {
        Self {
            seed: 0,
            workers: 1,
            spin: HumanDuration::ZERO,
            api_key: None,
            log: LogTarget::None,
            log_capacity: 1_000_000,
            log_text: false,
            drain: HumanDuration::from_millis(1_000),
            models: BTreeMap::new(),
            other_models: ModelSpec::default(),
        }
    }
}

/// Where the ground-truth log goes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogTarget {
    /// Nowhere.
    #[default]
    None,
    /// To memory, for [`Mock::take_log`](crate::Mock::take_log).
    Memory,
    /// To a file of JSON lines, which is replaced.
    File(PathBuf),
}

/// How one model behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ModelSpec {
    /// From the complete request to the response's head and the events without content.
    pub preamble: Distribution<HumanDuration>,
    /// From the complete request to the first content event; never less than `preamble`.
    pub ttft: Distribution<HumanDuration>,
    /// Between consecutive content events.
    pub gap: Distribution<HumanDuration>,
    /// Added to `ttft` for each input token.
    pub prefill_per_token: HumanDuration,
    /// Stretches waits when many requests are in flight.
    pub slowdown: Slowdown,
    /// Output tokens of an answer.
    pub output: Output,
    /// Output tokens where `output` is `from_request` and the request does not say.
    pub default_output: u32,
    /// No answer has more output tokens than this.
    pub output_cap: u32,
    /// Output tokens in one streamed event.
    pub tokens_per_event: u32,
    /// Share of the output tokens that are reasoning; they come first.
    pub reasoning_share: f64,
    /// Share of the answers that are a tool call in place of text.
    pub tool_call_share: f64,
    /// Is usage reported?
    pub usage: bool,
    /// Numbers in an embedding.
    pub dimensions: u32,
    /// What goes wrong, and how often.
    pub faults: Vec<FaultShare>,
}

impl Default for ModelSpec {
    fn default() -> Self {
        Self {
            preamble: Distribution::Constant(HumanDuration::ZERO),
            ttft: Distribution::Constant(HumanDuration::ZERO),
            gap: Distribution::Constant(HumanDuration::ZERO),
            prefill_per_token: HumanDuration::ZERO,
            slowdown: Slowdown::default(),
            output: Output::default(),
            default_output: 64,
            output_cap: 32_768,
            tokens_per_event: 1,
            reasoning_share: 0.0,
            tool_call_share: 0.0,
            usage: true,
            dimensions: 8,
            faults: Vec::new(),
        }
    }
}

/// Waits are multiplied by `1 + slope * (n - knee)` while `n > knee` API requests are in flight, `n`
/// as it stands when the wait is drawn. The wait for `preamble` is not stretched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slowdown {
    /// Requests in flight that still run at full speed.
    pub knee: u32,
    /// How much slower each further one makes all.
    pub slope: f64,
}

impl Slowdown {
    /// The factor on waits while `in_flight` requests are in flight.
    pub(crate) fn factor(self, in_flight: u64) -> f64 {
        let excess = in_flight.saturating_sub(u64::from(self.knee));
        1.0 + excess as f64 * self.slope
    }
}

/// How many output tokens an answer has.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "expected `from_request`, a number of tokens, or a distribution of them like \
                 `lognormal: {median: 100, p95: 400}`"
)]
pub enum Output {
    /// As many as the request allows: `output: from_request`.
    FromRequest(FromRequest),
    /// Drawn, and cut off where the request allows fewer.
    Drawn(Distribution<u32>),
}

/// The word `from_request`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FromRequest {
    /// The word itself.
    FromRequest,
}

impl Default for Output {
    fn default() -> Self {
        Self::FromRequest(FromRequest::FromRequest)
    }
}

/// A fault and how often it strikes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultShare {
    /// The fault.
    pub fault: Fault,
    /// Share of the requests, 0 to 1; the shares of one model add up to at most 1.
    pub share: f64,
}

impl MockConfig {
    /// Reads YAML, of which JSON is a part.
    ///
    /// # Errors
    /// [`MockError::Syntax`] where the text is not of this shape, [`MockError::Config`] with every value
    /// that makes no sense.
    pub fn from_yaml(text: &str) -> Result<Self, MockError> {
        // An empty file, or one of comments alone, is the default configuration.
        let config: Option<Self> =
            serde_saphyr::from_str(text).map_err(|error| MockError::Syntax(error.to_string()))?;
        let config = config.unwrap_or_default();
        config.check()?;
        Ok(config)
    }

    /// Are all values sensible?
    ///
    /// # Errors
    /// [`MockError::Config`] with every value that makes no sense.
    pub fn check(&self) -> Result<(), MockError> {
        let mut found = Vec::new();
        if self.workers == 0 {
            found.push("workers: at least 1 is needed".to_owned());
        }
        for (name, model) in &self.models {
            model.check(&format!("models.{name}"), &mut found);
        }
        self.other_models.check("other_models", &mut found);
        if found.is_empty() { Ok(()) } else { Err(MockError::Config(found)) }
    }
}

impl ModelSpec {
    fn check(&self, path: &str, found: &mut Vec<String>) {
        check_law(&self.preamble, path, "preamble", found);
        check_law(&self.ttft, path, "ttft", found);
        check_law(&self.gap, path, "gap", found);
        if let Output::Drawn(law) = &self.output {
            check_law(law, path, "output", found);
        }
        if self.tokens_per_event == 0 {
            found.push(format!("{path}.tokens_per_event: at least 1 is needed"));
        }
        if !(self.slowdown.slope >= 0.0 && self.slowdown.slope.is_finite()) {
            found.push(format!("{path}.slowdown.slope: must not be negative"));
        }
        check_share(self.reasoning_share, path, "reasoning_share", found);
        check_share(self.tool_call_share, path, "tool_call_share", found);
        self.faults.iter().for_each(|one| check_share(one.share, path, "faults", found));
        check_share(self.faults.iter().map(|one| one.share).sum(), path, "faults, added up", found);
    }
}

fn check_law<T: Quantity>(law: &Distribution<T>, path: &str, key: &str, found: &mut Vec<String>) {
    found.extend(law.fault().map(|fault| format!("{path}.{key}: {fault}")));
}

fn check_share(share: f64, path: &str, key: &str, found: &mut Vec<String>) {
    // Shares that add up to one may miss it by the rounding of their sum.
    if !(0.0..=1.0 + 1e-9).contains(&share) {
        found.push(format!("{path}.{key}: {share} is not a share from 0 to 1"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_the_default_and_the_default_is_sensible() {
        assert_eq!(MockConfig::from_yaml("# nothing\n").unwrap(), MockConfig::default());
        assert_eq!(MockConfig::from_yaml("{}").unwrap(), MockConfig::default());
    }

    #[test]
    fn json_is_read_as_well_and_a_configuration_reads_back_as_it_was_written() {
        let text = r#"{"log": {"file": "x.jsonl"}, "models": {"m": {"ttft": {"normal":
            {"mean": "1ms", "std": "2us"}}, "faults": [{"fault": "cut@3", "share": 0.5}],
            "output": {"uniform": {"min": 1, "max": 9}}}}}"#;
        let config = MockConfig::from_yaml(text).unwrap();
        assert_eq!(config.models["m"].faults[0].fault, Fault::Cut { at: 3 });
        let written = serde_json::to_string(&config).unwrap();
        assert_eq!(MockConfig::from_yaml(&written).unwrap(), config);
    }

    #[test]
    fn output_is_a_word_a_number_or_a_distribution() {
        let read = |text: &str| MockConfig::from_yaml(&format!("other_models: {{output: {text}}}"));
        assert_eq!(read("from_request").unwrap().other_models.output, Output::default());
        assert_eq!(
            read("7").unwrap().other_models.output,
            Output::Drawn(Distribution::Constant(7))
        );
        let law = Distribution::Exponential { mean: 50 };
        assert_eq!(
            read("{exponential: {mean: 50}}").unwrap().other_models.output,
            Output::Drawn(law)
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
    fn all_values_that_make_no_sense_are_named_at_once() {
        let text = "
workers: 0
models:
  a: {gap: {uniform: {min: 2ms, max: 1ms}}, tokens_per_event: 0}
other_models:
  reasoning_share: 2
  slowdown: {knee: 1, slope: -1}
  faults: [{fault: '500', share: 0.6}, {fault: hang, share: 0.6}]
";
        let message = MockConfig::from_yaml(text).unwrap_err().to_string();
        for part in [
            "workers: at least 1",
            "models.a.gap: min",
            "models.a.tokens_per_event",
            "other_models.reasoning_share: 2 is not",
            "other_models.slowdown.slope",
            "other_models.faults, added up: 1.2",
        ] {
            assert!(message.contains(part), "{part} in {message}");
        }
    }

    #[test]
    fn the_slowdown_begins_above_the_knee() {
        let slowdown = Slowdown { knee: 10, slope: 0.05 };
        for (in_flight, factor) in [(0, 1.0), (10, 1.0), (11, 1.05), (30, 2.0)] {
            assert!((slowdown.factor(in_flight) - factor).abs() < 1e-12, "{in_flight}");
        }
    }
}
