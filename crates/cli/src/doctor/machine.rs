//! Checks of the machine and of its other load.

use plimsoll_metrics::Environment;

use super::finding::{Finding, Severity, at_least, at_most};

/// The version of the kernel; never a problem.
pub(super) fn kernel(version: Option<&str>) -> Finding {
    const SUBJECT: &str = "kernel";
    version.map_or_else(
        || Finding::unknown(SUBJECT),
        |version| Finding::new(Severity::Ok, SUBJECT, version, ""),
    )
}

/// The number of processors that this process may use.
pub(super) fn processors(machine: &Environment) -> Finding {
    const SUBJECT: &str = "processors";
    let Some(count) = machine.cpu_count else { return Finding::unknown(SUBJECT) };
    let model = machine.cpu_model.as_deref().unwrap_or("unknown model");
    let affinity = machine.cpu_affinity.as_deref().unwrap_or("unknown");
    let value = format!("{count} x {model}; this process may use {affinity}");
    let fix = "load, kernel and other programs share one processor; allow a second one";
    Finding::new(at_least(usable(machine), 2, 1), SUBJECT, value, fix)
}

fn usable(machine: &Environment) -> u32 {
    let allowed = machine.cpu_affinity.as_deref().and_then(crate::environment::processor_count);
    allowed.or(machine.cpu_count).unwrap_or(1)
}

/// The CPU quota: a control group that has used it up is paused until the next period.
pub(super) fn quota(machine: &Environment) -> Finding {
    const SUBJECT: &str = "processor quota";
    let Some(quota) = machine.cpu_quota else {
        return Finding::new(Severity::Ok, SUBJECT, "none", "");
    };
    let severity = if quota >= f64::from(usable(machine)) {
        Severity::Ok
    } else {
        at_least(quota, f64::INFINITY, 1.0)
    };
    let fix = "pauses show up as latency; assign whole processors (cpuset) instead of a quota";
    Finding::new(severity, SUBJECT, format!("{quota:.2} processors"), fix)
}

/// The frequency governor: a processor that slows down or sleeps reacts late.
pub(super) fn governor(governor: Option<&str>) -> Finding {
    const SUBJECT: &str = "frequency governor";
    let fix = "cpupower frequency-set -g performance";
    match governor {
        None => Finding::new(Severity::Ok, SUBJECT, "none, as in most virtual machines", fix),
        Some("performance") => Finding::new(Severity::Ok, SUBJECT, "performance", fix),
        Some(other) => Finding::new(Severity::Warn, SUBJECT, other, fix),
    }
}

/// The load of other programs over the last minute.
pub(super) fn load(machine: &Environment) -> Finding {
    const SUBJECT: &str = "load average";
    let (Some((minute, five, fifteen)), Some(count)) = (machine.load_average, machine.cpu_count)
    else {
        return Finding::unknown(SUBJECT);
    };
    let severity = if minute <= f64::from(count) / 2.0 { Severity::Ok } else { Severity::Warn };
    let value = format!("{minute} {five} {fifteen} (1, 5, 15 minutes) on {count} processors");
    let fix = "other programs use the processors: wait until they end, or stop them";
    Finding::new(severity, SUBJECT, value, fix)
}

/// The CPU time that the hypervisor gives to other virtual machines.
pub(super) fn steal(share: Option<f64>) -> Finding {
    const SUBJECT: &str = "CPU steal";
    let Some(share) = share else { return Finding::unknown(SUBJECT) };
    let fix = "other virtual machines take CPU time: use another host, or dedicated processors";
    let value = format!("{:.1} % of CPU time", share * 100.0);
    Finding::new(at_most(share, 0.01, 0.10), SUBJECT, value, fix)
}

/// The memory that is free or can be freed.
pub(super) fn memory(available: Option<u64>) -> Finding {
    const SUBJECT: &str = "memory available";
    let Some(bytes) = available else { return Finding::unknown(SUBJECT) };
    let mib = bytes >> 20;
    let fix = "free at least 1024 MiB: swapping shows up as latency";
    Finding::new(at_least(mib, 1_024, 256), SUBJECT, format!("{mib} MiB"), fix)
}

/// Whether this is an optimised build.
pub(super) fn build(debug: bool) -> Finding {
    const SUBJECT: &str = "build";
    let severity = if debug { Severity::Warn } else { Severity::Ok };
    let fix = "`cargo build --release`: a debug build is many times slower";
    Finding::new(severity, SUBJECT, env!("PLIMSOLL_BUILD_PROFILE"), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(change: impl FnOnce(&mut Environment)) -> Environment {
        let mut machine = Environment {
            cpu_count: Some(4),
            cpu_affinity: Some("0-3".to_owned()),
            load_average: Some((0.5, 0.5, 0.5)),
            ..Environment::default()
        };
        change(&mut machine);
        machine
    }

    #[test]
    fn machines_have_three_severities() {
        let pinned = with(|m| m.cpu_affinity = Some("2".to_owned()));
        for (finding, severity) in [
            (processors(&with(|_| {})), Severity::Ok),
            (processors(&pinned), Severity::Warn),
            (processors(&Environment::default()), Severity::Warn),
            (quota(&with(|_| {})), Severity::Ok),
            (quota(&with(|m| m.cpu_quota = Some(4.0))), Severity::Ok),
            (quota(&with(|m| m.cpu_quota = Some(1.5))), Severity::Warn),
            (quota(&with(|m| m.cpu_quota = Some(0.5))), Severity::Bad),
            (governor(None), Severity::Ok),
            (governor(Some("performance")), Severity::Ok),
            (governor(Some("powersave")), Severity::Warn),
            (load(&with(|_| {})), Severity::Ok),
            (load(&with(|m| m.load_average = Some((3.9, 0.0, 0.0)))), Severity::Warn),
            (steal(Some(0.0)), Severity::Ok),
            (steal(Some(0.05)), Severity::Warn),
            (steal(Some(0.2)), Severity::Bad),
            (memory(Some(8 << 30)), Severity::Ok),
            (memory(Some(512 << 20)), Severity::Warn),
            (memory(Some(64 << 20)), Severity::Bad),
            (build(true), Severity::Warn),
        ] {
            assert_eq!(finding.severity, severity, "{finding:?}");
        }
    }
}
