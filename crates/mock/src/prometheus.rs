//! The current counters in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Write as _};

use crate::counters::Stats;

/// The body of `GET /metrics`.
pub(crate) fn render(stats: &Stats) -> String {
    let mut page = String::with_capacity(4_096);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, stats);
    plimsoll_process_metrics::append(&mut page);
    page
}

fn write_page(out: &mut String, stats: &Stats) -> fmt::Result {
    let name = "mock_requests_total";
    write_head(out, name, "counter", "Responses by status.")?;
    for (status, count) in &stats.by_status {
        writeln!(out, "{name}{{status=\"{status}\"}} {count}")?;
    }
    let name = "mock_requests_ended_total";
    write_head(out, name, "counter", "Requests by outcome.")?;
    for (end, count) in [
        ("completed", stats.completed),
        ("aborted", stats.aborted),
        ("client_gone", stats.client_gone),
        ("shut_down", stats.shut_down),
    ] {
        writeln!(out, "{name}{{end=\"{end}\"}} {count}")?;
    }
    for (name, kind, help, value) in [
        ("mock_input_tokens_total", "counter", "Input tokens.", stats.tokens_in),
        ("mock_output_tokens_total", "counter", "Output tokens.", stats.tokens_out),
        ("mock_streams_total", "counter", "Streams started.", stats.streams),
        ("mock_chunks_total", "counter", "Body chunks.", stats.chunks),
        ("mock_requests_in_flight", "gauge", "Requests in flight.", stats.in_flight),
        ("mock_connections_open", "gauge", "Connections open.", stats.connections_open),
        ("mock_connections_total", "counter", "Connections accepted.", stats.connections),
        ("mock_log_lost_total", "counter", "Log records lost.", stats.log_lost),
    ] {
        write_head(out, name, kind, help)?;
        writeln!(out, "{name} {value}")?;
    }
    Ok(())
}

fn write_head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}
