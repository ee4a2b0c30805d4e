//! Checks of this host for anything that would distort a measurement. Each check gives a finding
//! with a severity and a fix.

mod finding;
mod limits;
mod machine;
mod measured;

use plimsoll_metrics::Environment;

use crate::environment;
use crate::fd_limit::FdLimit;

pub(crate) use finding::{Finding, Severity};

/// Makes every check. Takes about half a second.
pub(crate) fn check_host(fd_limit: Option<FdLimit>) -> Vec<Finding> {
    let machine = environment::read(fd_limit);
    let mut findings = limits_of(&machine, fd_limit);
    findings.extend(machine_of(&machine));
    findings.extend([measured::timer(), measured::clock(&machine), measured::loopback()]);
    findings.push(machine::build(cfg!(debug_assertions)));
    findings
}

fn limits_of(machine: &Environment, fd_limit: Option<FdLimit>) -> Vec<Finding> {
    vec![
        limits::fd_limit(fd_limit),
        limits::ports(machine.port_range),
        limits::time_wait(environment::number("/proc/sys/net/ipv4/tcp_tw_reuse")),
        limits::backlog(environment::number("/proc/sys/net/core/somaxconn")),
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
