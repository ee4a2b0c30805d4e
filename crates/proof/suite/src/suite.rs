//! The suites.

mod baseline;
mod certificate;
mod columns;
mod layers;
mod policy;
mod quick;
mod tiers;

use std::path::Path;

use plimsoll_engine::{Control, Run};
use plimsoll_measure::Nanos;

use crate::bench::Bench;
use crate::error::SuiteError;
use crate::job::{Job, Length};
use crate::order::SuiteOptions;
use crate::regress;
use crate::report::Report;
use crate::subject::Subject;

/// A suite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suite {
    /// The cheap endpoints of a gateway, under few and many clients.
    Baseline,
    /// A layered gateway: every layer's cost, the full stack, cache, streams, log, stores.
    Layers,
    /// A policy gateway: rising rates, cold and warm, every policy decision checked.
    Policy,
    /// Two runs of one endpoint, moderate and extreme.
    Quick,
    /// Three sizes of chat, streamed and not, up to the knee; each feature as a delta.
    Tiers,
}

impl Suite {
    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Layers => "layers",
            Self::Policy => "policy",
            Self::Quick => "quick",
            Self::Tiers => "tiers",
        }
    }

    /// Carries it out. `tell` is told what goes on; `control` ends it early, and what was measured is reported.
    ///
    /// # Errors
    /// Where nothing could be measured at all. What keeps one cell from being measured is in the report.
    pub fn run(
        self,
        order: &SuiteOptions,
        control: &Control,
        tell: &mut dyn FnMut(&str),
    ) -> Result<Report, SuiteError> {
        // First: a wrong file must not come to light after minutes of load.
        let old = order.baseline.as_deref().map(|path| regress::read(path, self.name()));
        let old = old.transpose()?;
        let mut bench = Bench::new(order, control, tell);
        if let Some(subject) = bench.target() {
            check(&subject)?;
        }
        let mut report = match self {
            Self::Baseline => baseline::run(&mut bench),
            Self::Layers => layers::run(&mut bench),
            Self::Policy => policy::run(&mut bench),
            Self::Quick => quick::run(&mut bench),
            Self::Tiers => tiers::run(&mut bench),
        }?;
        forget_rows(&order.folder);
        if let Some(old) = &old {
            let (section, gates) = regress::compare(old, &report);
            report.sections.push(section);
            report.gates.extend(gates);
        }
        Ok(report)
    }
}

/// Removes the rows that gateways have logged: they were counted, and are gigabytes.
fn forget_rows(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    for file in files.map(|file| file.path()) {
        if file.extension().is_some_and(|extension| extension == "jsonl") {
            // What cannot be removed only takes room.
            let _ = std::fs::remove_file(&file);
        }
    }
}

/// Is there anybody at the user's target? One request, counted nowhere.
fn check(subject: &Subject) -> Result<(), SuiteError> {
    let short = Length::new(Nanos::ZERO, Nanos::from_secs(1));
    let plan = Job::get("probe", subject, "/health").clients(1, short).plan(0)?;
    let found = Run::prepare(plan)?.probe()?;
    let fatal = found.findings.into_iter().find(|finding| finding.fatal);
    fatal.map_or(Ok(()), |finding| {
        let (url, why) = (subject.base.clone(), finding.message);
        Err(SuiteError::Target { url, why })
    })
}

/// The length of a suite's measurements: the user's, or a second with `--quick`, or the suite's own.
fn length(order: &SuiteOptions, usual: u64) -> Length {
    let own = if order.quick { Nanos::from_millis(1_000) } else { Nanos::from_secs(usual) };
    let measured = order.duration.unwrap_or(own);
    let warmup = if order.quick { Nanos::from_millis(300) } else { Nanos::from_secs(2) };
    Length::new(warmup, measured)
}

/// Passes of each measurement, unless the user says otherwise.
const fn passes(order: &SuiteOptions, usual: u32, quick: u32) -> u32 {
    if order.quick { quick } else { usual }
}
