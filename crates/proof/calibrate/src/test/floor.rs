//! T1: a server that does nothing shows the instrument's own limits.

use plimsoll_metrics::Metric;

use super::{Found, NUMBERED};
use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::record::Floor;
use crate::server::{ServerSpec, ZeroSpec};

/// The floor of the response time and the highest rate of this host, stored as the instrument's own limits.
pub(super) fn t1_zero_server(bench: &Bench) -> Result<Found, CalibrateError> {
    let seconds = bench.either(1, 10);
    let zero = bench.serve(ServerSpec::Zero(ZeroSpec::default()))?;
    let alone = bench.run(&zero.url(), &format!("{NUMBERED}stages: '1:{seconds}s'"))?;
    let most = bench.run(&zero.url(), &format!("{NUMBERED}stages: '64:{seconds}s'"))?;
    let floor = Floor {
        response_time_p50_us: alone.quantile_us(Metric::ServiceTime, 0.5),
        response_time_p99_us: alone.quantile_us(Metric::ServiceTime, 0.99),
        highest_rate: most.accounting().completed as f64 / f64::from(seconds),
    };
    bench.set_floor(floor);
    let (one, all) = (alone.accounting(), most.accounting());
    let unanswered = (one.scheduled - one.completed) + (all.scheduled - all.completed);
    Ok(Found {
        checks: vec![
            Check::at_most("requests unanswered", "", unanswered as f64, 0.0),
            Check::at_least("requests answered", "", one.completed as f64, 100.0),
        ],
        notes: vec![format!(
            "response time p50 {:.1} us, p99 {:.1} us; {:.0} requests/s by one worker over 64 connections",
            floor.response_time_p50_us, floor.response_time_p99_us, floor.highest_rate
        )],
    })
}
