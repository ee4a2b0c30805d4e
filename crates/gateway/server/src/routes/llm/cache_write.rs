//! Writing responses to the cache.

use std::mem;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use plimsoll_gateway_store::{CachedResponse, Lead};

use crate::base::clock;
use crate::base::poll_or_spawn::poll_or_spawn;
use crate::http::body_filter::{BodyFilter, BoxError};
use crate::layers::ObservedUsage;

/// The largest response that is cached.
const MAX_BYTES: usize = 4 << 20;

/// The duty to write a response to the cache, for which other requests may be waiting.
pub(super) struct CacheWrite {
    pub(super) lead: Lead,
    pub(super) ttl: Duration,
}

impl CacheWrite {
    /// Reports an uncacheable response: all waiting requests are sent themselves.
    pub(super) fn cancel(self) {
        self.lead.alone();
    }

    /// Like [`Self::write`], for a response in one piece. It is copied, because the cache counts
    /// its own memory.
    pub(super) fn write_whole(self, content_type: Option<&HeaderValue>, body: &Bytes) {
        if body.len() > MAX_BYTES {
            return self.cancel();
        }
        self.write(content_type, vec![Bytes::copy_from_slice(body)]);
    }

    /// Caches a response, frame by frame, and passes it to all waiting requests.
    pub(super) fn write(self, content_type: Option<&HeaderValue>, frames: Vec<Bytes>) {
        let content_type = content_type.map(|value| {
            (
                Bytes::from_static(CONTENT_TYPE.as_str().as_bytes()),
                Bytes::copy_from_slice(value.as_bytes()),
            )
        });
        let answer =
            CachedResponse { status: 200, headers: content_type.into_iter().collect(), frames };
        let Self { lead, ttl } = self;
        poll_or_spawn(async move { lead.fill(clock::now(), answer, ttl).await });
    }
}

/// Records a response on its way to the client, and caches it at the end.
pub(super) struct CacheFilter {
    write: Option<CacheWrite>,
    content_type: Option<HeaderValue>,
    usage: Rc<ObservedUsage>,
    frames: Vec<Bytes>,
    size: usize,
}

impl CacheFilter {
    /// `usage` knows at the end whether the response was a complete and good answer.
    pub(super) const fn new(
        write: CacheWrite,
        content_type: Option<HeaderValue>,
        usage: Rc<ObservedUsage>,
    ) -> Self {
        Self { write: Some(write), content_type, usage, frames: Vec::new(), size: 0 }
    }
}

impl BodyFilter for CacheFilter {
    fn chunk(&mut self, chunk: Bytes) -> Result<Bytes, BoxError> {
        if self.write.is_some() {
            self.size += chunk.len();
            // Copied, because the chunk may keep a much larger buffer alive.
            self.frames.push(Bytes::copy_from_slice(&chunk));
        }
        if self.size > MAX_BYTES {
            self.frames = Vec::new();
            self.size = 0;
            if let Some(write) = self.write.take() {
                write.cancel();
            }
        }
        Ok(chunk)
    }

    /// Only complete and good answers are cached. If the filter is dropped early, one of the
    /// waiting requests takes over.
    fn end(&mut self) -> Result<Bytes, BoxError> {
        match self.write.take() {
            Some(write) if self.usage.is_answer.get() => {
                write.write(self.content_type.as_ref(), mem::take(&mut self.frames));
            }
            Some(write) => write.cancel(),
            None => {}
        }
        Ok(Bytes::new())
    }

    fn buffered_bytes(&self) -> usize {
        self.size
    }

    fn is_transparent(&self) -> bool {
        true
    }
}
