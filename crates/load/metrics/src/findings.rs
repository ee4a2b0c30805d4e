//! The rules of a run: conditions over the evidence of its summary.
//!
//! Each family is a module of pure functions. Texts, fixes and levels are rows of
//! `crates/load/rules/rules.md`. Where two rules would describe the same cause, one excludes the
//! other here, so that no screen has both.

mod environment;
mod load;
mod outcomes;
mod shards;
mod statistics;
mod stream;
mod target;

pub use outcomes::words_of_failure;
use plimsoll_rules::{Finding, Level};
pub use stream::{REFUSED_USAGE, UNLIKE_TOTAL};
pub use target::half_failed;

use crate::results::Group;
use crate::summary::RunSummary;

/// A rule that silences others of the same cause.
struct Exclusion {
    /// The rule that speaks.
    code: u16,
    /// Only at this level, if any is given.
    level: Option<Level>,
    /// The rules that are silent.
    silent: &'static [u16],
}

const fn excludes(code: u16, level: Option<Level>, silent: &'static [u16]) -> Exclusion {
    Exclusion { code, level, silent }
}

/// In the order in which they are applied.
const EXCLUSIONS: [Exclusion; 11] = [
    excludes(109, None, &[101, 106, 108, 110]),
    excludes(103, None, &[101, 104]),
    excludes(201, None, &[112, 202, 203, 204, 205, 206, 207, 208, 209, 210, 211, 304]),
    excludes(201, Some(Level::Fail), &[102, 104, 212, 601, 602, 603]),
    excludes(104, None, &[209, 603]),
    excludes(209, None, &[212, 603]),
    excludes(102, Some(Level::Invalid), &[210, 211, 301]),
    excludes(303, None, &[302]),
    excludes(309, None, &[302]),
    excludes(307, None, &[306]),
    excludes(112, None, &[601, 603]),
];

/// Every rule that fires, in the order of the screen.
pub(crate) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let mut found = shards::findings(summary);
    found.extend(load::findings(summary));
    found.extend(target::findings(summary));
    found.extend(stream::findings(summary));
    found.extend(statistics::findings(summary));
    found.extend(environment::findings(summary));
    for Exclusion { code, level, silent } in EXCLUSIONS {
        let speakers: Vec<_> = found
            .iter()
            .filter(|finding: &&Finding| {
                finding.code == code && level.is_none_or(|level| finding.level == level)
            })
            .cloned()
            .collect();
        found.retain(|finding| {
            !silent.contains(&finding.code)
                // Figures that are the generator's alone stay invalid, whatever the target did.
                || (finding.code, finding.level) == (102, Level::Invalid)
                || !speakers.iter().any(|speaker: &Finding| {
                    speaker.targets.is_empty()
                        || finding.targets.is_empty()
                        || speaker.targets == finding.targets
                })
        });
    }
    let mut found = united(found);
    found.sort_by_key(Finding::rank);
    found
}

/// One finding for targets of which the same is true.
fn united(found: Vec<Finding>) -> Vec<Finding> {
    let mut united: Vec<Finding> = Vec::new();
    for finding in found {
        let same = united.iter_mut().find(|other| {
            (other.code, other.level, &other.values)
                == (finding.code, finding.level, &finding.values)
        });
        match same {
            Some(other) => other.targets.extend(finding.targets),
            None => united.push(finding),
        }
    }
    united
}

/// The groups that are judged apart: each target by its name, or the whole of a single one.
fn by_target(summary: &RunSummary) -> Vec<(Option<&str>, &Group)> {
    match summary.results.by_target.as_slice() {
        [] | [_] => vec![(None, &summary.results.total)],
        several => several.iter().map(|group| (group.target.as_deref(), group)).collect(),
    }
}

/// The stages outside of warm-up.
fn measured(summary: &RunSummary) -> impl Iterator<Item = &Group> {
    summary.results.by_stage.iter().filter(|stage| !stage.warmup)
}

fn stage_name(stage: &Group) -> String {
    stage.stage.clone().unwrap_or_default()
}

fn share_of(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}
