//! The cache of LLM responses.

use hyper::header::HeaderName;
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::config::units::{ByteSize, HumanDuration};
use crate::layers::counters::LayerCounter;
use crate::layers::{Layer, Setup, header_name};

/// The cache of LLM responses.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct CacheSpec {
    /// Time that a response is cached, unless its headers allow less.
    #[default(HumanDuration::secs(600))]
    pub ttl: HumanDuration,
    /// Longest time that a streamed request waits for the answer to an equal one in flight before
    /// it is sent itself. For whole answers the limit is the upstream's.
    #[default(HumanDuration::millis(250))]
    pub wait: HumanDuration,
    /// Most bytes of cached responses in memory.
    #[default(ByteSize(256 << 20))]
    pub bytes: ByteSize,
    /// Header with which a request bypasses the cache.
    #[default("x-cache-bypass".to_owned())]
    pub bypass_header: String,
}

/// Requests by cache result.
pub(crate) static CACHE_RESULTS: LayerCounter = LayerCounter {
    name: "cache",
    help: "LLM requests by cache result: hit, miss or bypass",
    labels: &["state"],
    known: &[&["hit"], &["miss"], &["bypass"]],
};

impl Layer for CacheSpec {
    type Section = Self;
    const READS_ANSWERS: bool = true;
    const COUNTERS: &'static [&'static LayerCounter] = &[&CACHE_RESULTS];

    fn new(section: &Self, _setup: &Setup<'_>) -> Result<Self, String> {
        header_name("cache: `bypass_header`", &section.bypass_header).map(|_| section.clone())
    }

    fn headers(&self) -> Vec<HeaderName> {
        HeaderName::try_from(&self.bypass_header).into_iter().collect()
    }
}
