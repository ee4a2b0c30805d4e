//! Mean breakdown of the time of completed requests by stage. The parts of a mean sum to it; the
//! parts of a percentile do not.

use crate::map::LogOf;
use crate::result::StageTimes;
use crate::run::{Request, Run};

/// Sums over the requests of a stage, in nanoseconds.
#[derive(Clone, Default)]
struct Sums {
    completed: u64,
    matched: u64,
    client: i128,
    total: i128,
    upstream: i128,
}

impl Sums {
    fn add(&mut self, request: &Request, log_of: LogOf) {
        self.completed += 1;
        let (Some(client), Some(total)) = (request.service, request.log_total) else {
            return;
        };
        let upstream = match log_of {
            LogOf::Gateway => request.log_upstream,
            LogOf::Upstream => Some(total),
        };
        let Some(upstream) = upstream else { return };
        self.matched += 1;
        self.client += i128::from(client);
        self.total += i128::from(total);
        self.upstream += i128::from(upstream);
    }

    /// Means; `None` if no request has every part.
    fn times(&self, stage: &str, log_of: LogOf) -> Option<StageTimes> {
        let mean_ms = |sum: i128| sum as f64 / self.matched as f64 / 1e6;
        (self.matched > 0).then(|| StageTimes {
            stage: stage.to_owned(),
            completed: self.completed,
            matched: self.matched,
            client_ms: mean_ms(self.client),
            outside_ms: mean_ms(self.client - self.total),
            gateway_ms: (log_of == LogOf::Gateway).then(|| mean_ms(self.total - self.upstream)),
            upstream_ms: mean_ms(self.upstream),
        })
    }
}

/// Computes the times by stage, without warm-ups.
pub(crate) fn by_stage(run: &Run, log_of: LogOf) -> Vec<StageTimes> {
    let mut sums = vec![Sums::default(); run.stages.len()];
    for request in run.requests.iter().filter(|request| request.completed && !request.warmup) {
        if let Some(sums) = sums.get_mut(usize::from(request.stage)) {
            sums.add(request, log_of);
        }
    }
    let stages = run.stages.iter().zip(&sums);
    stages.filter_map(|(stage, sums)| sums.times(stage, log_of)).collect()
}
