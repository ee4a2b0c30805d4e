//! T16: connecting has parts, each with its own time and its own count.

use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_measure::Nanos;
use plimsoll_metrics::RunSummary;

use super::Found;
use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::ran::Ran;
use crate::server::{Exchanged, PhasesSpec, ServerSpec};
use crate::statistics::{mean, quantile_of};

/// How long the server holds its part of the handshake back.
const HANDSHAKE: Duration = Duration::from_millis(30);
const PER_CONNECTION: u64 = 3;

/// Connect and TLS in their own phases, connections counted, and descriptors and ports that run out named.
pub(super) fn t16_phases(bench: &Bench) -> Result<Found, CalibrateError> {
    let mut checks = handshakes(bench)?;
    checks.extend(plain(bench)?);
    let mut notes = vec![
        "delays of DNS and of TCP's handshake are not planted: that needs a resolver and a network of its own"
            .to_owned(),
    ];
    match ports_run_out(bench) {
        Ok(check) => checks.push(check),
        Err(CalibrateError::Missing(why)) => {
            notes.push(format!("ports are not exhausted here: {why}"));
        }
        Err(error) => return Err(error),
    }
    Ok(Found { checks, notes })
}

const PROFILE: &str = "protocol: http\nhttp: {path: /}\nstages: '@100:1s'\ntls: {insecure: true}\n";

fn handshakes(bench: &Bench) -> Result<Vec<Check>, CalibrateError> {
    let spec = PhasesSpec { handshake: Some(HANDSHAKE), requests_per_connection: PER_CONNECTION };
    let server = bench.serve(ServerSpec::Phases(spec))?;
    let ran = bench.run(&format!("https://{}", server.addr()), PROFILE)?;
    let exchanged = server.finish()?.exchanged;
    let tls = phase_ms(&ran, |sample| sample.connect.tls);
    let truth: Vec<f64> = exchanged.handshakes.iter().map(|&nanos| nanos as f64 / 1e6).collect();
    let tcp = phase_ms(&ran, |sample| sample.connect.tcp);
    let mut checks = vec![
        Check::within(
            "TLS handshake p50",
            "ms",
            quantile_of(&tls, 0.5),
            quantile_of(&truth, 0.5),
            0.2,
        ),
        Check::within("TLS handshake mean", "ms", mean(&tls), mean(&truth), 0.2),
        Check::at_most("TCP connect p50, under a slow TLS", "ms", quantile_of(&tcp, 0.5), 0.2),
    ];
    checks.extend(counted("TLS", &ran, &exchanged));
    Ok(checks)
}

fn plain(bench: &Bench) -> Result<Vec<Check>, CalibrateError> {
    let spec = PhasesSpec { handshake: None, requests_per_connection: PER_CONNECTION };
    let server = bench.serve(ServerSpec::Phases(spec))?;
    let ran = bench.run(&format!("http://{}", server.addr()), PROFILE)?;
    let tcp = phase_ms(&ran, |sample| sample.connect.tcp);
    let foreign = ran.samples.iter().filter(|s| s.connect.tls.is_some() || s.connect.dns.is_some());
    let mut checks = vec![
        Check::at_most("TCP connect p50", "ms", quantile_of(&tcp, 0.5), 0.2),
        Check::exact("TLS or DNS where there is none", foreign.count(), 0),
    ];
    checks.extend(counted("plain", &ran, &server.finish()?.exchanged));
    Ok(checks)
}

fn phase_ms(ran: &Ran, phase: impl Fn(&plimsoll_measure::Sample) -> Option<Nanos>) -> Vec<f64> {
    ran.samples.iter().filter_map(phase).map(Nanos::as_millis_f64).collect()
}

/// Our counts of connections against the server's.
fn counted(name: &str, ran: &Ran, exchanged: &Exchanged) -> [Check; 3] {
    let counters = *ran.total().counters();
    let count = |what: &str, ours: u64, theirs: u64| {
        Check::within(format!("{name}: {what}"), "", ours as f64, theirs as f64, 0.0)
    };
    [
        count("requests answered", counters.completed, exchanged.requests),
        count("connections opened", counters.connections_opened, exchanged.connections),
        count(
            "requests over used connections",
            counters.connections_reused,
            exchanged.requests - exchanged.connections,
        ),
    ]
}

/// In a network of its own that has twenty local ports, sixty-four connections are too many.
const STARVED: &str = "ip link set lo up && echo 40000 40019 > /proc/sys/net/ipv4/ip_local_port_range && \
    { \"$0\" mock --addr 127.0.0.1:9000 >/dev/null 2>&1 & mock=$!; } && sleep 0.5 && \
    { \"$0\" http http://127.0.0.1:9000/ -c 64 -d 1s --warmup 0 --quiet --out \"$1\" >/dev/null 2>&1; exit=$?; kill $mock; exit $exit; }";

fn ports_run_out(bench: &Bench) -> Result<Check, CalibrateError> {
    let (exe, out) = (bench.exe()?, bench.scratch().join("t16"));
    let mut command = Command::new("unshare");
    command.args(["-r", "-n", "sh", "-c", STARVED]).arg(exe).arg(&out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let missing =
        |why: &str| CalibrateError::Missing(format!("needs `unshare -rn` and `ip` ({why})"));
    command.status().map_err(|error| missing(&error.to_string()))?;
    let mut folder = std::fs::read_dir(&out).map_err(|_| missing("no network of its own"))?;
    let summary = folder.find_map(Result::ok).map(|f| f.path().join("summary.json"));
    let text = std::fs::read_to_string(summary.unwrap_or_default())
        .map_err(|_| missing("the tool left no summary"))?;
    let summary: RunSummary = serde_json::from_str(&text)?;
    let named = summary.health.generator_errors.contains_key("gen_port_exhaustion");
    Ok(Check::holds(
        "ports that run out are named, and the run is invalid",
        named && !summary.validity.is_valid(),
    ))
}
