//! Pushes figures to a Pushgateway, or whatever speaks its protocol.

use std::str::FromStr;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use percent_encoding::percent_decode_str;
use plimsoll_transport::{Endpoint, EndpointError, SingleClient, SingleRequest};
use tokio::runtime::Builder;
use tokio::time::{sleep, timeout};

/// The job under which figures are pushed.
const JOB: &str = "plimsoll";
/// Time between the two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// The URL of a Pushgateway.
#[derive(Clone, PartialEq, Eq)]
pub struct PushTarget {
    tls: bool,
    endpoint: Endpoint,
    /// The path, without a slash at its end.
    path: String,
    /// The value of the `authorization` header.
    authorization: Option<String>,
}

/// Why a text is not the URL of a Pushgateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}; write http://HOST:PORT, or a whole path like http://HOST:9091/metrics/job/NAME")]
pub struct PushUrlError(&'static str);

/// Why figures could not be pushed.
#[derive(Debug, thiserror::Error)]
#[error("cannot push the metrics to {to}: {cause}; the files of the run have them, too")]
pub struct PushError {
    to: String,
    cause: PutError,
}

impl FromStr for PushTarget {
    type Err = PushUrlError;

    fn from_str(text: &str) -> Result<Self, PushUrlError> {
        let (tls, rest) = match text.split_once("://") {
            Some(("http", rest)) => (false, rest),
            Some(("https", rest)) => (true, rest),
            _ => return Err(PushUrlError("the URL has no http:// or https://")),
        };
        if rest.contains(['?', '#']) || !rest.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(PushUrlError("the URL has a query, or characters that no URL has"));
        }
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let (user, place) = match authority.rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority),
        };
        let endpoint = Endpoint::parse(place, if tls { 443 } else { 80 });
        let endpoint = endpoint.map_err(|error| match error {
            EndpointError::Port => PushUrlError("the port is not a number"),
            EndpointError::Host => PushUrlError("the URL has no host"),
        })?;
        let user = user.map(|user| percent_decode_str(user).collect::<Vec<_>>());
        let authorization = user.map(|user| format!("Basic {}", STANDARD.encode(user)));
        let path = path.trim_end_matches('/').to_owned();
        Ok(Self { tls, endpoint, path, authorization })
    }
}

/// Without the password.
impl std::fmt::Debug for PushTarget {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("PushTarget").field(&self.shown()).finish()
    }
}

impl PushTarget {
    /// Replaces all metrics of the group of this run: a run of the same name on the same host takes
    /// the place of the one before. A URL that names a group is used as it is. Tries twice.
    ///
    /// # Errors
    /// Where the Pushgateway cannot be reached or refuses the page.
    pub fn push(&self, run: &str, instance: &str, page: &str) -> Result<(), PushError> {
        let path = self.group(run, instance);
        let failed = |cause| PushError { to: self.shown(), cause };
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| failed(PutError::Io(error.to_string())))?;
        let pushed = runtime.block_on(async {
            let first = put(self, &path, page).await;
            match first {
                Err(error) if error.may_pass() => {
                    sleep(PAUSE).await;
                    put(self, &path, page).await
                }
                first => first,
            }
        });
        pushed.map_err(failed)
    }

    /// The path of the group: its labels and their values.
    fn group(&self, run: &str, instance: &str) -> String {
        if self.path.contains("/metrics/job") {
            return self.path.clone();
        }
        let labels = [("job", JOB), ("instance", instance), ("run", run)]
            .map(|(name, value)| format!("/{name}{}", segment(value)));
        format!("{}/metrics{}", self.path, labels.concat())
    }

    /// The URL without its user and password.
    pub fn shown(&self) -> String {
        format!("{}{}", self.origin(), self.path)
    }

    fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}", self.endpoint)
    }
}

/// A label's value in a path: as it is where it can be, else in base64, as Pushgateways read it.
fn segment(value: &str) -> String {
    // A client may take these for steps in the path.
    let is_step = matches!(value, "" | "." | "..");
    if !is_step && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
    {
        return format!("/{value}");
    }
    let encoded = URL_SAFE_NO_PAD.encode(value);
    format!("@base64/{}", if encoded.is_empty() { "=" } else { &encoded })
}

/// Time for the whole exchange.
const WHOLE: Duration = Duration::from_secs(10);
/// Bytes of an error's text that are kept.
const ANSWER: usize = 300;

/// Why it failed.
#[derive(Debug, thiserror::Error)]
enum PutError {
    /// The connection, or a setting of it.
    #[error("{0}")]
    Io(String),
    /// The answer did not arrive in time.
    #[error("no answer within {} s", WHOLE.as_secs())]
    TimedOut,
    /// The answer has an error status.
    #[error("status {0}{1}")]
    Status(u16, String),
}

impl PutError {
    /// Whether another attempt may succeed.
    const fn may_pass(&self) -> bool {
        !matches!(self, Self::Status(status, _) if *status < 500)
    }
}

/// Sends a page.
async fn put(target: &PushTarget, path: &str, page: &str) -> Result<(), PutError> {
    let client = SingleClient::new(target.endpoint.clone(), target.tls).map_err(PutError::Io)?;
    let headers = [
        ("content-type", Some("text/plain; version=0.0.4; charset=utf-8")),
        ("authorization", target.authorization.as_deref()),
    ];
    let headers = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let headers: Vec<_> = headers.collect();
    let body = page.as_bytes().to_vec();
    let request = SingleRequest { method: "PUT", path, headers: &headers, body };
    let fetched = timeout(WHOLE, client.fetch(request, ANSWER)).await;
    let response = fetched.map_err(|_| PutError::TimedOut)?.map_err(PutError::Io)?;
    if (200..300).contains(&response.status) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(&response.body);
    let text = text.trim();
    let text = if text.is_empty() { String::new() } else { format!(": {text}") };
    Err(PutError::Status(response.status, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> PushTarget {
        text.parse().unwrap()
    }

    #[test]
    fn the_group_has_job_instance_and_run() {
        let pushed = |url, run| target(url).group(run, "host-1");
        for (url, run, path) in [
            ("http://h:9091", "chat", "/metrics/job/plimsoll/instance/host-1/run/chat"),
            ("http://h/push/", "chat", "/push/metrics/job/plimsoll/instance/host-1/run/chat"),
            // RFC 4648 in its alphabet for URLs: "a/b" is 0x61 0x2f 0x62.
            ("http://h", "a/b", "/metrics/job/plimsoll/instance/host-1/run@base64/YS9i"),
            ("http://h", "", "/metrics/job/plimsoll/instance/host-1/run@base64/="),
            ("http://h", "..", "/metrics/job/plimsoll/instance/host-1/run@base64/Li4"),
            ("http://h/metrics/job/mine", "chat", "/metrics/job/mine"),
        ] {
            assert_eq!(pushed(url, run), path, "{url} {run}");
        }
    }

    #[test]
    fn a_url_has_a_scheme_a_host_and_perhaps_a_port_and_a_password_that_is_never_shown() {
        let with = target("https://me:p%40ss@h.example/x");
        let endpoint = &with.endpoint;
        assert_eq!((with.tls, endpoint.port(), endpoint.host()), (true, 443, "h.example"));
        // printf 'me:p@ss' | base64
        assert_eq!(with.authorization.as_deref(), Some("Basic bWU6cEBzcw=="));
        assert_eq!(with.shown(), "https://h.example:443/x");
        assert!(!format!("{with:?}").contains("ss"), "{with:?}");
        let six = target("http://[::1]:9091");
        let endpoint = &six.endpoint;
        assert_eq!((endpoint.host(), endpoint.port()), ("::1", 9091));
        assert_eq!(six.origin(), "http://[::1]:9091");
        assert_eq!(target("http://[::1]").endpoint.port(), 80);
        for wrong in
            ["", "h:9091", "ftp://h", "http://", "http://h:x", "http://h/?a=b", "http://h/ü"]
        {
            assert!(wrong.parse::<PushTarget>().is_err(), "{wrong}");
        }
    }
}
