//! T20: other tools on the same target.

use std::process::Command;

use plimsoll_metrics::Metric;

use super::Found;
use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::server::{Server, ServerSpec, ZeroSpec};
use crate::statistics::quantile_of;

const CONNECTIONS: f64 = 64.0;
/// Rounds, in each of which every tool has its turn: the host's mood then hits all of them.
const ROUNDS: usize = 2;

/// What a tool says.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Said {
    per_second: f64,
    p50_us: f64,
}

type Ask = fn(&Bench, &Server) -> Result<Said, CalibrateError>;

/// Throughput and median of wrk and h2load beside ours, over 64 connections to a server that does nothing.
pub(super) fn t20_other_tools(bench: &Bench) -> Result<Found, CalibrateError> {
    let zero = bench.serve(ServerSpec::Zero(ZeroSpec::default()))?;
    let (mut checks, mut notes, mut tools) = (Vec::new(), Vec::new(), Vec::new());
    for (name, ask) in [("wrk", wrk as Ask), ("h2load", h2load as Ask)] {
        match rounds(bench, &zero, ask) {
            Ok((ours, theirs)) => {
                tools.push(name);
                let share = ours.per_second / theirs.per_second * 100.0;
                checks.push(Check::at_least(format!("throughput, of {name}'s"), "%", share, 90.0));
                notes.push(explain(name, ours, theirs));
                // What 64 connections share is 64 / rate, whoever asks (J. D. C. Little, 1961): a tool whose median
                // lies above that counts its own queue, one whose median lies below leaves it out.
                let most = CONNECTIONS / ours.per_second * 1e6 * 1.1;
                checks.push(Check::at_most(
                    format!("our p50 beside {name}'s"),
                    "us",
                    ours.p50_us,
                    most.max(theirs.p50_us),
                ));
            }
            Err(CalibrateError::Missing(why)) => notes.push(why),
            Err(error) => return Err(error),
        }
    }
    if tools.is_empty() {
        return Err(CalibrateError::Missing(
            "neither wrk nor h2load is installed: install one to compare with".to_owned(),
        ));
    }
    Ok(Found { checks, notes })
}

fn explain(name: &str, ours: Said, theirs: Said) -> String {
    format!(
        "{:.0}/s and p50 {:.0} us; {name}: {:.0}/s and p50 {:.0} us, which it takes when it reads: ours is the kernel's time of arrival",
        ours.per_second, ours.p50_us, theirs.per_second, theirs.p50_us
    )
}

/// Medians of both tools over the rounds.
fn rounds(bench: &Bench, zero: &Server, ask: Ask) -> Result<(Said, Said), CalibrateError> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(ask(bench, zero)?);
        ours.push(plimsoll(bench, zero)?);
    }
    Ok((median(&ours), median(&theirs)))
}

fn median(said: &[Said]) -> Said {
    let of =
        |figure: fn(&Said) -> f64| quantile_of(&said.iter().map(figure).collect::<Vec<_>>(), 0.5);
    Said { per_second: of(|said| said.per_second), p50_us: of(|said| said.p50_us) }
}

fn plimsoll(bench: &Bench, zero: &Server) -> Result<Said, CalibrateError> {
    let profile = format!("protocol: http\nhttp: {{path: /}}\nstages: '{CONNECTIONS}:1s'\n");
    let ran = bench.run(&zero.url(), &profile)?;
    let per_second = ran.accounting().completed as f64;
    Ok(Said { per_second, p50_us: ran.quantile_us(Metric::ServiceTime, 0.5) })
}

fn wrk(bench: &Bench, zero: &Server) -> Result<Said, CalibrateError> {
    let text = output(bench, "wrk", &["-t1", "-c64", "-d1s", "--latency", &zero.url()])?;
    read_wrk(&text).ok_or_else(|| {
        CalibrateError::Missing(format!("wrk says something else than usual: {text}"))
    })
}

fn read_wrk(text: &str) -> Option<Said> {
    let after = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    Some(Said {
        per_second: after("Requests/sec:")?.trim().parse().ok()?,
        p50_us: micros(after("50%")?.trim())?,
    })
}

fn h2load(bench: &Bench, zero: &Server) -> Result<Said, CalibrateError> {
    let text = output(bench, "h2load", &["--h1", "-t1", "-c64", "-D1", &zero.url()])?;
    read_h2load(&text).ok_or_else(|| {
        CalibrateError::Missing(format!("h2load says something else than usual: {text}"))
    })
}

/// It tells no median; the mean stands in its place.
fn read_h2load(text: &str) -> Option<Said> {
    let rate = text.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let per_second = rate.split(',').nth(1)?.trim().strip_suffix(" req/s")?.parse().ok()?;
    let times = text.lines().find_map(|line| line.trim().strip_prefix("time for request:"))?;
    Some(Said { per_second, p50_us: micros(times.split_whitespace().nth(2)?)? })
}

/// `412.00us`, `1.5ms`, `2s`.
fn micros(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (number, size) =
        units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)))?;
    Some(number.parse::<f64>().ok()? * size)
}

fn output(bench: &Bench, program: &'static str, flags: &[&str]) -> Result<String, CalibrateError> {
    let mut command = Command::new(program);
    command.args(flags);
    let output = bench.on_generator_core(|| {
        command.output().map_err(|_| CalibrateError::Missing(format!("{program} is not installed")))
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tools_are_understood() {
        let wrk = "Running 1s test\n  Latency Distribution\n     50%  412.00us\n     75%  500.00us\nRequests/sec: 151234.56\n";
        assert_eq!(read_wrk(wrk), Some(Said { per_second: 151_234.56, p50_us: 412.0 }));
        let h2load = "finished in 1.00s, 98765.43 req/s, 3.4MB/s\nrequests: 98765 total\ntime for request:      120us      3.10ms       640us       112us    71.00%\n";
        assert_eq!(read_h2load(h2load), Some(Said { per_second: 98_765.43, p50_us: 640.0 }));
    }
}
