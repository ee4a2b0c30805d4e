//! Plans a response: content, times and fault, from the model's configuration, the request's
//! overrides and the seed, without a clock.

use std::sync::Arc;

use crate::dialect::Dialect;
use crate::distribution::round;
use crate::duration::HumanDuration;
use crate::fault::{Fault, FaultShare};
use crate::model_output::{FinishReason, ModelOutput, ToolCall, call_sections, sections};
use crate::overrides::RequestOverrides;
use crate::request::ApiRequest;
use crate::rng::{Purpose, RequestRng, Rng};
use crate::spec::{ModelSpec, OutputLength};

/// A planned response. Times are nanoseconds from the complete request.
#[derive(Debug)]
pub(crate) struct ResponsePlan {
    pub(crate) output: ModelOutput,
    pub(crate) fault: Option<Fault>,
    pub(crate) preamble: u64,
    pub(crate) ttft: u64,
    pub(crate) gaps: Gaps,
    pub(crate) tokens_per_event: u32,
}

impl ResponsePlan {
    /// `in_flight` is the number of API requests in flight, including this one.
    pub(crate) fn new(
        request: &ApiRequest<'_>,
        model: &Arc<ModelSpec>,
        overrides: &RequestOverrides,
        rng: RequestRng,
        in_flight: u64,
    ) -> Self {
        let output = plan_output(request, model, overrides, rng);
        let fault = overrides.fault.or(|| sample_fault(&model.faults, rng));
        let ttft = plan_ttft(model, overrides, rng, output.prompt_tokens, in_flight);
        let preamble = match &model.preamble {
            Some(sampled) => sampled.draw(rng, Purpose::Preamble),
            None => USUAL_PREAMBLE.min(ttft / 2),
        };
        Self {
            output,
            fault,
            preamble,
            ttft: ttft.max(preamble),
            gaps: Gaps::new(model, overrides, rng),
            tokens_per_event: model.tokens_per_event,
        }
    }
}

fn plan_output(
    request: &ApiRequest<'_>,
    model: &ModelSpec,
    overrides: &RequestOverrides,
    rng: RequestRng,
) -> ModelOutput {
    let (tokens, finish_reason) = output_length(request, model, overrides, rng);
    let reasoning = share(tokens, model.reasoning_share);
    let turn = request.tool_turn.as_ref().filter(|turn| !turn.calls.is_empty());
    let (sections, calls, finish_reason) = if let Some(turn) = turn {
        // Calls are sent completely, regardless of the limit.
        (call_sections(reasoning, &turn.calls), turn.calls.clone(), FinishReason::Stop)
    } else if request.dialect == Dialect::OpenaiEmbeddings {
        (Vec::new(), Vec::new(), finish_reason)
    } else {
        // WebSocket messages and text completions have no form for a tool call.
        let may_call = !matches!(request.dialect, Dialect::Websocket | Dialect::OpenaiCompletions);
        let tool_call = may_call
            && overrides
                .tool_call
                .unwrap_or_else(|| rng.fork(Purpose::ToolCall).uniform() < model.tool_call_share);
        let calls = tool_call.then(|| ToolCall::lookup(rng)).into_iter().collect();
        (sections(tokens, reasoning, tool_call), calls, finish_reason)
    };
    ModelOutput {
        rng,
        // A string always has a JSON form.
        model: serde_json::to_string(&request.model).unwrap_or_default(),
        prompt_tokens: request.prompt_tokens(),
        sections,
        calls,
        finish_reason,
        usage: model.usage,
        stream_usage: request.stream_usage,
        vectors: request.messages,
        dimensions: model.dimensions,
    }
}

/// Number of output tokens. The finish reason is `Length` only if the request's limit cut a sampled
/// length. An output whose length comes from the request is complete.
fn output_length(
    request: &ApiRequest<'_>,
    model: &ModelSpec,
    overrides: &RequestOverrides,
    rng: RequestRng,
) -> (u32, FinishReason) {
    if let Some(tokens) = overrides.output_tokens {
        return (tokens.min(model.output_cap), FinishReason::Stop);
    }
    let limit = request.max_tokens.unwrap_or(u32::MAX);
    match &model.output {
        OutputLength::FromRequest(_) => {
            let tokens = request.max_tokens.unwrap_or(model.default_output);
            (tokens.min(model.output_cap), FinishReason::Stop)
        }
        OutputLength::Sampled(distribution) => {
            let sampled = distribution.draw(rng, Purpose::OutputLength);
            let tokens = u32::try_from(sampled).unwrap_or(u32::MAX).min(model.output_cap);
            let reason = if tokens > limit { FinishReason::Length } else { FinishReason::Stop };
            (tokens.min(limit), reason)
        }
    }
}

pub(crate) fn sample_fault(faults: &[FaultShare], rng: RequestRng) -> Option<Fault> {
    if faults.is_empty() {
        return None;
    }
    let mut left = rng.fork(Purpose::Fault).uniform();
    let chosen = faults.iter().find(|candidate| {
        left -= candidate.share;
        left < 0.0
    });
    chosen.map(|chosen| chosen.fault)
}

/// Default nanoseconds to the head, unless the content is due earlier.
const USUAL_PREAMBLE: u64 = 5_000_000;

fn plan_ttft(
    model: &ModelSpec,
    overrides: &RequestOverrides,
    rng: RequestRng,
    prompt_tokens: u64,
    in_flight: u64,
) -> u64 {
    if let Some(exact) = overrides.ttft {
        return exact.as_nanos();
    }
    let factor = model.slowdown.factor(in_flight);
    let prefill = prompt_tokens as f64 * model.prefill_per_token.as_nanos() as f64;
    let sampled = model.ttft.sample(&mut rng.fork(Purpose::Ttft));
    round((sampled + prefill) * factor)
}

fn share(tokens: u32, share: f64) -> u32 {
    u32::try_from(round(f64::from(tokens) * share)).unwrap_or(u32::MAX)
}

/// The gaps between content events, one sample for each.
#[derive(Debug)]
pub(crate) struct Gaps {
    exact: Option<u64>,
    model: Arc<ModelSpec>,
    rng: Rng,
}

impl Gaps {
    fn new(model: &Arc<ModelSpec>, overrides: &RequestOverrides, rng: RequestRng) -> Self {
        Self {
            exact: overrides.gap.map(HumanDuration::as_nanos),
            model: Arc::clone(model),
            rng: rng.fork(Purpose::Gap),
        }
    }

    /// The next gap in nanoseconds, with `in_flight` API requests in flight.
    pub(crate) fn next(&mut self, in_flight: u64) -> u64 {
        self.exact.unwrap_or_else(|| {
            round(self.model.gap.sample(&mut self.rng) * self.model.slowdown.factor(in_flight))
        })
    }
}

#[cfg(test)]
impl ResponsePlan {
    /// A plan without delays and faults.
    pub(crate) fn immediate(output: ModelOutput) -> Self {
        let model = Arc::new(ModelSpec::default());
        let gaps = Gaps::new(&model, &RequestOverrides::default(), output.rng);
        Self { output, fault: None, preamble: 0, ttft: 0, gaps, tokens_per_event: 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distribution::Distribution;
    use crate::model_output::ContentKind;
    use crate::spec::Slowdown;

    const BODY: &[u8] = br#"{"model":"m","messages":[{"content":"12345678"}],"max_tokens":20}"#;

    fn plan(
        model: &ModelSpec,
        overrides: &RequestOverrides,
        sequence: u64,
        in_flight: u64,
    ) -> ResponsePlan {
        let request = ApiRequest::parse(Dialect::OpenaiChat, BODY).unwrap();
        let model = Arc::new(model.clone());
        ResponsePlan::new(
            &request,
            &model,
            overrides,
            RequestRng::new(7, None, sequence),
            in_flight,
        )
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
    fn ttft_is_sample_plus_prefill_times_slowdown() {
        // Two input tokens: 10 + 2 * 3 = 16 ms; with 6 in flight twice that.
        for (in_flight, ttft, gap) in [(1, 16_000_000, 2_000_000), (6, 32_000_000, 4_000_000)] {
            let mut plan = plan(&timed(), &RequestOverrides::default(), 0, in_flight);
            assert_eq!(
                (plan.ttft, plan.gaps.next(in_flight)),
                (ttft, gap),
                "{in_flight} in flight"
            );
        }
    }

    #[test]
    fn times_from_headers_are_exact() {
        let overrides = RequestOverrides {
            ttft: Some(HumanDuration::from_millis(5)),
            gap: Some(HumanDuration::from_millis(1)),
            ..RequestOverrides::default()
        };
        let mut plan = plan(&timed(), &overrides, 0, 100);
        assert_eq!((plan.ttft, plan.gaps.next(100)), (5_000_000, 1_000_000));
    }

    #[test]
    fn without_a_preamble_the_head_waits_but_not_longer_than_the_content() {
        for (ttft, preamble) in [(0, 0), (2, 1), (10, 5), (300, 5)] {
            let ttft = Some(HumanDuration::from_millis(ttft));
            let overrides = RequestOverrides { ttft, ..RequestOverrides::default() };
            let plan = plan(&ModelSpec::default(), &overrides, 1, 1);
            assert_eq!(plan.preamble / 1_000_000, preamble, "{ttft:?}");
            assert_eq!(Some(plan.ttft), ttft.map(HumanDuration::as_nanos));
        }
    }

    #[test]
    fn content_never_comes_before_the_preamble() {
        let model = ModelSpec {
            preamble: Some(Distribution::Constant(HumanDuration::from_millis(9))),
            ..ModelSpec::default()
        };
        assert_eq!(plan(&model, &RequestOverrides::default(), 0, 1).ttft, 9_000_000);
    }

    #[test]
    fn output_length_follows_request_distribution_cap_and_header() {
        let default = ModelSpec::default;
        let fixed = |tokens| ModelSpec {
            output: OutputLength::Sampled(Distribution::Constant(tokens)),
            ..default()
        };
        let capped = ModelSpec { output_cap: 8, ..default() };
        for (model, header, tokens, reason) in [
            (default(), None, 20, FinishReason::Stop),
            (capped.clone(), None, 8, FinishReason::Stop),
            (fixed(15), None, 15, FinishReason::Stop),
            (fixed(50), None, 20, FinishReason::Length),
            (fixed(50), Some(30), 30, FinishReason::Stop),
            (capped, Some(30), 8, FinishReason::Stop),
        ] {
            let overrides =
                RequestOverrides { output_tokens: header, ..RequestOverrides::default() };
            let output = plan(&model, &overrides, 0, 1).output;
            assert_eq!(
                (output.tokens(), output.finish_reason),
                (tokens, reason),
                "{:?}",
                model.output
            );
        }
    }

    #[test]
    fn shares_of_reasoning_tool_calls_and_faults_are_kept() {
        let model = ModelSpec {
            reasoning_share: 0.25,
            tool_call_share: 0.3,
            faults: vec![
                FaultShare { fault: Fault::Hang, share: 0.1 },
                FaultShare { fault: "cut@1".parse().unwrap(), share: 0.2 },
            ],
            ..ModelSpec::default()
        };
        let plans: Vec<ResponsePlan> =
            (0..20_000).map(|n| plan(&model, &RequestOverrides::default(), n, 1)).collect();
        let part = |of: &dyn Fn(&ResponsePlan) -> bool| {
            plans.iter().filter(|plan| of(plan)).count() as f64 / plans.len() as f64
        };
        assert!(plans.iter().all(|plan| plan.output.tokens_of(ContentKind::Reasoning) == 5));
        assert!((part(&|plan| plan.output.calls_tool()) - 0.3).abs() < 0.015);
        assert!((part(&|plan| plan.fault == Some(Fault::Hang)) - 0.1).abs() < 0.01);
        assert!((part(&|plan| plan.fault == "cut@1".parse().ok()) - 0.2).abs() < 0.012);
    }
}
