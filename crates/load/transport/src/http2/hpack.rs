//! HPACK (RFC 7541): field sections, compressed by tables that both ends keep in step.

mod decoder;
mod encoder;
mod huffman;
mod integer;
mod table;

pub use decoder::{Decoder, Field};
pub(super) use encoder::literal;
pub use encoder::{Encoder, Indexing};

/// Size of the dynamic tables with which every connection starts (RFC 9113, section 6.5.2). We never ask for more, and
/// never use more of the target's.
pub const TABLE_SIZE: usize = 4096;

/// A block that is not HPACK: the tables are out of step from here on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken(pub &'static str);
