//! T16: each phase of connecting is timed and counted separately.

use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_measure::Nanos;
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{mean, quantile_of};

use super::Observations;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{PhasedLog, PhasedSpec, ServerSpec};
use crate::tool_process::read_summary;

/// The delay of the server's part of the handshake.
const HANDSHAKE: Duration = Duration::from_millis(30);
const PER_CONNECTION: u64 = 3;

/// TCP and TLS have separate times, connections are counted, and exhausted ports are named.
pub(super) fn t16_connection_phases(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut checks = handshakes(runner)?;
    checks.extend(plain(runner)?);
    let mut notes = vec![
        "delays of DNS and of TCP's handshake are not planted: that needs a resolver and a separate network"
            .to_owned(),
    ];
    match port_exhaustion(runner) {
        Ok(check) => checks.push(check),
        Err(CalibrateError::Missing(why)) => {
            notes.push(format!("ports are not exhausted here: {why}"));
        }
        Err(error) => return Err(error),
    }
    Ok(Observations { checks, notes })
}

const PROFILE: &str = "protocol: http\nhttp: {path: /}\nstages: '@100:1s'\ntls: {insecure: true}\n";

fn handshakes(runner: &Runner) -> Result<Vec<Check>, CalibrateError> {
    let spec = PhasedSpec { handshake: Some(HANDSHAKE), requests_per_connection: PER_CONNECTION };
    let server = runner.serve(ServerSpec::Phased(spec))?;
    let run = runner.run(&format!("https://{}", server.addr()), PROFILE)?;
    let log = server.finish()?.phased;
    let tls = phase_ms(&run, |sample| sample.connect.tls);
    let truth: Vec<f64> = log.handshakes.iter().map(|&nanos| nanos as f64 / 1e6).collect();
    let tcp = phase_ms(&run, |sample| sample.connect.tcp);
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
    checks.extend(counted("TLS", &run, &log));
    Ok(checks)
}

fn plain(runner: &Runner) -> Result<Vec<Check>, CalibrateError> {
    let spec = PhasedSpec { handshake: None, requests_per_connection: PER_CONNECTION };
    let server = runner.serve(ServerSpec::Phased(spec))?;
    let run = runner.run(&format!("http://{}", server.addr()), PROFILE)?;
    let tcp = phase_ms(&run, |sample| sample.connect.tcp);
    let unexpected =
        run.samples.iter().filter(|s| s.connect.tls.is_some() || s.connect.dns.is_some());
    let mut checks = vec![
        Check::at_most("TCP connect p50", "ms", quantile_of(&tcp, 0.5), 0.2),
        Check::exact("TLS or DNS where there is none", unexpected.count(), 0),
    ];
    checks.extend(counted("plain", &run, &server.finish()?.phased));
    Ok(checks)
}

fn phase_ms(
    run: &Finished,
    phase: impl Fn(&plimsoll_measure::Sample) -> Option<Nanos>,
) -> Vec<f64> {
    run.samples.iter().filter_map(phase).map(Nanos::as_millis_f64).collect()
}

/// Our counts of connections against the server's.
fn counted(name: &str, run: &Finished, log: &PhasedLog) -> [Check; 3] {
    let counters = *run.total().counters();
    let opened = counters.connections_opened + counters.connections_ahead;
    let over_used = log.requests - log.connections;
    [
        ("requests answered", counters.completed, log.requests),
        ("connections opened", opened, log.connections),
        ("requests over used connections", counters.connections_reused, over_used),
    ]
    .map(|(what, ours, theirs)| {
        Check::within(format!("{name}: {what}"), "", ours as f64, theirs as f64, 0.0)
    })
}

/// A separate network with twenty local ports, and a load of sixty-four connections.
const STARVED: &str = "ip link set lo up && echo 40000 40019 > /proc/sys/net/ipv4/ip_local_port_range && \
    { \"$0\" mock --listen 127.0.0.1:9000 >/dev/null 2>&1 & mock=$!; } && sleep 0.5 && \
    { \"$0\" http http://127.0.0.1:9000/ -c 64 -d 1s --warmup 0 --quiet --out \"$1\" >/dev/null 2>&1; exit=$?; kill $mock; exit $exit; }";

fn port_exhaustion(runner: &Runner) -> Result<Check, CalibrateError> {
    let (exe, out) = (runner.exe()?, runner.temp_dir().join("t16"));
    let mut command = Command::new("unshare");
    command.args(["-r", "-n", "sh", "-c", STARVED]).arg(exe).arg(&out);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().map_err(|error| missing_network(&error.to_string()))?;
    if !out.exists() {
        return Err(missing_network("no separate network"));
    }
    let summary = read_summary(&out).map_err(|error| missing_network(&error.to_string()))?;
    let named = summary.health.generator_errors.contains_key("gen_port_exhaustion");
    Ok(Check::holds(
        "ports that run out are named, and the run is invalid",
        named && !summary.validity.is_valid(),
    ))
}

fn missing_network(why: &str) -> CalibrateError {
    CalibrateError::Missing(format!("needs `unshare -rn` and `ip` ({why})"))
}
