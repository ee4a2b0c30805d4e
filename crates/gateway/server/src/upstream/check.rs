//! Active health checks.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Request;
use hyper::header::HOST;
use tokio::time::{sleep, timeout};

use super::pool::connect;
use super::{Endpoint, Upstream};
use crate::body::Upload;
use crate::spec::HealthSpec;

/// Checks an address again and again; ends when nobody else holds the upstream, as after a reload.
pub(crate) async fn watch(upstream: Arc<Upstream>, number: usize) {
    let (Some(spec), Some(endpoint)) = (upstream.health.clone(), upstream.endpoints.get(number))
    else {
        return;
    };
    let endpoint = Arc::clone(endpoint);
    let held = Arc::downgrade(&upstream);
    drop(upstream);
    let mut streak = Streak::default();
    while held.strong_count() > 0 {
        let good = timeout(spec.timeout.0, ask(&endpoint, &spec)).await.unwrap_or(false);
        if let Some(healthy) = streak.turn(good, endpoint.is_healthy(), &spec) {
            endpoint.set_healthy(healthy);
        }
        sleep(spec.interval.0).await;
    }
}

/// Checks in a row that said the same.
#[derive(Debug, Default)]
struct Streak {
    good: bool,
    length: u32,
}

impl Streak {
    /// Counts a check; says so when the state changes.
    #[expect(clippy::fn_params_excessive_bools, reason = "what was seen, and what was known")]
    fn turn(&mut self, good: bool, healthy: bool, spec: &HealthSpec) -> Option<bool> {
        self.length = if self.good == good { self.length.saturating_add(1) } else { 1 };
        self.good = good;
        let needed = if good { spec.rise } else { spec.fall };
        (good != healthy && self.length >= needed).then_some(good)
    }
}

async fn ask(endpoint: &Endpoint, spec: &HealthSpec) -> bool {
    let request = Request::get(spec.path.as_str())
        .header(HOST, &endpoint.host)
        .body(Upload::Full(Bytes::new()));
    let (Ok(request), Ok(link)) = (request, connect(endpoint).await) else {
        return false;
    };
    link.exchange(request).await.is_ok_and(|(response, _)| response.status().is_success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_takes_some_checks_in_a_row_to_fall_and_to_rise() {
        let spec = HealthSpec { fall: 3, rise: 2, ..HealthSpec::default() };
        let (mut streak, mut healthy) = (Streak::default(), true);
        let mut seen = Vec::new();
        for good in [true, false, false, true, false, false, false, false, true, true, true] {
            healthy = streak.turn(good, healthy, &spec).unwrap_or(healthy);
            seen.push(healthy);
        }
        let t = true;
        let f = false;
        assert_eq!(seen, [t, t, t, t, t, t, f, f, f, t, t]);
    }
}
