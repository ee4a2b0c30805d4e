//! Times that a target reports in its response headers, next to its log and the client's time for
//! the same requests.

use crate::map::LogOf;
use crate::result::StatedTimes;
use crate::run::{GroupName, Request, Run, ServerTiming};
use crate::times::{Valued, of_requests, own_time, quantiles};

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
