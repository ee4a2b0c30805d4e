//! Example runs.

use std::sync::LazyLock;

use plimsoll_live::{Difference, Look, Model, RunFacts, SoFar, StageFacts, draw};
use plimsoll_measure::{
    ConnectPhases, ConversationKey, ErrorClass, FlowControl, GapSummary, GeneratorShare, Moment,
    Nanos, Outcome, Sample, ScenarioId, ServerReport, StageId, TargetId, Timeline, TokenCount,
    Usage,
};
use plimsoll_metrics::{
    IntervalUpdate, Judgement, Metric, ProcessNow, Recorder, Snapshot, ThresholdResult, Unit,
};
use plimsoll_schedule::Load;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Requests per second and target.
pub(crate) const RATE: u64 = 10;

fn stage(name: &str, start: u64, end: u64, load: Load) -> StageFacts {
    StageFacts {
        name: name.to_owned(),
        warmup: start == 0,
        start: Nanos::from_secs(start),
        end: Nanos::from_secs(end),
        load,
    }
}

/// A chat run of two and a half minutes.
pub(crate) fn facts(targets: &[&str]) -> RunFacts {
    RunFacts {
        name: "chat".to_owned(),
        stages: vec![
            stage("w@10:10s", 0, 10, Load::Open { from: 10.0, to: 10.0 }),
            stage("@10:2m", 10, 130, Load::Open { from: 10.0, to: 10.0 }),
            stage("8:20s", 130, 150, Load::Closed { from: 8, to: 8 }),
        ],
        scenarios: ["simple", "complex"].map(str::to_owned).into(),
        targets: targets.iter().map(|name| (*name).to_owned()).collect(),
        compares: targets.len() > 1,
        time: Metric::ResponseTime,
        max_requests: None,
    }
}

/// The `index`th request of `second`: it takes 20 ms, 1 ms more for each earlier one in the second,
/// and 5 ms more on each further target.
fn sample(second: u64, index: u64, target: u16) -> Sample {
    let intended = Nanos::from_millis(second * 1_000 + index * 90);
    let at = |millis: u64| Moment::EPOCH + intended + Nanos::from_millis(millis);
    let service = 20 + index + 5 * u64::from(target);
    let fails = second.is_multiple_of(40) && index == 3;
    Sample {
        stage: StageId(u16::from(second >= 10)),
        scenario: ScenarioId(u16::from(index >= 8)),
        target: TargetId(target),
        conversation: ConversationKey::arrival(second * RATE + index),
        turn: 0,
        position: 0,
        operation: None,
        stream: true,
        warmup: second < 10,
        reused: true,
        timeline: Timeline {
            intended: at(0),
            dispatched: Some(at(0)),
            first_token: Some(at(service / 2)),
            finished: Some(at(service)),
            ..Timeline::default()
        },
        connect: ConnectPhases::default(),
        retried_after: None,
        status: 200,
        outcome: if fails { Outcome::Failed(ErrorClass::Reset) } else { Outcome::Completed },
        policy_decision: None,
        expected: None,
        usage: Usage {
            completion: TokenCount::reported(12),
            after_first: Some(11),
            ..Usage::default()
        },
        events: 12,
        gaps: GapSummary::default(),
        shape: None,
        finish_reason: None,
        content: plimsoll_measure::AnswerContent::default(),
        repeated_tokens: 0,
        usage_refused: false,
        affected: false,
        rpc: plimsoll_measure::RpcReport::default(),
        bytes_out: 300,
        bytes_in: 900,
        flow: FlowControl::default(),
        server: ServerReport::default(),
        read_lag: None,
        generator: GeneratorShare { dispatch: Nanos::from_micros(40), ..GeneratorShare::default() },
    }
}

/// Counts of one second with this many requests to each target.
fn second(second: u64, requests: &[u64]) -> Snapshot {
    let ends = [10, 130, 150].map(|end| Moment::EPOCH + Nanos::from_secs(end));
    let mut recorder = Recorder::new(ends.into());
    for (target, count) in (0..).zip(requests) {
        for index in 0..*count {
            let sample = sample(second, index, target);
            recorder.scheduled(sample.stage, sample.scenario, sample.target);
            recorder.record(&sample, &[], &[]);
        }
    }
    recorder.take()
}

/// A run of one target after 75 seconds.
pub(crate) fn run() -> Model {
    static RUN: LazyLock<Model> = LazyLock::new(|| model(&["gateway"], 75));
    RUN.clone()
}

/// The run after this many seconds.
pub(crate) fn model(targets: &[&str], seconds: u64) -> Model {
    model_of(targets, seconds, &vec![RATE; targets.len()])
}

/// The same with this many requests per second to each target.
pub(crate) fn model_of(targets: &[&str], seconds: u64, requests: &[u64]) -> Model {
    let mut model = Model::new(facts(targets));
    for now in 0..seconds {
        let process = |name: &str, cores| ProcessNow {
            name: name.to_owned(),
            cores,
            rss_bytes: Some(64_000_000),
        };
        model.update(IntervalUpdate {
            elapsed: Nanos::from_secs(now + 1),
            stage: usize::from(now + 1 >= 10),
            length: Nanos::from_secs(1),
            cells: &second(now, requests),
            in_flight: 2,
            ended: requests.iter().sum::<u64>() * (now + 1),
            ending: false,
            taken_out: &vec![None; targets.len()],
            processes: vec![process("gateway", Some(0.41)), process("redis", None)],
            own_cpu: None,
            own_cores: Some(0.07),
        });
    }
    model
}

/// A threshold with its judgement.
pub(crate) fn threshold(expression: &str, measured: f64, judgement: Judgement) -> ThresholdResult {
    ThresholdResult {
        level: None,
        metric: "response_time".to_owned(),
        expression: expression.to_owned(),
        measured: Some(measured),
        generator: None,
        unit: Unit::Time,
        judgement,
    }
}

/// A comparison of three targets after a minute, with all kinds of results.
pub(crate) fn comparison() -> Model {
    static RUN: LazyLock<Model> = LazyLock::new(|| model(&["direct", "a", "b"], 75));
    let mut model = RUN.clone();
    model.judge(SoFar {
        invalid: Vec::new(),
        thresholds: vec![
            threshold("p(95)<40ms", 33.0, Judgement::Pass),
            threshold("p(50)<20ms", 24.5, Judgement::Fail),
        ],
    });
    let difference = |target, reference, value: f64| Difference {
        target,
        reference,
        figure: "TTFT".to_owned(),
        millis: Some([value, value - 0.01, value + 0.01]),
    };
    model.compare(vec![difference(1, 0, 0.143), difference(2, 0, 1.43), difference(2, 1, 1.29)]);
    model
}

/// The view as lines, without trailing spaces.
pub(crate) fn shown(model: &Model, look: Look, width: u16, height: u16) -> String {
    let mut buf = Buffer::empty(Rect::new(0, 0, width, height));
    draw(model, look, &mut buf);
    (0..height)
        .map(|y| {
            let row: String = (0..width).map(|x| buf[(x, y)].symbol()).collect();
            row.trim_end().to_owned() + "\n"
        })
        .collect()
}
