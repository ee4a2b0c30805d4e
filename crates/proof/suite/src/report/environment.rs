//! The machine and what was measured on it, as names and values.

use plimsoll_report::format::bytes;

use super::Report;

/// The largest number of gateway commands that are shown.
const MAX_GATEWAYS: usize = 2;

impl Report {
    /// The machine and what was measured on it: name and value.
    pub fn environment_lines(&self) -> Vec<(String, String)> {
        let e = &self.environment;
        let cores = e.cpu_count.map(|count| {
            let model = e.cpu_model.as_deref().unwrap_or("unknown CPU");
            let quota = e.cpu_quota.map(|quota| format!(", quota {quota:.2}")).unwrap_or_default();
            format!("{model}, {count} logical CPUs{quota}")
        });
        let steal = e.steal_share.map(|share| format!("{:.1}%", share * 100.0));
        let load =
            e.load_average.map(|(one, five, _)| format!("{one:.2} (1 min), {five:.2} (5 min)"));
        let tool = format!("plimsoll {}", env!("CARGO_PKG_VERSION"));
        let build = e.versions.get("build").map(|build| format!("{tool} ({build} build)"));
        let (gateways, mut lines): (Vec<_>, Vec<_>) =
            self.setup.iter().cloned().partition(|(name, _)| name.starts_with("gateway"));
        let more = gateways.len().saturating_sub(MAX_GATEWAYS);
        lines.extend(gateways.into_iter().take(MAX_GATEWAYS));
        if more > 0 {
            lines.push((
                String::new(),
                format!("and {more} more with other settings, see suite.json"),
            ));
        }
        let machine = [
            known_value("CPU", cores),
            known_value("memory", e.memory_bytes.map(|size| bytes(size as f64))),
            known_value("OS", e.kernel.clone()),
            known_value("load average", load),
            known_value("steal", steal),
            known_value("tool", build.or(Some(tool))),
            known_value("started", Some(self.started.clone())),
        ];
        lines.extend(machine.into_iter().flatten());
        lines
    }
}

fn known_value(name: &str, value: Option<String>) -> Option<(String, String)> {
    value.map(|value| (name.to_owned(), value))
}
