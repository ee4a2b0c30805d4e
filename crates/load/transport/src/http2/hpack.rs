//! HPACK (RFC 7541): header blocks, compressed with tables that both ends keep in sync.

use std::collections::VecDeque;

mod huffman;

/// Initial size of a connection's dynamic tables (RFC 9113, section 6.5.2). The client neither
/// offers nor uses a larger one.
pub const MAX_TABLE_SIZE: usize = 4096;

/// A block that is not valid HPACK. From here on the tables are out of sync.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HpackError(pub &'static str);

/// A decoded field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderField<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
    /// Whether all its bytes are allowed in an HTTP field. Kept in the table, so that a repeated
    /// field is checked once.
    pub valid: bool,
}

/// The decoder of one connection.
///
/// RFC 7541, sections 3 and 6.
#[derive(Debug)]
pub struct Decoder {
    table: HeaderTable,
    name: Vec<u8>,
    value: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self { table: HeaderTable::new(MAX_TABLE_SIZE), name: Vec::new(), value: Vec::new() }
    }
}

impl Decoder {
    /// Decodes one whole block.
    ///
    /// # Errors
    /// [`HpackError`] if it is not valid HPACK. The connection cannot be read any further then.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        on: &mut impl FnMut(HeaderField<'_>),
    ) -> Result<(), HpackError> {
        // Changes of the table size come first (section 4.2).
        while let Some(0x20..=0x3f) = block.first() {
            let size = decode(&mut block, 5)?;
            if size > MAX_TABLE_SIZE {
                return Err(HpackError("the dynamic table is made larger than allowed"));
            }
            self.table.resize(size);
        }
        while let Some(&first) = block.first() {
            match first {
                0x80.. => {
                    let index = decode(&mut block, 7)?;
                    let (name, value, valid) = self.entry(index)?;
                    on(HeaderField { name, value, valid });
                }
                0x40.. => self.literal(&mut block, 6, true, on)?,
                0x20.. => return Err(HpackError("the size of the table is changed in mid-block")),
                _ => self.literal(&mut block, 4, false, on)?,
            }
        }
        Ok(())
    }

    fn entry(&self, index: usize) -> Result<(&[u8], &[u8], bool), HpackError> {
        self.table.get(index).ok_or(HpackError("an index is beyond the tables"))
    }

    fn literal(
        &mut self,
        block: &mut &[u8],
        prefix: u32,
        insert: bool,
        on: &mut impl FnMut(HeaderField<'_>),
    ) -> Result<(), HpackError> {
        self.name.clear();
        self.value.clear();
        match decode(block, prefix)? {
            0 => string(block, &mut self.name)?,
            index => {
                let (name, _, _) =
                    self.table.get(index).ok_or(HpackError("an index is beyond the tables"))?;
                self.name.extend_from_slice(name);
            }
        }
        string(block, &mut self.value)?;
        let valid = is_name(&self.name) && is_value(&self.value);
        if insert {
            self.table.insert(&self.name, &self.value, valid);
        }
        on(HeaderField { name: &self.name, value: &self.value, valid });
        Ok(())
    }
}

/// Removes a string from the front of `block` (section 5.2).
fn string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), HpackError> {
    let is_huffman = block.first().is_some_and(|first| first & 0x80 != 0);
    let length = decode(block, 7)?;
    let (bytes, rest) = block.split_at_checked(length).ok_or(HpackError("a string is cut off"))?;
    *block = rest;
    if is_huffman {
        return huffman::decode(bytes, out);
    }
    out.extend_from_slice(bytes);
    Ok(())
}

/// Whether HTTP/2 allows the name (RFC 9113, section 8.2.1). A pseudo-header begins with a colon.
fn is_name(name: &[u8]) -> bool {
    let name = name.strip_prefix(b":").unwrap_or(name);
    !name.is_empty()
        && name
            .iter()
            .all(|&byte: &u8| matches!(byte, 0x21..=0x7e) && !matches!(byte, b'A'..=b'Z' | b':'))
}

/// Whether HTTP/2 allows the value (RFC 9113, section 8.2.1).
fn is_value(value: &[u8]) -> bool {
    let mut ends = [value.first(), value.last()].into_iter().flatten();
    !ends.any(|byte| matches!(byte, b' ' | b'\t'))
        && !value.iter().any(|byte| matches!(byte, 0 | b'\r' | b'\n'))
}

/// The size of an entry beyond its bytes (RFC 7541, section 4.1).
const ENTRY_OVERHEAD: usize = 32;

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
type Entry<'a> = (&'a [u8], &'a [u8], bool);

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
///
/// The static table is appendix A of RFC 7541; sections 2.3.2 and 4 describe the dynamic one.
#[derive(Debug)]
struct HeaderTable {
    /// Newest first.
    positions: VecDeque<EntryPosition>,
    bytes: Vec<u8>,
    /// Position of the first byte of `bytes`.
    base: usize,
    size: usize,
    max: usize,
}

impl HeaderTable {
    fn new(max: usize) -> Self {
        Self { positions: VecDeque::new(), bytes: Vec::new(), base: 0, size: 0, max }
    }

    const fn max(&self) -> usize {
        self.max
    }

    /// Changes the maximum size and evicts entries that no longer fit (section 4.3).
    fn resize(&mut self, max: usize) {
        self.max = max;
        self.evict(max);
    }

    /// The entry of an index, counted from 1. Entries of the static table are valid.
    fn get(&self, index: usize) -> Option<Entry<'_>> {
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
    fn insert(&mut self, name: &[u8], value: &[u8], valid: bool) {
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
    fn find(&self, name: &[u8], value: &[u8]) -> Option<(usize, bool)> {
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

// Encodes header blocks (RFC 7541, section 6).
//
// Strings are never Huffman-coded: that would save a few bytes and cost both ends time.

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
            encode(smallest, 5, 0x20, out);
        }
        encode(self.table.max(), 5, 0x20, out);
    }

    /// Appends a field.
    pub fn field(&mut self, name: &[u8], value: &[u8], indexing: Indexing, out: &mut Vec<u8>) {
        let found = self.table.find(name, value);
        let index = found.map_or(0, |(index, _)| index);
        if indexing != Indexing::Never && matches!(found, Some((_, true))) {
            encode(index, 7, 0x80, out);
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
            _ if keep => encode(index, 6, 0x40, out),
            Indexing::Never => encode(index, 4, 0x10, out),
            _ => encode(index, 4, 0x00, out),
        }
        if index == 0 {
            string_encoder(name, out);
        }
        string_encoder(value, out);
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
    encode(index, 4, 0x00, out);
    string_encoder(value, out);
}

fn string_encoder(text: &[u8], out: &mut Vec<u8>) {
    encode(text.len(), 7, 0x00, out);
    out.extend_from_slice(text);
}

// Integers with a prefix (RFC 7541, section 5.1).

/// Maximum number of bytes after the prefix. Four give 28 bits, more than any length or index that
/// fits a block.
const MAX_CONTINUATION_BYTES: u32 = 4;

/// Removes an integer from the front of `input`. Its first byte has `prefix` bits of it (1 to 8).
fn decode(input: &mut &[u8], prefix: u32) -> Result<usize, HpackError> {
    let (&first, mut rest) = input.split_first().ok_or(HpackError("a field is cut off"))?;
    let most = (1_usize << prefix) - 1;
    let mut value = usize::from(first) & most;
    if value == most {
        let mut shift = 0;
        loop {
            let (&byte, tail) = rest.split_first().ok_or(HpackError("an integer is cut off"))?;
            rest = tail;
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            if shift >= 7 * MAX_CONTINUATION_BYTES {
                return Err(HpackError("an integer is too large"));
            }
        }
    }
    *input = rest;
    Ok(value)
}

/// Appends an integer. `pattern` has the bits above the prefix.
#[expect(clippy::cast_possible_truncation, reason = "each byte is masked or compared before")]
fn encode(mut value: usize, prefix: u32, pattern: u8, out: &mut Vec<u8>) {
    let most = (1_usize << prefix) - 1;
    if value < most {
        out.push(pattern | value as u8);
        return;
    }
    out.push(pattern | most as u8);
    value -= most;
    while value >= 0x80 {
        out.push(0x80 | (value & 0x7f) as u8);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    type Lines = Vec<(String, String)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Lines, HpackError> {
        let mut lines = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        decoder.decode(block, &mut |field| lines.push((text(field.name), text(field.value))))?;
        Ok(lines)
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<_> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pairs = digits.chunks(2).map(|pair| std::str::from_utf8(pair).unwrap());
        pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
    }

    fn lines(text: &str) -> Lines {
        text.lines()
            .map(|line| line.trim().split_once(" = ").unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    /// Entries of the dynamic table, newest first.
    fn table(decoder: &Decoder) -> Vec<String> {
        (62..)
            .map_while(|index| decoder.table.get(index))
            .map(|(name, value, _)| {
                format!("{}: {}", String::from_utf8_lossy(name), String::from_utf8_lossy(value))
            })
            .collect()
    }

    #[test]
    fn literals_are_decoded_as_in_appendix_c_2() {
        for (block, line, inserted) in [
            (
                "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572",
                "custom-key = custom-header",
                1,
            ),
            ("040c 2f73 616d 706c 652f 7061 7468", ":path = /sample/path", 0),
            ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password = secret", 0),
            ("82", ":method = GET", 0),
        ] {
            let mut decoder = Decoder::default();
            assert_eq!(decode(&mut decoder, &hex(block)), Ok(lines(line)));
            assert_eq!(table(&decoder).len(), inserted, "{line}");
        }
    }

    const REQUESTS: [&str; 3] = [
        ":method = GET\n:scheme = http\n:path = /\n:authority = www.example.com",
        ":method = GET\n:scheme = http\n:path = /\n:authority = www.example.com\ncache-control = no-cache",
        ":method = GET\n:scheme = https\n:path = /index.html\n:authority = www.example.com\ncustom-key = custom-value",
    ];

    #[test]
    fn requests_are_decoded_as_in_appendices_c_3_and_c_4() {
        let plain = [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ];
        let huffman = [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
            "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ];
        for blocks in [plain, huffman] {
            let mut decoder = Decoder::default();
            for (block, request) in blocks.iter().zip(REQUESTS) {
                assert_eq!(decode(&mut decoder, &hex(block)), Ok(lines(request)));
            }
            assert_eq!(
                table(&decoder),
                [
                    "custom-key: custom-value",
                    "cache-control: no-cache",
                    ":authority: www.example.com"
                ]
            );
        }
    }

    const RESPONSES: [&str; 3] = [
        ":status = 302\ncache-control = private\ndate = Mon, 21 Oct 2013 20:13:21 GMT\nlocation = https://www.example.com",
        ":status = 307\ncache-control = private\ndate = Mon, 21 Oct 2013 20:13:21 GMT\nlocation = https://www.example.com",
        ":status = 200\ncache-control = private\ndate = Mon, 21 Oct 2013 20:13:22 GMT\nlocation = https://www.example.com\n\
         content-encoding = gzip\nset-cookie = foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ];

    #[test]
    fn responses_are_decoded_with_eviction_as_in_appendices_c_5_and_c_6() {
        let plain = [
            "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d \
             546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "4803 3330 37c1 c0bf",
            "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d 54c0 5a04 677a 6970 7738 666f \
             6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b \
             2076 6572 7369 6f6e 3d31",
        ];
        let huffman = [
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 \
             8f0b 97c8 e9ae 82ae 43d3",
            "4883 640e ffc1 c0bf",
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab 77ad 94e7 821d d7f2 e6c7 b335 \
             dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f 9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ];
        for blocks in [plain, huffman] {
            let mut decoder = Decoder::default();
            // The examples have a table of 256 bytes.
            decoder.table.resize(256);
            for (block, response) in blocks.iter().zip(RESPONSES) {
                assert_eq!(decode(&mut decoder, &hex(block)), Ok(lines(response)));
            }
            let names: Vec<_> = table(&decoder)
                .iter()
                .map(|line| line[..line.find(": ").unwrap()].to_owned())
                .collect();
            assert_eq!(names, ["set-cookie", "content-encoding", "date"]);
        }
    }

    #[test]
    fn blocks_that_are_not_hpack_are_rejected() {
        for (sentence, block) in [
            ("index 0", "80"),
            ("an index beyond the tables", "be"),
            ("a name beyond the tables", "7e 01 61"),
            ("a string that is cut off", "40 05 61"),
            ("a value that is missing", "40 01 61"),
            ("a table that is too large", "3f e2 1f"),
            ("a change of size in mid-block", "82 20"),
            ("an endless integer", "ff ff ff ff ff ff ff ff"),
        ] {
            assert!(decode(&mut Decoder::default(), &hex(block)).is_err(), "{sentence}");
        }
        assert_eq!(decode(&mut Decoder::default(), &hex("20 3f e1 1f 82")).unwrap().len(), 1);
    }

    #[test]
    fn fields_with_forbidden_bytes_are_marked_and_the_mark_is_kept() {
        for (name, value, expected) in [
            ("a-b", "c d", true),
            ("A", "b", false),
            ("", "b", false),
            ("a b", "c", false),
            ("a:b", "c", false),
            (":status", "200", true),
            ("a", " b", false),
            ("a", "b\t", false),
            ("a", "b\r\nc", false),
            ("a", "", true),
        ] {
            let mut block = vec![0x40, u8::try_from(name.len()).unwrap()];
            block.extend_from_slice(name.as_bytes());
            block.push(u8::try_from(value.len()).unwrap());
            block.extend_from_slice(value.as_bytes());
            block.push(0xbe);
            let mut seen = Vec::new();
            Decoder::default().decode(&block, &mut |field| seen.push(field.valid)).unwrap();
            assert_eq!(seen, [expected; 2], "{name:?}: {value:?}");
        }
    }

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

#[cfg(test)]
mod encoder_tests {
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

#[cfg(test)]
mod integer_tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_examples_of_the_rfc_are_encoded_and_decoded() {
        for (sentence, value, prefix, bytes) in [
            ("C.1.1: 10 with a prefix of 5 bits", 10, 5, &[0x0a][..]),
            ("C.1.2: 1337 with a prefix of 5 bits", 1337, 5, &[0x1f, 0x9a, 0x0a]),
            ("C.1.3: 42 at the start of a byte", 42, 8, &[0x2a]),
        ] {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            assert_eq!(out, bytes, "{sentence}");
            assert_eq!(decode(&mut &*bytes, prefix), Ok(value), "{sentence}");
        }
    }

    #[test]
    fn endless_and_cut_off_integers_are_rejected() {
        for bytes in [&[][..], &[0x1f], &[0x1f, 0x80], &[0x1f, 0x80, 0x80, 0x80, 0x80, 0x01]] {
            assert!(decode(&mut &*bytes, 5).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn encoded_integers_are_decoded(value in 0_usize..1 << 27, prefix in 4_u32..8) {
            let mut out = Vec::new();
            encode(value, prefix, 0, &mut out);
            out.push(7);
            let mut input = &out[..];
            prop_assert_eq!(decode(&mut input, prefix), Ok(value));
            prop_assert_eq!(input, &[7]);
        }
    }
}
