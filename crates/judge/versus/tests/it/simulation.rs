//! Simulated blocks: the upstream draws one time for all targets, and each target adds its own.

use plimsoll_measure::{
    Block, GeneratorShare, Nanos, Outcome, PairedTurn, Rng, ScenarioId, Seed, StageId,
};
use plimsoll_metrics::LoadModel;
use plimsoll_versus::{Facts, Role, Schedule, StageFacts, TargetFacts};

/// A simulated target.
#[derive(Clone, Debug)]
pub(crate) struct Simulated {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// Overhead added to every turn, in microseconds.
    pub(crate) adds_us: f64,
}

pub(crate) const fn target(name: &'static str, adds_us: f64) -> Simulated {
    Simulated { name, role: Role::Target, adds_us }
}

/// The upstream, and itself as the control target, which adds `control_us`.
pub(crate) fn direct(control_us: f64) -> Vec<Simulated> {
    vec![
        Simulated { name: "direct", role: Role::Reference, adds_us: 0.0 },
        Simulated { name: "direct'", role: Role::Control, adds_us: control_us },
    ]
}

/// A simulated run.
#[derive(Clone, Debug)]
pub(crate) struct Simulation {
    pub(crate) targets: Vec<Simulated>,
    pub(crate) seconds: u64,
    pub(crate) rate: u64,
    pub(crate) seed: u64,
    pub(crate) run: u64,
    /// Whether the targets of a block run in random order; otherwise in a fixed one.
    pub(crate) random_order: bool,
    /// Time that each later position in a block adds, in microseconds.
    pub(crate) place_us: f64,
    /// Length of windows that load each target alone, in seconds; `None` to load them side by side.
    pub(crate) windows_s: Option<u64>,
}

impl Simulation {
    pub(crate) fn new(targets: Vec<Simulated>) -> Self {
        Self {
            targets,
            seconds: 60,
            rate: 100,
            seed: 1_310,
            run: 0,
            random_order: true,
            place_us: 0.0,
            windows_s: None,
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        let schedule = match self.windows_s {
            Some(_) => Schedule::Turns,
            None => Schedule::Spread { gap: Nanos::from_micros(2_500) },
        };
        Facts {
            name: "simulated".to_owned(),
            targets: self
                .targets
                .iter()
                .map(|simulated: &Simulated| TargetFacts {
                    name: simulated.name.to_owned(),
                    // The control has its reference's address.
                    url: format!("http://{}/", simulated.name.trim_end_matches('\'')),
                    role: simulated.role,
                    ..TargetFacts::default()
                })
                .collect(),
            schedule,
            stages: vec![StageFacts { name: "@100:60s".to_owned(), model: LoadModel::Open }],
            planned_blocks: self.seconds * self.rate,
            rate: Some(self.rate as f64),
            duration_s: self.seconds as f64,
            one_in: 1,
            same_host: true,
            ..Facts::default()
        }
    }

    pub(crate) fn blocks(&self) -> Vec<Block> {
        let rng = &mut Seed(self.seed).rng("blocks", self.run);
        (0..self.seconds * self.rate).map(|index| self.block(rng, index)).collect()
    }

    fn block(&self, rng: &mut Rng, index: u64) -> Block {
        let start = Nanos::new(index * 1_000_000_000 / self.rate);
        let provider_us = 20_000.0 * (0.35 * rng.normal()).exp();
        let places = places(rng, self.targets.len(), self.random_order);
        let turn = |(target, place): (&Simulated, u8)| {
            let way_us = 20.0 * (rng.exponential() + rng.exponential());
            let order_us = self.place_us * f64::from(place);
            let time = provider_us + way_us + order_us + target.adds_us;
            Some(turn(place, Nanos::from_secs_f64(time / 1e6)))
        };
        let turns = self.targets.iter().zip(places).map(turn).collect();
        let window = self
            .windows_s
            .map(|length| u32::try_from(start.as_u64() / 1_000_000_000 / length).unwrap());
        let (stage, scenario) = (StageId(0), ScenarioId(0));
        Block { index, turn: 0, stage, scenario, start, window, turns }
    }
}

/// A stream that took `time` to its first token, and 10 ms more in 4 gaps.
pub(crate) fn turn(position: u8, time: Nanos) -> PairedTurn {
    let end = time + Nanos::from_millis(10);
    PairedTurn {
        position,
        outcome: Outcome::Completed,
        response: Some(end),
        service: Some(end),
        ttft: Some(time),
        last_token: Some(end),
        longest_gap: Some(Nanos::from_micros(2_500)),
        gaps: 4,
        generator: GeneratorShare::default(),
        expected: None,
        decision: None,
        output_tokens: 5,
        input_tokens: 30,
        status: 200,
        finish_reason: None,
        content_bytes: 0,
        content_digest: 0,
        model: 0,
        reasoning: false,
        tool_calls: false,
        reused: true,
    }
}

/// Position of each target, shuffled by Fisher and Yates.
fn places(rng: &mut Rng, count: usize, random: bool) -> Vec<u8> {
    let mut places: Vec<u8> = (0..u8::try_from(count).unwrap()).collect();
    if random {
        for last in (1..count).rev() {
            places.swap(last, usize::try_from(rng.below(last as u64 + 1)).unwrap());
        }
    }
    places
}

pub(crate) fn microseconds(nanos: Option<f64>) -> f64 {
    nanos.unwrap() / 1e3
}
