//! The machine that the load came from.

use plimsoll_metrics::Environment;

use crate::format;
use crate::screen::Chapter;

pub(super) fn chapter(e: &Environment) -> Chapter {
    let mut chapter = Chapter::new("Environment");
    chapter.list([
        ("CPU", e.cpu_model.clone()),
        ("logical CPUs", e.cpu_count.map(|n| n.to_string())),
        ("CPU quota", e.cpu_quota.map(|quota| format!("{quota} CPUs"))),
        ("CPU affinity", e.cpu_affinity.clone()),
        ("governor", e.cpu_governor.clone()),
        ("memory", e.memory_bytes.map(|bytes| format::bytes(bytes as f64))),
        ("kernel", e.kernel.clone()),
        ("clock source", e.clock_source.clone()),
        ("open files limit", e.fd_limit.map(format::count)),
        ("local port range", e.port_range.map(|(first, last)| format!("{first}-{last}"))),
        ("load average", e.load_average.map(|(one, five, more)| format!("{one} {five} {more}"))),
        ("steal before", e.steal_share.map(format::share)),
        ("versions", versions(e)),
    ]);
    chapter
}

fn versions(environment: &Environment) -> Option<String> {
    let pairs: Vec<_> =
        environment.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    (!pairs.is_empty()).then(|| pairs.join(", "))
}
