//! Reads the data of server-sent events, whatever pieces they come in.

/// Splits a stream into the data of its events.
#[derive(Debug, Default)]
pub(super) struct EventStream {
    line: Vec<u8>,
    data: Vec<u8>,
}

impl EventStream {
    /// Takes more of the stream. Returns the data of each event that it completes and that has
    /// some.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                events.extend(self.end_line());
            }
        }
        events
    }

    /// Ends a line; an empty one ends an event.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return (!data.is_empty()).then_some(data);
        }
        let value = match line.strip_prefix(b"data") {
            Some([]) => b"",
            Some([b':', b' ', value @ ..] | [b':', value @ ..]) => value,
            _ => return None,
        };
        if !self.data.is_empty() {
            self.data.push(b'\n');
        }
        self.data.extend_from_slice(value);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] =
        b": ping\r\n\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata:x\n\nid: 7\ndata\n\ndata: cut";

    #[test]
    fn data_is_read_across_any_pieces() {
        let expected: Vec<Vec<u8>> = vec![b"{\"a\":\n1}".to_vec(), b"x".to_vec()];
        for size in [1, 2, 3, 7, STREAM.len()] {
            let mut stream = EventStream::default();
            let found: Vec<_> = STREAM.chunks(size).flat_map(|piece| stream.feed(piece)).collect();
            assert_eq!(found, expected, "{size}");
        }
    }
}
