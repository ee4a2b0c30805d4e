//! The CPU quota of this process's control group.

use std::path::Path;

use super::file;

const ROOT: &str = "/sys/fs/cgroup";

/// The smallest quota between the root and this process's group, in processors; `None` without any.
pub(super) fn quota() -> Option<f64> {
    let groups = file("/proc/self/cgroup")?;
    // Inside a container the path may be that of the host. Its files are missing then, but those of
    // the root are there.
    let ancestors = group(&groups).map(|group| Path::new(group).ancestors()).into_iter().flatten();
    let unified = ancestors.filter_map(|path| {
        let path = path.strip_prefix("/").unwrap_or(path);
        unified(&file(Path::new(ROOT).join(path).join("cpu.max").to_str()?)?)
    });
    unified.chain(legacy()).reduce(f64::min)
}

/// The path of the group in the unified hierarchy (cgroups(7)).
fn group(groups: &str) -> Option<&str> {
    groups.lines().find_map(|line| line.strip_prefix("0::"))
}

/// `cpu.max` of version 2: quota and period in microseconds, or `max`.
fn unified(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    ratio(quota.parse().ok()?, period.parse().ok()?)
}

/// The two files of version 1; a quota of -1 means none.
fn legacy() -> Option<f64> {
    let read = |name| file(&format!("{ROOT}/cpu/cpu.cfs_{name}_us"))?.parse().ok();
    ratio(read("quota")?, read("period")?)
}

fn ratio(quota: f64, period: f64) -> Option<f64> {
    (quota > 0.0 && period > 0.0).then(|| quota / period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quota_is_a_number_of_processors() {
        for (text, processors) in [
            ("max 100000", None),
            ("150000 100000", Some(1.5)),
            ("50000 100000", Some(0.5)),
            ("", None),
            ("-1 100000", None),
            ("1 0", None),
        ] {
            assert_eq!(unified(text), processors, "{text}");
        }
    }

    #[test]
    fn the_group_is_that_of_the_unified_hierarchy() {
        assert_eq!(group("12:cpu:/a\n0::/user.slice/b\n"), Some("/user.slice/b"));
        assert_eq!(group("12:cpu:/a\n"), None);
    }
}
