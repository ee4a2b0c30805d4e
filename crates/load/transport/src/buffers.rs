//! Buffers of requests and reads, which workers reuse.

use nix::cmsg_space;
use nix::sys::time::TimeSpec;

/// Bytes read at once. One read takes whatever a loopback or 100 Gbit/s link delivers between two
/// wake-ups of a busy worker.
const READ_SIZE: usize = 64 * 1024;
/// Rooms for bytes that are handled later that are kept: as many as tasks have a turn between two
/// looks at the sockets, about.
const MOST_SPARE: usize = 64;

/// The read buffers of a worker. All its connections share them; a waiting one holds none.
#[derive(Debug)]
pub struct ReadBuffers {
    /// Bytes as received.
    pub(crate) raw: Vec<u8>,
    /// The same, decrypted.
    pub(crate) plaintext: Vec<u8>,
    /// Control messages of the kernel, with the time stamp of a read.
    pub(crate) control: Vec<u8>,
    /// Head and body of a small request, joined for one write.
    pub(crate) small_request: Vec<u8>,
    /// Spare room for bytes that are handled later.
    kept: Vec<Vec<u8>>,
}

impl ReadBuffers {
    /// Empty room for bytes that are handled later.
    pub(crate) fn acquire_kept(&mut self) -> Vec<u8> {
        self.kept.pop().unwrap_or_default()
    }

    /// Takes it back, to be used again.
    pub(crate) fn release_kept(&mut self, mut bytes: Vec<u8>) {
        bytes.clear();
        if self.kept.len() < MOST_SPARE {
            self.kept.push(bytes);
        }
    }
}

impl Default for ReadBuffers {
    fn default() -> Self {
        Self {
            raw: vec![0; READ_SIZE],
            plaintext: vec![0; READ_SIZE],
            control: control_buffer(),
            small_request: Vec::new(),
            kept: Vec::new(),
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
