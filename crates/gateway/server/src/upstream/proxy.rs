//! A route to an upstream.

use std::sync::Arc;

use plimsoll_gateway_dialect::Endpoint;

use crate::config::units::HumanDuration;
use crate::upstream::Upstream;

/// The path without the route's prefix.
pub(crate) fn strip_prefix<'a>(path: &'a str, prefix: Option<&str>) -> &'a str {
    prefix.and_then(|prefix| path.strip_prefix(prefix)).unwrap_or(path)
}

/// A route to an upstream.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) strip: Option<String>,
    pub(crate) timeout: HumanDuration,
    pub(crate) llm: LlmUse,
    pub(crate) websocket: bool,
}

/// Whether the requests of a route belong to an LLM API, which layers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LlmUse {
    Never,
    /// Only requests to paths of an LLM API, regardless of the route's settings.
    ByPath {
        /// Whether unreadable paths that look like an LLM API are refused.
        refuse_unread: bool,
    },
    Always,
}

impl Proxy {
    /// Whether a request to this path belongs to an LLM API that layers read.
    pub(crate) fn is_llm(&self, path: &str) -> bool {
        match self.llm {
            LlmUse::Never => false,
            LlmUse::Always => true,
            LlmUse::ByPath { .. } => {
                Endpoint::from_path(strip_prefix(path, self.strip.as_deref())).is_some()
            }
        }
    }

    /// Whether a request to this path looks like an LLM API that no layer can read, and must be
    /// refused.
    pub(crate) fn refuses_unread(&self, path: &str) -> bool {
        self.llm == LlmUse::ByPath { refuse_unread: true }
            && Endpoint::is_llm_path(strip_prefix(path, self.strip.as_deref()))
    }

    /// The route of the gateway's own requests to an upstream.
    pub(crate) fn to(upstream: &Arc<Upstream>) -> Self {
        Self {
            upstream: Arc::clone(upstream),
            strip: None,
            timeout: upstream.timeout,
            llm: LlmUse::Never,
            websocket: false,
        }
    }
}
