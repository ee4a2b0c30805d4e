//! Token counts: the members of all dialects in one table, and what each count includes.

use plimsoll_measure::{TokenCount, Usage};

use super::json_reader::{FromJson, JsonError, Reader, Reported};
use super::sent::Sent;

/// More tokens than any model accepts as a prompt: the largest context windows have ten million.
const LARGEST_CONTEXT: u64 = 10_000_000;
/// More tokens than any model writes in one response.
const LARGEST_OUTPUT: u64 = 1_000_000;
/// Maximum length of a quoted count, in bytes.
const MAX_QUOTE: usize = 40;

/// Counts reported by targets. Their members have many names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    /// The prompt, including cached tokens.
    Input,
    /// The prompt, excluding cached tokens.
    FreshInput,
    Output,
    Total,
    /// Read from a prompt cache.
    Cached,
    /// Written to a prompt cache.
    Written,
    Reasoning,
    /// The same as a direct member of `usage`.
    TopReasoning,
    /// Output that is not sent.
    Rejected,
}

/// Number of variants of [`Count`].
pub(super) const COUNTS: usize = 9;

/// Members of `usage`, and of its nested objects whose name ends with `_details`.
const MEMBERS: [(&str, Count); 13] = [
    ("prompt_tokens", Count::Input),
    ("input_tokens", Count::Input),
    ("completion_tokens", Count::Output),
    ("output_tokens", Count::Output),
    ("total_tokens", Count::Total),
    ("cached_tokens", Count::Cached),
    // DeepSeek, Mistral, Anthropic.
    ("prompt_cache_hit_tokens", Count::Cached),
    ("num_cached_tokens", Count::Cached),
    ("cache_read_input_tokens", Count::Cached),
    ("cache_creation_input_tokens", Count::Written),
    ("reasoning_tokens", Count::Reasoning),
    ("thinking_tokens", Count::Reasoning),
    ("rejected_prediction_tokens", Count::Rejected),
];

/// Counts as reported, each `None` until the target reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts(pub(super) [Option<u32>; COUNTS]);

impl Counts {
    const fn get(&self, count: Count) -> Option<u32> {
        self.0[count as usize]
    }

    fn or_zero(&self, count: Count) -> u32 {
        self.get(count).unwrap_or(0)
    }

    /// Merges a later report. Counts are cumulative, so the last one is valid, but some servers end
    /// with zeros.
    pub(super) fn merge(&mut self, later: Self) {
        for (known, later) in self.0.iter_mut().zip(later.0) {
            if later > known.and(Some(0)) {
                *known = later;
            }
        }
    }

    /// Input tokens including cached ones. Anthropic's input excludes them, and so does another
    /// target's if it is smaller than its cached part, or if the total exceeds it by that part.
    fn input(&self) -> Option<u32> {
        let (cached, written) = (self.or_zero(Count::Cached), self.or_zero(Count::Written));
        let apart = cached.saturating_add(written);
        if let Some(fresh) = self.get(Count::FreshInput) {
            return Some(fresh.saturating_add(apart));
        }
        let input = self.get(Count::Input)?;
        let sum = input.saturating_add(self.or_zero(Count::Output));
        let beyond = self.or_zero(Count::Total).saturating_sub(sum);
        let is_apart = cached > input || (apart > 0 && beyond == apart);
        Some(if is_apart { input.saturating_add(apart) } else { input })
    }

    /// Reported reasoning. API translators report 0 for unknown counts.
    fn reasoning(&self) -> Option<u32> {
        self.get(Count::Reasoning).or_else(|| self.get(Count::TopReasoning)).filter(|n| *n > 0)
    }

    /// Tokens of the total that are neither input nor output.
    fn beyond(&self) -> u32 {
        let sum = self.input().unwrap_or(u32::MAX).saturating_add(self.or_zero(Count::Output));
        self.or_zero(Count::Total).saturating_sub(sum)
    }

    /// Counts that do not add up to the total.
    pub(super) fn contradiction(&self) -> Option<String> {
        let (input, output) = (self.input()?, self.get(Count::Output)?);
        let total = self.get(Count::Total).filter(|total| *total > 0)?;
        let adds_up = total == input.saturating_add(output);
        (!adds_up && self.reasoning() != Some(self.beyond()))
            .then(|| format!("total {total}, prompt {input}, completion {output}"))
    }

    /// Output tokens, and the reasoning in them. Most targets include reasoning in the output; xAI
    /// and Google include it only in the total.
    fn output(&self) -> Option<(u32, u32)> {
        let output = self.get(Count::Output)?;
        let (beyond, top) = (self.beyond(), self.get(Count::TopReasoning));
        Some(match self.reasoning().unwrap_or(beyond) {
            reasoning if reasoning > 0 && reasoning == beyond => {
                (output.saturating_add(reasoning), reasoning)
            }
            reasoning if reasoning <= output => (output, reasoning),
            // Perplexity includes it in neither.
            reasoning if top == Some(reasoning) => (output.saturating_add(reasoning), reasoning),
            _ => (output, 0),
        })
    }

    pub(super) const fn total(&self) -> Option<u32> {
        self.get(Count::Total)
    }

    /// The usage of a response. An output of 0 despite content counts as not reported, and so does
    /// an input of 0.
    pub(super) fn usage(&self, sent: &Sent) -> Usage {
        let events = sent.events();
        let prompt = self.input().filter(|input| *input > 0);
        let output = self.output().filter(|(output, _)| *output > 0 || events == 0);
        let completion = match output {
            Some((output, _)) => TokenCount::reported(output),
            None if events > 0 => TokenCount::estimated(events),
            None => TokenCount::default(),
        };
        Usage {
            prompt: prompt.map_or_else(TokenCount::default, TokenCount::reported),
            completion,
            cached: self.or_zero(Count::Cached),
            reasoning: output.map_or(0, |(_, reasoning)| reasoning),
            after_first: match output {
                Some((output, reasoning)) => {
                    let output = output.saturating_sub(self.or_zero(Count::Rejected));
                    let is_anthropic = self.get(Count::FreshInput).is_some();
                    sent.tokens_after_first(output, reasoning, is_anthropic)
                }
                None => sent.events_after_first(),
            },
        }
    }
}

/// The member `usage` of any dialect.
#[derive(Debug, Default)]
pub(super) struct UsageReport<'a> {
    counts: Counts,
    /// An implausible count, and its member.
    refused: Option<(&'static str, &'a str)>,
}

impl<'a> FromJson<'a> for UsageReport<'a> {
    fn read(json: &mut Reader<'a>) -> Result<Self, JsonError> {
        let mut report = Self::default();
        report.read_members(json, true)?;
        Ok(report)
    }

    fn fits(first: u8) -> bool {
        first == b'{'
    }
}

impl<'a> UsageReport<'a> {
    fn read_members(&mut self, json: &mut Reader<'a>, is_top: bool) -> Result<(), JsonError> {
        json.members(|member, json| {
            match MEMBERS.iter().find(|(name, _)| name.as_bytes() == member) {
                Some(&(name, Count::Reasoning)) if is_top => {
                    self.add(name, Count::TopReasoning, Reported::read(json)?);
                }
                Some(&(name, count)) => self.add(name, count, Reported::read(json)?),
                None if is_top && member.ends_with(b"_details") && json.peek() == Some(b'{') => {
                    self.read_members(json, false)?;
                }
                None => json.skip()?,
            }
            Ok(())
        })
    }

    fn add(&mut self, member: &'static str, count: Count, reported: Reported<'a>) {
        match reported {
            Reported::Missing => {}
            Reported::Impossible(written) => {
                self.refused.get_or_insert((member, written));
            }
            Reported::Count(number) => {
                let mut later = Counts::default();
                later.0[count as usize] = Some(number);
                self.counts.merge(later);
            }
        }
    }

    /// Treats the input as Anthropic's, which excludes cached tokens.
    pub(super) fn of_anthropic(mut self) -> Self {
        self.counts.0.swap(Count::Input as usize, Count::FreshInput as usize);
        self
    }

    /// Usage in a stream's `message_start`. Its output count is a placeholder and is ignored.
    pub(super) fn without_output(mut self) -> Self {
        self.counts.0[Count::Output as usize] = None;
        self
    }
}

/// The first implausible count of a response, as written: `completion_tokens -5`.
#[derive(Debug, Default)]
pub(super) struct RefusedUsage(Option<String>);

impl RefusedUsage {
    pub(super) fn first(&self) -> Option<&str> {
        self.0.as_deref()
    }

    #[cold]
    fn add(&mut self, member: &str, written: &str) {
        let quote = &written[..written.floor_char_boundary(MAX_QUOTE)];
        self.0.get_or_insert_with(|| format!("{member} {quote}"));
    }

    /// Adds a report to the counts so far.
    pub(super) fn merge(&mut self, counts: &mut Counts, report: &UsageReport<'_>) {
        if let Some((member, written)) = report.refused {
            self.add(member, written);
        }
        counts.merge(report.counts);
    }

    /// Removes implausible counts.
    ///
    /// - `prompt`: more than the bytes of the request can encode, and more than any model accepts.
    ///   A gateway may add to a prompt, so the request alone is not a bound.
    /// - `completion`: more than the bytes of the response can encode, and more than requested (or,
    ///   without a limit, than any model writes). Hidden reasoning is not sent, so the response
    ///   alone is not a bound.
    /// - `cached` and `reasoning` have the bounds of the counts that include them.
    pub(super) fn check(&mut self, counts: &mut Counts, bounds: UsageBounds) {
        let input = bounds.request_bytes.max(LARGEST_CONTEXT);
        let asked = bounds.asked_output.map_or(LARGEST_OUTPUT, u64::from);
        let output = bounds.response_bytes.max(asked);
        for (count, what, limit) in [
            (Count::Input, "prompt tokens", input),
            (Count::FreshInput, "prompt tokens", input),
            (Count::Output, "output tokens", output),
            (Count::Cached, "cached tokens", input),
            (Count::Written, "cached tokens", input),
            (Count::Reasoning, "reasoning tokens", output),
            (Count::TopReasoning, "reasoning tokens", output),
            (Count::Total, "total tokens", input + output),
        ] {
            let reported = &mut counts.0[count as usize];
            if let Some(beyond) = reported.take_if(|number| u64::from(*number) > limit) {
                self.add(what, &beyond.to_string());
            }
        }
    }
}

/// Bounds on the usage of a response.
#[derive(Clone, Copy, Debug)]
pub(super) struct UsageBounds {
    /// Bytes of the request's body.
    pub(super) request_bytes: u64,
    /// Requested limit of output tokens.
    pub(super) asked_output: Option<u32>,
    /// Bytes of the response's body.
    pub(super) response_bytes: u64,
}
