//! A route that an upstream serves.

use std::sync::Arc;

use plimsoll_gateway_dialect::Endpoint;

use crate::config::units::HumanDuration;
use crate::upstream::Upstream;

/// The path without the route's prefix.
pub(crate) fn strip_prefix<'a>(path: &'a str, prefix: Option<&str>) -> &'a str {
    prefix.and_then(|prefix| path.strip_prefix(prefix)).unwrap_or(path)
}

/// A route that an upstream serves.
#[derive(Clone, Debug)]
pub(crate) struct Proxy {
    pub(crate) upstream: Arc<Upstream>,
    pub(crate) strip: Option<String>,
    pub(crate) timeout: HumanDuration,
    pub(crate) llm: LlmUse,
    pub(crate) websocket: bool,
}

/// Whether the requests of a route are those of an LLM API, which layers read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LlmUse {
    Never,
    /// Those to paths of an LLM API, which a layer reads whatever the route says.
    ByPath {
        /// Whether those are refused that look so and cannot be read.
        refuse_unread: bool,
    },
    Always,
}

impl Proxy {
    /// Whether a request to this path is one of an LLM API that layers read.
    pub(crate) fn is_llm(&self, path: &str) -> bool {
        match self.llm {
            LlmUse::Never => false,
            LlmUse::Always => true,
            LlmUse::ByPath { .. } => {
                Endpoint::from_path(strip_prefix(path, self.strip.as_deref())).is_some()
            }
        }
    }

    /// Whether a request to this path looks like one of an LLM API that no layer can read, and must
    /// not pass unread.
    pub(crate) fn refuses_unread(&self, path: &str) -> bool {
        self.llm == LlmUse::ByPath { refuse_unread: true }
            && Endpoint::is_llm_path(strip_prefix(path, self.strip.as_deref()))
    }

    /// To an upstream with a request that the gateway itself makes.
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
