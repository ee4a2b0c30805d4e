//! Single requests over plain HTTP, before or after the load, never during a measurement.

use std::io;
use std::time::Duration;

use plimsoll_transport::{Endpoint, SingleClient, SingleRequest, SingleResponse};
use tokio::runtime::Builder;

/// The most bytes of a body that are read.
const MOST: usize = 16 << 20;

/// A response. Status 0 means that the bytes are not HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Gets `http://ADDRESS/PATH`.
pub(crate) fn get(address: &str, path: &str, timeout: Duration) -> io::Result<HttpResponse> {
    request(address, path, &[], None, timeout)
}

/// The same with further headers, `NAME: VALUE`; with a body of JSON it is a `POST`.
pub(crate) fn request(
    address: &str,
    path: &str,
    headers: &[String],
    body: Option<&str>,
    timeout: Duration,
) -> io::Result<HttpResponse> {
    let endpoint = Endpoint::parse(address, 80).map_err(io::Error::other)?;
    let client = SingleClient::new(endpoint, false).map_err(io::Error::other)?;
    let json = body.map(|_| ("content-type", "application/json"));
    let headers = headers.iter().filter_map(|header| header.split_once(':'));
    let headers = headers.map(|(name, value)| (name, value.trim()));
    let headers: Vec<_> = headers.chain(json).collect();
    let method = if body.is_some() { "POST" } else { "GET" };
    let body = body.unwrap_or_default().as_bytes().to_vec();
    let request = SingleRequest { method, path, headers: &headers, body };
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut response = SingleResponse::keeping(MOST);
    let exchange =
        async { tokio::time::timeout(timeout, client.send(request, &mut response)).await };
    let sent = runtime.block_on(exchange)?;
    // Bytes that are not HTTP are a response with status 0.
    if response.received.is_none() {
        sent.map_err(io::Error::other)?;
    }
    let headers = response.headers.into_iter();
    Ok(HttpResponse {
        status: response.status,
        headers: headers.map(|(name, value)| (name.to_ascii_lowercase(), value)).collect(),
        body: String::from_utf8_lossy(&response.body).into_owned(),
    })
}

/// Values on a gateway's page of metrics, as [`metric_value`].
pub(crate) fn counters<const N: usize>(address: &str, of: [[&str; 2]; N]) -> [Option<f64>; N] {
    let page = get(address, "/metrics", Duration::from_secs(2)).unwrap_or_default().body;
    of.map(|parts| metric_value(&page, &parts))
}

/// The value of the first line of a page of metrics that has all of these `parts`.
fn metric_value(metrics: &str, parts: &[&str]) -> Option<f64> {
    let mut lines = metrics.lines().filter(|line| !line.starts_with('#'));
    let line = lines.find(|line| parts.iter().all(|part| line.contains(part)))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pages as the gateway writes them.
    #[test]
    fn a_counter_is_the_first_line_with_all_parts() {
        let page = "# TYPE g_agent_operations counter\n\
                    g_agent_operations_total{operation=\"run_create\",outcome=\"ok\"} 120\n\
                    g_agent_operations_total{operation=\"run\",outcome=\"step_limit\"} 2\n\
                    g_agent_operations_total{operation=\"run\",outcome=\"ok\"} 118\n\
                    # HELP g_cache LLM requests\n\
                    g_cache_total{state=\"miss\"} 3\n\
                    gateway_audit_rows{state=\"written\"} 12\n";
        for (parts, value) in [
            (["=\"run_create\"", "=\"ok\""], Some(120.0)),
            (["=\"run\"", "=\"ok\""], Some(118.0)),
            (["cache", "state=\"miss\""], Some(3.0)),
            (["cache", "state=\"hit\""], None),
            (["audit_rows", "=\"written\""], Some(12.0)),
            (["audit_rows", "=\"accepted\""], None),
        ] {
            assert_eq!(metric_value(page, &parts), value, "{parts:?}");
        }
    }
}
