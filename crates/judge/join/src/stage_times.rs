//! Mean breakdown of the time of completed requests by stage. The parts of a mean sum to it; the
//! parts of a percentile do not.

use crate::map::LogOf;
use crate::result::{StageTimes, StatedTimes};
use crate::run::{GroupName, Request, Run, ServerTiming};
use crate::times::{Valued, of_requests, own_time, quantiles};

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

// Times that a target reports in its response headers, next to its log and the client's time for
// the same requests.

/// Computes one entry per scenario, outcome and name, over matched requests without warm-up.
pub(crate) fn stated_times(run: &Run, log_of: LogOf) -> Vec<StatedTimes> {
    let mut all = Vec::new();
    for (index, name) in run.stated_names.iter().enumerate() {
        let of_name: Vec<Valued<'_>> = run
            .stated
            .iter()
            .filter(|stated: &&ServerTiming| usize::from(stated.name) == index)
            .filter_map(|stated: &ServerTiming| {
                let request = run.requests.get(stated.request as usize)?;
                let counts = request.rows > 0 && !request.warmup;
                counts.then_some(Valued { request, nanos: stated.nanos })
            })
            .collect();
        for (group, of_group) in run.groups.iter().enumerate() {
            let values = of_name
                .iter()
                .filter(|valued: &&Valued<'_>| usize::from(valued.request.group) == group);
            let values = values.map(|valued| Valued { request: valued.request, ..*valued });
            all.extend(beside(of_group, name, &values.collect::<Vec<_>>(), log_of));
        }
    }
    all
}

fn beside(
    group: &GroupName,
    name: &str,
    values: &[Valued<'_>],
    log_of: LogOf,
) -> Option<StatedTimes> {
    let requests: Vec<&Request> = values.iter().map(|valued| valued.request).collect();
    let of_gateway = log_of == LogOf::Gateway;
    Some(StatedTimes {
        scenario: group.scenario.clone(),
        outcome: group.outcome.to_owned(),
        name: name.to_owned(),
        requests: requests.len() as u64,
        stated: quantiles(values)?,
        log: of_requests(&requests, |request| request.log_total).filter(|_| of_gateway),
        gateway: of_requests(&requests, own_time).filter(|_| of_gateway),
        client: of_requests(&requests, |request| request.service).unwrap_or_default(),
    })
}
