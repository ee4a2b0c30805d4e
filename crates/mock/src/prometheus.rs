//! The live counters in Prometheus' text format, version 0.0.4.

use std::fmt::{self, Write as _};

use crate::counter::Counter;
use crate::counters::{Counters, ModelCounters, Stats};
use crate::log::RequestEnd;

/// The body of `GET /metrics`.
pub(crate) fn render(counters: &Counters, stats: &Stats) -> String {
    let mut page = String::with_capacity(4_096);
    // Writing into a String cannot fail.
    let _ = write_page(&mut page, counters, stats);
    plimsoll_process_metrics::append(&mut page);
    page
}

fn write_page(out: &mut String, counters: &Counters, stats: &Stats) -> fmt::Result {
    let name = "mock_requests_total";
    write_head(out, name, "counter", "Responses by model and status.")?;
    for counted in &counters.models {
        let model = escaped(&counted.model);
        for (status, count) in counted.statuses() {
            writeln!(out, "{name}{{model=\"{model}\",status=\"{status}\"}} {count}")?;
        }
    }
    let name = "mock_requests_ended_total";
    write_head(out, name, "counter", "Requests by how they ended.")?;
    for end in RequestEnd::ALL {
        writeln!(out, "{name}{{end=\"{}\"}} {}", end.name(), counters.ends(end))?;
    }
    for (name, help, counter) in PER_MODEL {
        write_head(out, name, "counter", help)?;
        for counted in &counters.models {
            let (model, count) = (escaped(&counted.model), counter(counted).get());
            writeln!(out, "{name}{{model=\"{model}\"}} {count}")?;
        }
    }
    write_ttft(out, counters)?;
    for (name, kind, help, value) in [
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

type ModelCounter = fn(&ModelCounters) -> &Counter;

/// Counters by model: name, help and value.
const PER_MODEL: [(&str, &str, ModelCounter); 4] = [
    ("mock_input_tokens_total", "Input tokens.", |model| &model.tokens_in),
    ("mock_output_tokens_total", "Output tokens.", |model| &model.tokens_out),
    ("mock_streams_total", "Streams started.", |model| &model.streams),
    ("mock_chunks_total", "Body chunks.", |model| &model.chunks),
];

fn write_ttft(out: &mut String, counters: &Counters) -> fmt::Result {
    let name = "mock_ttft_seconds";
    write_head(out, name, "summary", "From the complete request to the first content event.")?;
    for counted in &counters.models {
        let model = escaped(&counted.model);
        let seconds = counted.ttft_nanos.get() as f64 / 1e9;
        writeln!(out, "{name}_sum{{model=\"{model}\"}} {seconds}")?;
        writeln!(out, "{name}_count{{model=\"{model}\"}} {}", counted.ttft_count.get())?;
    }
    Ok(())
}

/// A label value with backslash, quote and line end escaped.
fn escaped(label: &str) -> String {
    label.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_has_its_model_as_an_escaped_label() {
        let names = ["a\"b\\c".to_owned()];
        let counters = Counters::new(names.iter());
        counters.models[0].count_status(200);
        counters.models[0].count_status(200);
        counters.models[1].count_status(429);
        counters.models[0].tokens_in.add(7);
        counters.models[0].ttft_nanos.add(1_500_000_000);
        counters.models[0].ttft_count.increment();
        counters.in_flight.increment();
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
