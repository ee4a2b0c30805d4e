//! Checks of the kernel's limits on connections.

use super::finding::{Finding, Severity, at_least};
use crate::fd_limit::FdLimit;

/// The limit on open files: every connection takes a descriptor.
pub(super) fn fd_limit(limit: Option<FdLimit>) -> Finding {
    const SUBJECT: &str = "open files";
    let Some(FdLimit { before, now }) = limit else { return Finding::unknown(SUBJECT) };
    let raised = if now > before { format!(", raised from {before}") } else { String::new() };
    let fix = "raise the hard limit to 65536: `ulimit -Hn`, /etc/security/limits.conf, LimitNOFILE= (systemd) or --ulimit nofile (docker)";
    Finding::new(at_least(now, 10_000, 1_024), SUBJECT, format!("{now}{raised}"), fix)
}

/// The range of local ports. Every connection to one address takes a port, and keeps it for a
/// minute after its end.
pub(super) fn ports(range: Option<(u16, u16)>) -> Finding {
    const SUBJECT: &str = "local ports";
    let Some((first, last)) = range else { return Finding::unknown(SUBJECT) };
    let count = u32::from(last.saturating_sub(first)) + 1;
    let fix = "sysctl -w net.ipv4.ip_local_port_range='1024 65535'";
    Finding::new(at_least(count, 28_000, 4_000), SUBJECT, format!("{count} ({first}-{last})"), fix)
}

/// Whether a port in the state `TIME_WAIT` can be used again.
pub(super) fn time_wait(reuse: Option<u64>) -> Finding {
    const SUBJECT: &str = "TIME_WAIT reuse";
    let fix = "sysctl -w net.ipv4.tcp_tw_reuse=1, if targets close connections often";
    match reuse {
        None => Finding::unknown(SUBJECT),
        Some(1) => Finding::new(Severity::Ok, SUBJECT, "on", fix),
        Some(2) => Finding::new(Severity::Ok, SUBJECT, "on for loopback", fix),
        Some(_) => Finding::new(Severity::Warn, SUBJECT, "off", fix),
    }
}

/// The number of connections that may wait to be accepted. It matters if the target runs on this
/// host.
pub(super) fn backlog(connections: Option<u64>) -> Finding {
    const SUBJECT: &str = "accept backlog";
    let Some(connections) = connections else { return Finding::unknown(SUBJECT) };
    let fix = "sysctl -w net.core.somaxconn=4096, if the target runs on this host";
    Finding::new(
        at_least(connections, 1_024, 0),
        SUBJECT,
        format!("{connections} connections"),
        fix,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_three_severities() {
        for (finding, severity) in [
            (fd_limit(Some(FdLimit { before: 1_024, now: 65_536 })), Severity::Ok),
            (fd_limit(Some(FdLimit { before: 1_024, now: 4_096 })), Severity::Warn),
            (fd_limit(Some(FdLimit { before: 256, now: 256 })), Severity::Bad),
            (fd_limit(None), Severity::Warn),
            (ports(Some((32_768, 60_999))), Severity::Ok),
            (ports(Some((50_000, 60_000))), Severity::Warn),
            (ports(Some((60_000, 60_100))), Severity::Bad),
            (time_wait(Some(2)), Severity::Ok),
            (time_wait(Some(0)), Severity::Warn),
            (backlog(Some(4_096)), Severity::Ok),
            (backlog(Some(128)), Severity::Warn),
        ] {
            assert_eq!(finding.severity, severity, "{finding:?}");
            assert_eq!(finding.fix.is_empty(), severity == Severity::Ok, "{finding:?}");
        }
    }

    #[test]
    fn a_raised_limit_shows_the_old_one() {
        let finding = fd_limit(Some(FdLimit { before: 1_024, now: 65_536 }));
        assert_eq!(finding.value, "65536, raised from 1024");
    }
}
