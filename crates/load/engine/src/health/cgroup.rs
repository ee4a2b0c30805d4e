//! Control groups: CPU quotas and pressure, and which processes are one container.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_measure::Nanos;
use procfs::{CpuPressure, FromRead as _, ProcessCGroups};

use super::kernel::process;

/// Where both versions of control groups are mounted.
const MOUNT: &str = "/sys/fs/cgroup";

/// Hexadecimal digits in a row that the name of a container's group has, at least: the ids of
/// Docker, containerd, CRI-O and Podman have 64.
const ID_DIGITS: usize = 32;

/// Effect of a group's quota so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct QuotaReading {
    /// CPUs that it allows.
    pub(super) cpus: f64,
    pub(super) periods: u64,
    pub(super) throttled_periods: u64,
    pub(super) throttled: Nanos,
}

/// The control groups of a process for CPU time: its own and those above it, the own one first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CpuGroups(Vec<PathBuf>);

impl CpuGroups {
    pub(super) fn read(pid: u32) -> Self {
        let (mount, path) = place_of(pid).unwrap_or_default();
        let mut folders = folders(&mount, &path);
        folders.retain(|folder| folder.is_dir());
        Self(folders)
    }

    /// Those of this process.
    pub(super) fn own() -> Self {
        Self::read(std::process::id())
    }

    /// The narrowest quota, in CPUs, and its folder.
    pub(super) fn narrowest(&self) -> Option<(f64, &Path)> {
        let quotas = self.0.iter().filter_map(|folder| Some((quota(folder)?, folder.as_path())));
        quotas.min_by(|(one, _), (other, _)| one.total_cmp(other))
    }

    /// Time for which at least one task of the group waited for a CPU.
    pub(super) fn pressure(&self) -> Option<Nanos> {
        let pressure = CpuPressure::from_file(self.0.first()?.join("cpu.pressure")).ok()?;
        Some(Nanos::from_micros(pressure.some.total))
    }
}

/// The CPUs that the quotas of this process's control groups allow it; `None` without any.
pub fn cpu_quota() -> Option<f64> {
    CpuGroups::own().narrowest().map(|(cpus, _)| cpus)
}

/// Time for which the quota of its control group held this process up; `None` without a quota. In a
/// container the group's own folder is often not visible, and one above it is the group.
pub(super) fn throttled() -> Option<Nanos> {
    let mut stats = CpuGroups::own().0.into_iter().map(|folder| folder.join("cpu.stat"));
    throttled_in(&stats.find_map(|stat| fs::read_to_string(stat).ok())?)
}

/// The quota of a group and its effect so far; `None` if the group has no quota.
pub(super) fn read_quota(folder: &Path) -> Option<QuotaReading> {
    let cpus = quota(folder)?;
    let stat = fs::read_to_string(folder.join("cpu.stat")).ok()?;
    quota_use_in(cpus, &stat)
}

fn quota(folder: &Path) -> Option<f64> {
    if let Ok(max) = fs::read_to_string(folder.join("cpu.max")) {
        return quota_in(&max);
    }
    let quota = fs::read_to_string(folder.join("cpu.cfs_quota_us")).ok()?;
    let period = fs::read_to_string(folder.join("cpu.cfs_period_us")).ok()?;
    quota_in(&format!("{quota} {period}"))
}

/// Quota and period in microseconds; `max` or -1 for none.
fn quota_in(text: &str) -> Option<f64> {
    let mut values = text.split_whitespace().map(str::parse::<f64>);
    let (quota, period) = (values.next()?.ok()?, values.next()?.ok()?);
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

fn quota_use_in(cpus: f64, cpu_stat: &str) -> Option<QuotaReading> {
    Some(QuotaReading {
        cpus,
        periods: value_in(cpu_stat, "nr_periods")?,
        throttled_periods: value_in(cpu_stat, "nr_throttled")?,
        throttled: throttled_in(cpu_stat)?,
    })
}

/// Microseconds in version 2 of control groups, nanoseconds in version 1.
fn throttled_in(cpu_stat: &str) -> Option<Nanos> {
    let micros = value_in(cpu_stat, "throttled_usec").map(Nanos::from_micros);
    micros.or_else(|| value_in(cpu_stat, "throttled_time").map(Nanos::new))
}

fn value_in(cpu_stat: &str, name: &str) -> Option<u64> {
    let mut lines = cpu_stat.lines().filter_map(|line| line.split_once(' '));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

/// The [`place`] of a process.
fn place_of(pid: u32) -> Option<(String, String)> {
    place(&process(pid)?.cgroups().ok()?)
}

/// Where the CPU controller is mounted, and the path of the process's group in it. Version 1 counts
/// where it has the controller.
fn place(groups: &ProcessCGroups) -> Option<(String, String)> {
    let first = groups.0.iter().find(|group| group.controllers.iter().any(|name| name == "cpu"));
    let mount = first.map(|group| format!("{MOUNT}/{}", group.controllers.join(",")));
    let second = groups.0.iter().find(|group| group.hierarchy == 0);
    let path = first.or(second)?.pathname.clone();
    Some((mount.unwrap_or_else(|| MOUNT.to_owned()), path))
}

/// The group's folder and those above it, up to the mount.
fn folders(mount: &str, path: &str) -> Vec<PathBuf> {
    let inner = path.trim_matches('/');
    // A group outside this container's view.
    let inner = if inner.split('/').any(|part| part == "..") { "" } else { inner };
    let full = match inner {
        "" => PathBuf::from(mount),
        inner => Path::new(mount).join(inner),
    };
    full.ancestors().take_while(|folder| folder.starts_with(mount)).map(Path::to_owned).collect()
}

/// The processes of the container that a process runs in; empty where it runs in none, or in the
/// same one as Plimsoll.
pub(super) fn container_of(pid: u32) -> Vec<u32> {
    let theirs = place_of(pid).filter(|(_, path)| is_container(path));
    let theirs = theirs.filter(|theirs| place_of(std::process::id()).as_ref() != Some(theirs));
    let Some((mount, path)) = theirs else { return Vec::new() };
    let procs = Path::new(&mount).join(path.trim_matches('/')).join("cgroup.procs");
    let procs = fs::read_to_string(procs).unwrap_or_default();
    procs.lines().filter_map(|line| line.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// Whether a group belongs to a container: its last part has a container's id.
fn is_container(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    let digits = last.split(|c: char| !c.is_ascii_hexdigit());
    digits.map(str::len).max().unwrap_or_default() >= ID_DIGITS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_files_are_parsed_as_their_documentation_says() {
        for (text, cpus) in [
            ("50000 100000\n", Some(0.5)),
            ("max 100000\n", None),
            ("250000\n 100000\n", Some(2.5)),
            ("150000 100000", Some(1.5)),
            ("-1\n 100000\n", None),
            ("1 0", None),
            ("", None),
        ] {
            assert_eq!(quota_in(text), cpus, "{text}");
        }
        let second =
            "usage_usec 5\nnr_periods 40\nnr_throttled 30\nthrottled_usec 1500\nnr_bursts 0\n";
        let reading = quota_use_in(0.5, second).unwrap();
        assert_eq!((reading.periods, reading.throttled_periods), (40, 30));
        assert_eq!(reading.throttled, Nanos::from_micros(1_500));
        let first = "nr_periods 9\nnr_throttled 2\nthrottled_time 7000\n";
        assert_eq!(quota_use_in(0.5, first).unwrap().throttled, Nanos::new(7_000));
        assert_eq!(quota_use_in(0.5, "usage_usec 5\n"), None);
        assert_eq!(throttled_in("nr_throttled 2\nthrottled_usec 1500\n"), Some(reading.throttled));
        assert_eq!(throttled_in("usage_usec 5\n"), None);
    }

    #[test]
    fn a_group_is_looked_for_with_those_above_it() {
        let groups = |text: &str| ProcessCGroups::from_read(text.as_bytes()).unwrap();
        let of_text = |text| place(&groups(text)).unwrap();
        let paths = |text| {
            let (mount, path) = of_text(text);
            let folders = folders(&mount, &path);
            folders.iter().map(|folder| folder.display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(
            paths("0::/a/b\n"),
            ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup"]
        );
        assert_eq!(
            paths("5:cpuset:/\n3:cpu,cpuacct:/box\n0::/\n"),
            ["/sys/fs/cgroup/cpu,cpuacct/box", "/sys/fs/cgroup/cpu,cpuacct"]
        );
        assert_eq!(paths("0::/../other\n"), ["/sys/fs/cgroup"]);
        assert_eq!(place(&groups("")), None);
    }

    #[test]
    fn a_container_is_told_by_the_id_in_its_groups_name() {
        let id = "3f1c".repeat(16);
        for (path, container) in [
            (format!("/system.slice/docker-{id}.scope"), true),
            (format!("/docker/{id}"), true),
            (format!("/kubepods.slice/kubepods-pod1.slice/cri-containerd-{id}.scope"), true),
            ("/user.slice/user-1000.slice/session-3.scope".to_owned(), false),
            (format!("/docker/{id}/init"), false),
            ("/".to_owned(), false),
        ] {
            assert_eq!(is_container(&path), container, "{path}");
        }
        assert!(container_of(std::process::id()).is_empty());
    }

    /// A group of files as the kernel shows them.
    #[test]
    fn the_narrowest_quota_of_all_groups_above_counts() {
        let parent = std::env::temp_dir().join(format!("plimsoll-cgroup-{}", std::process::id()));
        let inner = parent.join("inner");
        fs::create_dir_all(&inner).unwrap();
        fs::write(inner.join("cpu.max"), "200000 100000\n").unwrap();
        fs::write(parent.join("cpu.max"), "30000 100000\n").unwrap();
        fs::write(parent.join("cpu.stat"), "nr_periods 7\nnr_throttled 5\nthrottled_usec 9\n")
            .unwrap();
        let groups = CpuGroups(vec![inner, parent.clone()]);
        assert_eq!(groups.narrowest(), Some((0.3, parent.as_path())));
        let reading = read_quota(&parent).unwrap();
        assert!((reading.cpus - 0.3).abs() < 1e-12 && reading.throttled_periods == 5);
        fs::remove_dir_all(&parent).unwrap();
    }
}
