//! The boundary to the machine: child processes, runs of the engine, limits on open files.
//!
//! Suites only know this trait, so tests can simulate a machine.

use std::fs;

use plimsoll_engine::{Control, WatchedProcess};
use plimsoll_knee::{Load, Measured, Objective, Planned};
use plimsoll_measure::{Block, Sample};
use plimsoll_metrics::RunSummary;
use plimsoll_plan::Plan;
use plimsoll_runner::Runner;
use plimsoll_runner::facts::{self, After};
use plimsoll_runner::knee::Prober;
use plimsoll_versus::Facts;

use crate::child::{Child, ChildSpec};
use crate::error::SuiteError;

/// A comparison that has run.
pub(crate) struct Compared {
    /// Facts for the judge besides the blocks.
    pub(crate) facts: Facts,
    /// Its blocks.
    pub(crate) blocks: Vec<Block>,
    /// The run as any other.
    pub(crate) summary: RunSummary,
}

/// Services that a suite needs from its machine.
pub(crate) trait Host {
    /// Starts a gateway or a provider.
    fn start(&mut self, spec: &ChildSpec<'_>) -> Result<Child, SuiteError>;

    /// Carries a load out.
    fn run(
        &mut self,
        plan: Plan,
        watched: Vec<WatchedProcess>,
        control: &Control,
    ) -> Result<RunSummary, SuiteError>;

    /// Carries a load out on several targets.
    fn compare(
        &mut self,
        plan: Plan,
        watched: Vec<WatchedProcess>,
        control: &Control,
    ) -> Result<Compared, SuiteError>;

    /// Makes a probe of a search: the requests of a plan at a rate.
    fn knee_probe(
        &mut self,
        plan: &Plan,
        objective: &Objective,
        planned: Planned,
        control: &Control,
    ) -> Result<Measured, SuiteError>;

    /// Why no request of a plan reaches its target, or `None` if one does.
    fn reach(&mut self, plan: Plan) -> Result<Option<String>, SuiteError>;

    /// Carries a few requests out, and returns each.
    fn probe(&mut self, plan: Plan, control: &Control) -> Result<Vec<Sample>, SuiteError>;

    /// The number of files that a process may have open; of this process without an id. `None` if
    /// that is not known.
    fn open_files(&self, pid: Option<u32>) -> Option<u64>;
}

/// The machine that this process runs on.
pub(crate) struct Machine;

impl Host for Machine {
    fn start(&mut self, spec: &ChildSpec<'_>) -> Result<Child, SuiteError> {
        Child::start(spec)
    }

    fn run(
        &mut self,
        plan: Plan,
        watched: Vec<WatchedProcess>,
        control: &Control,
    ) -> Result<RunSummary, SuiteError> {
        let done = Runner::new(plan)?.watch(watched).run(control, &mut |_| {})?;
        let summary = done.summary(&[])?;
        Ok(summary)
    }

    fn compare(
        &mut self,
        plan: Plan,
        watched: Vec<WatchedProcess>,
        control: &Control,
    ) -> Result<Compared, SuiteError> {
        let mut runner = Runner::new(plan)?.watch(watched).keep_blocks();
        runner.probe()?;
        let run = runner.prepared();
        let versus = run.plan().versus.as_ref();
        let mut facts = versus
            .map(|versus| facts::before(run, versus, runner.probed(), &[]))
            .unwrap_or_default();
        let done = runner.run(control, &mut |_| {})?;
        let summary = done.summary(&[])?;
        let (taken_out, tracks) = (&*done.result.taken_out, &*done.result.tracks);
        facts::complete(&mut facts, &After { summary: &summary, taken_out, tracks, one_in: 1 });
        Ok(Compared { facts, blocks: done.blocks, summary })
    }

    fn knee_probe(
        &mut self,
        plan: &Plan,
        objective: &Objective,
        planned: Planned,
        control: &Control,
    ) -> Result<Measured, SuiteError> {
        let prober = Prober { plan, objective, load: Load::RequestsPerSecond, control };
        Ok(prober.probe(planned)?)
    }

    fn reach(&mut self, plan: Plan) -> Result<Option<String>, SuiteError> {
        let mut runner = Runner::new(plan)?;
        let findings = &runner.probe()?.findings;
        let fatal = findings.iter().find(|finding| finding.fatal);
        Ok(fatal.map(|finding| finding.message.clone()))
    }

    fn probe(&mut self, plan: Plan, control: &Control) -> Result<Vec<Sample>, SuiteError> {
        let mut samples = Runner::new(plan)?.keep_samples().run(control, &mut |_| {})?.samples;
        samples.sort_by_key(|sample| sample.timeline.intended);
        Ok(samples)
    }

    fn open_files(&self, pid: Option<u32>) -> Option<u64> {
        let pid = pid.map_or_else(|| "self".to_owned(), |pid| pid.to_string());
        soft_limit(&fs::read_to_string(format!("/proc/{pid}/limits")).ok()?)
    }
}

/// The soft limit on open files in `/proc/PID/limits` (proc(5)).
fn soft_limit(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    let soft = line.split_whitespace().next()?;
    if soft == "unlimited" { Some(u64::MAX) } else { soft.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_soft_limit_counts() {
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max processes             7                    8                    processes\n\
                      Max open files            1024                 1048576              files\n";
        assert_eq!(soft_limit(limits), Some(1_024));
        assert_eq!(soft_limit(&limits.replace("1024 ", "unlimited ")), Some(u64::MAX));
        assert_eq!(soft_limit("Max processes 7 8"), None);
        assert!(Machine.open_files(None).is_some_and(|files| files > 0));
    }
}
