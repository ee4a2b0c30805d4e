//! T20: other tools on the same target.

use std::process::Command;

use plimsoll_metrics::Metric;
use plimsoll_stats::descriptive::quantile_of;

use super::Observations;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::runner::{Runner, plan};
use crate::server::{NullSpec, Server, ServerSpec};

const CONNECTIONS: f64 = 64.0;
/// Rounds in which every tool has its turn, so that changes of the host affect all alike.
const ROUNDS: usize = 2;

/// The figures that a tool prints.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ToolFigures {
    per_second: f64,
    p50_us: f64,
}

type ToolRun = fn(&Runner, &Server) -> Result<ToolFigures, CalibrateError>;

/// Throughput and median of wrk and h2load beside ours, over 64 connections to the null server.
pub(super) fn t20_other_tools(runner: &Runner) -> Result<Observations, CalibrateError> {
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let (mut checks, mut notes, mut tools) = (Vec::new(), Vec::new(), Vec::new());
    for (name, tool) in [("wrk", wrk as ToolRun), ("h2load", h2load as ToolRun)] {
        match rounds(runner, &server, tool) {
            Ok((ours, theirs)) => {
                tools.push(name);
                let share = ours.per_second / theirs.per_second * 100.0;
                checks.push(Check::at_least(format!("throughput, of {name}'s"), "%", share, 90.0));
                notes.push(explain(name, ours, theirs));
                // The mean time over 64 connections is 64 / rate (J. D. C. Little, 1961). A tool
                // whose median lies above that counts its own queue, one below leaves it out.
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
    Ok(Observations { checks, notes })
}

fn explain(name: &str, ours: ToolFigures, theirs: ToolFigures) -> String {
    format!(
        "{:.0}/s and p50 {:.0} us; {name}: {:.0}/s and p50 {:.0} us, which it takes when it reads; ours is the kernel's time of arrival",
        ours.per_second, ours.p50_us, theirs.per_second, theirs.p50_us
    )
}

/// Medians of both tools over the rounds.
fn rounds(
    runner: &Runner,
    server: &Server,
    tool: ToolRun,
) -> Result<(ToolFigures, ToolFigures), CalibrateError> {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        theirs.push(tool(runner, server)?);
        ours.push(plimsoll(runner, server)?);
    }
    Ok((median(&ours), median(&theirs)))
}

fn median(figures: &[ToolFigures]) -> ToolFigures {
    let per_second: Vec<_> = figures.iter().map(|figures| figures.per_second).collect();
    let p50_us: Vec<_> = figures.iter().map(|figures| figures.p50_us).collect();
    ToolFigures { per_second: quantile_of(&per_second, 0.5), p50_us: quantile_of(&p50_us, 0.5) }
}

fn plimsoll(runner: &Runner, server: &Server) -> Result<ToolFigures, CalibrateError> {
    let profile = format!("protocol: http\nhttp: {{path: /}}\nstages: '{CONNECTIONS}:1s'\n");
    // The other tools keep no sample of each request either.
    let run = runner.run_without_samples(plan(&server.url(), &profile, None)?, &mut ())?;
    let per_second = run.accounting().completed as f64;
    Ok(ToolFigures { per_second, p50_us: run.quantile_us(Metric::ServiceTime, 0.5) })
}

fn wrk(runner: &Runner, server: &Server) -> Result<ToolFigures, CalibrateError> {
    let text = output(runner, "wrk", &["-t1", "-c64", "-d1s", "--latency", &server.url()])?;
    parse_wrk(&text).ok_or_else(|| {
        CalibrateError::Missing(format!("the output of wrk is not understood: {text}"))
    })
}

fn parse_wrk(text: &str) -> Option<ToolFigures> {
    let mut lines = text.lines().map(str::trim);
    let p50 = lines.clone().find_map(|line| line.strip_prefix("50%"))?;
    let per_second = lines.find_map(|line| line.strip_prefix("Requests/sec:"))?;
    Some(ToolFigures { per_second: per_second.trim().parse().ok()?, p50_us: micros(p50.trim())? })
}

fn h2load(runner: &Runner, server: &Server) -> Result<ToolFigures, CalibrateError> {
    let text = output(runner, "h2load", &["--h1", "-t1", "-c64", "-D1", &server.url()])?;
    parse_h2load(&text).ok_or_else(|| {
        CalibrateError::Missing(format!("the output of h2load is not understood: {text}"))
    })
}

/// h2load prints no median; the mean stands in its place.
fn parse_h2load(text: &str) -> Option<ToolFigures> {
    let rate = text.lines().find_map(|line| line.strip_prefix("finished in "))?;
    let per_second = rate.split(',').nth(1)?.trim().strip_suffix(" req/s")?.parse().ok()?;
    let times = text.lines().find_map(|line| line.trim().strip_prefix("time for request:"))?;
    Some(ToolFigures { per_second, p50_us: micros(times.split_whitespace().nth(2)?)? })
}

/// `412.00us`, `1.5ms`, `2s`.
fn micros(text: &str) -> Option<f64> {
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6)];
    let (number, size) =
        units.iter().find_map(|(unit, size)| Some((text.strip_suffix(unit)?, size)))?;
    Some(number.parse::<f64>().ok()? * size)
}

fn output(
    runner: &Runner,
    program: &'static str,
    flags: &[&str],
) -> Result<String, CalibrateError> {
    let mut command = Command::new(program);
    command.args(flags);
    let output = runner.on_generator_core(|| {
        command.output().map_err(|_| CalibrateError::Missing(format!("{program} is not installed")))
    })?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_of_the_tools_is_parsed() {
        let wrk = "RunningServer 1s test\n  Latency Distribution\n     50%  412.00us\n     75%  500.00us\nRequests/sec: 151234.56\n";
        assert_eq!(parse_wrk(wrk), Some(ToolFigures { per_second: 151_234.56, p50_us: 412.0 }));
        let h2load = "finished in 1.00s, 98765.43 req/s, 3.4MB/s\nrequests: 98765 total\ntime for request:      120us      3.10ms       640us       112us    71.00%\n";
        assert_eq!(
            parse_h2load(h2load),
            Some(ToolFigures { per_second: 98_765.43, p50_us: 640.0 })
        );
    }
}
