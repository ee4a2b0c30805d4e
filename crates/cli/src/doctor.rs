//! What on this host would bend a measurement: findings, each with its state and its mend.

mod finding;
mod limits;
mod machine;
mod measured;

use plimsoll_metrics::Environment;

use crate::descriptors::Descriptors;
use crate::environment;

pub(crate) use finding::{Finding, State};

/// Looks at everything. Takes about half a second.
pub(crate) fn examine(descriptors: Option<Descriptors>) -> Vec<Finding> {
    let machine = environment::read(descriptors);
    let mut findings = limits_of(&machine, descriptors);
    findings.extend(machine_of(&machine));
    findings.extend([measured::timer(), measured::clock(&machine), measured::loopback()]);
    findings.push(machine::build(cfg!(debug_assertions)));
    findings
}

fn limits_of(machine: &Environment, descriptors: Option<Descriptors>) -> Vec<Finding> {
    let number = |name| environment::number(&format!("/proc/sys/net/{name}"));
    vec![
        limits::descriptors(descriptors),
        limits::ports(machine.port_range),
        limits::time_wait(number("ipv4/tcp_tw_reuse")),
        limits::backlog(number("core/somaxconn")),
    ]
}

fn machine_of(machine: &Environment) -> Vec<Finding> {
    vec![
        machine::kernel(machine.kernel.as_deref()),
        machine::processors(machine),
        machine::quota(machine),
        machine::governor(machine.cpu_governor.as_deref()),
        machine::load(machine),
        machine::steal(machine.steal_share),
        machine::memory(environment::memory("MemAvailable")),
    ]
}
