//! Header blocks of requests: the fields shared by all requests of one kind are encoded once per
//! connection.

use std::sync::Arc;

use super::hpack::{Encoder, Indexing, literal};
use crate::message::RequestHead;

/// Kinds of requests whose encoded fields a connection keeps. A connection that serves more kinds
/// encodes some of them again.
const KEPT_KINDS: usize = 32;

/// The fields of a request head, in HTTP/2's terms.
#[derive(Debug, PartialEq, Eq)]
struct HeaderTemplate(Vec<TemplateField>);

#[derive(Debug, PartialEq, Eq)]
struct TemplateField {
    name: Box<[u8]>,
    value: Box<[u8]>,
    indexing: Indexing,
}

impl HeaderTemplate {
    /// Translates a head: the request line becomes pseudo-headers, and `host` the authority. Fields
    /// of an HTTP/1.1 connection are omitted (RFC 9113, sections 8.2.2 and 8.3.1).
    fn new(head: &RequestHead) -> Self {
        let mut lines = head.shared().split(|&byte| byte == b'\n').map(without_cr);
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
        let mut template = Self(Vec::with_capacity(others.len() + 4));
        template.push(b":method", method);
        template.push(b":scheme", head.scheme().as_bytes());
        template.push(b":authority", authority);
        template.push(b":path", path);
        for (name, value) in others {
            template.push(&name, value);
        }
        template
    }

    fn push(&mut self, name: &[u8], value: &[u8]) {
        let indexing = match name {
            b":path" => Indexing::None,
            b"authorization" | b"cookie" | b"proxy-authorization" | b"x-api-key" | b"api-key" => {
                Indexing::Never
            }
            _ => Indexing::NameAndValue,
        };
        self.0.push(TemplateField { name: name.into(), value: value.into(), indexing });
    }
}

fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Encodes the header blocks of a connection's requests.
///
/// The encoded form of shared fields stays valid as long as the HPACK table does not change. In the
/// steady state it does not, so the shared fields of a request cost one copy.
#[derive(Debug, Default)]
pub(super) struct HeaderBlockEncoder {
    encoder: Encoder,
    kinds: Vec<EncodedKind>,
    /// Number of kinds ever kept: the next one replaces the oldest.
    kept: usize,
}

/// The encoded shared fields of one kind of request.
#[derive(Debug)]
struct EncodedKind {
    /// The bytes of the head identify the kind. They are kept, so that their address is not reused.
    head: Arc<[u8]>,
    /// [`Encoder::changes`] when the fields were encoded.
    changes: u64,
    bytes: Vec<u8>,
    /// Index of the name `x-request-id`.
    request_id_index: Option<usize>,
}

const REQUEST_ID: &[u8] = b"x-request-id";
/// Index of `content-length` in the static table.
const CONTENT_LENGTH_INDEX: usize = 28;

impl HeaderBlockEncoder {
    /// Sets the largest HPACK table that the target keeps.
    pub(super) fn set_max_table_size(&mut self, size: usize) {
        self.encoder.set_max_table_size(size);
    }

    /// Appends the header block of one request.
    pub(super) fn encode(
        &mut self,
        head: &RequestHead,
        request_id: Option<&[u8]>,
        content_length: Option<usize>,
        out: &mut Vec<u8>,
    ) {
        let changes = self.encoder.changes();
        let known = self
            .kinds
            .iter()
            .find(|kind| Arc::ptr_eq(&kind.head, head.shared()) && kind.changes == changes);
        let request_id_index = match known {
            Some(kind) => {
                out.extend_from_slice(&kind.bytes);
                kind.request_id_index
            }
            None => self.encode_shared(head, out),
        };
        if let Some(id) = request_id {
            match request_id_index {
                Some(index) => literal(index, id, out),
                None => self.encoder.field(REQUEST_ID, id, Indexing::NameOnly, out),
            }
        }
        if let Some(length) = content_length {
            let mut digits = itoa::Buffer::new();
            literal(CONTENT_LENGTH_INDEX, digits.format(length).as_bytes(), out);
        }
    }

    /// Appends and keeps the encoded shared fields. Returns the index of `x-request-id`.
    fn encode_shared(&mut self, head: &RequestHead, out: &mut Vec<u8>) -> Option<usize> {
        let before = self.encoder.changes();
        self.encoder.begin_block(out);
        let start = out.len();
        for TemplateField { name, value, indexing } in &HeaderTemplate::new(head).0 {
            self.encoder.field(name, value, *indexing, out);
        }
        let request_id_index = self.encoder.index_of(REQUEST_ID);
        let changes = self.encoder.changes();
        // A block that inserted entries into the table must not be sent a second time.
        if changes == before {
            let bytes = out[start..].to_vec();
            let head = Arc::clone(head.shared());
            let kind = EncodedKind { head, changes, bytes, request_id_index };
            match self.kinds.get_mut(self.kept % KEPT_KINDS) {
                Some(oldest) => *oldest = kind,
                None => self.kinds.push(kind),
            }
            self.kept += 1;
        }
        request_id_index
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http2::hpack::Decoder;

    fn fields(head: &RequestHead) -> Vec<[String; 2]> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let fields = HeaderTemplate::new(head).0;
        fields.iter().map(|field| [text(&field.name), text(&field.value)]).collect()
    }

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Vec<String> {
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
    fn a_head_is_translated() {
        let expected = [
            [":method", "POST"],
            [":scheme", "https"],
            [":authority", "a:1"],
            [":path", "/v1/x?y=1"],
            ["accept", "text/plain"],
        ];
        let headers = [("Accept", "text/plain"), ("connection", "close")];
        let head = RequestHead::new("POST", "/v1/x?y=1", "https://a:1", headers).unwrap();
        assert_eq!(
            (fields(&head), head.content_length(12)),
            (expected.map(|field| field.map(str::to_owned)).to_vec(), Some(12))
        );
        assert!(Arc::ptr_eq(head.shared(), head.clone().shared()));
    }

    #[test]
    fn a_given_host_becomes_the_authority() {
        let headers = [("Accept", "text/plain"), ("Connection", "close"), ("Host", "b:2")];
        let head = RequestHead::new("GET", "/", "a:1", headers).unwrap();
        let expected = [
            [":method", "GET"],
            [":scheme", "http"],
            [":authority", "b:2"],
            [":path", "/"],
            ["accept", "text/plain"],
        ];
        assert_eq!(fields(&head), expected);
    }

    #[test]
    fn requests_of_several_kinds_keep_the_tables_in_step() {
        let new = |method, path, header| {
            let headers = [("user-agent", "plimsoll"), header];
            RequestHead::new(method, path, "https://h", headers).unwrap()
        };
        let kinds =
            [new("GET", "/a", ("authorization", "Bearer k")), new("POST", "/b", ("accept", "x/y"))];
        let (mut encoder, mut decoder) = (HeaderBlockEncoder::default(), Decoder::default());
        let mut lengths = Vec::new();
        for round in 0..12 {
            let (kind, id) = (&kinds[round / 2 % 2], format!("id-{round}"));
            let length = (round % 3 == 0).then_some(round * 1000);
            let mut block = Vec::new();
            encoder.encode(kind, Some(id.as_bytes()), length, &mut block);
            lengths.push(block.len() - length.map_or(0, |length| length.to_string().len() + 3));
            let mut expected: Vec<_> =
                fields(kind).iter().map(|[name, value]| format!("{name}: {value}")).collect();
            expected.push(format!("x-request-id: {id}"));
            expected.extend(length.map(|length| format!("content-length: {length}")));
            assert_eq!(decode(&mut decoder, &block), expected);
            if round == 7 {
                encoder.set_max_table_size(60);
            }
        }
        // The second request of a kind is much shorter: its fields are in the table.
        assert!(lengths[0] > 40 && lengths[4] < 35, "{lengths:?}");
    }

    #[test]
    fn a_block_that_inserts_nothing_is_kept() {
        let head = RequestHead::new("GET", "/", "https://h", []).unwrap();
        let mut encoder = HeaderBlockEncoder::default();
        let mut blocks = Vec::new();
        for _ in 0..5 {
            let mut block = Vec::new();
            encoder.encode(&head, Some(b"7"), None, &mut block);
            blocks.push(block);
        }
        assert_eq!(blocks[2], blocks[4]);
        assert_eq!(encoder.kinds.len(), 1);
    }
}
