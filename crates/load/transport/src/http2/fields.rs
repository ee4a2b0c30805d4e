//! The field section of requests: prepared once for all requests of a kind, encoded once for each connection.

use std::sync::Arc;

use super::hpack::{Encoder, Indexing, literal};

/// Kinds of requests whose blocks a connection keeps.
const KEPT: usize = 8;

/// What all requests of one kind have in common.
#[derive(Debug, PartialEq, Eq)]
pub struct Fields(Vec<Line>);

#[derive(Debug, PartialEq, Eq)]
struct Line {
    name: Box<[u8]>,
    value: Box<[u8]>,
    indexing: Indexing,
}

impl Fields {
    /// Translates the rendered head of HTTP/1.1: the request line becomes pseudo-headers, `host` the authority, and
    /// what concerns one connection of HTTP/1.1 is left out (RFC 9113, sections 8.2.2 and 8.3.1).
    pub(crate) fn translate(scheme: &str, bytes: &[u8]) -> Self {
        let mut lines = bytes.split(|&byte| byte == b'\n').map(without_cr);
        let mut words = lines.next().unwrap_or_default().split(|&byte| byte == b' ');
        let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let mut authority = &b""[..];
        let mut others = Vec::new();
        for line in lines.filter(|line| !line.is_empty()) {
            let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
            let (name, value) = line.split_at(colon);
            let (name, value) = (name.to_ascii_lowercase(), value.get(1..).unwrap_or_default());
            match &name[..] {
                b"host" => authority = value.trim_ascii(),
                b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding"
                | b"upgrade" => {}
                _ => others.push((name, value.trim_ascii())),
            }
        }
        let mut fields = Self(Vec::with_capacity(others.len() + 4));
        fields.push(b":method", method);
        fields.push(b":scheme", scheme.as_bytes());
        fields.push(b":authority", authority);
        fields.push(b":path", path);
        for (name, value) in others {
            fields.push(&name, value);
        }
        fields
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        let indexing = match name {
            b":path" => Indexing::None,
            b"authorization" | b"cookie" | b"proxy-authorization" | b"x-api-key" | b"api-key" => {
                Indexing::Never
            }
            _ => Indexing::Whole,
        };
        self.0.push(Line { name: name.into(), value: value.into(), indexing });
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|line| (&line.name[..], &line.value[..]))
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// The fields that are each request's own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Own<'a> {
    /// `x-request-id`.
    pub id: Option<&'a str>,
    /// `content-length`.
    pub length: Option<usize>,
}

/// The encoder of a connection, with the blocks that it made.
///
/// A block stays right for as long as the tables do not change, which in the steady state they do not: then the fields
/// that requests of a kind share cost one copy of some bytes.
#[derive(Debug, Default)]
pub(super) struct FieldEncoder {
    encoder: Encoder,
    blocks: Vec<Block>,
    next: usize,
}

#[derive(Debug)]
struct Block {
    /// The kind of request. Kept, so that no other one can come to lie at its address.
    of: Arc<Fields>,
    /// [`Encoder::changes`] when it was made.
    changes: u64,
    bytes: Vec<u8>,
    /// Index of the name `x-request-id`.
    id: Option<usize>,
}

const REQUEST_ID: &[u8] = b"x-request-id";
/// Index of `content-length` in the static table.
const LENGTH_INDEX: usize = 28;

impl FieldEncoder {
    /// Takes the largest table over that the target keeps.
    pub(super) fn limit(&mut self, size: usize) {
        self.encoder.limit(size);
    }

    /// Appends the block of one request.
    pub(super) fn encode(&mut self, fields: &Arc<Fields>, own: Own<'_>, out: &mut Vec<u8>) {
        let changes = self.encoder.changes();
        let known = self
            .blocks
            .iter()
            .find(|block| block.changes == changes && Arc::ptr_eq(&block.of, fields));
        let name = match known {
            Some(block) => {
                out.extend_from_slice(&block.bytes);
                block.id
            }
            None => self.make(fields, out),
        };
        if let Some(id) = own.id {
            match name {
                Some(index) => literal(index, id.as_bytes(), out),
                None => self.encoder.field(REQUEST_ID, id.as_bytes(), Indexing::Name, out),
            }
        }
        if let Some(length) = own.length {
            let mut digits = itoa::Buffer::new();
            literal(LENGTH_INDEX, digits.format(length).as_bytes(), out);
        }
    }

    /// Appends the block of a kind, keeps it, and tells the index of `x-request-id`.
    fn make(&mut self, fields: &Arc<Fields>, out: &mut Vec<u8>) -> Option<usize> {
        let before = self.encoder.changes();
        self.encoder.begin(out);
        let start = out.len();
        for Line { name, value, indexing } in &fields.0 {
            self.encoder.field(name, value, *indexing, out);
        }
        let id = self.encoder.index_of(REQUEST_ID);
        let (changes, bytes) = (self.encoder.changes(), out[start..].to_vec());
        // One that inserted entries would insert them again.
        if changes == before {
            let block = Block { of: Arc::clone(fields), changes, bytes, id };
            match self.blocks.get_mut(self.next % KEPT) {
                Some(place) => *place = block,
                None => self.blocks.push(block),
            }
            self.next += 1;
        }
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::hpack::Decoder;

    fn fields(text: &str) -> Arc<Fields> {
        Arc::new(Fields::translate("https", text.as_bytes()))
    }

    fn lines(decoder: &mut Decoder, block: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        decoder
            .decode(block, &mut |field| {
                assert!(field.valid);
                lines.push(format!("{}: {}", text(field.name), text(field.value)));
            })
            .unwrap();
        lines
    }

    #[test]
    fn a_head_of_http_1_is_translated() {
        let fields = fields(
            "POST /v1/x?y=1 HTTP/1.1\r\nAccept: text/plain\r\nConnection: close\r\nHost: a:1\r\n",
        );
        let said: Vec<_> = fields
            .iter()
            .map(|(name, value)| {
                [name, value].map(|text| String::from_utf8_lossy(text).into_owned())
            })
            .collect();
        let expected = [
            [":method", "POST"],
            [":scheme", "https"],
            [":authority", "a:1"],
            [":path", "/v1/x?y=1"],
            ["accept", "text/plain"],
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn requests_of_several_kinds_keep_the_tables_in_step() {
        let kinds = [
            fields(
                "GET /a HTTP/1.1\r\nhost: h\r\nuser-agent: plimsoll\r\nauthorization: Bearer k\r\n",
            ),
            fields("POST /b HTTP/1.1\r\nhost: h\r\nuser-agent: plimsoll\r\naccept: x/y\r\n"),
        ];
        let (mut encoder, mut decoder) = (FieldEncoder::default(), Decoder::default());
        let mut lengths = Vec::new();
        for round in 0..12 {
            let (kind, id) = (&kinds[round / 2 % 2], format!("id-{round}"));
            let length = (round % 3 == 0).then_some(round * 1000);
            let mut block = Vec::new();
            encoder.encode(kind, Own { id: Some(&id), length }, &mut block);
            lengths.push(block.len() - length.map_or(0, |length| length.to_string().len() + 3));
            let mut expected: Vec<_> = kind
                .iter()
                .map(|(name, value)| {
                    [name, value].map(|text| String::from_utf8_lossy(text).into_owned())
                })
                .map(|[name, value]| format!("{name}: {value}"))
                .collect();
            expected.push(format!("x-request-id: {id}"));
            expected.extend(length.map(|length| format!("content-length: {length}")));
            assert_eq!(lines(&mut decoder, &block), expected);
            if round == 7 {
                encoder.limit(60);
            }
        }
        // The second request of a kind is much shorter than the first, as its fields are in the table.
        assert!(lengths[0] > 40 && lengths[4] < 35, "{lengths:?}");
    }

    #[test]
    fn a_block_that_inserts_nothing_is_kept() {
        let kind = fields("GET / HTTP/1.1\r\nhost: h\r\n");
        let mut encoder = FieldEncoder::default();
        let mut blocks = Vec::new();
        for _ in 0..5 {
            let mut block = Vec::new();
            encoder.encode(&kind, Own { id: Some("7"), length: None }, &mut block);
            blocks.push(block);
        }
        assert_eq!(blocks[2], blocks[4]);
        assert_eq!(encoder.blocks.len(), 1);
    }
}
