//! CPU time and memory of the watched processes.

use plimsoll_metrics::{ProcessUse, RunSummary};

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
