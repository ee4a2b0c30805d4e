//! The lines of a text, one at a time.

use std::io::{self, BufRead, Read as _};

use crate::error::TraceFault;

/// The longest line that is read, in bytes: a row with 2 million tokens of cached blocks fits easily.
const LONGEST: u64 = 1 << 20;

/// The lines of a text that are not blank, without line ends and byte order mark.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    over: bool,
}

impl<R: BufRead> Lines<R> {
    pub(crate) const fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, over: false }
    }

    /// The next line and its number, from 1.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Result<&str, TraceFault>)>> {
        while !self.over {
            self.buffer.clear();
            let read = (&mut self.reader).take(LONGEST + 1).read_until(b'\n', &mut self.buffer)?;
            self.number += 1;
            // Whatever has such a line is no trace: the rest is not even looked at.
            let long = self.buffer.len() as u64 > LONGEST;
            self.over = read == 0 || long;
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
        let mut lines = Lines::new(bytes);
        let mut all = Vec::new();
        while let Some((number, text)) = lines.next().unwrap() {
            all.push((number, text.map(str::to_owned)));
        }
        all
    }

    #[test]
    fn lines_come_without_their_ends_and_blank_ones_not_at_all() {
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
    fn nothing_is_read_beyond_a_line_that_no_trace_has() {
        let mut bytes = vec![b'x'; 3 << 20];
        bytes.extend(b"\nb\n");
        assert_eq!(read(&bytes), [(1, Err(TraceFault::LongLine))]);
    }
}
