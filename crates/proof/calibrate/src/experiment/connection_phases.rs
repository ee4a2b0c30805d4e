//! T16: each phase of connecting is timed and counted separately.

use std::time::Duration;

use plimsoll_measure::Nanos;
use plimsoll_runner::Finished;
use plimsoll_stats::descriptive::{mean, quantile_of};

use super::Observations;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::Runner;
use crate::server::{PhasedLog, PhasedSpec, ServerSpec};

/// The delay of the server's part of the handshake.
const HANDSHAKE: Duration = Duration::from_millis(30);
const PER_CONNECTION: u64 = 3;

/// TCP and TLS have separate times, and connections are counted.
pub(super) fn t16_connection_phases(runner: &Runner) -> Result<Observations, CalibrateError> {
    let mut checks = phases(runner, Some(HANDSHAKE))?;
    checks.extend(phases(runner, None)?);
    // Delays of DNS and of TCP's handshake would need a resolver and a separate network.
    Ok(checks.into())
}

const PROFILE: &str = "protocol: http\nhttp: {path: /}\nstages: '@100:1s'\ntls: {insecure: true}\n";

/// With a TLS handshake that takes a time, or without TLS.
fn phases(runner: &Runner, handshake: Option<Duration>) -> Result<Vec<Check>, CalibrateError> {
    let spec = PhasedSpec { handshake, requests_per_connection: PER_CONNECTION };
    let server = runner.serve(ServerSpec::Phased(spec))?;
    let (name, scheme) = if handshake.is_some() { ("TLS", "https") } else { ("plain", "http") };
    let run = runner.run(&format!("{scheme}://{}", server.addr()), PROFILE)?;
    let log = server.finish()?.phased;
    let tls = phase_ms(&run, |sample| sample.connect.tls);
    let tcp = quantile_of(&phase_ms(&run, |sample| sample.connect.tcp), 0.5);
    let mut checks = if handshake.is_some() {
        let truth: Vec<f64> = log.handshakes.iter().map(|&nanos| nanos as f64 / 1e6).collect();
        let [p50, true_p50] = [&tls, &truth].map(|times| quantile_of(times, 0.5));
        vec![
            Check::within("TLS handshake p50", "ms", p50, true_p50, 0.2),
            Check::within("TLS handshake mean", "ms", mean(&tls), mean(&truth), 0.2),
            Check::at_most("TCP connect p50, under a slow TLS", "ms", tcp, 0.2),
        ]
    } else {
        let dns = phase_ms(&run, |sample| sample.connect.dns);
        vec![
            Check::at_most("TCP connect p50", "ms", tcp, 0.2),
            Check::exact("TLS or DNS where there is none", tls.len() + dns.len(), 0),
        ]
    };
    checks.extend(counted(name, &run, &log));
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
