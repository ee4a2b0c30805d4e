//! A cached response, its key, and its encoding in Redis.

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};

/// The key of a response: a digest of the request, made by the caller. It must be
/// collision-resistant (SHA-256), because requests with equal keys share answers, and it must
/// include the tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CacheKey(pub [u8; 32]);

/// A response for replay: the body is kept frame by frame, so that a stream has its original
/// chunks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CachedResponse {
    /// The HTTP status.
    pub status: u16,
    /// Names and values of the headers that are replayed.
    pub headers: Vec<(Bytes, Bytes)>,
    /// The frames of the body.
    pub frames: Vec<Bytes>,
}

/// The version of the encoding. Entries in another version are misses.
const ENCODING_VERSION: u8 = 1;

/// Overhead of an entry: key, links, reference counts, vectors. A round figure.
const FIXED_COST: usize = 256;
/// Overhead of a frame or header.
const PIECE_COST: usize = 48;

impl CachedResponse {
    /// The memory that the cache accounts for it, in bytes.
    pub fn weight(&self) -> usize {
        let headers =
            self.headers.iter().map(|(name, value)| name.len() + value.len() + 2 * PIECE_COST);
        let frames = self.frames.iter().map(|frame| frame.len() + PIECE_COST);
        FIXED_COST + headers.sum::<usize>() + frames.sum::<usize>()
    }

    /// As bytes: version, status, number of headers and frames, then each piece after its length,
    /// all big-endian.
    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(self.weight());
        out.put_u8(ENCODING_VERSION);
        out.put_u16(self.status);
        out.put_u32(count(self.headers.len()));
        out.put_u32(count(self.frames.len()));
        let headers = self.headers.iter().flat_map(|(name, value)| [name, value]);
        for piece in headers.chain(&self.frames) {
            out.put_u32(count(piece.len()));
            out.put_slice(piece);
        }
        out.freeze()
    }

    /// Decodes the output of [`encode`](Self::encode) without copying the pieces; `None` for other
    /// bytes.
    pub fn decode(mut from: Bytes) -> Option<Self> {
        if from.try_get_u8().ok()? != ENCODING_VERSION {
            return None;
        }
        let status = from.try_get_u16().ok()?;
        let headers = from.try_get_u32().ok()?;
        let frames = from.try_get_u32().ok()?;
        let headers = (0..headers)
            .map(|_| Some((piece(&mut from)?, piece(&mut from)?)))
            .collect::<Option<_>>()?;
        let frames = (0..frames).map(|_| piece(&mut from)).collect::<Option<_>>()?;
        from.is_empty().then_some(Self { status, headers, frames })
    }
}

/// Bodies are limited far below 4 GiB.
fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn piece(from: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(from.try_get_u32().ok()?).ok()?;
    (length <= from.len()).then(|| from.split_to(length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    proptest! {
        #[test]
        fn what_was_written_is_read(
            status in any::<u16>(),
            headers in prop::collection::vec((bytes(), bytes()), 0..6),
            frames in prop::collection::vec(bytes(), 0..12),
        ) {
            let response = CachedResponse { status, headers, frames };
            prop_assert_eq!(CachedResponse::decode(response.encode()), Some(response));
        }

        #[test]
        fn foreign_bytes_are_no_answer_and_no_panic(mut from in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = CachedResponse::decode(Bytes::from(from.clone()));
            if let Some(first) = from.first_mut() {
                *first = ENCODING_VERSION;
            }
            let read = CachedResponse::decode(Bytes::from(from.clone()));
            if let Some(response) = read {
                prop_assert_eq!(response.encode(), Bytes::from(from));
            }
        }

        #[test]
        fn a_cut_answer_is_none(frames in prop::collection::vec(bytes(), 1..6), cut in 1_usize..9) {
            let whole = CachedResponse { status: 200, headers: vec![], frames }.encode();
            let cut = whole.len() - cut.min(whole.len());
            prop_assert_eq!(CachedResponse::decode(whole.slice(..cut)), None);
        }
    }
}
