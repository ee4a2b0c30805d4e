//! An agent behind the gateway.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use hyper::Uri;

use crate::config::units::ByteSize;
use crate::config::upstream::UpstreamSpec;
use crate::layers::agent_layer::AgentSpec;
use crate::upstream::proxy::Proxy;
use crate::upstream::{Upstream, address_of};

/// The longest name of an agent.
const MAX_NAME: usize = 64;

/// An agent behind the gateway.
#[derive(Debug)]
pub(crate) struct Agent {
    pub(crate) name: Arc<str>,
    /// The URL in the configuration.
    pub(crate) url: String,
    /// Its JSON-RPC endpoint.
    pub(crate) target: Uri,
    /// The location of its card.
    pub(crate) card: Uri,
    pub(crate) proxy: Proxy,
    /// Whether its last answer was in A2A 0.3 instead of 1.0.
    speaks_old: AtomicBool,
}

/// A version of A2A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Version {
    /// 0.3: `message/send`.
    Old,
    /// 1.0: `SendMessage`.
    Current,
}

impl Agent {
    /// # Errors
    /// A message about an invalid value. It omits the URL, which may contain a password.
    pub(crate) fn new(
        name: &str,
        spec: &AgentSpec,
        upstreams: &[Arc<Upstream>],
    ) -> Result<Self, String> {
        if !is_name(name) {
            let what = "its name is up to 64 lower-case letters, digits, `-` and `_`";
            return Err(format!("agent `{}`: {what}", name.escape_debug()));
        }
        let place = match (&spec.url, &spec.upstream) {
            (Some(url), None) => Place::at(name, url, spec),
            (None, Some(wanted)) => Place::behind(wanted, &spec.path, upstreams),
            _ => Err("it needs either `url` or `upstream`"),
        };
        let place = place.map_err(|problem| format!("agent `{name}`: {problem}"))?;
        let card = spec.card.starts_with('/').then(|| spec.card.parse().ok()).flatten();
        Ok(Self {
            name: Arc::from(name),
            url: place.url,
            target: place.target,
            card: card.ok_or_else(|| format!("agent `{name}`: `card` is not a path"))?,
            proxy: Proxy::to(&place.upstream),
            speaks_old: AtomicBool::new(false),
        })
    }

    /// The version to try first.
    pub(crate) fn version(&self) -> Version {
        if self.speaks_old.load(Relaxed) { Version::Old } else { Version::Current }
    }

    /// Records the version of its answer.
    pub(crate) fn note_version(&self, version: Version) {
        self.speaks_old.store(version == Version::Old, Relaxed);
    }
}

/// The location of an agent.
struct Place {
    url: String,
    target: Uri,
    upstream: Arc<Upstream>,
}

impl Place {
    /// At a URL.
    fn at(name: &str, text: &str, spec: &AgentSpec) -> Result<Self, &'static str> {
        let url: Uri = text.parse().map_err(|_| "`url` is not a URL")?;
        let address = address_of(&url).filter(|_| url.query().is_none());
        let address = address.ok_or("`url` is http://HOST:PORT/PATH, without user and query")?;
        let upstream = Upstream::new(name, &upstream_spec(address, spec));
        Ok(Self {
            url: text.to_owned(),
            target: url.path().parse().map_err(|_| "the path of `url` is malformed")?,
            upstream: Arc::new(upstream.map_err(|_| "`url` has no usable host")?),
        })
    }

    /// At a path of an upstream.
    fn behind(name: &str, path: &str, upstreams: &[Arc<Upstream>]) -> Result<Self, &'static str> {
        let upstream = upstreams.iter().find(|upstream| *upstream.name == *name);
        let upstream = upstream.ok_or("unknown `upstream`")?;
        let target = path.starts_with('/').then(|| path.parse().ok()).flatten();
        let address = upstream.endpoints.first().map_or("", |endpoint| &*endpoint.address);
        Ok(Self {
            url: format!("http://{address}{path}"),
            target: target.ok_or("`path` is not a path")?,
            upstream: Arc::clone(upstream),
        })
    }
}

impl Version {
    /// The other version.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Old => Self::Current,
            Self::Current => Self::Old,
        }
    }
}

/// Whether a text is a valid agent name. Names are listed in a header, separated by commas.
pub(crate) fn is_name(text: &str) -> bool {
    (1..=MAX_NAME).contains(&text.len())
        && text.bytes().all(|byte: u8| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
        })
}

fn upstream_spec(address: String, spec: &AgentSpec) -> UpstreamSpec {
    UpstreamSpec {
        idle_timeout: spec.idle_timeout,
        buffer: ByteSize(64 << 10),
        ..UpstreamSpec::at(address, spec.timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str, url: &str) -> Result<Agent, String> {
        let spec = serde_saphyr::from_str(&format!("url: '{url}'")).unwrap();
        Agent::new(name, &spec, &[])
    }

    #[test]
    fn a_url_gives_address_and_target() {
        for (url, address, target) in [
            ("http://127.0.0.1:9000/a2a", "127.0.0.1:9000", "/a2a"),
            ("http://planner/", "planner:80", "/"),
            ("http://planner:81", "planner:81", "/"),
            ("http://[::1]:81/x/y", "[::1]:81", "/x/y"),
        ] {
            let agent = agent("planner", url).unwrap();
            assert_eq!(&*agent.proxy.upstream.endpoints[0].address, address, "{url}");
            assert_eq!(agent.target.path(), target, "{url}");
        }
    }

    #[test]
    fn nonsense_is_refused_and_not_repeated() {
        for url in [
            "",
            "planner",
            "/a2a",
            "https://planner/a2a",
            "ftp://planner/a2a",
            "http:///a2a",
            "http://user:secret@planner/a2a",
            "http://planner/a2a?key=secret",
            "http://planner:99999/a2a",
            "http://planner:/a2a",
            "http://planner:8o/a2a",
        ] {
            let error = agent("planner", url).unwrap_err();
            assert!(error.contains("planner") && !error.contains("secret"), "{url}: {error}");
        }
        for name in ["", "A", "a b", "a,b", "a/b", "\u{e4}", &"a".repeat(65)] {
            assert!(agent(name, "http://planner/a2a").is_err(), "{name}");
        }
    }
}
