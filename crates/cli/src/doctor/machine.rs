//! The machine and what else it does.

use plimsoll_metrics::Environment;

use super::finding::{Finding, State, at_least, at_most};

pub(super) fn kernel(version: Option<&str>) -> Finding {
    const ABOUT: &str = "kernel";
    version.map_or_else(
        || Finding::unknown(ABOUT),
        |version| Finding::new(State::Ok, ABOUT, version, ""),
    )
}

/// The model, and how many of the machine's processors this process may use.
pub(super) fn processors(machine: &Environment) -> Finding {
    const ABOUT: &str = "processors";
    let Some(count) = machine.cpu_count else { return Finding::unknown(ABOUT) };
    let model = machine.cpu_model.as_deref().unwrap_or("unknown model");
    let affinity = machine.cpu_affinity.as_deref().unwrap_or("unknown");
    let seen = format!("{count} x {model}, allowed: {affinity}");
    let fix = "one processor must serve the load, the kernel and all else; give it a second one";
    Finding::new(at_least(usable(machine), 2, 1), ABOUT, seen, fix)
}

fn usable(machine: &Environment) -> u32 {
    let allowed = machine.cpu_affinity.as_deref().and_then(crate::environment::processors);
    allowed.or(machine.cpu_count).unwrap_or(1)
}

/// A group that has used up its quota stands still until the next period.
pub(super) fn quota(machine: &Environment) -> Finding {
    const ABOUT: &str = "processor quota";
    let Some(quota) = machine.cpu_quota else {
        return Finding::new(State::Ok, ABOUT, "none", "");
    };
    let state = if quota >= f64::from(usable(machine)) {
        State::Ok
    } else {
        at_least(quota, f64::INFINITY, 1.0)
    };
    let fix = "throttling shows as latency: pin to whole processors (cpuset) in place of a quota";
    Finding::new(state, ABOUT, format!("{quota:.2} processors"), fix)
}

/// A processor that sleeps or slows down answers late.
pub(super) fn governor(governor: Option<&str>) -> Finding {
    const ABOUT: &str = "frequency governor";
    let fix = "cpupower frequency-set -g performance";
    match governor {
        None => Finding::new(State::Ok, ABOUT, "not in this system's hands", fix),
        Some("performance") => Finding::new(State::Ok, ABOUT, "performance", fix),
        Some(other) => Finding::new(State::Warn, ABOUT, other, fix),
    }
}

/// Work of others, over the last minute.
pub(super) fn load(machine: &Environment) -> Finding {
    const ABOUT: &str = "load average";
    let (Some((minute, five, fifteen)), Some(count)) = (machine.load_average, machine.cpu_count)
    else {
        return Finding::unknown(ABOUT);
    };
    let state = if minute <= f64::from(count) / 2.0 { State::Ok } else { State::Warn };
    let seen = format!("{minute} {five} {fifteen} on {count} processors");
    Finding::new(
        state,
        ABOUT,
        seen,
        "other programs want the processors: wait for them, or stop them",
    )
}

/// Work of others, on the same physical machine.
pub(super) fn steal(share: Option<f64>) -> Finding {
    const ABOUT: &str = "steal";
    let Some(share) = share else { return Finding::unknown(ABOUT) };
    let fix =
        "the hypervisor gives processor time to others: use another host, or dedicated processors";
    Finding::new(at_most(share, 0.01, 0.10), ABOUT, format!("{:.1} %", share * 100.0), fix)
}

pub(super) fn memory(available: Option<u64>) -> Finding {
    const ABOUT: &str = "memory available";
    let Some(bytes) = available else { return Finding::unknown(ABOUT) };
    let seen = format!("{} MiB", bytes >> 20);
    Finding::new(
        at_least(bytes >> 20, 1_024, 256),
        ABOUT,
        seen,
        "free some: swapping shows as latency",
    )
}

pub(super) fn build(debug: bool) -> Finding {
    const ABOUT: &str = "build";
    let state = if debug { State::Warn } else { State::Ok };
    let seen = env!("PLIMSOLL_BUILD_PROFILE");
    Finding::new(state, ABOUT, seen, "cargo build --release: a debug build is many times slower")
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
    fn a_machine_has_three_states() {
        let pinned = with(|m| m.cpu_affinity = Some("2".to_owned()));
        for (finding, state) in [
            (processors(&with(|_| {})), State::Ok),
            (processors(&pinned), State::Warn),
            (processors(&Environment::default()), State::Warn),
            (quota(&with(|_| {})), State::Ok),
            (quota(&with(|m| m.cpu_quota = Some(4.0))), State::Ok),
            (quota(&with(|m| m.cpu_quota = Some(1.5))), State::Warn),
            (quota(&with(|m| m.cpu_quota = Some(0.5))), State::Bad),
            (governor(None), State::Ok),
            (governor(Some("performance")), State::Ok),
            (governor(Some("powersave")), State::Warn),
            (load(&with(|_| {})), State::Ok),
            (load(&with(|m| m.load_average = Some((3.9, 0.0, 0.0)))), State::Warn),
            (steal(Some(0.0)), State::Ok),
            (steal(Some(0.05)), State::Warn),
            (steal(Some(0.2)), State::Bad),
            (memory(Some(8 << 30)), State::Ok),
            (memory(Some(512 << 20)), State::Warn),
            (memory(Some(64 << 20)), State::Bad),
            (build(true), State::Warn),
        ] {
            assert_eq!(finding.state, state, "{finding:?}");
        }
    }
}
