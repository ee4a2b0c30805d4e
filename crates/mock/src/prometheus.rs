//! The live counts in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Write as _};

use crate::counters::{Counters, Series, Stats};
use crate::log::End;

/// The page of `GET /metrics`.
pub(crate) fn render(counters: &Counters, stats: &Stats) -> String {
    let mut page = String::with_capacity(4_096);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, counters, stats);
    page
}

fn write_page(out: &mut String, counters: &Counters, stats: &Stats) -> fmt::Result {
    head(out, "mock_requests_total", "counter", "Answers by model and status.")?;
    for series in &counters.series {
        for (status, count) in series.statuses() {
            let model = escaped(&series.model);
            writeln!(out, "mock_requests_total{{model=\"{model}\",status=\"{status}\"}} {count}")?;
        }
    }
    head(out, "mock_requests_ended_total", "counter", "Requests by how they ended.")?;
    for end in End::ALL {
        let (name, count) = (end.name(), counters.ends(end));
        writeln!(out, "mock_requests_ended_total{{end=\"{name}\"}} {count}")?;
    }
    per_model(out, counters, "mock_input_tokens_total", "Input tokens.", |s| s.tokens_in.read())?;
    per_model(out, counters, "mock_output_tokens_total", "Output tokens.", |s| {
        s.tokens_out.read()
    })?;
    per_model(out, counters, "mock_streams_total", "Streams begun.", |s| s.streams.read())?;
    per_model(out, counters, "mock_chunks_total", "Pieces of bodies.", |s| s.chunks.read())?;
    write_ttft(out, counters)?;
    for (name, help, value) in [
        ("mock_requests_in_flight", "Requests under way.", stats.in_flight),
        ("mock_connections_open", "Connections open.", stats.connections_open),
    ] {
        head(out, name, "gauge", help)?;
        writeln!(out, "{name} {value}")?;
    }
    for (name, help, value) in [
        ("mock_connections_total", "Connections accepted.", stats.connections),
        ("mock_log_lost_total", "Log records lost.", stats.log_lost),
    ] {
        head(out, name, "counter", help)?;
        writeln!(out, "{name} {value}")?;
    }
    Ok(())
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}")
}

fn per_model(
    out: &mut String,
    counters: &Counters,
    name: &str,
    help: &str,
    of: fn(&Series) -> u64,
) -> fmt::Result {
    head(out, name, "counter", help)?;
    for series in &counters.series {
        writeln!(out, "{name}{{model=\"{}\"}} {}", escaped(&series.model), of(series))?;
    }
    Ok(())
}

fn write_ttft(out: &mut String, counters: &Counters) -> fmt::Result {
    let name = "mock_ttft_seconds";
    head(out, name, "summary", "From the complete request to the first content handed over.")?;
    for series in &counters.series {
        let model = escaped(&series.model);
        let seconds = series.ttft_nanos.read() as f64 / 1e9;
        writeln!(out, "{name}_sum{{model=\"{model}\"}} {seconds}")?;
        writeln!(out, "{name}_count{{model=\"{model}\"}} {}", series.ttft_count.read())?;
    }
    Ok(())
}

/// Label values escape backslash, quote and line end.
fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_stand_under_their_model_and_labels_are_escaped() {
        let names = ["a\"b\\c".to_owned()];
        let counters = Counters::new(names.iter());
        counters.series[0].answered(200);
        counters.series[0].answered(200);
        counters.series[1].answered(429);
        counters.series[0].tokens_in.add(7);
        counters.series[0].ttft_nanos.add(1_500_000_000);
        counters.series[0].ttft_count.up();
        counters.in_flight.up();
        let page = render(&counters, &counters.stats(3));
        for line in [
            r#"mock_requests_total{model="a\"b\\c",status="200"} 2"#,
            r#"mock_requests_total{model="other",status="429"} 1"#,
            r#"mock_input_tokens_total{model="a\"b\\c"} 7"#,
            r#"mock_ttft_seconds_sum{model="a\"b\\c"} 1.5"#,
            r#"mock_ttft_seconds_count{model="a\"b\\c"} 1"#,
            "mock_requests_in_flight 1",
            "mock_log_lost_total 3",
        ] {
            assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
        }
    }
}
