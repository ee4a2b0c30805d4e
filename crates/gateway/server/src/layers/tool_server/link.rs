//! The link to a tool server, shared by all workers.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use hyper::Uri;
use hyper::header::HeaderValue;
use plimsoll_gateway_mcp::client::Protocol;
use plimsoll_gateway_mcp::is_server_name;

use crate::config::secret::Secret;
use crate::config::units::{ByteSize, HumanDuration};
use crate::config::upstream::UpstreamSpec;
use crate::layers::tool_server::ToolServerSpec;
use crate::upstream::{Upstream, address_of};

/// Idle connections are kept for less than five seconds, after which common servers close them, so
/// that a request does not hit a closing connection.
const KEEP_ALIVE: HumanDuration = HumanDuration::secs(4);

/// The link to a tool server.
#[derive(Debug)]
pub(crate) struct ServerLink {
    pub(crate) name: Arc<str>,
    pub(crate) url: String,
    pub(crate) upstream: Upstream,
    pub(super) path: Uri,
    pub(super) authorization: Option<HeaderValue>,
    pub(crate) protocol: Protocol,
    /// Time limit of a call.
    pub(crate) timeout: Duration,
    /// Largest answer, in bytes.
    pub(crate) limit: usize,
}

/// The common settings of servers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSettings {
    pub(crate) timeout: HumanDuration,
    pub(crate) result_bytes: ByteSize,
}

impl ServerLink {
    /// # Errors
    /// A message about an invalid value. It omits the URL, which may contain a password.
    pub(crate) fn new(
        name: &str,
        spec: &ToolServerSpec,
        settings: ServerSettings,
    ) -> Result<Self, String> {
        if !is_server_name(name) {
            return Err(format!(
                "`{name}` cannot be the name of a server: use 1 to 64 letters, digits, `_`, `-` \
                 and `.`, and not `local`"
            ));
        }
        let (address, path) = parse(&spec.url).ok_or_else(|| {
            format!(
                "server `{name}`: `url` is not http://HOST:PORT/PATH; for TLS put a proxy in front of it"
            )
        })?;
        let key = spec.key.as_ref().map(Secret::reveal).transpose();
        let key = key.map_err(|problem| format!("server `{name}`: {problem}"))?;
        let authorization = key.map(|key| HeaderValue::try_from(format!("Bearer {key}")));
        let authorization = authorization
            .transpose()
            .map_err(|_| format!("server `{name}`: its key is not a valid header value"))?;
        let timeout = spec.timeout.unwrap_or(settings.timeout);
        if timeout.nanos() == 0 {
            return Err(format!("server `{name}`: `timeout` must be longer than 0"));
        }
        let upstream =
            UpstreamSpec { keep_alive: KEEP_ALIVE, ..UpstreamSpec::at(address, timeout) };
        Ok(Self {
            name: Arc::from(name),
            url: spec.url.clone(),
            upstream: Upstream::new(name, &upstream)?,
            path,
            authorization,
            protocol: spec.protocol,
            timeout: timeout.0,
            limit: usize::try_from(settings.result_bytes.0).unwrap_or(usize::MAX),
        })
    }

    /// The servers of a configuration.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(super) fn all(
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

    /// Whether two links reach the same server with the same settings.
    pub(super) fn is_same(&self, other: &Self) -> bool {
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

#[cfg(test)]
mod tests {
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
}
