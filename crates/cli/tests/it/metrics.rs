//! Metrics of runs: pushed, and shown in Grafana.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_metrics::Counters;
use serde_json::Value;

use crate::support::{FAST, Fixture, summary};

const STREAMS: &str = "other_models: {ttft: 5ms, gap: 1ms, output: 4}";

/// The families of a page, and its lines: name, labels, value.
#[derive(Default)]
struct Page {
    kinds: BTreeMap<String, String>,
    lines: Vec<(String, BTreeMap<String, String>, f64)>,
}

impl Page {
    /// Reads a page whose label values have no quotes.
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                page.kinds.insert(name.to_owned(), kind.to_owned());
            } else if !line.starts_with('#') {
                let (series, value) = line.rsplit_once("} ").unwrap();
                let (name, labels) = series.split_once('{').unwrap();
                page.lines.push((name.to_owned(), labels_of(labels), value.parse().unwrap()));
            }
        }
        page
    }

    /// The sum of the lines with these labels.
    #[expect(clippy::cast_possible_truncation, reason = "whole counts")]
    fn sum(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let has = |own: &BTreeMap<String, String>| {
            labels.iter().all(|(key, value)| own.get(*key).is_some_and(|own| own == value))
        };
        let lines = self.lines.iter().filter(|(own, labels, _)| own == name && has(labels));
        lines.map(|(_, _, value)| *value as u64).sum()
    }
}

/// The labels of a series, from after its brace on.
fn labels_of(text: &str) -> BTreeMap<String, String> {
    let labels = text.split("\",").filter(|label| !label.is_empty());
    labels
        .map(|label: &str| {
            let (key, value) = label.split_once("=\"").unwrap();
            (key.to_owned(), value.trim_end_matches('"').to_owned())
        })
        .collect()
}

fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// Takes one push: gives its path and its body.
fn receiver() -> (SocketAddr, JoinHandle<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let received = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (mut text, mut piece) = (Vec::new(), [0; 4_096]);
        loop {
            let read = stream.read(&mut piece).unwrap();
            text.extend_from_slice(&piece[..read]);
            let so_far = String::from_utf8_lossy(&text);
            let Some((head, body)) = so_far.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if read == 0 || body.len() >= length.unwrap().parse().unwrap() {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                let path = head.split(' ').nth(1).unwrap();
                return (path.to_owned(), body.to_owned());
            }
        }
    });
    (address, received)
}

/// A run that pushes.
struct Exported {
    fixture: Fixture,
    path: String,
    pushed: String,
}

fn export() -> Exported {
    let fixture = Fixture::with(STREAMS);
    let (gateway, received) = receiver();
    let push = format!("--push-metrics=http://{gateway}");
    let watch = format!("--watch=me={}", std::process::id());
    let load = ["minimal", "--stages", "w2:300ms,@60:3200ms", "--set", "stream=true"];
    let limits = ["--set", "thresholds={completed: ['count>1']}"];
    let labels = ["--metric-label", "environment=ci", &push, &watch];
    fixture.run(&[&load[..], &limits, &labels].concat()).expect(0);
    let (path, pushed) = received.join().unwrap();
    Exported { fixture, path, pushed }
}

/// Counters by their names in the catalog.
fn outcomes(counters: &Counters) -> [(&'static str, u64); 7] {
    [
        ("completed", counters.completed),
        ("rejected", counters.rejected),
        ("failed", counters.failed),
        ("timed_out", counters.timed_out),
        ("cancelled", counters.cancelled),
        ("in_flight", counters.in_flight),
        ("never_sent", counters.never_sent),
    ]
}

#[test]
fn a_push_has_the_counts_of_the_summary() {
    let Exported { fixture, path, pushed } = export();
    let folder = fixture.only_run();
    let summary = summary(&folder);
    let total = &summary.results.total;
    assert!(total.counters.completed > 0);
    assert_eq!(pushed, fs::read_to_string(folder.join("metrics.prom")).unwrap());
    assert!(
        path.starts_with("/metrics/job/plimsoll/instance") && path.ends_with("/run/minimal"),
        "{path}"
    );
    let page = Page::read(&pushed);
    assert!(page.lines.iter().all(|line| line.1.get("environment").is_some_and(|of| of == "ci")));
    for (outcome, count) in outcomes(&total.counters) {
        let measured = [("warmup", "false")];
        assert_eq!(page.sum(&format!("plimsoll_{outcome}_total"), &measured), count, "{outcome}");
    }
    let queries = queries();
    assert!(queries.len() > 4, "{queries:?}");
    let pages = [page];
    for (query, legend) in &queries {
        if let Err(why) = query_fits(query, legend, &pages) {
            panic!("{why} in {query} ({legend})");
        }
    }
    let fits = |query: &str| query_fits(query, "", &pages).is_ok();
    assert!(fits("plimsoll_scheduled_total{target=\"a\"}"));
    assert!(!fits("plimsoll_planned_total"), "a metric that is not there");
    assert!(!fits("sum by (tenant) (plimsoll_scheduled_total)"), "a label that is not there");
}

/// Queries of the dashboard, each with its legend.
fn queries() -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/grafana/plimsoll.json");
    let dashboard: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let text = |key: &str| target[key].as_str().unwrap_or_default();
            queries.push((text("expr").to_owned(), text("legendFormat").to_owned()));
        }
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            let (of, label) = query.rsplit_once(", ").unwrap();
            queries.push((of.to_owned(), format!("{{{{{}}}}}", label.trim_end_matches(')'))));
        }
    }
    queries
}

/// The names that begin with `plimsoll_`, and of each the labels that the pages give it.
fn query_fits(query: &str, legend: &str, pages: &[Page]) -> Result<(), String> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut known: BTreeSet<&str> = ["job", "instance", "run"].into();
    let mut rest = query;
    let mut names = 0;
    while let Some(at) = rest.find("plimsoll_") {
        let from = &rest[at..];
        let name = &from[..from.find(|c| !is_word(c)).unwrap_or(from.len())];
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let has = |page: &&Page| {
            let of = family.filter(|family| page.kinds.contains_key(*family));
            page.kinds.contains_key(of.unwrap_or(name))
        };
        let page = pages.iter().find(has).ok_or_else(|| format!("no page has {name}"))?;
        let kind = page.kinds.get(name).or_else(|| page.kinds.get(family?));
        let lines = page.lines.iter().filter(|line| {
            line.0 == name
                || (kind.is_some_and(|kind| kind == "summary") && line.0.starts_with(name))
        });
        known.extend(lines.flat_map(|line| line.1.keys().map(String::as_str)));
        // On a busy host every percentile may be refused.
        known.extend(kind.filter(|kind| *kind == "summary").map(|_| "quantile"));
        (rest, names) = (&from[name.len()..], names + 1);
    }
    if names == 0 {
        return Err("no metric".to_owned());
    }
    let matched = query.split(['{', ',']).filter_map(|part| part.split_once('='));
    let matched = matched.map(|(label, _)| label.trim_end_matches('!'));
    let grouped = query.split("by (").skip(1).filter_map(|part| part.split(')').next());
    let grouped = grouped.flat_map(|labels| labels.split(", "));
    let shown = legend.split("{{").skip(1).filter_map(|part| part.split("}}").next());
    for label in matched.filter(|label| label.chars().all(is_word)).chain(grouped).chain(shown) {
        if !known.contains(label) {
            return Err(format!("no line has the label {label}"));
        }
    }
    Ok(())
}

#[test]
fn a_wrong_target_of_metrics_ends_the_command_before_the_load() {
    let fixture = Fixture::with(FAST);
    for wrong in ["--push-metrics=gateway:9091", "--metric-label=x", "--metric-label=le=1"] {
        fixture.run(&["minimal", wrong]).expect(2);
    }
    assert_eq!(fixture.mock.stats().requests, 0);
}

#[test]
fn a_push_that_fails_is_told_and_the_result_stays() {
    let (fixture, nobody) = (Fixture::with(FAST), free_address());
    let push = format!("--push-metrics=http://me:secret@{nobody}");
    let output = fixture.run(&["minimal", "--stages", "2:300ms", &push]).expect(0);
    let told = format!("cannot push the metrics to http://{nobody}: ");
    assert!(output.stderr.contains(&told), "{}", output.stderr);
    assert!(!output.stderr.contains("secret") && !output.stdout.contains("secret"));
    assert!(fixture.only_run().join("metrics.prom").exists());
}

/// `scripts/test --all` installs it.
#[test]
#[ignore = "needs promtool, of the package prometheus"]
fn promtool_reads_every_page() {
    let Exported { fixture, pushed, .. } = export();
    let quick = ["suite", "quick", "--short", "--duration", "300ms", "--passes", "1"];
    let target = fixture.target();
    fixture.plimsoll(&[&quick[..], &["--target", &target]].concat());
    let suite = fixture.runs().into_iter().find(|run| run.join("suite.json").exists()).unwrap();
    let suite = fs::read_to_string(suite.join("metrics.prom")).unwrap();
    for page in [pushed, suite] {
        let mut check = Command::new("promtool");
        // Ignores its advice on older metric names, or names of other load tests.
        check.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut check = check.spawn().unwrap();
        check.stdin.take().unwrap().write_all(page.as_bytes()).unwrap();
        let output = check.wait_with_output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        let known = ["load_test_", "plimsoll_generator_bound_", "plimsoll_refused_"];
        let is_known = |line: &&str| known.iter().any(|name| line.starts_with(name));
        let advice = told.lines().filter(|line| !is_known(line));
        assert_eq!(advice.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
