//! CPU time and memory of the watched processes.

use plimsoll_metrics::{Environment, ProcessUse, RunSummary};

use crate::format;
use crate::screen::Chapter;
use crate::table::Table;

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let heading = "Processes (CPU time is counted by the kernel in ticks, mostly of 10 ms)";
    let mut chapter = Chapter::new(heading);
    let mut table =
        Table::new(["", "pid", "stage", "cores", "CPU/request", "memory", "processes", "threads"]);
    for process in &summary.processes {
        table.row(row(process));
    }
    chapter.table(&table);
    chapter
}

fn row(process: &ProcessUse) -> Vec<String> {
    let gone = if process.gone { " (ended)" } else { "" };
    vec![
        format!("{}{gone}", process.name),
        process.pid.to_string(),
        process.stage.clone().unwrap_or_else(|| "whole run".to_owned()),
        format!("{:.2}", process.cores),
        format::time_or_dash(process.cpu_us_per_request.map(|us| us / 1e3)),
        format::bytes(process.rss_bytes as f64),
        if process.processes > 0 { process.processes.to_string() } else { "1".to_owned() },
        process.threads.to_string(),
    ]
}

// The machine that the load came from.

pub(super) fn environment(e: &Environment) -> Chapter {
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
