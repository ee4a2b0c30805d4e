//! Counters of the host's TCP and of its network interfaces.

use std::collections::BTreeMap;
use std::fs;

use plimsoll_metrics::{LinkLoad, NetworkLoad};

use super::kernel::counter;

/// Counters up to now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct NetworkReading {
    segments: u64,
    retransmitted: u64,
    needless: u64,
    timeouts: u64,
    listen_overflows: u64,
    listen_drops: u64,
    links: BTreeMap<String, Link>,
}

/// An interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Link {
    mbit_per_s: u64,
    received: u64,
    sent: u64,
}

impl NetworkReading {
    pub(super) fn read() -> Option<Self> {
        let snmp = fs::read_to_string("/proc/net/snmp").ok()?;
        let netstat = fs::read_to_string("/proc/net/netstat").unwrap_or_default();
        Some(Self { links: links(), ..Self::parse(&snmp, &netstat)? })
    }

    fn parse(snmp: &str, netstat: &str) -> Option<Self> {
        let more = |name| counter(netstat, "TcpExt:", name).unwrap_or_default();
        Some(Self {
            segments: counter(snmp, "Tcp:", "OutSegs")?,
            retransmitted: counter(snmp, "Tcp:", "RetransSegs")?,
            needless: more("TCPDSACKRecv"),
            timeouts: more("TCPTimeouts"),
            listen_overflows: more("ListenOverflows"),
            listen_drops: more("ListenDrops"),
            links: BTreeMap::new(),
        })
    }

    /// What happened since an earlier reading.
    pub(super) fn since(&self, before: &Self, wall_s: f64) -> NetworkLoad {
        let link = |(name, now): (&String, &Link)| {
            let then = before.links.get(name)?;
            let could = wall_s * now.mbit_per_s as f64 * 1e6;
            let share = |now: u64, then: u64| now.saturating_sub(then) as f64 * 8.0 / could;
            Some(LinkLoad {
                name: name.clone(),
                mbit_per_s: now.mbit_per_s,
                received: share(now.received, then.received),
                sent: share(now.sent, then.sent),
            })
        };
        let fuller = |link: &LinkLoad| link.received.max(link.sent);
        NetworkLoad {
            segments: self.segments.saturating_sub(before.segments),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            needless: self.needless.saturating_sub(before.needless),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            listen_overflows: self.listen_overflows.saturating_sub(before.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(before.listen_drops),
            link: { self.links.iter().filter_map(link) }
                .max_by(|one, other| fuller(one).total_cmp(&fuller(other))),
        }
    }
}

/// The interfaces of a device that states its speed. The loopback has no device, and the speed of
/// virtual ones (`veth`, bridges) says nothing.
fn links() -> BTreeMap<String, Link> {
    let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    interfaces
        .filter_map(|entry: fs::DirEntry| {
            let folder = entry.path();
            if !folder.join("device").exists() {
                return None;
            }
            let number =
                |name: &str| fs::read_to_string(folder.join(name)).ok()?.trim().parse::<u64>().ok();
            let mbit_per_s =
                number("speed").filter(|speed| (1..u64::from(u32::MAX)).contains(speed))?;
            let received = number("statistics/rx_bytes")?;
            let sent = number("statistics/tx_bytes")?;
            Some((entry.file_name().to_str()?.to_owned(), Link { mbit_per_s, received, sent }))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NETSTAT: &str = "TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPTimeouts TCPDSACKRecv\n\
        TcpExt: 0 4 6 11 5\nIpExt: InOctets\nIpExt: 9\n";

    fn snmp(sent: u64, again: u64) -> String {
        format!(
            "Ip: Forwarding\nIp: 1\nTcp: RtoMin InSegs OutSegs RetransSegs InErrs\nTcp: 200 981 {sent} {again} 0\n"
        )
    }

    #[test]
    fn counters_are_compared_and_links_measured_by_their_speed() {
        let link = |received, sent| Link { mbit_per_s: 1_000, received, sent };
        let mut before = NetworkReading::parse(&snmp(1_000, 3), NETSTAT).unwrap();
        let mut after = NetworkReading::parse(&snmp(51_000, 103), NETSTAT).unwrap();
        after.timeouts += 20;
        after.listen_overflows += 2;
        after.needless += 40;
        before.links.insert("eth0".to_owned(), link(0, 500));
        before.links.insert("eth1".to_owned(), link(0, 0));
        // In 2 s a gigabit carries 250 MB.
        after.links.insert("eth0".to_owned(), link(25_000_000, 200_000_500));
        after.links.insert("eth1".to_owned(), link(100_000_000, 0));
        let load = after.since(&before, 2.0);
        assert_eq!((load.segments, load.retransmitted, load.timeouts), (50_000, 100, 20));
        assert_eq!((load.listen_overflows, load.listen_drops, load.needless), (2, 0, 40));
        let link = load.link.unwrap();
        assert_eq!((link.name.as_str(), link.mbit_per_s), ("eth0", 1_000));
        assert!((link.sent - 0.8).abs() < 1e-9 && (link.received - 0.1).abs() < 1e-9);
    }

    #[test]
    fn a_kernel_without_extensions_counts_segments_all_the_same() {
        let reading = NetworkReading::parse(&snmp(7, 1), "").unwrap();
        assert_eq!((reading.segments, reading.listen_overflows), (7, 0));
        assert_eq!(NetworkReading::parse("", NETSTAT), None);
        assert!(NetworkReading::read().is_some());
    }
}
