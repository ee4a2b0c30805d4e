//! Reusable buffers of a worker for requests and reads.

use nix::cmsg_space;
use nix::sys::time::TimeSpec;
use smart_default::SmartDefault;

use crate::rx_timestamp::RxTime;

/// Bytes read at once. One read takes whatever a loopback or 100 Gbit/s link delivers between two
/// wake-ups of a busy worker.
const READ_SIZE: usize = 64 * 1024;
/// Maximum number of spare buffers for deferred reads: about as many as tasks run between two polls
/// of the sockets.
const MOST_SPARE: usize = 64;

/// The read buffers of a worker. All its connections share them; a waiting connection has none.
#[derive(Debug, SmartDefault)]
pub struct ReadBuffers {
    /// Bytes as received.
    #[default(vec![0; READ_SIZE])]
    pub(crate) raw: Vec<u8>,
    /// Decrypted bytes.
    #[default(vec![0; READ_SIZE])]
    pub(crate) plaintext: Vec<u8>,
    /// Control messages of the kernel, with the time stamp of a read.
    #[default(control_buffer())]
    pub(crate) control: Vec<u8>,
    /// Head and body of a small request, joined for one write.
    pub(crate) small_request: Vec<u8>,
    /// Spare buffers for deferred reads.
    #[expect(clippy::vec_box, reason = "a connection has one, and nearly always none")]
    kept: Vec<Box<KeptRead>>,
}

/// A read that is handled later.
#[derive(Debug, Default)]
pub(crate) struct KeptRead {
    pub(crate) bytes: Vec<u8>,
    pub(crate) rx_time: RxTime,
}

impl KeptRead {
    pub(crate) fn keep(&mut self, bytes: &[u8], rx_time: RxTime) {
        self.bytes.extend_from_slice(bytes);
        self.rx_time = rx_time;
    }
}

impl ReadBuffers {
    /// Returns an empty buffer for a deferred read.
    #[expect(clippy::unnecessary_box_returns, reason = "the box is what is used again")]
    pub(crate) fn acquire_kept(&mut self) -> Box<KeptRead> {
        self.kept.pop().unwrap_or_default()
    }

    /// Takes the buffer back for reuse.
    pub(crate) fn release_kept(&mut self, mut kept: Box<KeptRead>) {
        kept.bytes.clear();
        if self.kept.len() < MOST_SPARE {
            self.kept.push(kept);
        }
    }
}

fn control_buffer() -> Vec<u8> {
    cmsg_space!(TimeSpec)
}

/// The bytes of a request.
#[derive(Debug, Default)]
pub struct EncodedRequest {
    /// The head in the wire format of HTTP/1.1, written by
    /// [`RequestHead::render`](crate::RequestHead::render).
    pub head: Vec<u8>,
    /// The body.
    pub body: Vec<u8>,
}

impl EncodedRequest {
    /// Length of head and body in bytes.
    pub const fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }

    /// Whether head and body are empty.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
