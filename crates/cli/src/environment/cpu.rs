//! The processors, read from `/proc` and `/sys`.

/// The model of the first processor in `/proc/cpuinfo`; missing on some architectures.
pub(super) fn model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The number of processors in a list like `0-3,8`.
pub(crate) fn count(list: &str) -> Option<u32> {
    list.split(',').try_fold(0_u32, |sum, range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        sum.checked_add(last.checked_sub(first)?.checked_add(1)?)
    })
}

/// The processors that this process may run on (`/proc/self/status`).
pub(super) fn affinity(status: &str) -> Option<String> {
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    Some(list.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_first_processor() {
        let text =
            "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.50GHz\nmodel name\t: other";
        assert_eq!(model(text).as_deref(), Some("Some CPU @ 2.50GHz"));
        assert_eq!(model("processor\t: 0"), None);
    }

    #[test]
    fn lists_of_processors_are_counted() {
        for (list, number) in [
            ("0", Some(1)),
            ("0-3,8", Some(5)),
            ("0-0", Some(1)),
            ("", None),
            ("3-1", None),
            ("a", None),
        ] {
            assert_eq!(count(list), number, "{list}");
        }
    }

    #[test]
    fn the_affinity_is_a_list() {
        let text = "Name:\tx\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\nMems_allowed:\t1";
        assert_eq!(affinity(text).as_deref(), Some("0-1"));
    }
}
