//! Single requests over plain HTTP, before or after the load, never during a measurement.

use std::io::{self, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// A response. Status 0 means that the bytes are not HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    /// Names in lower case, and values.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

/// Gets `http://ADDRESS/PATH`, by HTTP/1.0, so that the body ends with the connection.
pub(crate) fn get(address: &str, path: &str, timeout: Duration) -> io::Result<HttpResponse> {
    request(address, path, &[], None, timeout)
}

/// The same with further headers, `NAME: VALUE`; with a body of JSON it is a `POST`, by HTTP/1.1,
/// because some gateways reject HTTP/1.0.
pub(crate) fn request(
    address: &str,
    path: &str,
    headers: &[String],
    body: Option<&str>,
    timeout: Duration,
) -> io::Result<HttpResponse> {
    let headers: String = headers.iter().map(|header| header.clone() + "\r\n").collect();
    let (method, version, content) = body.map_or(("GET", "1.0", String::new()), |body| {
        let length = format!("content-length: {}\r\nconnection: close\r\n", body.len());
        ("POST", "1.1", format!("content-type: application/json\r\n{length}"))
    });
    let body = body.unwrap_or_default();
    let request = format!(
        "{method} {path} HTTP/{version}\r\nhost: {address}\r\n{headers}{content}\r\n{body}"
    );
    let addresses = address.to_socket_addrs()?.next();
    let address = addresses.ok_or_else(|| io::Error::other("the name has no address"))?;
    let mut stream = TcpStream::connect_timeout(&address, timeout)?;
    stream.set_read_timeout(Some(timeout))?;
    stream.write_all(request.as_bytes())?;
    let (mut bytes, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        match stream.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => bytes.extend_from_slice(&piece[..read]),
            Err(error) if bytes.is_empty() => return Err(error),
            // A reset after the response does not matter.
            Err(_) => break,
        }
        if is_complete(&parse(&String::from_utf8_lossy(&bytes))) {
            break;
        }
    }
    Ok(parse(&String::from_utf8_lossy(&bytes)))
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

/// Whether the body has its announced length: some servers keep the connection open all the same.
fn is_complete(response: &HttpResponse) -> bool {
    let announced = response.headers.iter().find(|(name, _)| name == "content-length");
    let length = announced.and_then(|(_, length)| length.parse().ok());
    length.is_some_and(|length: usize| response.body.len() >= length)
}

fn parse(text: &str) -> HttpResponse {
    // Without the empty line the head may be cut within a header.
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text, ""));
    let status = head.strip_prefix("HTTP/").and_then(|rest| rest.split(' ').nth(1));
    let status = status.and_then(|status| status.parse().ok()).unwrap_or(0);
    let whole = text.contains("\r\n\r\n");
    let headers = head
        .lines()
        .skip(1)
        .filter(|_| whole)
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    HttpResponse { status, headers, body: body.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_is_a_status_headers_and_a_body() {
        for (text, status, headers, body) in [
            (
                "HTTP/1.1 200 OK\r\nA: b\r\n\r\nhello\r\n\r\n",
                200,
                &[("a", "b")][..],
                "hello\r\n\r\n",
            ),
            ("HTTP/1.0 503 Service Unavailable\r\n\r\n", 503, &[], ""),
            ("\u{15}\u{3}\u{1}", 0, &[], ""),
            ("HTTP/1.1 200 OK\r\nContent-Le", 200, &[], ""),
        ] {
            let headers = headers.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
            assert_eq!(
                parse(text),
                HttpResponse { status, headers, body: body.to_owned() },
                "{text}"
            );
        }
    }

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
