//! Tokens of each request: lengths of inputs and outputs, and the speed at which a user gets them.

use plimsoll_measure::{Nanos, Outcome, Sample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::distribution::Distribution;

/// A token in the units of a [`Distribution`]: its finest step, so that lengths up to 2,048 tokens
/// are exact, and longer ones are within 0.1 %.
const TOKEN: u64 = 512;

/// A token per second: steps of 0.01 up to 20 per second, and 0.1 % above.
const TOKEN_PER_SECOND: u64 = 100 * TOKEN;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Values of completed requests, in the order of reports.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct TokenTally {
    input: Distribution,
    output: Distribution,
    answer: Distribution,
    reasoning: Distribution,
    per_user: Distribution,
}

impl TokenTally {
    /// Whether a request has anything to count.
    pub(crate) const fn covers(sample: &Sample) -> bool {
        matches!(sample.outcome, Outcome::Completed)
            && (sample.usage.prompt.known().is_some() || sample.usage.completion.known().is_some())
    }

    /// Counts a request.
    pub(crate) fn record(&mut self, sample: &Sample) {
        if let Some(input) = sample.usage.prompt.known() {
            record(&mut self.input, input);
        }
        if let Some(output) = sample.usage.completion.known() {
            let reasoning = sample.usage.reasoning.min(output);
            record(&mut self.output, output);
            record(&mut self.answer, output - reasoning);
            record(&mut self.reasoning, reasoning);
        }
        let time = sample.tpot().map_or(0, Nanos::as_u64);
        if let Some(rate) = (TOKEN_PER_SECOND * NANOS_PER_SECOND).checked_div(time) {
            self.per_user.record(Nanos::new(rate));
        }
    }

    /// Adds the tokens of another group.
    pub(crate) fn merge(&mut self, other: &Self) {
        self.input.merge(&other.input);
        self.output.merge(&other.output);
        self.answer.merge(&other.answer);
        self.reasoning.merge(&other.reasoning);
        self.per_user.merge(&other.per_user);
    }
}

fn record(lengths: &mut Distribution, tokens: u32) {
    lengths.record(Nanos::new(u64::from(tokens) * TOKEN));
}

/// Tokens of the completed requests of a group: those whose number is known.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TokenFigures {
    /// Input tokens of each request.
    pub input_tokens: Option<ValueSummary>,
    /// Output tokens of each request, reasoning included.
    pub output_tokens: Option<ValueSummary>,
    /// Output tokens of each request without its reasoning; left out if no request has any.
    pub answer_tokens: Option<ValueSummary>,
    /// Output tokens that each request spent on reasoning; left out if no request has any.
    pub reasoning_tokens: Option<ValueSummary>,
    /// Output tokens per second of one user, `1 / tpot` of each request.
    pub tokens_per_s_per_user: Option<ValueSummary>,
}

impl TokenFigures {
    pub(crate) fn from_tally(tally: &TokenTally) -> Self {
        let reasons = tally.reasoning.sum() > 0;
        Self {
            input_tokens: ValueSummary::new(&tally.input, TOKEN),
            output_tokens: ValueSummary::new(&tally.output, TOKEN),
            answer_tokens: ValueSummary::new(&tally.answer, TOKEN).filter(|_| reasons),
            reasoning_tokens: ValueSummary::new(&tally.reasoning, TOKEN).filter(|_| reasons),
            tokens_per_s_per_user: ValueSummary::new(&tally.per_user, TOKEN_PER_SECOND),
        }
    }

    /// Its non-empty parts, with their titles.
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, &ValueSummary)> {
        [
            ("Input tokens", &self.input_tokens),
            ("Output tokens", &self.output_tokens),
            ("Answer tokens", &self.answer_tokens),
            ("Reasoning tokens", &self.reasoning_tokens),
            ("Tokens/s per user", &self.tokens_per_s_per_user),
        ]
        .into_iter()
        .filter_map(|(title, part)| Some((title, part.as_ref()?)))
    }
}

/// The distribution of a number that each request has. Percentiles describe the measured requests
/// (nearest rank) and do not estimate others, so any number of requests is enough. Lengths up to
/// 2,048 tokens are exact; above, percentiles are within 0.1 %.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ValueSummary {
    /// Requests.
    pub count: u64,
    /// Exact sum over all requests.
    pub sum: f64,
    /// Exact mean.
    pub mean: f64,
    /// Exact smallest value.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Exact largest value.
    pub max: f64,
}

impl ValueSummary {
    /// `None` without values. `unit`: the recorded value of 1.
    fn new(values: &Distribution, unit: u64) -> Option<Self> {
        let (min, max) = values.min().zip(values.max())?;
        let number = |value: Nanos| value.as_u64() as f64 / unit as f64;
        // A percentile is the upper edge of its bucket, one step below the next.
        let percentile = |q| {
            let value = values.nearest_rank(q).unwrap_or(max).as_u64();
            number(Nanos::new((value / TOKEN * TOKEN).max(min.as_u64())))
        };
        let sum = values.sum() as f64 / unit as f64;
        Some(Self {
            count: values.count(),
            sum,
            mean: sum / values.count() as f64,
            min: number(min),
            p50: percentile(0.5),
            p90: percentile(0.9),
            p95: percentile(0.95),
            p99: percentile(0.99),
            max: number(max),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{GapSummary, Moment, Timeline, TokenCount, Usage};

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    /// 11 tokens in 100 ms after the first: 100 per second for its user.
    fn sample(input: u32, output: u32, reasoning: u32) -> Sample {
        Sample {
            outcome: Outcome::Completed,
            usage: Usage {
                prompt: TokenCount::reported(input),
                completion: TokenCount::reported(output),
                reasoning,
                after_first: output.checked_sub(1),
                ..Usage::default()
            },
            timeline: Timeline {
                dispatched: Some(at(0)),
                first_token: Some(at(10)),
                first_output_token: Some(at(20)),
                last_token: Some(at(110)),
                finished: Some(at(110)),
                ..Timeline::intended(at(0))
            },
            gaps: GapSummary { count: 10, ..GapSummary::default() },
            ..Sample::unsent(at(0))
        }
    }

    #[test]
    fn lengths_are_exact_and_their_percentiles_are_those_of_a_sorted_list() {
        let mut tally = TokenTally::default();
        (1..=2_000).for_each(|tokens| tally.record(&sample(tokens, 11, 4)));
        let figures = TokenFigures::from_tally(&tally);
        let input = figures.input_tokens.unwrap();
        assert_eq!((input.count, input.sum, input.mean), (2_000, 2_001_000.0, 1_000.5));
        let places = [input.min, input.p50, input.p90, input.p95, input.p99, input.max];
        assert_eq!(format!("{places:?}"), "[1.0, 1000.0, 1800.0, 1900.0, 1980.0, 2000.0]");
        let of = |part: Option<ValueSummary>| part.map(|part| (part.min, part.p50, part.max));
        assert_eq!(of(figures.output_tokens), Some((11.0, 11.0, 11.0)));
        assert_eq!(of(figures.answer_tokens), Some((7.0, 7.0, 7.0)));
        assert_eq!(of(figures.reasoning_tokens), Some((4.0, 4.0, 4.0)));
        assert_eq!(of(figures.tokens_per_s_per_user), Some((100.0, 100.0, 100.0)));
    }

    #[test]
    fn what_is_not_known_is_left_out_and_parts_add_up() {
        let mut tally = TokenTally::default();
        let unknown = Sample { usage: Usage::default(), ..sample(0, 0, 0) };
        assert!(!TokenTally::covers(&unknown));
        tally.record(&sample(5, 11, 0));
        let mut whole = TokenTally::default();
        whole.merge(&tally);
        whole.merge(&tally);
        let figures = TokenFigures::from_tally(&whole);
        assert_eq!(figures.input_tokens.map(|input| (input.count, input.sum)), Some((2, 10.0)));
        assert_eq!((figures.answer_tokens, figures.reasoning_tokens), (None, None));
        assert_eq!(figures.parts().count(), 3);
    }
}
