//! Metrics of runs: scraped during the runs and after their end, pushed, and shown in Grafana.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use plimsoll_metrics::{Counters, Metric};
use serde_json::Value;

use crate::support::{FAST, Fixture, ProcessOutput, command, summary, wait_until};

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
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "whole counts")]
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

/// `GET /metrics`; `None` while the server is not listening.
fn scrape(address: SocketAddr) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned())
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

/// A run that is scraped during the load and at its end, and that pushes.
struct Exported {
    fixture: Fixture,
    during: String,
    after: String,
    pushed: (String, String),
}

fn export() -> Exported {
    let (fixture, address) = (Fixture::with(STREAMS), free_address());
    let (gateway, received) = receiver();
    let serve = format!("--serve-metrics={address}");
    let push = format!("--push-metrics=http://{gateway}");
    let watch = format!("--watch=me={}", std::process::id());
    let child = fixture.start(&[
        "minimal",
        "--stages",
        "w2:300ms,@60:3200ms",
        "--set",
        "stream=true",
        &serve,
        &push,
        &watch,
        "--serve-metrics-linger",
        "60s",
        "--metric-label",
        "environment=ci",
        "--set",
        "thresholds={completed: ['count>1']}",
    ]);
    let mut during = String::new();
    let done = |page: &str| {
        let page = Page::read(page);
        page.sum("plimsoll_live_requests_total", &[("outcome", "completed")])
    };
    let seen = wait_until(|| {
        during = scrape(address).unwrap_or_default();
        done(&during) > 0
    });
    assert!(seen, "no completed request in\n{during}");
    let mut after = String::new();
    let over = wait_until(|| {
        after = scrape(address).unwrap_or_default();
        after.contains("plimsoll_live_run_over{environment=\"ci\"} 1")
    });
    // The last page was read, so it ends long before the minute is over.
    ProcessOutput::from(child.wait_with_output().unwrap()).expect(0);
    assert!(over, "the run was never over in\n{after}");
    Exported { fixture, during, after, pushed: received.join().unwrap() }
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
fn a_scrape_at_the_end_and_a_push_have_the_counts_of_the_summary() {
    let Exported { fixture, during, after, pushed: (path, pushed) } = export();
    let folder = fixture.only_run();
    let summary = summary(&folder);
    let (total, last) = (&summary.results.total, Page::read(&after));
    let measured = ("warmup", "false");
    for (outcome, count) in outcomes(&total.counters) {
        let found = last.sum("plimsoll_live_requests_total", &[measured, ("outcome", outcome)]);
        assert_eq!(found, count, "{outcome}");
    }
    let sum = |name: &str| last.sum(name, &[measured]);
    assert!(total.counters.completed > 0);
    assert_eq!(sum("plimsoll_live_scheduled_total"), total.counters.scheduled);
    assert_eq!(sum("plimsoll_live_bytes_in_total"), total.counters.bytes_in);
    assert_eq!(sum("plimsoll_live_responses_total"), total.statuses.values().sum::<u64>());
    assert_eq!(sum("plimsoll_live_errors_total"), total.errors.values().sum::<u64>());
    for metric in [Metric::ResponseTime, Metric::Ttft, Metric::Itl, Metric::DispatchLag] {
        let name = format!("plimsoll_live_{}_seconds", metric.name());
        let count = total.distribution(metric).unwrap().count;
        assert_eq!(sum(&format!("{name}_count")), count, "{name}");
        assert_eq!(last.sum(&format!("{name}_bucket"), &[measured, ("le", "+Inf")]), count);
    }
    // The target's own count: the load with its warm-up, and one probe.
    let sent = last.sum("plimsoll_live_requests_total", &[]);
    assert_eq!(
        sent - last.sum("plimsoll_live_requests_total", &[("outcome", "never_sent")]) + 1,
        fixture.mock.stats().requests
    );
    let earlier = Page::read(&during);
    for (name, labels, value) in &earlier.lines {
        let counts = name.ends_with("_total") || name.ends_with("_bucket");
        let later = last.lines.iter().find(|(own, of, _)| own == name && of == labels);
        assert!(!counts || later.is_some_and(|line| line.2 >= *value), "{name} {labels:?}");
    }

    assert_eq!(pushed, fs::read_to_string(folder.join("metrics.prom")).unwrap());
    assert!(
        path.starts_with("/metrics/job/plimsoll/instance") && path.ends_with("/run/minimal"),
        "{path}"
    );
    let page = Page::read(&pushed);
    assert!(page.lines.iter().all(|line| line.1.get("environment").is_some_and(|of| of == "ci")));
    for (outcome, count) in outcomes(&total.counters) {
        assert_eq!(page.sum(&format!("plimsoll_{outcome}_total"), &[measured]), count, "{outcome}");
    }
    let queries = queries(|query| !of_search(query));
    assert!(queries.len() > 20, "{queries:?}");
    let pages = [last, earlier, page];
    dashboard_fits(&queries, &pages);
    let fits = |query: &str| query_fits(query, "", &pages).is_ok();
    assert!(fits("rate(plimsoll_live_scheduled_total{target=\"a\"}[1m])"));
    assert!(!fits("rate(plimsoll_live_planned_total[1m])"), "a metric that is not there");
    assert!(!fits("sum by (stage) (plimsoll_live_scheduled_total)"), "a label that is not there");
}

/// Whether a query is about what only searches and suites have.
fn of_search(query: &str) -> bool {
    ["plimsoll_live_part", "plimsoll_live_outcome", "plimsoll_live_knee"]
        .iter()
        .any(|name| query.contains(name))
}

/// Queries of the dashboard, each with its legend.
fn queries(wanted: impl Fn(&str) -> bool) -> Vec<(String, String)> {
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
    queries.retain(|(query, _)| wanted(query));
    queries
}

/// Every query is about metrics and labels of these pages.
fn dashboard_fits(queries: &[(String, String)], pages: &[Page]) {
    for (query, legend) in queries {
        if let Err(why) = query_fits(query, legend, pages) {
            panic!("{why} in {query} ({legend})");
        }
    }
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
fn an_address_that_is_taken_ends_the_command_before_the_load() {
    let (fixture, taken) = (Fixture::with(FAST), TcpListener::bind("127.0.0.1:0").unwrap());
    let address = taken.local_addr().unwrap();
    let output = fixture.run(&["minimal", &format!("--serve-metrics={address}")]).expect(2);
    assert!(
        output.stderr.contains(&format!("cannot serve metrics at {address}")),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains("--serve-metrics=ADDR:PORT"), "{}", output.stderr);
    let (target, serve) = (fixture.target(), format!("--serve-metrics={address}"));
    let knee = ["knee", "minimal", "--slo", "ttft<1s : 99%", "--key", "k"];
    for command in [&knee[..], &["suite", "quick"]] {
        let output = fixture.plimsoll(&[command, &["--target", &target, &serve]].concat());
        let output = output.expect(2);
        assert!(output.stderr.contains("cannot serve metrics at"), "{}", output.stderr);
    }
    assert_eq!((fixture.mock.stats().requests, fixture.runs().len()), (0, 0));
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

/// Scrapes a command from its first good answer to its end.
struct Scraped {
    fixture: Fixture,
    during: String,
    after: String,
    code: i32,
}

/// Starts a command against the mock, `TARGET` in its arguments.
fn scraped(args: &[&str]) -> Scraped {
    let (fixture, address) = (Fixture::with(STREAMS), free_address());
    let serve = format!("--serve-metrics={address}");
    let target = fixture.target();
    let args: Vec<_> = args.iter().map(|arg| arg.replace("TARGET", &target)).collect();
    let mut args: Vec<_> = args.iter().map(String::as_str).collect();
    args.extend([serve.as_str(), "--serve-metrics-linger", "60s", "-q"]);
    let mut command = command(fixture.folder.path(), &args);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut during, mut after) = (String::new(), String::new());
    let seen = wait_until(|| {
        during = scrape(address).unwrap_or_default();
        let completed = [("outcome", "completed")];
        Page::read(&during).sum("plimsoll_live_requests_total", &completed) > 0
    });
    let over = wait_until(|| {
        after = scrape(address).unwrap_or_default();
        let page = Page::read(&after);
        let (over, outcome) = ["run_over", "outcome"]
            .map(|name| page.sum(&format!("plimsoll_live_{name}"), &[]))
            .into();
        assert_eq!(over, outcome, "all is over with the last run only\n{after}");
        over == 1
    });
    let output = ProcessOutput::from(child.wait_with_output().unwrap());
    assert!(seen && over, "{seen} {over}\n{during}\n{after}\n{}", output.stderr);
    Scraped { fixture, during, after, code: output.code.unwrap() }
}

fn search() -> Scraped {
    let slo = "response_time<9s : 60%";
    let load = ["--from", "20", "--to", "20", "--confirm", "0s", "--slo", slo];
    let target = ["knee", "minimal", "--key", "any", "--target", "a=TARGET"];
    scraped(&[&target[..], &load].concat())
}

#[test]
fn a_search_serves_the_present_probe_and_its_knee_at_the_end() {
    let Scraped { fixture, during, after, code } = search();
    let (earlier, last) = (Page::read(&during), Page::read(&after));
    assert_eq!(earlier.sum("plimsoll_live_part", &[("target", "a")]), 1, "{during}");
    assert!(during.contains("plimsoll_live_part{name=\"place\",target=\"a\"}"), "{during}");
    assert_eq!(earlier.sum("plimsoll_live_run_over", &[]), 0, "{during}");
    assert!(!earlier.kinds.contains_key("plimsoll_live_outcome"), "{during}");
    let outcome = [("outcome", "inconclusive")];
    assert_eq!((code, last.sum("plimsoll_live_outcome", &outcome)), (4, 1), "short probes");
    assert_eq!(last.sum("plimsoll_live_part", &[]), 0, "nothing goes on\n{after}");
    let state = [("target", "a"), ("status", "at_least")];
    assert_eq!(last.sum("plimsoll_live_knee_state", &state), 1, "{after}");
    let low = "plimsoll_live_knee_load_low{target=\"a\",metric=\"requests_per_second\"} 19.0";
    assert!(after.contains(low), "{after}");
    // By the mock's own log, warm-up included.
    let sent = |page: &Page| {
        let ends = ["completed", "rejected", "failed", "timed_out", "cancelled", "in_flight"];
        ends.into_iter()
            .map(|outcome| {
                let labels = [("target", "a"), ("outcome", outcome)];
                page.sum("plimsoll_live_requests_total", &labels)
            })
            .sum::<u64>()
    };
    assert_eq!(sent(&last), fixture.mock.stats().requests, "{after}");
    // Figures of the current probe.
    assert!((1..=sent(&last)).contains(&sent(&earlier)), "{during}");
    assert!(earlier.kinds.contains_key("plimsoll_live_response_time_seconds"), "{during}");
    let json = fs::read(fixture.only_run().join("knee.json")).unwrap();
    let json: Value = serde_json::from_slice(&json).unwrap();
    let probes = json["knees"][0]["probes"].as_array().unwrap();
    let due: u64 = probes.iter().map(|probe| probe["requests"].as_u64().unwrap()).sum();
    let measured = [("target", "a"), ("warmup", "false")];
    assert_eq!(last.sum("plimsoll_live_scheduled_total", &measured), due);
    // A capacity that is known at its lower end alone has no line for its upper end.
    assert!(!after.contains("plimsoll_live_knee_load_high{"), "{after}");
    let queries = queries(|query| of_search(query) && !query.contains("_load_high"));
    assert!(queries.len() > 3, "{queries:?}");
    dashboard_fits(&queries, &[earlier, last]);
}

#[test]
fn a_suite_serves_the_present_measurement_and_its_outcome_at_the_end() {
    let quick = ["suite", "quick", "--short", "--duration", "2s", "-c", "4"];
    let Scraped { fixture, during, after, code } =
        scraped(&[&quick[..], &["--no-html", "--target", "TARGET"]].concat());
    let (earlier, last) = (Page::read(&during), Page::read(&after));
    let run = fixture.only_run();
    let suite: Value = serde_json::from_slice(&fs::read(run.join("suite.json")).unwrap()).unwrap();
    let results = suite["measurements"].as_array().unwrap();
    let labels: Vec<_> = results.iter().map(|one| one["label"].as_str().unwrap()).collect();
    assert!(labels.len() > 1, "{suite}");
    let goes_on = |page: &Page| -> Vec<(String, f64)> {
        let parts = page.lines.iter().filter(|(name, ..)| name == "plimsoll_live_part");
        parts.map(|(_, labels, value)| (labels["name"].clone(), *value)).collect()
    };
    let parts = goes_on(&earlier);
    assert_eq!(parts.iter().filter(|part| part.1 > 0.0).count(), 1, "{during}");
    assert!(parts.iter().zip(&labels).all(|(part, label)| part.0 == *label), "{during}");
    let over: Vec<_> = labels.iter().map(|label| ((*label).to_owned(), 0.0)).collect();
    assert_eq!(goes_on(&last), over, "{after}");
    let word = ["pass", "fail", "usage", "inconclusive"][usize::try_from(code).unwrap()];
    assert_eq!(last.sum("plimsoll_live_outcome", &[("outcome", word)]), 1, "{after}");
    let files = fs::read_dir(run.join("measurements")).unwrap();
    let completed: u64 = files
        .map(|file| {
            plimsoll_run_files::read_summary(&fs::read(file.unwrap().path()).unwrap()).unwrap()
        })
        .map(|summary| summary.results.accounting().completed)
        .sum();
    let served = last.sum("plimsoll_live_requests_total", &[("outcome", "completed")]);
    assert!(served > 0 && served == completed, "{served} of {completed}");
    // The single requests before the load are counted nowhere.
    assert!(served < fixture.mock.stats().requests);
}

/// `scripts/test --all` installs it.
#[test]
#[ignore = "needs promtool, of the package prometheus"]
fn promtool_reads_every_page() {
    let Exported { fixture, during, after, pushed: (_, pushed) } = export();
    let quick = ["suite", "quick", "--short", "--duration", "300ms", "--passes", "1"];
    let target = fixture.target();
    fixture.plimsoll(&[&quick[..], &["--target", &target]].concat());
    let suite = fixture.runs().into_iter().find(|run| run.join("suite.json").exists()).unwrap();
    let suite = fs::read_to_string(suite.join("metrics.prom")).unwrap();
    let search = search();
    for page in [during, after, pushed, suite, search.during, search.after] {
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
