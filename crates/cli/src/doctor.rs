//! Checks of this host for anything that would distort a measurement. Each check gives a finding
//! with a severity and a fix.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use anyhow::Result;
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos, named_enum};
use plimsoll_metrics::{Distribution, Environment};
use plimsoll_runner::time::sleep;

use crate::console;
use crate::environment::{self, FdLimit};
use crate::exit::Exit;
use crate::progress::{StatusOutput, Steps, Ui, UiFlag, short_time};

named_enum! {
    /// The severity of a finding.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum Severity {
        /// No effect on measurements.
        Ok => "ok",
        /// May distort a measurement, or is unknown.
        Warn => "warn",
        /// Will distort a measurement, or prevent it.
        Bad => "bad",
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
        ("open files", open_files(fd_limit)),
        ("local ports", ports(machine.port_range)),
        ("TIME_WAIT reuse", time_wait(number("/proc/sys/net/ipv4/tcp_tw_reuse"))),
        ("accept backlog", backlog(number("/proc/sys/net/core/somaxconn"))),
        ("kernel", machine.kernel.clone().map(|version| (Severity::Ok, version))),
        ("processors", processors(&machine)),
        ("processor quota", Some(quota(&machine))),
        ("frequency governor", Some(governor(machine.cpu_governor.as_deref()))),
        ("load average", load(&machine)),
        ("CPU steal", steal(machine.steal_share)),
        ("memory available", memory(environment::memory("MemAvailable"))),
        ("timer lateness", Some(timer())),
        ("clock", Some(clock(&machine))),
        ("loopback round trip", Some(loopback())),
        ("build", Some(build(cfg!(debug_assertions)))),
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

// Checks of the kernel's limits on connections, of the machine, and of its other load.

/// The limit on open files: every connection takes a descriptor.
fn open_files(limit: Option<FdLimit>) -> Seen {
    let FdLimit { before, now } = limit?;
    let raised = if now > before { format!(", raised from {before}") } else { String::new() };
    Some((at_least(now, 10_000, 1_024), format!("{now}{raised}")))
}

/// The range of local ports. Every connection to one address takes a port, and keeps it for a
/// minute after its end.
fn ports(range: Option<(u16, u16)>) -> Seen {
    let (first, last) = range?;
    let count = u32::from(last.saturating_sub(first)) + 1;
    Some((at_least(count, 28_000, 4_000), format!("{count} ({first}-{last})")))
}

/// Whether a port in the state `TIME_WAIT` can be used again.
fn time_wait(reuse: Option<u64>) -> Seen {
    let (severity, value) = match reuse? {
        1 => (Severity::Ok, "on"),
        2 => (Severity::Ok, "on for loopback"),
        _ => (Severity::Warn, "off"),
    };
    Some((severity, value.to_owned()))
}

/// The number of connections that may wait to be accepted. It matters if the target runs on this
/// host.
fn backlog(connections: Option<u64>) -> Seen {
    let connections = connections?;
    Some((at_least(connections, 1_024, 0), format!("{connections} connections")))
}

/// The number of processors that this process may use.
fn processors(machine: &Environment) -> Seen {
    let count = machine.cpu_count?;
    let model = machine.cpu_model.as_deref().unwrap_or("unknown model");
    let affinity = machine.cpu_affinity.as_deref().unwrap_or("unknown");
    let value = format!("{count} x {model}; this process may use {affinity}");
    Some((at_least(usable(machine), 2, 1), value))
}

fn usable(machine: &Environment) -> u32 {
    let allowed = machine.cpu_affinity.as_deref().and_then(environment::count_processors);
    allowed.or(machine.cpu_count).unwrap_or(1)
}

/// The CPU quota: a control group that has used it up is paused until the next period.
fn quota(machine: &Environment) -> (Severity, String) {
    let Some(quota) = machine.cpu_quota else { return (Severity::Ok, "none".to_owned()) };
    let severity = if quota >= f64::from(usable(machine)) {
        Severity::Ok
    } else {
        at_least(quota, f64::INFINITY, 1.0)
    };
    (severity, format!("{quota:.2} processors"))
}

/// The frequency governor: a processor that slows down or sleeps reacts late.
fn governor(governor: Option<&str>) -> (Severity, String) {
    let name = governor.unwrap_or("none, as in most virtual machines");
    let is_good = governor.is_none_or(|name| name == "performance");
    (if is_good { Severity::Ok } else { Severity::Warn }, name.to_owned())
}

/// The load of other programs over the last minute.
fn load(machine: &Environment) -> Seen {
    let ((minute, five, fifteen), count) = (machine.load_average?, machine.cpu_count?);
    let severity = if minute <= f64::from(count) / 2.0 { Severity::Ok } else { Severity::Warn };
    let value = format!("{minute} {five} {fifteen} (1, 5, 15 minutes) on {count} processors");
    Some((severity, value))
}

/// The CPU time that the hypervisor gives to other virtual machines.
fn steal(share: Option<f64>) -> Seen {
    let share = share?;
    Some((at_most(share, 0.01, 0.10), format!("{:.1} % of CPU time", share * 100.0)))
}

/// The memory that is free or can be freed.
fn memory(available: Option<u64>) -> Seen {
    let mib = available? >> 20;
    Some((at_least(mib, 1_024, 256), format!("{mib} MiB")))
}

/// Whether this is an optimised build.
fn build(debug: bool) -> (Severity, String) {
    let severity = if debug { Severity::Warn } else { Severity::Ok };
    (severity, env!("PLIMSOLL_BUILD_PROFILE").to_owned())
}

// `plimsoll doctor`: checks whether this host is fit to measure from.

pub(crate) const AFTER: &str = include_str!("command/doctor.txt").trim_ascii_end();

/// Prints the findings.
pub(crate) fn run_doctor() -> Result<Exit> {
    let status = StatusOutput::open(Ui::for_process(UiFlag::Auto, false));
    let steps = Steps::passing(&status, "checking this host");
    let findings = check_host(FdLimit::raise());
    drop(steps);
    let lines: Vec<_> = findings.iter().map(line).collect();
    console::print(&lines.concat())?;
    let worst = findings.iter().map(|finding| finding.severity).max();
    Ok(if worst == Some(Severity::Bad) { Exit::Invalid } else { Exit::Pass })
}

fn line(finding: &Finding) -> String {
    let Finding { severity, subject, value, fix } = finding;
    let fix = if fix.is_empty() { String::new() } else { format!("      {:20} fix: {fix}\n", "") };
    format!("{:4}  {subject:20} {value}\n{fix}", severity.name())
}

// Checks that measure: timer, clock and loopback.

const SLEEPS: u32 = 100;
const SLEEP: Nanos = Nanos::from_millis(1);
const CLOCK_READS: u32 = 10_000;
const ROUND_TRIPS: u32 = 200;
const TIMEOUT: Duration = Duration::from_secs(1);

/// How late a sleep of 1 ms ends, because of the kernel's timers and the scheduler.
fn timer() -> (Severity, String) {
    let clock = MonotonicClock::start();
    let mut lateness = Distribution::default();
    for _ in 0..SLEEPS {
        let due = clock.now() + SLEEP;
        sleep(SLEEP);
        lateness.record(clock.now().since(due));
    }
    judge_median(&lateness, [Nanos::from_micros(200), Nanos::from_millis(2)])
}

/// The time to read the clock. Some clock sources need a system call.
fn clock(machine: &Environment) -> (Severity, String) {
    let clock = MonotonicClock::start();
    for _ in 0..CLOCK_READS {
        std::hint::black_box(clock.now());
    }
    let cost = Nanos::new(clock.now().as_nanos() / u64::from(CLOCK_READS));
    let source = machine.clock_source.as_deref().unwrap_or("unknown");
    let severity = at_most(cost, Nanos::new(250), Nanos::from_micros(2));
    (severity, format!("{source}, {} per read", short_time(cost)))
}

/// The round-trip time of one byte over loopback.
fn loopback() -> (Severity, String) {
    match round_trips() {
        Ok(times) => judge_median(&times, [Nanos::from_micros(300), Nanos::from_millis(5)]),
        Err(error) => (Severity::Bad, error.to_string()),
    }
}

fn round_trips() -> io::Result<Distribution> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut client = TcpStream::connect_timeout(&listener.local_addr()?, TIMEOUT)?;
    let (mut server, _) = listener.accept()?;
    for end in [&client, &server] {
        end.set_nodelay(true)?;
        end.set_read_timeout(Some(TIMEOUT))?;
    }
    let (clock, mut times, mut byte) = (MonotonicClock::start(), Distribution::default(), [0]);
    for _ in 0..ROUND_TRIPS {
        let start = clock.now();
        client.write_all(&byte)?;
        server.read_exact(&mut byte)?;
        server.write_all(&byte)?;
        client.read_exact(&mut byte)?;
        times.record(clock.now().since(start));
    }
    Ok(times)
}

/// A finding judged by the median, because a single slow try is normal.
fn judge_median(times: &Distribution, [good, acceptable]: [Nanos; 2]) -> (Severity, String) {
    let median = times.nearest_rank(0.5).unwrap_or_default();
    let p99 = times.nearest_rank(0.99).unwrap_or_default();
    let value = format!("median {}, p99 {}", short_time(median), short_time(p99));
    (at_most(median, good, acceptable), value)
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
        for (seen, severity) in [
            (open_files(Some(FdLimit { before: 1_024, now: 65_536 })), Severity::Ok),
            (open_files(Some(FdLimit { before: 1_024, now: 4_096 })), Severity::Warn),
            (open_files(Some(FdLimit { before: 256, now: 256 })), Severity::Bad),
            (open_files(None), Severity::Warn),
            (ports(Some((32_768, 60_999))), Severity::Ok),
            (ports(Some((50_000, 60_000))), Severity::Warn),
            (ports(Some((60_000, 60_100))), Severity::Bad),
            (time_wait(Some(2)), Severity::Ok),
            (time_wait(Some(0)), Severity::Warn),
            (backlog(Some(4_096)), Severity::Ok),
            (backlog(Some(128)), Severity::Warn),
            (processors(&with(|_| {})), Severity::Ok),
            (processors(&pinned), Severity::Warn),
            (processors(&Environment::default()), Severity::Warn),
            (Some(quota(&with(|_| {}))), Severity::Ok),
            (Some(quota(&with(|m| m.cpu_quota = Some(4.0)))), Severity::Ok),
            (Some(quota(&with(|m| m.cpu_quota = Some(1.5)))), Severity::Warn),
            (Some(quota(&with(|m| m.cpu_quota = Some(0.5)))), Severity::Bad),
            (Some(governor(None)), Severity::Ok),
            (Some(governor(Some("performance"))), Severity::Ok),
            (Some(governor(Some("powersave"))), Severity::Warn),
            (load(&with(|_| {})), Severity::Ok),
            (load(&with(|m| m.load_average = Some((3.9, 0.0, 0.0)))), Severity::Warn),
            (steal(Some(0.0)), Severity::Ok),
            (steal(Some(0.05)), Severity::Warn),
            (steal(Some(0.2)), Severity::Bad),
            (memory(Some(8 << 30)), Severity::Ok),
            (memory(Some(512 << 20)), Severity::Warn),
            (memory(Some(64 << 20)), Severity::Bad),
            (Some(build(true)), Severity::Warn),
        ] {
            let finding = Finding::new("processors", seen);
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert_eq!(finding.fix.is_empty(), severity == Severity::Ok, "{finding:?}");
        }
    }

    #[test]
    fn a_raised_limit_shows_the_old_one() {
        let (_, value) = open_files(Some(FdLimit { before: 1_024, now: 65_536 })).unwrap();
        assert_eq!(value, "65536, raised from 1024");
    }

    #[test]
    fn every_check_that_can_warn_has_a_fix() {
        for finding in check_host(None) {
            let bad = Finding::new(finding.subject, Some((Severity::Bad, String::new())));
            assert_eq!(bad.fix.is_empty(), finding.subject == "kernel", "{bad:?}");
        }
    }
}

#[cfg(test)]
mod measured_tests {
    use super::*;

    #[test]
    fn the_median_decides_the_severity() {
        let judge = |micros: [u64; 3]| {
            let mut times = Distribution::default();
            for micros in micros {
                times.record(Nanos::from_micros(micros));
            }
            judge_median(&times, [Nanos::from_micros(100), Nanos::from_micros(1_000)]).0
        };
        assert_eq!(judge([10, 20, 900_000]), Severity::Ok);
        assert_eq!(judge([10, 500, 500]), Severity::Warn);
        assert_eq!(judge([2_000, 2_000, 2_000]), Severity::Bad);
    }

    #[test]
    fn loopback_works_where_tests_run() {
        assert_eq!(round_trips().unwrap().count(), u64::from(ROUND_TRIPS));
    }
}
