//! Counters of the host's TCP and of its network interfaces.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

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
        Some(Self {
            segments: counter(snmp, "Tcp:", "OutSegs")?,
            retransmitted: counter(snmp, "Tcp:", "RetransSegs")?,
            needless: extended_counter(netstat, "TCPDSACKRecv"),
            timeouts: extended_counter(netstat, "TCPTimeouts"),
            listen_overflows: extended_counter(netstat, "ListenOverflows"),
            listen_drops: extended_counter(netstat, "ListenDrops"),
            links: BTreeMap::new(),
        })
    }

    /// What happened since an earlier reading.
    pub(super) fn since(&self, before: &Self, wall_s: f64) -> NetworkLoad {
        let links = self.links.iter().filter_map(|(name, now)| {
            let then = before.links.get(name)?;
            let possible_bits = wall_s * now.mbit_per_s as f64 * 1e6;
            Some(LinkLoad {
                name: name.clone(),
                mbit_per_s: now.mbit_per_s,
                received: now.received.saturating_sub(then.received) as f64 * 8.0 / possible_bits,
                sent: now.sent.saturating_sub(then.sent) as f64 * 8.0 / possible_bits,
            })
        });
        NetworkLoad {
            segments: self.segments.saturating_sub(before.segments),
            retransmitted: self.retransmitted.saturating_sub(before.retransmitted),
            needless: self.needless.saturating_sub(before.needless),
            timeouts: self.timeouts.saturating_sub(before.timeouts),
            listen_overflows: self.listen_overflows.saturating_sub(before.listen_overflows),
            listen_drops: self.listen_drops.saturating_sub(before.listen_drops),
            link: links.max_by(|one, other| {
                one.received.max(one.sent).total_cmp(&other.received.max(other.sent))
            }),
        }
    }
}

/// The interfaces of a device that states its speed. The loopback has no device, and the speed of
/// virtual ones (`veth`, bridges) says nothing.
fn links() -> BTreeMap<String, Link> {
    let interfaces = fs::read_dir("/sys/class/net").into_iter().flatten().flatten();
    interfaces
        .filter_map(|entry| {
            Some((entry.file_name().to_str()?.to_owned(), Link::read(&entry.path())?))
        })
        .collect()
}

impl Link {
    /// `None` for what has no device, and for a device without a speed.
    fn read(folder: &Path) -> Option<Self> {
        if !folder.join("device").exists() {
            return None;
        }
        let mbit_per_s = read_number(&folder.join("speed"))
            .filter(|speed| (1..u64::from(u32::MAX)).contains(speed))?;
        let received = read_number(&folder.join("statistics/rx_bytes"))?;
        let sent = read_number(&folder.join("statistics/tx_bytes"))?;
        Some(Self { mbit_per_s, received, sent })
    }
}

fn read_number(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.trim().parse().ok()
}

/// A counter that not every kernel has.
fn extended_counter(netstat: &str, name: &str) -> u64 {
    counter(netstat, "TcpExt:", name).unwrap_or_default()
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
