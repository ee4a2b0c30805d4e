//! Tool servers: which there are, how each is reached, and single exchanges with them.

mod connection;
mod directory;
mod exchange;
mod layer;
mod spec;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) use connection::ToolConnections;
pub(crate) use directory::ToolDirectory;
pub(crate) use exchange::{Services, Trace};
use hyper::Uri;
use hyper::header::HeaderValue;
pub(crate) use layer::{CALLS, ToolLayer};
use plimsoll_gateway_mcp::client::{Fault, Protocol};
use plimsoll_gateway_mcp::rpc::RpcError;
use plimsoll_gateway_mcp::{ListError, Registry, is_server_name};
pub use spec::{ToolProtocolSpec, ToolServerSpec, ToolsSpec};
use tokio::sync::Notify;

use crate::config::Secret;
use crate::config::UpstreamSpec;
use crate::config::units::{ByteSize, HumanDuration};
use crate::http::error_response::ErrorResponse;
use crate::http::request_body::no_memory;
use crate::upstream::{Upstream, address_of};

/// All servers and tools.
pub(crate) type ToolRegistry = Registry<Arc<ServerLink>>;

/// Why there is no answer of a tool server.
#[derive(Debug)]
pub(crate) enum Failure {
    /// No connection could be opened.
    Unreachable,
    /// The connection broke.
    Broken,
    /// It took longer than allowed.
    TimedOut,
    /// The gateway holds too much already.
    NoMemory,
    /// It answered something else than an answer.
    Fault(Fault),
    /// It answered this status and nothing else.
    Status(u16),
    /// It answered an error.
    Rpc(RpcError),
    /// It cannot be spoken to.
    Handshake(String),
    /// Its list of tools cannot be used.
    List(ListError),
    /// The result of a call is none.
    Result(&'static str),
}

impl Failure {
    /// What happened, behind the name of the server.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Unreachable => "it cannot be reached".to_owned(),
            Self::Broken => "it broke off".to_owned(),
            Self::TimedOut => "it did not answer in time".to_owned(),
            Self::NoMemory => "the gateway holds too many messages now".to_owned(),
            Self::Fault(fault) => fault.to_string(),
            Self::Status(status) => format!("it answered status {status}"),
            Self::Rpc(error) => format!("it answered {error}"),
            Self::Handshake(reason) => reason.clone(),
            Self::List(error) => error.to_string(),
            Self::Result(problem) => (*problem).to_owned(),
        }
    }

    /// The error for a client.
    pub(crate) fn to_response(&self, server: &str) -> ErrorResponse {
        let message = format!("tool server `{server}`: {}", self.reason());
        match self {
            Self::TimedOut => ErrorResponse::upstream_timeout(message),
            Self::NoMemory => no_memory(),
            _ => ErrorResponse::bad_gateway(message),
        }
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Idle connections are kept for less than the five seconds after which common servers close them:
/// a request must not meet the end of its connection.
const KEEP_ALIVE: HumanDuration = HumanDuration::secs(4);

/// How a tool server is reached.
#[derive(Debug)]
pub(crate) struct ServerLink {
    pub(crate) name: Arc<str>,
    pub(crate) url: String,
    pub(crate) upstream: Upstream,
    path: Uri,
    authorization: Option<HeaderValue>,
    pub(crate) protocol: Protocol,
    /// Time limit of a call.
    pub(crate) timeout: Duration,
    /// Largest answer, in bytes.
    pub(crate) limit: usize,
}

/// What servers have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSettings {
    pub(crate) timeout: HumanDuration,
    pub(crate) result_bytes: ByteSize,
}

impl ServerLink {
    /// # Errors
    /// A message about an invalid value. It does not repeat the URL, which may hold a password.
    pub(crate) fn new(
        name: &str,
        spec: &ToolServerSpec,
        settings: ServerSettings,
    ) -> Result<Self, String> {
        if !is_server_name(name) {
            return Err(format!(
                "`{name}` cannot be the name of a server: take 1 to 64 letters, digits, `_`, `-` \
                 and `.`, and not `local`"
            ));
        }
        let (address, path) = parse(&spec.url).ok_or_else(|| {
            format!(
                "server `{name}`: `url` is not http://HOST:PORT/PATH; for TLS put a proxy before it"
            )
        })?;
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        let key = key.map_err(|problem| format!("server `{name}`: {problem}"))?;
        let authorization = key.map(|key| HeaderValue::try_from(format!("Bearer {key}")));
        let authorization = authorization
            .transpose()
            .map_err(|_| format!("server `{name}`: its key is not the value of a header"))?;
        let timeout = spec.timeout.unwrap_or(settings.timeout);
        if timeout.nanos() == 0 {
            return Err(format!("server `{name}`: `timeout` is longer than 0"));
        }
        let upstream =
            UpstreamSpec { keep_alive: KEEP_ALIVE, ..UpstreamSpec::at(address, timeout) };
        Ok(Self {
            name: Arc::from(name),
            url: spec.url.clone(),
            upstream: Upstream::new(name, &upstream)?,
            path,
            authorization,
            protocol: protocol(spec.protocol),
            timeout: timeout.0,
            limit: usize::try_from(settings.result_bytes.0).unwrap_or(usize::MAX),
        })
    }

    /// The servers of a configuration.
    ///
    /// # Errors
    /// As [`Self::new`].
    fn all(
        servers: &BTreeMap<String, ToolServerSpec>,
        settings: ServerSettings,
    ) -> Result<Vec<Arc<Self>>, String> {
        servers
            .iter()
            .map(|(name, spec): (&String, &ToolServerSpec)| {
                Self::new(name, spec, settings).map(Arc::new)
            })
            .collect()
    }

    /// Whether another one reaches the same server in the same way.
    fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.url, &self.authorization, self.protocol, self.timeout, self.limit)
            == (
                &other.name,
                &other.url,
                &other.authorization,
                other.protocol,
                other.timeout,
                other.limit,
            )
    }
}

/// `HOST:PORT` and path of a URL.
fn parse(url: &str) -> Option<(String, Uri)> {
    let url: Uri = url.parse().ok()?;
    Some((address_of(&url)?, url.path_and_query()?.clone().into()))
}

const fn protocol(spec: ToolProtocolSpec) -> Protocol {
    match spec {
        ToolProtocolSpec::Auto => Protocol::Auto,
        ToolProtocolSpec::Sessions => Protocol::Sessions,
        ToolProtocolSpec::Stateless => Protocol::Stateless,
    }
}

/// A session, and the id of a request in it.
type Key = (String, String);

/// The calls that can be cancelled.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls(Mutex<HashMap<Key, Arc<Notify>>>);

/// A call that can be cancelled as long as this is held.
#[derive(Debug)]
pub(crate) struct RunningCall<'a> {
    all: &'a RunningCalls,
    key: Key,
    stop: Arc<Notify>,
}

impl RunningCalls {
    fn all(&self) -> MutexGuard<'_, HashMap<Key, Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a call. Of two with the same id at once only the later one can be cancelled: a client
    /// must not do that.
    pub(crate) fn begin(&self, session: &str, id: String) -> RunningCall<'_> {
        let (key, stop) = ((session.to_owned(), id), Arc::<Notify>::default());
        self.all().insert(key.clone(), Arc::clone(&stop));
        RunningCall { all: self, key, stop }
    }

    /// Stops a call, if it is under way.
    pub(crate) fn cancel(&self, session: &str, id: String) {
        if let Some(stop) = self.all().remove(&(session.to_owned(), id)) {
            // It is kept for a call that does not wait yet.
            stop.notify_one();
        }
    }
}

impl RunningCall<'_> {
    /// Waits until the call is cancelled.
    pub(crate) async fn cancelled(&self) {
        self.stop.notified().await;
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        let mut all = self.all.all();
        if all.get(&self.key).is_some_and(|stop| Arc::ptr_eq(stop, &self.stop)) {
            all.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use super::*;

    #[test]
    fn a_url_has_a_host_and_nothing_secret() {
        for (url, expected) in [
            ("http://127.0.0.1:9000/mcp", Some(("127.0.0.1:9000", "/mcp"))),
            ("http://tools", Some(("tools:80", "/"))),
            ("http://[::1]:9000/a?b=c", Some(("[::1]:9000", "/a?b=c"))),
            ("https://tools/mcp", None),
            ("http://joe:secret@tools/mcp", None),
            ("http://tools:99999/mcp", None),
            ("tools:9000", None),
            ("/mcp", None),
            ("", None),
        ] {
            let found = parse(url);
            let found = found.as_ref().map(|(address, path)| (address.as_str(), path.to_string()));
            let expected = expected.map(|(address, path)| (address, path.to_owned()));
            assert_eq!(found, expected, "{url}");
        }
    }

    fn is_cancelled(call: &RunningCall<'_>) -> bool {
        pin!(call.cancelled()).poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn a_call_is_cancelled_by_its_session_and_id_while_it_runs() {
        let calls = RunningCalls::default();
        let begin = |session: &str, id: &str| calls.begin(session, id.to_owned());
        let (first, second, other) = (begin("s", "1"), begin("s", "2"), begin("t", "1"));
        calls.cancel("s", "1".to_owned());
        calls.cancel("s", "\"2\"".to_owned());
        let found = [&first, &second, &other].map(is_cancelled);
        assert_eq!(found, [true, false, false]);
        // The id is free again, and the end of the first call does not touch the second.
        let again = begin("s", "1");
        drop(first);
        calls.cancel("s", "1".to_owned());
        assert!(is_cancelled(&again));
        drop((again, second, other));
        assert!(calls.all().is_empty());
    }
}
