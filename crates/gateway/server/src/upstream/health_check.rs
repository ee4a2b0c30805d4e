//! Active health checks: requests at intervals that decide whether a server gets traffic.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use hyper::Request;
use hyper::header::HOST;
use tokio::time::{sleep, timeout};

use super::endpoint::Endpoint;
use super::pool::connect;
use crate::config::spec::HealthSpec;
use crate::http::request_body::RequestBody;

/// A server to check, and how.
#[derive(Debug)]
pub(crate) struct HealthTarget {
    pub(crate) endpoint: Arc<Endpoint>,
    pub(crate) spec: HealthSpec,
}

/// Checks a server periodically, until `owner` (its upstream) is dropped.
pub(crate) async fn run_health_checks<T>(target: HealthTarget, owner: Weak<T>) {
    let HealthTarget { endpoint, spec } = target;
    let mut streak = Streak::default();
    while owner.strong_count() > 0 {
        let success = timeout(spec.timeout.0, check(&endpoint, &spec)).await.unwrap_or(false);
        if let Some(healthy) = streak.record(success, endpoint.is_healthy(), &spec) {
            endpoint.set_healthy(healthy);
        }
        sleep(spec.interval.0).await;
    }
}

/// Checks in a row with the same result.
#[derive(Debug, Default)]
struct Streak {
    success: bool,
    length: u32,
}

impl Streak {
    /// Counts a check. Returns the new health if it changes: after `fall` failures in a row, or
    /// `rise` successes.
    #[expect(
        clippy::fn_params_excessive_bools,
        reason = "the result of the check and the present health"
    )]
    fn record(&mut self, success: bool, healthy: bool, spec: &HealthSpec) -> Option<bool> {
        self.length = if self.success == success { self.length.saturating_add(1) } else { 1 };
        self.success = success;
        let needed = if success { spec.rise } else { spec.fall };
        (success != healthy && self.length >= needed).then_some(success)
    }
}

/// Whether the server answers the check with a 2xx.
async fn check(endpoint: &Endpoint, spec: &HealthSpec) -> bool {
    let request = Request::get(spec.path.as_str())
        .header(HOST, &endpoint.host)
        .body(RequestBody::Full(Bytes::new()));
    let (Ok(request), Ok(connection)) = (request, connect(endpoint).await) else {
        return false;
    };
    connection
        .send(Box::new(request))
        .await
        .is_ok_and(|(response, _)| response.status().is_success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_changes_after_enough_checks_in_a_row() {
        let spec = HealthSpec { fall: 3, rise: 2, ..HealthSpec::default() };
        let (mut streak, mut healthy) = (Streak::default(), true);
        let mut states = Vec::new();
        for success in [true, false, false, true, false, false, false, false, true, true, true] {
            healthy = streak.record(success, healthy, &spec).unwrap_or(healthy);
            states.push(healthy);
        }
        let t = true;
        let f = false;
        assert_eq!(states, [t, t, t, t, t, t, f, f, f, t, t]);
    }
}
