//! Reads a whole body, bounded in size, time and memory.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::timeout;

use crate::base::memory::{MemoryBudget, SHORT_PATIENCE, UNCOUNTED};

/// The bounds of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) bytes: usize,
    pub(crate) time: Duration,
}

/// Why a body was not read.
#[derive(Debug)]
pub(crate) enum Unread {
    /// It is larger than allowed.
    TooLarge,
    /// It did not end in time.
    TooSlow,
    /// The memory budget is exhausted.
    NoMemory,
    /// It is malformed, or the connection broke.
    Broken,
}

/// Reads a body. While memory is short, the time limit is one second.
///
/// # Errors
/// The reason why it was not read.
pub(crate) async fn read(
    body: Incoming,
    bounds: Bounds,
    memory: &Arc<MemoryBudget>,
) -> Result<Bytes, Unread> {
    let mut reading = pin!(read_frames(body, bounds.bytes, memory));
    // Most bodies have arrived with their head, and need no timer.
    let arrived = poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
    if let Poll::Ready(read) = arrived {
        return read;
    }
    let mut left = bounds.time;
    loop {
        let step = left.min(SHORT_PATIENCE);
        if let Ok(read) = timeout(step, reading.as_mut()).await {
            return read;
        }
        left -= step;
        if left.is_zero() {
            return Err(Unread::TooSlow);
        }
        if memory.is_short() {
            return Err(Unread::NoMemory);
        }
    }
}

/// A body of one frame, the usual case, is not copied.
async fn read_frames(
    mut body: Incoming,
    limit: usize,
    memory: &Arc<MemoryBudget>,
) -> Result<Bytes, Unread> {
    let (mut first, mut all, mut held) = (Bytes::new(), BytesMut::new(), None);
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|_| Unread::Broken)?.into_data() else { continue };
        let size = first.len().max(all.len()) + data.len();
        if size > limit {
            return Err(Unread::TooLarge);
        }
        if size > UNCOUNTED && !memory.hold_in(&mut held, size) {
            return Err(Unread::NoMemory);
        }
        if first.is_empty() {
            first = data;
            continue;
        }
        if all.is_empty() {
            all.extend_from_slice(&first);
        }
        all.extend_from_slice(&data);
    }
    let whole = if all.is_empty() { first } else { all.freeze() };
    Ok(match held {
        Some(held) => held.attach(whole),
        None => whole,
    })
}
