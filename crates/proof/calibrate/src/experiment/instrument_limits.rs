//! T1: the null server shows the limits of the load generator itself.

use plimsoll_metrics::Metric;

use super::{NUMBERED, Observations};
use crate::error::CalibrateError;
use crate::finding::Check;
use crate::record::Floor;
use crate::runner::Runner;
use crate::server::{NullSpec, ServerSpec};

/// The smallest response time and the highest rate of this host. Later experiments refer to them.
pub(super) fn t1_null_server(runner: &Runner) -> Result<Observations, CalibrateError> {
    let seconds = runner.usual_or_full(1, 10);
    let server = runner.serve(ServerSpec::Null(NullSpec::default()))?;
    let one_user = runner.run(&server.url(), &format!("{NUMBERED}stages: '1:{seconds}s'"))?;
    let many_users = runner.run(&server.url(), &format!("{NUMBERED}stages: '64:{seconds}s'"))?;
    let floor = Floor {
        response_time_p50_us: one_user.quantile_us(Metric::ServiceTime, 0.5),
        response_time_p99_us: one_user.quantile_us(Metric::ServiceTime, 0.99),
        highest_rate: many_users.accounting().completed as f64 / f64::from(seconds),
    };
    runner.floor.get_or_init(|| floor);
    let (one, all) = (one_user.accounting(), many_users.accounting());
    let unanswered = (one.scheduled - one.completed) + (all.scheduled - all.completed);
    Ok(Observations {
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
