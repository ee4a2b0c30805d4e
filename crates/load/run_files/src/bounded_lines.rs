//! Reads a file line by line with bounded memory.

use std::io::{BufRead, Read as _};

use crate::error::RunFileError;

/// The longest line that is read: far above any row, even with the times of all events of a stream.
pub const MAX_LINE: usize = 16 << 20;

/// The lines of a file. Ends at the first that is longer than [`MAX_LINE`], and where the file
/// cannot be read further, as at the end of a killed run.
#[derive(Debug)]
pub struct BoundedLines<R> {
    reader: R,
    limit: usize,
    number: u64,
    too_long: bool,
}

impl<R: BufRead> BoundedLines<R> {
    /// The lines of `reader`.
    pub const fn new(reader: R) -> Self {
        Self { reader, limit: MAX_LINE, number: 0, too_long: false }
    }

    /// Whether all lines were short enough.
    ///
    /// # Errors
    /// [`RunFileError::LongLine`] if one was not. The file is damaged or not one of rows.
    pub const fn check(&self) -> Result<(), RunFileError> {
        if self.too_long {
            return Err(RunFileError::LongLine { line: self.number, limit: self.limit });
        }
        Ok(())
    }
}

impl<R: BufRead> Iterator for BoundedLines<R> {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        if self.too_long {
            return None;
        }
        let mut line = Vec::new();
        let most = self.limit as u64 + 1;
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut line).ok()?;
        if read == 0 {
            return None;
        }
        self.number += 1;
        if line.last() == Some(&b'\n') {
            line.pop();
        } else if line.len() > self.limit {
            self.too_long = true;
            return None;
        }
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> (Vec<String>, Result<(), String>) {
        let mut lines = BoundedLines { limit: 4, ..BoundedLines::new(text.as_bytes()) };
        let read = lines.by_ref().map(|line| String::from_utf8(line).unwrap()).collect();
        (read, lines.check().map_err(|error| error.to_string()))
    }

    #[test]
    fn a_line_that_is_too_long_is_named() {
        assert_eq!(
            lines("ab\n\nabcd\nx"),
            (["ab", "", "abcd", "x"].map(Into::into).into(), Ok(()))
        );
        let (read, error) = lines("ab\nabcde\nab\n");
        assert_eq!(read, ["ab"]);
        assert!(error.unwrap_err().starts_with("line 2 is longer than 4 bytes"));
    }
}
