//! Reads a text line by line.

use std::io::{self, BufRead, Read as _};

use crate::error::TraceFault;

/// The longest line that is read, in bytes. A row with 2 million tokens of cached blocks fits.
const MAX_LINE: u64 = 1 << 20;

/// The non-blank lines of a text, without line ends and byte order mark.
#[derive(Debug)]
pub(crate) struct LineReader<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    at_end: bool,
}

impl<R: BufRead> LineReader<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, at_end: false }
    }

    /// The next line and its number, from 1.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Result<&str, TraceFault>)>> {
        while !self.at_end {
            self.buffer.clear();
            let read = (&mut self.reader).take(MAX_LINE + 1).read_until(b'\n', &mut self.buffer)?;
            self.number += 1;
            // A file with such a line is not a trace: the rest is not read.
            let long = self.buffer.len() as u64 > MAX_LINE;
            self.at_end = read == 0 || long;
            if long {
                return Ok(Some((self.number, Err(TraceFault::LongLine))));
            }
            if !self.buffer.trim_ascii().is_empty() {
                return Ok(Some((self.number, self.text())));
            }
        }
        Ok(None)
    }

    fn text(&self) -> Result<&str, TraceFault> {
        let text = str::from_utf8(&self.buffer).map_err(|_| TraceFault::NotText)?;
        let text = if self.number == 1 { text.trim_start_matches('\u{feff}') } else { text };
        Ok(text.trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<(u64, Result<String, TraceFault>)> {
        let mut lines = LineReader::new(bytes);
        let mut all = Vec::new();
        while let Some((number, text)) = lines.next().unwrap() {
            all.push((number, text.map(str::to_owned)));
        }
        all
    }

    #[test]
    fn lines_have_no_line_ends_and_blank_lines_are_skipped() {
        let line = |number, text: &str| (number, Ok(text.to_owned()));
        for (bytes, lines) in [
            (&b""[..], vec![]),
            (b"a\nb", vec![line(1, "a"), line(2, "b")]),
            (b"a\r\n\r\nb\r\n", vec![line(1, "a"), line(3, "b")]),
            (b"\xEF\xBB\xBFa\n \n", vec![line(1, "a")]),
            (b"\xFF\nb", vec![(1, Err(TraceFault::NotText)), line(2, "b")]),
        ] {
            assert_eq!(read(bytes), lines);
        }
    }

    #[test]
    fn nothing_is_read_after_a_line_that_is_too_long() {
        let mut bytes = vec![b'x'; 3 << 20];
        bytes.extend(b"\nb\n");
        assert_eq!(read(&bytes), [(1, Err(TraceFault::LongLine))]);
    }
}
