//! Checks of this host for anything that would distort a measurement. Each check gives a finding
//! with a severity and a fix.

mod checks;
mod measured;

use crate::environment;
use crate::fd_limit::FdLimit;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Severity {
    /// No effect on measurements.
    Ok,
    /// May distort a measurement, or is unknown.
    Warn,
    /// Will distort a measurement, or prevent it.
    Bad,
}

impl Severity {
    /// The word at the start of the line.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
        }
    }
}

/// Result of a check: a severity and a value. `None` if the system does not report it.
type Seen = Option<(Severity, String)>;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) severity: Severity,
    /// The setting or property that was checked.
    pub(crate) subject: &'static str,
    /// Its value.
    pub(crate) value: String,
    /// The remedy; empty if none is needed.
    pub(crate) fix: &'static str,
}

impl Finding {
    /// A finding. An unknown value is a warning; a good value needs no fix.
    fn new(subject: &'static str, seen: Seen) -> Self {
        let unknown = "check it yourself: this kernel or container does not report it";
        let Some((severity, value)) = seen else {
            let value = "unknown".to_owned();
            return Self { severity: Severity::Warn, subject, value, fix: unknown };
        };
        let rows = include_str!("doctor/fixes.tsv").lines().filter_map(|row| row.split_once('\t'));
        let mut fixes = rows.filter(|(known, _)| severity > Severity::Ok && *known == subject);
        Self { severity, subject, value, fix: fixes.next().map_or("", |(_, fix)| fix) }
    }
}

/// Makes every check. Takes about half a second.
pub(crate) fn check_host(fd_limit: Option<FdLimit>) -> Vec<Finding> {
    let machine = environment::read(fd_limit);
    let number = environment::number;
    let seen = [
        ("open files", checks::fd_limit(fd_limit)),
        ("local ports", checks::ports(machine.port_range)),
        ("TIME_WAIT reuse", checks::time_wait(number("/proc/sys/net/ipv4/tcp_tw_reuse"))),
        ("accept backlog", checks::backlog(number("/proc/sys/net/core/somaxconn"))),
        ("kernel", machine.kernel.clone().map(|version| (Severity::Ok, version))),
        ("processors", checks::processors(&machine)),
        ("processor quota", Some(checks::quota(&machine))),
        ("frequency governor", Some(checks::governor(machine.cpu_governor.as_deref()))),
        ("load average", checks::load(&machine)),
        ("CPU steal", checks::steal(machine.steal_share)),
        ("memory available", checks::memory(environment::memory("MemAvailable"))),
        ("timer lateness", Some(measured::timer())),
        ("clock", Some(measured::clock(&machine))),
        ("loopback round trip", Some(measured::loopback())),
        ("build", Some(checks::build(cfg!(debug_assertions)))),
    ];
    seen.into_iter().map(|(subject, seen)| Finding::new(subject, seen)).collect()
}

/// The severity of a number that should be large.
fn at_least<T: PartialOrd + Copy>(value: T, good: T, acceptable: T) -> Severity {
    if value >= good {
        Severity::Ok
    } else if value >= acceptable {
        Severity::Warn
    } else {
        Severity::Bad
    }
}

/// The severity of a number that should be small.
fn at_most<T: PartialOrd + Copy>(value: T, good: T, acceptable: T) -> Severity {
    // The other way round, a number that should be large.
    at_least(std::cmp::Reverse(value), std::cmp::Reverse(good), std::cmp::Reverse(acceptable))
}
