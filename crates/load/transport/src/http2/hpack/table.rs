//! The static table (RFC 7541, appendix A) and the dynamic one (sections 2.3.2 and 4).

use std::collections::VecDeque;

/// The size of an entry beyond its bytes (RFC 7541, section 4.1).
pub(super) const ENTRY_OVERHEAD: usize = 32;

/// Entries 1 to 61.
#[rustfmt::skip]
static STATIC: [(&str, &str); 61] = [
    (":authority", ""), (":method", "GET"), (":method", "POST"), (":path", "/"), (":path", "/index.html"),
    (":scheme", "http"), (":scheme", "https"), (":status", "200"), (":status", "204"), (":status", "206"),
    (":status", "304"), (":status", "400"), (":status", "404"), (":status", "500"), ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"), ("accept-language", ""), ("accept-ranges", ""), ("accept", ""),
    ("access-control-allow-origin", ""), ("age", ""), ("allow", ""), ("authorization", ""), ("cache-control", ""),
    ("content-disposition", ""), ("content-encoding", ""), ("content-language", ""), ("content-length", ""),
    ("content-location", ""), ("content-range", ""), ("content-type", ""), ("cookie", ""), ("date", ""), ("etag", ""),
    ("expect", ""), ("expires", ""), ("from", ""), ("host", ""), ("if-match", ""), ("if-modified-since", ""),
    ("if-none-match", ""), ("if-range", ""), ("if-unmodified-since", ""), ("last-modified", ""), ("link", ""),
    ("location", ""), ("max-forwards", ""), ("proxy-authenticate", ""), ("proxy-authorization", ""), ("range", ""),
    ("referer", ""), ("refresh", ""), ("retry-after", ""), ("server", ""), ("set-cookie", ""),
    ("strict-transport-security", ""), ("transfer-encoding", ""), ("user-agent", ""), ("vary", ""), ("via", ""),
    ("www-authenticate", ""),
];

/// An entry: name, value, and whether the field is valid.
pub(super) type Entry<'a> = (&'a [u8], &'a [u8], bool);

/// The position of an entry, counted from the first byte ever inserted.
#[derive(Clone, Copy, Debug)]
struct EntryPosition {
    start: usize,
    name: usize,
    value: usize,
    valid: bool,
}

/// Both tables in one index space.
///
/// The bytes of the dynamic table are in one vector, newest last. Evicted bytes at its front are
/// removed when they exceed the table's size, so inserting does not allocate in the steady state.
#[derive(Debug)]
pub(super) struct HeaderTable {
    /// Newest first.
    positions: VecDeque<EntryPosition>,
    bytes: Vec<u8>,
    /// Position of the first byte of `bytes`.
    base: usize,
    size: usize,
    max: usize,
}

impl HeaderTable {
    pub(super) fn new(max: usize) -> Self {
        Self { positions: VecDeque::new(), bytes: Vec::new(), base: 0, size: 0, max }
    }

    pub(super) const fn max(&self) -> usize {
        self.max
    }

    /// Changes the maximum size and evicts entries that no longer fit (section 4.3).
    pub(super) fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(max);
    }

    /// The entry of an index, counted from 1. Entries of the static table are valid.
    pub(super) fn get(&self, index: usize) -> Option<Entry<'_>> {
        let index = index.checked_sub(1)?;
        if let Some((name, value)) = STATIC.get(index) {
            return Some((name.as_bytes(), value.as_bytes(), true));
        }
        let EntryPosition { start, name, value, valid } =
            *self.positions.get(index - STATIC.len())?;
        let (name, rest) = self.bytes[start - self.base..].split_at(name);
        Some((name, &rest[..value], valid))
    }

    /// Inserts an entry. An entry larger than the whole table empties it (section 4.4).
    pub(super) fn insert(&mut self, name: &[u8], value: &[u8], valid: bool) {
        let size = name.len() + value.len() + ENTRY_OVERHEAD;
        self.evict(self.max.saturating_sub(size));
        if size > self.max {
            return;
        }
        self.compact();
        let start = self.base + self.bytes.len();
        self.bytes.extend_from_slice(name);
        self.bytes.extend_from_slice(value);
        self.positions.push_front(EntryPosition {
            start,
            name: name.len(),
            value: value.len(),
            valid,
        });
        self.size += size;
    }

    /// Evicts the oldest entries until the size is at most `size`.
    fn evict(&mut self, size: usize) {
        while self.size > size
            && let Some(position) = self.positions.pop_back()
        {
            self.size -= position.name + position.value + ENTRY_OVERHEAD;
        }
    }

    fn compact(&mut self) {
        let end = self.base + self.bytes.len();
        let live = self.positions.back().map_or(end, |oldest| oldest.start);
        if live - self.base > self.max {
            self.bytes.drain(..live - self.base);
            self.base = live;
        }
    }

    /// The index of an entry with this name, and whether its value is equal too.
    pub(super) fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
        let mut named = None;
        for index in 1..=STATIC.len() + self.positions.len() {
            let Some((found, its_value, _)) = self.get(index) else { break };
            if found != name {
                continue;
            }
            if its_value == value {
                return Some((index, true));
            }
            named = named.or(Some((index, false)));
        }
        named
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_found_by_index_and_evicted_when_the_table_is_full() {
        let mut table = HeaderTable::new(100);
        table.insert(b"a", b"1", true);
        table.insert(b"b", b"2", false);
        assert_eq!(table.get(62), Some((&b"b"[..], &b"2"[..], false)));
        assert_eq!(table.get(63), Some((&b"a"[..], &b"1"[..], true)));
        assert_eq!(
            (table.find(b"a", b"1"), table.find(b"a", b"9")),
            (Some((63, true)), Some((63, false)))
        );
        // 34 bytes each: the third evicts the first.
        table.insert(b"c", b"3", true);
        assert_eq!((table.get(63).map(|entry| entry.0), table.get(64)), (Some(&b"b"[..]), None));
        table.resize(40);
        assert_eq!((table.get(62).map(|entry| entry.0), table.get(63)), (Some(&b"c"[..]), None));
        table.insert(b"d", &[b'x'; 50], true);
        assert_eq!(table.get(62), None, "an entry that is too large empties the table");
    }

    #[test]
    fn the_static_table_matches_the_rfc() {
        for (index, name, value) in [
            (1, ":authority", ""),
            (2, ":method", "GET"),
            (8, ":status", "200"),
            (16, "accept-encoding", "gzip, deflate"),
            (28, "content-length", ""),
            (31, "content-type", ""),
            (54, "server", ""),
            (58, "user-agent", ""),
            (61, "www-authenticate", ""),
        ] {
            assert_eq!(
                HeaderTable::new(0).get(index),
                Some((name.as_bytes(), value.as_bytes(), true))
            );
        }
        assert_eq!((HeaderTable::new(0).get(0), HeaderTable::new(0).get(62)), (None, None));
    }

    #[test]
    fn a_table_with_many_evictions_stays_small() {
        let mut table = HeaderTable::new(200);
        for n in 0..10_000_u32 {
            table.insert(b"name", n.to_string().as_bytes(), true);
            assert_eq!(table.get(62).unwrap().1, n.to_string().as_bytes());
        }
        assert!(table.bytes.len() <= 600, "{}", table.bytes.len());
    }
}
