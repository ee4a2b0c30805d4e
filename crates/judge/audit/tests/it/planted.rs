//! Tables with one planted contradiction each, random figures and headings, and their twins
//! without: the first are found, the second are not accused. The figures are those of samples that
//! are drawn here.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "indices of short lists"
)]

use std::fmt::Write as _;

use plimsoll_audit::Level;

use crate::support::audit_text;

/// A generator of our own: the same tables everywhere (Knuth's constants).
struct Draws(u64);

impl Draws {
    fn unit(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn pick<'list>(&mut self, list: &[&'list str]) -> &'list str {
        list[(self.unit() * list.len() as f64) as usize % list.len()]
    }
}

/// A closed-loop test without think time.
struct Run {
    clients: f64,
    seconds: f64,
    requests: f64,
    rate: f64,
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
    max: f64,
    errors: f64,
}

impl Run {
    fn draw(draws: &mut Draws) -> Self {
        let (scale, spread) = (draws.between(0.5, 80.0), draws.between(0.2, 1.0));
        let count = 20_000;
        let mut times: Vec<f64> = (0..count)
            .map(|_| {
                let sum: f64 = (0..12).map(|_| draws.unit()).sum::<f64>() - 6.0;
                scale * (spread * sum).exp()
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times[((count as f64 * share).ceil() as usize).max(1) - 1];
        let mean = times.iter().sum::<f64>() / count as f64;
        let clients = draws.between(4.0, 300.0).round();
        let rate = clients / mean * 1000.0 * draws.between(0.93, 1.0);
        let seconds = draws.between(20.0, 120.0).round();
        let requests = (rate * seconds).round();
        let errors = (requests * draws.between(0.0005, 0.02)).round();
        let (p50, p95, p99, max) = (at(0.5), at(0.95), at(0.99), times[count - 1]);
        Self { clients, seconds, requests, rate, mean, p50, p95, p99, max, errors }
    }
}

const KINDS: [&str; 10] = [
    "order",
    "mean beyond max",
    "mean below percentiles",
    "little",
    "total",
    "shares",
    "change",
    "status",
    "error words",
    "latency words",
];

#[expect(clippy::too_many_lines, reason = "one table, column by column")]
/// The kind's table, with the contradiction or without.
fn table(kind: &str, planted: bool, draws: &mut Draws) -> String {
    let mut run = Run::draw(draws);
    let factor = draws.between(1.6, 3.0);
    let share = run.errors / run.requests * 100.0;
    let mut printed_share = share;
    if planted {
        match kind {
            "order" => run.p95 = run.p99 * factor,
            "mean beyond max" => run.mean = run.max * factor,
            "mean below percentiles" => run.mean = run.p50 * 0.4 / factor,
            "little" => {
                run.rate *= factor;
                run.requests = (run.rate * run.seconds).round();
                run.errors = (run.requests * share / 100.0).round();
                printed_share = run.errors / run.requests * 100.0;
            }
            "total" => {
                run.seconds = (run.seconds * factor).round();
            }
            "shares" => printed_share = share * factor,
            _ => {}
        }
    }
    let mut text = sentence(kind, planted, &run, draws);
    let shares = [run.mean, run.p50, run.p95, run.p99, run.max];
    let with_errors = kind != "error words" || planted;
    let errors = if with_errors { run.errors } else { 0.0 };
    let printed = if with_errors { printed_share } else { 0.0 };
    let head = |draws: &mut Draws, names: &[&'static str]| draws.pick(names);
    let mut columns: Vec<(&str, String)> = vec![
        (
            head(draws, &["Clients", "Connections", "conns", "Concurrency", "VUs"]),
            format!("{}", run.clients),
        ),
        (
            head(draws, &["Duration", "Test duration (s)", "Elapsed time (s)"]),
            format!("{} s", run.seconds),
        ),
        (head(draws, &["Requests", "Total requests", "reqs", "Samples"]), grouped(run.requests)),
        (
            head(draws, &["RPS", "Req/s", "requests/sec", "QPS", "Requests per second"]),
            format!("{:.1}", run.rate),
        ),
        (
            head(draws, &["Avg (ms)", "mean latency (ms)", "Average ms", "avg_ms"]),
            format!("{:.3}", shares[0]),
        ),
        (
            head(draws, &["p50 (ms)", "Median (ms)", "50th (ms)", "med [ms]", "p50_ms"]),
            format!("{:.3}", shares[1]),
        ),
        (head(draws, &["p95 (ms)", "P95 ms", "95% (ms)", "p(95) ms"]), format!("{:.3}", shares[2])),
        (
            head(draws, &["p99 (ms)", "99th percentile (ms)", "P99 latency (ms)"]),
            format!("{:.3}", shares[3]),
        ),
        (
            head(draws, &["Max (ms)", "max ms", "Slowest (ms)", "Worst (ms)"]),
            format!("{:.3}", shares[4]),
        ),
        (head(draws, &["Errors", "Failed", "Failures"]), grouped(errors)),
        (head(draws, &["Error rate", "Errors %", "error share"]), format!("{printed:.3}%")),
    ];
    if draws.unit() < 0.5 {
        columns.swap(0, 4);
    }
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let cells: Vec<&str> = columns.iter().map(|(_, cell)| cell.as_str()).collect();
    if draws.unit() < 0.5 {
        let rule = vec!["---"; names.len()].join("|");
        let _ = writeln!(text, "|{}|\n|{rule}|\n|{}|\n", names.join("|"), cells.join("|"));
    } else {
        let _ = writeln!(text, "| Metric | Result |\n|---|---|");
        for (name, cell) in &columns {
            let _ = writeln!(text, "| {name} | {cell} |");
        }
        text.push('\n');
    }
    text
}

/// What stands around the table.
fn sentence(kind: &str, planted: bool, run: &Run, draws: &mut Draws) -> String {
    let old = draws.between(20.0, 90.0);
    let new = old * draws.between(0.4, 0.8);
    let improvement = (1.0 - new / old) * 100.0;
    let claimed = if planted { improvement * 0.5 } else { improvement };
    let limit = if planted { run.p99 / 2.0 } else { run.p99 * 2.0 };
    match kind {
        "change" => format!(
            "| Metric | Before | After | {} |\n|---|---|---|---|\n| p90 | {old:.2} ms | {new:.2} ms | {claimed:.1}% |\n\n",
            draws.pick(&["Improvement", "Change", "Reduction", "Drop"])
        ),
        "status" => format!(
            "| Metric | Result | {} | Status |\n|---|---|---|---|\n| p99 | {:.2} ms | < {limit:.2} ms | {} |\n| p50 | {:.2} ms | < {:.2} ms | PASS |\n\n",
            draws.pick(&["Target", "SLO", "Goal"]),
            run.p99,
            draws.pick(&["PASS", "Met", "\u{2705}"]),
            run.p50,
            run.p50 * 2.0
        ),
        "error words" => format!(
            "{}\n\n",
            draws.pick(&[
                "The test had zero errors.",
                "It ran with no failed requests.",
                "It answered without errors."
            ])
        ),
        "latency words" => {
            let bound = if planted { run.p50.min(run.mean) * 0.5 } else { run.mean * 1.2 };
            format!("It keeps sub-{bound:.2}ms average latency.\n\n")
        }
        _ => String::new(),
    }
}

fn grouped(count: f64) -> String {
    let digits = format!("{count:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[test]
fn planted_contradictions_are_found_and_their_twins_are_not_accused() {
    let (mut found, mut missed, mut accused) = (0, Vec::new(), Vec::new());
    for seed in 0..40_u64 {
        let kind = KINDS[seed as usize % KINDS.len()];
        let draws = || Draws(0x5eed_0000 + seed * 7919);
        let planted = table(kind, true, &mut draws());
        let clean = table(kind, false, &mut draws());
        let report = audit_text("page.md", &planted);
        if report.findings.iter().any(|finding| finding.level != Level::CannotTell) {
            found += 1;
        } else {
            missed.push(format!("{kind}\n{planted}{}", report.text(true)));
        }
        let report = audit_text("page.md", &clean);
        if !report.findings.is_empty() {
            accused.push(format!("{kind}\n{clean}{}", report.text(true)));
        }
    }
    assert!(accused.is_empty(), "{}", accused.join("\n"));
    assert!(found >= 36, "{found} of 40, missed:\n{}", missed.join("\n"));
}
