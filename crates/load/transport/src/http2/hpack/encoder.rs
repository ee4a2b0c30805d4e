//! Encodes header blocks (RFC 7541, section 6).
//!
//! Strings are never Huffman-coded: that would save a few bytes and cost both ends time.

use super::{ENTRY_OVERHEAD, HeaderTable, MAX_TABLE_SIZE, integer};

/// The part of a field that is stored in the dynamic table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Indexing {
    /// Name and value: for fields that repeat.
    NameAndValue,
    /// Only the name: for values that change each time.
    NameOnly,
    /// Not at all.
    None,
    /// Not at all, and intermediaries must not store it either: for secrets (section 7.1.3).
    Never,
}

/// The encoder of one connection.
#[derive(Debug)]
pub struct Encoder {
    table: HeaderTable,
    /// Number of insertions and size changes. Blocks with indices of an earlier count are stale.
    changes: u64,
    /// The smallest size since the last block, if the next one must announce a change (section
    /// 4.2).
    smallest_pending: Option<usize>,
}

impl Default for Encoder {
    fn default() -> Self {
        Self { table: HeaderTable::new(MAX_TABLE_SIZE), changes: 0, smallest_pending: None }
    }
}

impl Encoder {
    /// A number that changes whenever indices change.
    pub const fn changes(&self) -> u64 {
        self.changes
    }

    /// Sets the maximum size of the target's table.
    pub fn set_max_table_size(&mut self, size: usize) {
        let size = size.min(MAX_TABLE_SIZE);
        if size == self.table.max() {
            return;
        }
        self.smallest_pending = Some(self.smallest_pending.map_or(size, |before| before.min(size)));
        self.table.resize(size);
        self.changes += 1;
    }

    /// Begins a block. Announces changes of the table size.
    pub fn begin_block(&mut self, out: &mut Vec<u8>) {
        let Some(smallest) = self.smallest_pending.take() else { return };
        if smallest < self.table.max() {
            integer::encode(smallest, 5, 0x20, out);
        }
        integer::encode(self.table.max(), 5, 0x20, out);
    }

    /// Appends a field.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let found = self.table.find(name, value);
        let index = found.map_or(0, |(index, _)| index);
        if indexing != Indexing::Never && matches!(found, Some((_, true))) {
            integer::encode(index, 7, 0x80, out);
            return;
        }
        let keep = match indexing {
            Indexing::NameAndValue => true,
            Indexing::NameOnly => index == 0,
            Indexing::None | Indexing::Never => false,
        };
        // A large entry would evict the others.
        let keep = keep && name.len() + value.len() + ENTRY_OVERHEAD <= self.table.max() / 4;
        match indexing {
            _ if keep => integer::encode(index, 6, 0x40, out),
            Indexing::Never => integer::encode(index, 4, 0x10, out),
            _ => integer::encode(index, 4, 0x00, out),
        }
        if index == 0 {
            string(name, out);
        }
        string(value, out);
        if keep {
            self.table.insert(name, value, true);
            self.changes += 1;
        }
    }

    /// The index of a name in the tables, for [`literal`].
    pub(in crate::http2) fn index_of(&self, name: &[u8]) -> Option<usize> {
        self.table.find(name, b"").map(|(index, _)| index)
    }
}

/// Appends a field with an indexed name, without changing the tables.
pub(in crate::http2) fn literal(index: usize, value: &[u8], out: &mut Vec<u8>) {
    integer::encode(index, 4, 0x00, out);
    string(value, out);
}

fn string(text: &[u8], out: &mut Vec<u8>) {
    integer::encode(text.len(), 7, 0x00, out);
    out.extend_from_slice(text);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(encoder: &mut Encoder, fields: &[(&str, &str, Indexing)]) -> Vec<u8> {
        let mut out = Vec::new();
        encoder.begin_block(&mut out);
        for (name, value, indexing) in fields {
            encoder.field(name.as_bytes(), value.as_bytes(), *indexing, &mut out);
        }
        out
    }

    #[test]
    fn requests_are_encoded_as_in_appendix_c_3() {
        use Indexing::NameAndValue;
        let mut encoder = Encoder::default();
        let shared = [
            (":method", "GET", NameAndValue),
            (":scheme", "http", NameAndValue),
            (":path", "/", NameAndValue),
        ];
        let authority = (":authority", "www.example.com", NameAndValue);
        let first = block(&mut encoder, &[shared.as_slice(), &[authority]].concat());
        assert_eq!(first, b"\x82\x86\x84\x41\x0fwww.example.com");
        let cache = ("cache-control", "no-cache", NameAndValue);
        let second = block(&mut encoder, &[shared.as_slice(), &[authority, cache]].concat());
        assert_eq!(second, b"\x82\x86\x84\xbe\x58\x08no-cache");
    }

    #[test]
    fn secrets_are_marked_and_changing_values_share_their_name() {
        let mut encoder = Encoder::default();
        let secret = ("authorization", "Bearer x", Indexing::Never);
        assert_eq!(block(&mut encoder, &[secret]), b"\x1f\x08\x08Bearer x");
        assert_eq!(block(&mut encoder, &[secret]), b"\x1f\x08\x08Bearer x");
        assert_eq!(block(&mut encoder, &[("x-id", "1", Indexing::NameOnly)]), b"\x40\x04x-id\x011");
        assert_eq!(block(&mut encoder, &[("x-id", "2", Indexing::NameOnly)]), b"\x0f\x2f\x012");
        assert_eq!(block(&mut encoder, &[("x-id", "3", Indexing::None)]), b"\x0f\x2f\x013");
        assert_eq!(encoder.changes(), 1);
    }

    #[test]
    fn a_change_of_the_table_size_is_announced_in_the_next_block() {
        let mut encoder = Encoder::default();
        let field = ("a", "b", Indexing::NameAndValue);
        assert_eq!(block(&mut encoder, &[field]), b"\x40\x01a\x01b");
        encoder.set_max_table_size(1 << 20);
        assert_eq!(block(&mut encoder, &[field]), b"\xbe", "more than we use changes nothing");
        encoder.set_max_table_size(0);
        assert_eq!(block(&mut encoder, &[field]), b"\x20\x00\x01a\x01b");
        encoder.set_max_table_size(4096);
        encoder.set_max_table_size(30);
        encoder.set_max_table_size(100);
        assert_eq!(block(&mut encoder, &[]), b"\x3e\x3f\x45", "the smallest, then the last");
    }
}
