//! Writes JSON-RPC messages.

use crate::json_writer;

/// The parameters of a message under construction: members of a JSON object.
#[derive(Debug)]
pub(super) struct Params<'a> {
    out: &'a mut Vec<u8>,
    is_first: bool,
}

impl Params<'_> {
    /// Appends a whole message; without an id it is a notification.
    pub(super) fn message(
        out: &mut Vec<u8>,
        id: Option<u64>,
        method: &str,
        write: impl FnOnce(&mut Params<'_>),
    ) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","#);
        if let Some(id) = id {
            out.extend_from_slice(br#""id":"#);
            out.extend_from_slice(itoa::Buffer::new().format(id).as_bytes());
            out.push(b',');
        }
        out.extend_from_slice(br#""method":"#);
        json_writer::push_string(out, method);
        out.extend_from_slice(br#","params":{"#);
        let mut params = Params { out, is_first: true };
        write(&mut params);
        params.out.extend_from_slice(b"}}");
    }

    fn name(&mut self, name: &str) -> &mut Vec<u8> {
        if !std::mem::take(&mut self.is_first) {
            self.out.push(b',');
        }
        json_writer::push_string(self.out, name);
        self.out.push(b':');
        self.out
    }

    /// Adds a text.
    pub(super) fn text(&mut self, name: &str, text: &str) {
        json_writer::push_string(self.name(name), text);
    }

    /// Adds a text, if there is one.
    pub(super) fn optional(&mut self, name: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.text(name, text);
        }
    }

    /// Adds encoded JSON.
    pub(super) fn json(&mut self, name: &str, json: &str) {
        self.name(name).extend_from_slice(json.as_bytes());
    }

    /// Adds an integer.
    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.json(name, itoa::Buffer::new().format(number));
    }

    /// Adds a text made of pieces.
    pub(super) fn pieces<'t>(&mut self, name: &str, pieces: impl Iterator<Item = &'t str>) {
        let out = self.name(name);
        out.push(b'"');
        pieces.for_each(|piece| json_writer::push_escaped(out, piece));
        out.push(b'"');
    }

    /// Adds an object.
    pub(super) fn object(&mut self, name: &str, write: impl FnOnce(&mut Params<'_>)) {
        let out = self.name(name);
        out.push(b'{');
        let mut members = Params { out, is_first: true };
        write(&mut members);
        members.out.push(b'}');
    }

    /// Adds an array with one object.
    pub(super) fn one(&mut self, name: &str, write: impl FnOnce(&mut Params<'_>)) {
        let out = self.name(name);
        out.extend_from_slice(b"[{");
        let mut members = Params { out, is_first: true };
        write(&mut members);
        members.out.extend_from_slice(b"}]");
    }
}
