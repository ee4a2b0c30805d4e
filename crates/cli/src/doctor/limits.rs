//! Limits of the kernel on connections.

use super::finding::{Finding, State, at_least};
use crate::fd_limit::FdLimit;

/// Every connection takes a descriptor.
pub(super) fn fd_limit(limit: Option<FdLimit>) -> Finding {
    const ABOUT: &str = "open files";
    let Some(FdLimit { before, now }) = limit else { return Finding::unknown(ABOUT) };
    let raised = if now > before { format!(", raised from {before}") } else { String::new() };
    let fix = "raise the hard limit: `ulimit -Hn 65536`, /etc/security/limits.conf, LimitNOFILE= or --ulimit nofile";
    Finding::new(at_least(now, 10_000, 1_024), ABOUT, format!("{now}{raised}"), fix)
}

/// Every connection to one address takes a local port, and keeps it for a minute after its end.
pub(super) fn ports(range: Option<(u16, u16)>) -> Finding {
    const ABOUT: &str = "local ports";
    let Some((first, last)) = range else { return Finding::unknown(ABOUT) };
    let count = u32::from(last.saturating_sub(first)) + 1;
    let fix = "sysctl -w net.ipv4.ip_local_port_range='1024 65535'";
    Finding::new(at_least(count, 28_000, 4_000), ABOUT, format!("{count} ({first}-{last})"), fix)
}

/// May a port that waits for its last segments be used again?
pub(super) fn time_wait(reuse: Option<u64>) -> Finding {
    const ABOUT: &str = "TIME_WAIT reuse";
    let fix = "sysctl -w net.ipv4.tcp_tw_reuse=1, if targets close connections often";
    match reuse {
        None => Finding::unknown(ABOUT),
        Some(1) => Finding::new(State::Ok, ABOUT, "on", fix),
        Some(2) => Finding::new(State::Ok, ABOUT, "on for loopback", fix),
        Some(_) => Finding::new(State::Warn, ABOUT, "off", fix),
    }
}

/// Connections that may wait for their acceptance: matters where the target runs on this host.
pub(super) fn backlog(connections: Option<u64>) -> Finding {
    const ABOUT: &str = "accept backlog";
    let Some(connections) = connections else { return Finding::unknown(ABOUT) };
    let fix = "sysctl -w net.core.somaxconn=4096, if the target runs on this host";
    Finding::new(at_least(connections, 1_024, 0), ABOUT, connections.to_string(), fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_have_three_states() {
        for (finding, state) in [
            (fd_limit(Some(FdLimit { before: 1_024, now: 65_536 })), State::Ok),
            (fd_limit(Some(FdLimit { before: 1_024, now: 4_096 })), State::Warn),
            (fd_limit(Some(FdLimit { before: 256, now: 256 })), State::Bad),
            (fd_limit(None), State::Warn),
            (ports(Some((32_768, 60_999))), State::Ok),
            (ports(Some((50_000, 60_000))), State::Warn),
            (ports(Some((60_000, 60_100))), State::Bad),
            (time_wait(Some(2)), State::Ok),
            (time_wait(Some(0)), State::Warn),
            (backlog(Some(4_096)), State::Ok),
            (backlog(Some(128)), State::Warn),
        ] {
            assert_eq!(finding.state, state, "{finding:?}");
            assert_eq!(finding.fix.is_empty(), state == State::Ok, "{finding:?}");
        }
    }

    #[test]
    fn a_raised_limit_says_so() {
        let finding = fd_limit(Some(FdLimit { before: 1_024, now: 65_536 }));
        assert_eq!(finding.seen, "65536, raised from 1024");
    }
}
