//! The gateway under test: the user's, or the reference gateway in a child process.

use plimsoll_plan::redacted_path;

use crate::child::Child;

/// The name of the upstream.
pub(crate) const DIRECT: &str = "direct";

/// The destination of a load, and the processes whose CPU time is measured.
#[derive(Clone, Default)]
pub struct SuiteTarget {
    /// Its name, where the suite has several of the user's: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Base URL; its query may have credentials, see [`SuiteTarget::shown_url`].
    pub base: String,
    /// Its key, sent as `Authorization: Bearer`.
    pub key: Option<String>,
    /// Headers of every request, `NAME: VALUE`.
    pub headers: Vec<String>,
    /// Model asked for in chats; empty for the mock's.
    pub model: String,
    /// Whether its certificate is accepted without verification.
    pub insecure: bool,
    /// Whether HTTP/2 is spoken: by ALPN over TLS, by prior knowledge over plain TCP.
    pub http2: bool,
    /// Whether it is the user's gateway, which gets no header that the user did not give.
    pub external: bool,
    /// Its process, if it runs on this host: its CPU time and memory are then measured.
    pub gateway_pid: Option<u32>,
    /// The provider's process, if it is a child.
    pub provider_pid: Option<u32>,
    /// The process of the gateway's store: a database or cache.
    pub store_pid: Option<u32>,
}

/// Shows the address alone: key and headers are secrets.
impl std::fmt::Debug for SuiteTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SuiteTarget").field("base", &self.shown_url()).finish_non_exhaustive()
    }
}

impl SuiteTarget {
    /// The URL as outputs show it.
    pub fn shown_url(&self) -> String {
        redacted_path(&self.base)
    }

    /// The same target as the user's, with the mock's model if it has none.
    pub(crate) fn of_user(&self) -> Self {
        let model = if self.model.is_empty() { MODEL } else { &self.model }.to_owned();
        Self { model, external: true, ..self.clone() }
    }

    /// The label `what`, with the target's name if there are several.
    pub(crate) fn label(&self, what: &str) -> String {
        if self.name.is_empty() { what.to_owned() } else { format!("{}: {what}", self.name) }
    }

    /// A path of it as a target of its own.
    pub(crate) fn below(&self, path: &str) -> Self {
        Self { base: format!("{}{path}", self.base.trim_end_matches('/')), ..self.clone() }
    }

    /// The path of its base URL, without a slash at the end: every path of a suite comes after it.
    pub(crate) fn prefix(&self) -> &str {
        self.parts().1.split('?').next().unwrap_or_default().trim_end_matches('/')
    }

    /// `HOST:PORT` of its base URL.
    pub(crate) fn authority(&self) -> &str {
        self.parts().0
    }

    /// Its base URL without the scheme, before and from the first slash.
    fn parts(&self) -> (&str, &str) {
        let rest = self.base.split_once("://").map_or(&*self.base, |(_, rest)| rest);
        rest.split_at(rest.find('/').unwrap_or(rest.len()))
    }
}

/// The mock provider.
#[derive(Debug)]
pub(crate) struct Provider(Child);

impl Provider {
    pub(crate) const fn new(child: Child) -> Self {
        Self(child)
    }

    /// `HOST:PORT`.
    pub(crate) fn address(&self) -> &str {
        self.0.address()
    }

    /// The provider itself as the target: the path without a gateway.
    pub(crate) fn target(&self) -> SuiteTarget {
        SuiteTarget {
            base: format!("http://{}", self.address()),
            model: MODEL.to_owned(),
            provider_pid: self.0.pid(),
            ..SuiteTarget::default()
        }
    }
}

/// The mock's model that answers at once.
pub(crate) const MODEL: &str = "mock-fast";

/// A gateway under test.
#[derive(Debug)]
pub(crate) struct Gateway {
    pub(crate) target: SuiteTarget,
    child: Option<Child>,
}

impl Gateway {
    /// The reference gateway.
    pub(crate) fn reference(child: Child, provider: Option<&Provider>) -> Self {
        let target = SuiteTarget {
            base: format!("http://{}", child.address()),
            model: MODEL.to_owned(),
            gateway_pid: child.pid(),
            provider_pid: provider.and_then(|provider| provider.0.pid()),
            ..SuiteTarget::default()
        };
        Self { target, child: Some(child) }
    }

    /// The user's.
    pub(crate) const fn external(target: SuiteTarget) -> Self {
        Self { target, child: None }
    }

    /// The same over TLS, with a self-signed certificate.
    pub(crate) fn https(&self) -> SuiteTarget {
        let base = self.target.base.replacen("http://", "https://", 1);
        SuiteTarget { base, insecure: true, ..self.target.clone() }
    }

    /// `HOST:PORT` of the reference gateway.
    pub(crate) fn address(&self) -> Option<&str> {
        self.child.as_ref().map(Child::address)
    }
}

/// A label as the name of a target, or as part of a file name.
pub(crate) fn slug(label: &str) -> String {
    let text: String = label
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' })
        .collect();
    text.split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_make_names() {
        for (label, name) in [
            ("GET /health/live, 64 clients", "get-health-live-64-clients"),
            ("--", ""),
            ("ä+PII", "pii"),
        ] {
            assert_eq!(slug(label), name);
        }
    }

    #[test]
    fn the_secure_variant_differs_in_its_scheme_alone() {
        let base = "http://127.0.0.1:1/http://".to_owned();
        let target = SuiteTarget { base, model: MODEL.to_owned(), ..SuiteTarget::default() };
        let secure = Gateway::external(target).https();
        assert_eq!(secure.base, "https://127.0.0.1:1/http://");
        assert!(secure.insecure && secure.model == MODEL);
    }

    #[test]
    fn the_prefix_is_the_path_of_the_base() {
        for (base, prefix) in [
            ("http://127.0.0.1:1", ""),
            ("https://gateway.example/", ""),
            ("https://gateway.example/team/v1/", "/team/v1"),
            ("https://gateway.example/v1?api-version=2", "/v1"),
        ] {
            let target = SuiteTarget { base: base.to_owned(), ..SuiteTarget::default() };
            assert_eq!(target.prefix(), prefix, "{base}");
        }
    }
}
