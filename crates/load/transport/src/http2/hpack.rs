//! HPACK (RFC 7541): header blocks, compressed with tables that both ends keep in sync.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod table;

pub use decoder::{Decoder, HeaderField};
pub(super) use encoder::literal;
pub use encoder::{Encoder, Indexing};

/// Initial size of a connection's dynamic tables (RFC 9113, section 6.5.2). The client neither
/// offers nor uses a larger one.
pub const MAX_TABLE_SIZE: usize = 4096;

/// A block that is not valid HPACK. From here on the tables are out of sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpackError(pub &'static str);
