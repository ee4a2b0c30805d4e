//! From a request to what will be answered, and when: the model's laws, the request's overrides and
//! the seed, without a clock.

use std::sync::Arc;

use crate::answer::{Answer, Finish, sections};
use crate::ask::Ask;
use crate::dialect::Dialect;
use crate::draw::{Draws, Numbers, Purpose};
use crate::fault::Fault;
use crate::law::Distribution;
use crate::overrides::Overrides;
use crate::span::HumanDuration;
use crate::spec::{ModelSpec, Output};

/// What will be answered, and when. All times are nanoseconds from the complete request.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) answer: Answer,
    pub(crate) fault: Option<Fault>,
    pub(crate) preamble: u64,
    pub(crate) ttft: u64,
    pub(crate) gaps: Gaps,
    pub(crate) tokens_per_event: u32,
}

impl Plan {
    /// `in_flight`: API requests under way, this one included.
    pub(crate) fn new(
        ask: &Ask<'_>,
        model: &Arc<ModelSpec>,
        overrides: &Overrides,
        draws: Draws,
        in_flight: u64,
    ) -> Self {
        let answer = answer(ask, model, overrides, draws);
        let fault = overrides.fault.or(|| drawn_fault(model, draws));
        let preamble = preamble(model, overrides, draws);
        let ttft = ttft(model, overrides, (draws, answer.prompt_tokens), in_flight);
        Self {
            answer,
            fault,
            preamble,
            ttft: ttft.max(preamble),
            gaps: Gaps::new(model, overrides, draws),
            tokens_per_event: overrides.tokens_per_event.unwrap_or(model.tokens_per_event),
        }
    }
}

fn answer(ask: &Ask<'_>, model: &ModelSpec, overrides: &Overrides, draws: Draws) -> Answer {
    let (tokens, finish) = output(ask, model, overrides, draws);
    let reasoning =
        overrides.reasoning_tokens.unwrap_or_else(|| share(tokens, model.reasoning_share));
    let tool_call = overrides
        .tool_call
        .unwrap_or_else(|| draws.numbers(Purpose::ToolCall).unit() < model.tool_call_share);
    let sections = match ask.dialect {
        Dialect::OpenaiEmbeddings => Vec::new(),
        _ => sections(tokens, reasoning, tool_call),
    };
    Answer {
        draws,
        // A string always has a JSON form.
        model: serde_json::to_string(&ask.model).unwrap_or_default(),
        prompt_tokens: ask.prompt_tokens(),
        sections,
        finish,
        usage: model.usage,
        stream_usage: ask.stream_usage,
        vectors: ask.messages,
        dimensions: model.dimensions,
    }
}

/// Number of output tokens. An answer counts as cut short only where its own length was drawn and the
/// request allowed less: one that takes its length from the request says all it had to say.
fn output(ask: &Ask<'_>, model: &ModelSpec, overrides: &Overrides, draws: Draws) -> (u32, Finish) {
    if let Some(tokens) = overrides.output_tokens {
        return (tokens.min(model.output_cap), Finish::Stop);
    }
    let limit = ask.max_tokens.unwrap_or(u32::MAX);
    match &model.output {
        Output::FromRequest(_) => {
            let tokens = ask.max_tokens.unwrap_or(model.default_output);
            (tokens.min(model.output_cap), Finish::Stop)
        }
        Output::Drawn(law) => {
            let drawn = whole(law.draw(&mut draws.numbers(Purpose::Output)));
            let tokens = u32::try_from(drawn).unwrap_or(u32::MAX).min(model.output_cap);
            let finish = if tokens > limit { Finish::Length } else { Finish::Stop };
            (tokens.min(limit), finish)
        }
    }
}

fn drawn_fault(model: &ModelSpec, draws: Draws) -> Option<Fault> {
    if model.faults.is_empty() {
        return None;
    }
    let mut left = draws.numbers(Purpose::Fault).unit();
    let struck = model.faults.iter().find(|one| {
        left -= one.share;
        left < 0.0
    });
    struck.map(|one| one.fault)
}

fn preamble(model: &ModelSpec, overrides: &Overrides, draws: Draws) -> u64 {
    let drawn = || drawn_time(&model.preamble, &mut draws.numbers(Purpose::Preamble), 1.0);
    overrides.preamble.map_or_else(drawn, HumanDuration::as_nanos)
}

fn ttft(
    model: &ModelSpec,
    overrides: &Overrides,
    (draws, prompt_tokens): (Draws, u64),
    in_flight: u64,
) -> u64 {
    if let Some(exact) = overrides.ttft {
        return exact.as_nanos();
    }
    let factor = model.slowdown.factor(in_flight);
    let prefill = prompt_tokens as f64 * model.prefill_per_token.as_nanos() as f64;
    let drawn = model.ttft.draw(&mut draws.numbers(Purpose::Ttft));
    whole((drawn + prefill) * factor)
}

fn share(tokens: u32, share: f64) -> u32 {
    u32::try_from(whole(f64::from(tokens) * share)).unwrap_or(u32::MAX)
}

fn drawn_time(law: &Distribution<HumanDuration>, numbers: &mut Numbers, factor: f64) -> u64 {
    whole(law.draw(numbers) * factor)
}

/// Rounds what is not negative. (`f64::round` is a call into the C library on plain x86-64, and this
/// is done for every token.)
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "float-to-int casts saturate, and laws give nothing below zero"
)]
fn whole(number: f64) -> u64 {
    (number + 0.5) as u64
}

/// The waits between content events, one draw for each.
#[derive(Debug)]
pub(crate) struct Gaps {
    exact: Option<u64>,
    model: Arc<ModelSpec>,
    numbers: Numbers,
}

impl Gaps {
    fn new(model: &Arc<ModelSpec>, overrides: &Overrides, draws: Draws) -> Self {
        Self {
            exact: overrides.gap.map(HumanDuration::as_nanos),
            model: Arc::clone(model),
            numbers: draws.numbers(Purpose::Gap),
        }
    }

    /// The next wait, in nanoseconds, while `in_flight` API requests are under way.
    pub(crate) fn draw(&mut self, in_flight: u64) -> u64 {
        let factor = || self.model.slowdown.factor(in_flight);
        self.exact.unwrap_or_else(|| drawn_time(&self.model.gap, &mut self.numbers, factor()))
    }
}

#[cfg(test)]
impl Plan {
    /// An answer without waits and faults.
    pub(crate) fn of_answer(answer: Answer) -> Self {
        let model = Arc::new(ModelSpec::default());
        let gaps = Gaps::new(&model, &Overrides::default(), answer.draws);
        Self { answer, fault: None, preamble: 0, ttft: 0, gaps, tokens_per_event: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Kind;
    use crate::spec::{FaultShare, Slowdown};

    const BODY: &[u8] = br#"{"model":"m","messages":[{"content":"12345678"}],"max_tokens":20}"#;

    fn plan(model: &ModelSpec, overrides: &Overrides, sequence: u64, in_flight: u64) -> Plan {
        let ask = Ask::parse(Dialect::OpenaiChat, BODY).unwrap();
        let model = Arc::new(model.clone());
        Plan::new(&ask, &model, overrides, Draws::new(7, None, sequence), in_flight)
    }

    fn timed() -> ModelSpec {
        ModelSpec {
            ttft: Distribution::Constant(HumanDuration::from_millis(10)),
            gap: Distribution::Constant(HumanDuration::from_millis(2)),
            prefill_per_token: HumanDuration::from_millis(3),
            slowdown: Slowdown { knee: 4, slope: 0.5 },
            ..ModelSpec::default()
        }
    }

    #[test]
    fn ttft_is_law_plus_prefill_times_slowdown() {
        // Two input tokens: 10 + 2 * 3 = 16 ms; with 6 in flight twice that.
        for (in_flight, ttft, gap) in [(1, 16_000_000, 2_000_000), (6, 32_000_000, 4_000_000)] {
            let mut plan = plan(&timed(), &Overrides::default(), 0, in_flight);
            assert_eq!(
                (plan.ttft, plan.gaps.draw(in_flight)),
                (ttft, gap),
                "{in_flight} in flight"
            );
        }
    }

    #[test]
    fn times_asked_for_by_header_are_exact() {
        let overrides = Overrides {
            ttft: Some(HumanDuration::from_millis(5)),
            gap: Some(HumanDuration::from_millis(1)),
            preamble: Some(HumanDuration::from_millis(3)),
            ..Overrides::default()
        };
        let mut plan = plan(&timed(), &overrides, 0, 100);
        assert_eq!(
            (plan.preamble, plan.ttft, plan.gaps.draw(100)),
            (3_000_000, 5_000_000, 1_000_000)
        );
    }

    #[test]
    fn content_never_comes_before_the_preamble() {
        let model = ModelSpec {
            preamble: Distribution::Constant(HumanDuration::from_millis(9)),
            ..ModelSpec::default()
        };
        assert_eq!(plan(&model, &Overrides::default(), 0, 1).ttft, 9_000_000);
    }

    #[test]
    fn output_follows_the_request_the_law_the_cap_and_the_header() {
        let default = ModelSpec::default;
        let law = |tokens| ModelSpec {
            output: Output::Drawn(Distribution::Constant(tokens)),
            ..default()
        };
        let capped = ModelSpec { output_cap: 8, ..default() };
        for (model, header, tokens, finish) in [
            (default(), None, 20, Finish::Stop),
            (capped.clone(), None, 8, Finish::Stop),
            (law(15), None, 15, Finish::Stop),
            (law(50), None, 20, Finish::Length),
            (law(50), Some(30), 30, Finish::Stop),
            (capped, Some(30), 8, Finish::Stop),
        ] {
            let overrides = Overrides { output_tokens: header, ..Overrides::default() };
            let answer = plan(&model, &overrides, 0, 1).answer;
            assert_eq!((answer.tokens(), answer.finish), (tokens, finish), "{:?}", model.output);
        }
    }

    #[test]
    fn shares_of_reasoning_tool_calls_and_faults_are_kept() {
        let model = ModelSpec {
            reasoning_share: 0.25,
            tool_call_share: 0.3,
            faults: vec![
                FaultShare { fault: Fault::Hang, share: 0.1 },
                FaultShare { fault: Fault::Cut { at: 1 }, share: 0.2 },
            ],
            ..ModelSpec::default()
        };
        let plans: Vec<Plan> =
            (0..20_000).map(|n| plan(&model, &Overrides::default(), n, 1)).collect();
        let part = |of: &dyn Fn(&Plan) -> bool| {
            plans.iter().filter(|plan| of(plan)).count() as f64 / plans.len() as f64
        };
        assert!(plans.iter().all(|plan| plan.answer.tokens_of(Kind::Reasoning) == 5));
        assert!((part(&|plan| plan.answer.calls_tool()) - 0.3).abs() < 0.015);
        assert!((part(&|plan| plan.fault == Some(Fault::Hang)) - 0.1).abs() < 0.01);
        assert!((part(&|plan| plan.fault == Some(Fault::Cut { at: 1 })) - 0.2).abs() < 0.012);
    }
}
