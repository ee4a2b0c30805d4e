//! Loads and comparisons of several scenarios at once, with a result for each of them.

use plimsoll_runner::facts;
use plimsoll_versus::{Versus, judge};

use super::{Alone, Pass, SuiteRunner, without_passes};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::figures::TimedResponses;
use crate::host::Compared;
use crate::measurement::Measurement;
use crate::result::{Figures, MeasurementResult};
use crate::target::SuiteTarget;

/// A scenario of a load.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    /// Its name in the load.
    pub(crate) scenario: &'static str,
    /// The label of its result.
    pub(crate) label: String,
    /// Its planned requests per second.
    pub(crate) rate: f64,
}

impl SuiteRunner<'_> {
    /// Runs a load of several scenarios, and returns a result for each of them; `inspect` sees
    /// every pass. A spoiled load is repeated, as with a single scenario.
    pub(crate) fn measure_parts(
        &mut self,
        measurement: &Measurement,
        parts: &[Part],
        inspect: &mut dyn FnMut(&Pass),
    ) -> Vec<MeasurementResult> {
        let mut results: Vec<_> = parts.iter().map(|part| empty(measurement, part)).collect();
        let passes = self.options.passes.unwrap_or(1).max(1);
        for pass in 0..=passes {
            if pass == passes && !results.iter().all(MeasurementResult::is_spoiled) {
                break;
            }
            let mut whole = MeasurementResult::default();
            let done = self.add_pass(measurement, pass, &mut whole);
            for (part, result) in parts.iter().zip(&mut results) {
                result.passes.extend(done.as_ref().map(|done| figures_of(done, part.scenario)));
                result.files.extend(whole.files.iter().cloned());
                result.error = whole.error.clone().or_else(|| result.error.take());
            }
            done.iter().for_each(&mut *inspect);
        }
        self.report.measurements.extend(results.iter().cloned());
        results
    }

    /// Runs a comparison of several scenarios, and judges each scenario by its own pairs, which
    /// were sent alongside the pairs of the others. Does not run once the user has ended the suite.
    pub(crate) fn compare_parts(
        &mut self,
        request: &Measurement,
        targets: &[(String, SuiteTarget)],
        parts: &[Part],
    ) -> Vec<ComparisonResult> {
        if self.is_interrupted() {
            return Vec::new();
        }
        let compared = self.carry_out(request, targets, self.alone(), false);
        let compared = compared.map_err(|error| error.to_string());
        let mut results = Vec::new();
        for part in parts {
            let judged = compared.as_ref().map_err(Clone::clone).and_then(|compared| {
                let own = scenario_of(compared, part.scenario);
                self.judged(&part.label, &own).map_err(|error| error.to_string())
            });
            results.push(self.add_comparison(&part.label, judged));
        }
        results
    }
}

impl SuiteRunner<'_> {
    /// Carries out one of several rounds of a comparison: the judgement of all requests and of each
    /// scenario, and the result as a whole. The report gets it when all rounds are known.
    pub(crate) fn compare_round(
        &mut self,
        request: &Measurement,
        targets: &[(String, SuiteTarget)],
        scenarios: &[&str],
    ) -> Result<(Vec<Versus>, ComparisonResult), SuiteError> {
        let alone = if targets.len() > 2 { self.alone() } else { Alone::Never };
        let compared = self.carry_out(request, targets, alone, false)?;
        let whole = self.judged(&request.label, &compared)?;
        let parts = scenarios.iter().map(|scenario| {
            let own = scenario_of(&compared, scenario);
            let mut versus = judge(&own.facts, &own.blocks);
            facts::take_over(&own.summary, &mut versus);
            versus
        });
        Ok((whole.versus.iter().cloned().chain(parts).collect(), whole))
    }
}

fn empty(measurement: &Measurement, part: &Part) -> MeasurementResult {
    let (label, rate) = (part.label.clone(), Some(part.rate));
    MeasurementResult { label, rate, ..without_passes(measurement) }
}

/// The figures of one scenario. Whether the generator kept up, and how busy each process was, is
/// the same for all; the gateway's CPU time per request is known of all together alone.
fn figures_of(pass: &Pass, scenario: &str) -> Figures {
    let results = &pass.summary.results;
    let own = results.by_scenario.iter().find(|group| group.scenario.as_deref() == Some(scenario));
    let time = pass.summary.metadata.headline_time();
    let own = own.and_then(|group| Figures::of_group(group, TimedResponses::Completed, time).ok());
    Figures {
        invalid: pass.figures.invalid.clone(),
        busy: pass.figures.busy,
        busy_host: pass.figures.busy_host.clone(),
        ..own.unwrap_or_default()
    }
}

/// The blocks of one scenario. CPU time, rate, protocol and the number of planned blocks apply to
/// all scenarios together, so they are left out.
fn scenario_of(compared: &Compared, scenario: &str) -> Compared {
    let mut facts = compared.facts.clone();
    let index = facts.scenarios.iter().position(|name| name == scenario);
    let blocks = compared
        .blocks
        .iter()
        .filter(|block| Some(block.scenario.index()) == index)
        .cloned()
        .collect();
    (facts.rate, facts.planned_blocks) = (None, 0);
    for target in &mut facts.targets {
        target.protocol.clear();
        target.cpu.clear();
        target.cpu_us_per_request = None;
    }
    Compared { facts, blocks, summary: compared.summary.clone() }
}
