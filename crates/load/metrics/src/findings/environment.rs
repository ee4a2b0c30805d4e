//! 7xx: the machine and the program.

use plimsoll_rules::Finding;
use plimsoll_rules::number::percent;

use crate::stage_resources::StageResources;
use crate::summary::RunSummary;

/// The share of the CPUs that other programs may use.
const OTHERS: f64 = 0.25;
/// The CPUs are full beyond this share.
const FULL: f64 = 0.95;
/// The share of CPU time that a hypervisor may withhold.
const STOLEN: f64 = 0.1;
/// The share of the time for which a quota may stop the process.
const THROTTLED: f64 = 0.01;

pub(super) fn findings(summary: &RunSummary) -> Vec<Finding> {
    let metadata = &summary.metadata;
    let mut found: Vec<_> = busy(summary).into_iter().collect();
    let build = metadata.environment.versions.get("build");
    let is_debug = build.is_some_and(|build| build == "debug");
    found.extend(is_debug.then(|| Finding::new(702)));
    let has_tls = metadata.targets.iter().any(|target| target.url.starts_with("https"));
    found.extend((metadata.insecure && has_tls).then(|| Finding::new(703)));
    found
}

fn busy(summary: &RunSummary) -> Option<Finding> {
    let others = summary.resources.iter().filter_map(others).fold(0.0, f64::max);
    let hosts = summary.resources.iter().filter_map(|stage| stage.host.as_ref());
    let steal = summary.health.steal_share.unwrap_or_default();
    let stolen = hosts.map(|host| host.stolen).fold(steal, f64::max);
    let throttled = summary.health.throttled_share.unwrap_or_default();
    let (others, stolen) = (named(others, OTHERS), named(stolen, STOLEN));
    let throttled = named(throttled, THROTTLED);
    (others.is_some() || stolen.is_some() || throttled.is_some()).then(|| {
        Finding::new(701)
            .with_some("others", others)
            .with_some("stolen", stolen)
            .with_some("throttled", throttled)
    })
}

fn named(share: f64, least: f64) -> Option<String> {
    (share > least).then(|| percent(share))
}

/// The share of full CPUs that none of the known processes used.
fn others(stage: &StageResources) -> Option<f64> {
    let host = stage.host.as_ref().filter(|host| host.busy > FULL)?;
    let known: f64 = stage.processes.iter().map(|process| process.cores).sum();
    Some((host.busy - known / f64::from(host.cpus.max(1))).max(0.0))
}
