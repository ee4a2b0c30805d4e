//! The data of server-sent events, handed on as it arrives, so that an event of any size needs no
//! memory. Names and ids of events are of no use to JSON-RPC, and are skipped.
//!
//! The grammar is that of [`crate::sse`].

/// A part of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Bytes of the data of the current event.
    Data(&'a [u8]),
    /// The end of an event with data.
    End,
}

/// The field that carries data.
const DATA: &[u8] = b"data";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// An incremental reader of the data of events. Any split of the bytes gives the same data.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct EventData {
    line: Line,
    /// The start of the line's field name; longer names are not `data`.
    name: [u8; 4],
    length: u8,
    /// The last byte was CR: an LF after it belongs to it.
    after_cr: bool,
    /// The current event has had a line of data.
    has_data: bool,
    /// Nothing but a byte order mark has been read.
    at_start: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line {
    /// Within the name of the field.
    Name,
    /// Directly behind the colon of `data:`.
    BeforeValue,
    /// Within data.
    Value,
    /// Within a line that is skipped.
    Skipped,
}

impl Default for EventData {
    fn default() -> Self {
        Self {
            line: Line::Name,
            name: [0; 4],
            length: 0,
            after_cr: false,
            has_data: false,
            at_start: true,
        }
    }
}

impl EventData {
    /// Whether an event has begun and not ended.
    pub(super) const fn is_within_event(self) -> bool {
        self.has_data || self.length > 0 || !matches!(self.line, Line::Name)
    }

    /// Reads more bytes.
    ///
    /// # Errors
    /// The first error of `emit`.
    pub(super) fn feed<E>(
        &mut self,
        bytes: &[u8],
        mut emit: impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            if std::mem::take(&mut self.after_cr) && byte == b'\n' {
                rest = after;
                continue;
            }
            let (within, behind) = rest.split_at(self.rest_of_line(rest));
            let is_value = self.line == Line::Value;
            if !within.is_empty() && is_value {
                emit(Piece::Data(within))?;
            }
            if !within.is_empty() {
                rest = behind;
            } else if byte == b'\n' || byte == b'\r' {
                rest = after;
                self.after_cr = byte == b'\r';
                self.end_of_line(&mut emit)?;
            } else if !self.within_line(byte, &mut emit)? {
                rest = after;
            }
        }
        Ok(())
    }

    /// How many of these bytes belong to a value, or to what is skipped.
    fn rest_of_line(&self, bytes: &[u8]) -> usize {
        match self.line {
            Line::Value | Line::Skipped => {
                memchr::memchr2(b'\n', b'\r', bytes).unwrap_or(bytes.len())
            }
            Line::Name | Line::BeforeValue => 0,
        }
    }

    /// A byte of a name, or the one behind the colon; whether it is to be read again.
    fn within_line<E>(
        &mut self,
        byte: u8,
        emit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<bool, E> {
        match self.line {
            Line::BeforeValue => {
                self.line = Line::Value;
                return Ok(byte != b' ');
            }
            Line::Name if byte == b':' && self.named() == DATA => self.begin_data(emit)?,
            Line::Name if byte == b':' || self.named().len() == self.name.len() => {
                self.line = Line::Skipped;
            }
            Line::Name => {
                self.name[usize::from(self.length)] = byte;
                self.length += 1;
                if self.at_start && self.named() == BYTE_ORDER_MARK {
                    (self.length, self.at_start) = (0, false);
                }
            }
            Line::Value | Line::Skipped => {}
        }
        Ok(false)
    }

    fn named(&self) -> &[u8] {
        &self.name[..usize::from(self.length)]
    }

    fn begin_data<E>(
        &mut self,
        emit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.line = Line::BeforeValue;
        if std::mem::replace(&mut self.has_data, true) {
            emit(Piece::Data(b"\n"))?;
        }
        Ok(())
    }

    fn end_of_line<E>(
        &mut self,
        emit: &mut impl FnMut(Piece<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let blank = self.line == Line::Name && self.length == 0;
        if self.line == Line::Name && self.named() == DATA {
            // A field without a colon has an empty value.
            self.begin_data(emit)?;
        }
        (self.line, self.length, self.at_start) = (Line::Name, 0, false);
        if blank && std::mem::take(&mut self.has_data) {
            emit(Piece::End)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse;
    use proptest::prelude::*;

    /// The data of each event.
    fn events(pieces: &[&[u8]]) -> Vec<Vec<u8>> {
        let (mut reader, mut all, mut current) = (EventData::default(), Vec::new(), Vec::new());
        for bytes in pieces {
            let fed: Result<(), ()> = reader.feed(bytes, |piece| {
                match piece {
                    Piece::Data(data) => current.extend_from_slice(data),
                    Piece::End => all.push(std::mem::take(&mut current)),
                }
                Ok(())
            });
            assert_eq!(fed, Ok(()));
        }
        all
    }

    #[test]
    fn data_is_found_in_every_form_of_a_line() {
        for (text, expected) in [
            ("data: a\n\n", vec!["a"]),
            ("\u{feff}data:a\r\n\r\n", vec!["a"]),
            ("data:  a \r\rdata:b\r\r", vec![" a ", "b"]),
            ("id: 1\nevent: message\ndata: {\ndata: }\nretry: 5\n\n", vec!["{\n}"]),
            (": comment\n\ndata\n\n", vec![""]),
            ("data: \n\n", vec![""]),
            ("datax: a\ndat: b\nDATA: c\n data: d\n\n", vec![]),
            ("data: not ended\n", vec![]),
            ("data: a\n\ndata: b", vec!["a"]),
        ] {
            let found = events(&[text.as_bytes()]);
            assert_eq!(
                found,
                expected.iter().map(|e| e.as_bytes()).collect::<Vec<_>>(),
                "{text:?}"
            );
        }
    }

    proptest! {
        /// The other parser of this crate, which keeps whole events, is the oracle.
        #[test]
        fn it_agrees_with_the_parser_of_whole_events(
            text in "(data|event|id|dat|datax|:|: |\n|\r|\r\n|\n\n|a|é| |\u{feff}){0,40}",
            at in 0usize..80,
        ) {
            let mut expected = Vec::new();
            let mut parser = sse::Parser::new(1 << 20);
            let parsed = parser.feed(text.as_bytes(), |event| expected.push(event.data.as_bytes().to_vec()));
            prop_assert!(parsed.is_ok());
            let (start, end) = text.as_bytes().split_at(at.min(text.len()));
            prop_assert_eq!(events(&[start, end]), expected);
        }
    }
}
