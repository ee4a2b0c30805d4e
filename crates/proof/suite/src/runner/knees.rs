//! Carries the searches of a suite out: the knees of several targets, probe by probe.

use plimsoll_compare::plan::hash as plan_hash;
use plimsoll_knee::{
    FORMAT, Finding, KneeReport, Load, Objective, Search, Settings, TargetKnee, in_turns,
};
use plimsoll_measure::Nanos;
use plimsoll_plan::{Plan, redacted_path};

use super::SuiteRunner;
use crate::error::SuiteError;
use crate::knee_result::KneeResult;
use crate::measurement::Measurement;
use crate::target::slug;

/// Time for the search of each capacity.
const BUDGET: Nanos = Nanos::from_secs(150);
/// Length of the long probes, as a share of the budget, and the most seconds. Two or three of them
/// and the search for the place take the budget.
const PROVE: (f64, f64) = (0.2, 30.0);
/// Relative step between rates: capacities that differ by 10 % are at least three steps apart.
const STEP: f64 = 0.034;
/// Shorter searches cannot find a knee.
const LEAST: Nanos = Nanos::from_secs(20);

/// A knee to be found.
pub(crate) struct Sought {
    /// The target's name, where there are several.
    pub(crate) name: String,
    /// Its requests; their load is the search's.
    pub(crate) measurement: Measurement,
    /// The lowest rate, per second.
    pub(crate) from: f64,
    /// The rate to begin at.
    pub(crate) first: f64,
    /// The highest rate.
    pub(crate) to: f64,
}

impl SuiteRunner<'_> {
    /// Time for the search of each knee; `None` for no search.
    pub(crate) fn knee_budget(&self) -> Option<Nanos> {
        let own = if self.options.short { Nanos::ZERO } else { BUDGET };
        Some(self.options.knee_budget.unwrap_or(own)).filter(|budget| *budget >= LEAST)
    }

    /// Searches the knees of targets with one kind of request.
    ///
    /// # Errors
    /// A load cannot run, or the file cannot be written.
    pub(crate) fn search_knees(
        &mut self,
        label: &str,
        objective: &str,
        budget: Nanos,
        sought: &[Sought],
    ) -> Result<Vec<KneeResult>, SuiteError> {
        let parsed = objective.parse::<Objective>();
        let objective = &parsed.map_err(|error| SuiteError::Usage(error.to_string()))?;
        let plans = sought.iter().map(|one| one.measurement.plan(0));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let budget_s = budget.as_secs_f64();
        let prove_s = (budget_s * PROVE.0).min(PROVE.1);
        let searches = sought.iter().map(|Sought { from, first, to, .. }| {
            let usual = Settings::new(objective.share(), *from);
            let (first, to, budget_s) = (*first, to.min(usual.to), Some(budget_s));
            Search::new(Settings { first, to, step: STEP, budget_s, prove_s, ..usual })
        });
        let mut searches: Vec<_> = searches.collect();
        self.log(&format!("{label}: searching the knee, at most {budget} for each target"));
        let (host, control) = (&mut *self.host, self.control);
        in_turns(&mut searches, |index, planned, _| {
            let measured = host.knee_probe(&plans[index], objective, planned, control)?;
            Ok::<_, SuiteError>((!control.is_interrupted()).then_some(measured))
        })?;
        let mut knees = Vec::new();
        for ((one, plan), search) in sought.iter().zip(&plans).zip(&searches) {
            let target = redacted_path(&one.measurement.target.base);
            let hash = plan_hash(&serde_json::to_value(plan)?);
            knees.push(TargetKnee::new(search, None, &one.name, target, hash));
        }
        let report = KneeReport {
            format: FORMAT.to_owned(),
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started: self.options.started.clone(),
            profile: plans.first().map(|plan: &Plan| plan.name.clone()).unwrap_or_default(),
            objective: objective.to_string(),
            load: Load::RequestsPerSecond,
            interrupted: self.is_interrupted(),
            budget_s: Some(budget_s),
            knees,
        };
        // Every probe, as `plimsoll knee` has them.
        let file = format!("knees/{}.json", slug(label));
        self.write(&file, &serde_json::to_vec_pretty(&report)?)?;
        let results: Vec<_> = sought
            .iter()
            .zip(report.knees)
            .map(|(one, found)| KneeResult {
                label: one.measurement.label.clone(),
                objective: report.objective.clone(),
                budget_s,
                goodput: found.goodput,
                open: found.findings.iter().map(Finding::text).collect(),
                knee: found.knee,
                file: file.clone(),
            })
            .collect();
        for found in &results {
            self.log(&format!("{}: {}", found.label, found.cell()));
        }
        self.report.knees.extend(results.iter().cloned());
        Ok(results)
    }
}
