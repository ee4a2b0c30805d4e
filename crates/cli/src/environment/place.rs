//! Location and limits of this machine, as far as its files show them: for the reports of suites.

use super::file;

/// Name and value of each known fact.
pub(crate) fn lines() -> Vec<(String, String)> {
    [
        ("instance", instance()),
        ("distribution", file("/etc/os-release").and_then(|text| distribution(&text))),
        ("limits", limits()),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

/// The maker and the product: in clouds often the type of the instance.
fn instance() -> Option<String> {
    let parts: Vec<_> = ["sys_vendor", "product_name"]
        .into_iter()
        .filter_map(|name| file(&format!("/sys/class/dmi/id/{name}")))
        .collect();
    let text = parts.join(", ");
    (!text.is_empty()).then_some(text)
}

/// `PRETTY_NAME` of os-release(5).
fn distribution(text: &str) -> Option<String> {
    let value = text.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    let value = value.trim().trim_matches(['"', '\'']);
    (!value.is_empty()).then(|| value.to_owned())
}

/// Limits of this process's control group (cgroups(7), version 2).
fn limits() -> Option<String> {
    let groups = file("/proc/self/cgroup")?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let [cpu, memory, processes] = ["cpu.max", "memory.max", "pids.max"].map(|name| {
        let own = file(&format!("/sys/fs/cgroup{}/{name}", group.trim_end_matches('/')));
        // In a container the own group is mounted as the root.
        own.or_else(|| file(&format!("/sys/fs/cgroup/{name}")))
    });
    let cpu = cpu.and_then(|text| cores(&text));
    let others = [("bytes of memory", memory), ("processes", processes)];
    let others = others.into_iter().filter_map(|(what, limit)| {
        limit.filter(|limit| limit != "max").map(|limit| format!("{what} {limit}"))
    });
    let parts: Vec<_> =
        cpu.map(|cores| format!("{cores} cores")).into_iter().chain(others).collect();
    let text =
        if parts.is_empty() { "none of its control group".to_owned() } else { parts.join(", ") };
    Some(text)
}

/// `cpu.max`: microseconds of CPU time in a period, and the period.
fn cores(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    Some(quota.parse::<f64>().ok()? / period.trim().parse::<f64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_the_system_are_parsed() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\n";
        assert_eq!(distribution(text).as_deref(), Some("Debian GNU/Linux 13 (trixie)"));
        assert_eq!(distribution("PRETTY_NAME='Arch Linux'").as_deref(), Some("Arch Linux"));
        assert_eq!(distribution("NAME=x"), None);
        assert_eq!(cores("150000 100000"), Some(1.5));
        assert_eq!(cores("max 100000"), None);
    }
}
