//! Opens files, optionally compressed, and reads them line by line with bounded memory.

use std::io::{self, BufRead, BufReader, ErrorKind, Read as _};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use plimsoll_run_files::{MAX_LINE, open_rows};

use crate::error::JoinError;

const BUFFER: usize = 256 << 10;

/// Opens a file, and decompresses it if it begins like gzip or zstd, whatever its name.
pub(crate) fn open(path: &Path) -> Result<Box<dyn BufRead>, JoinError> {
    let mut file = open_rows(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => JoinError::Usage(format!("{}: {error}", path.display())),
        _ => unreadable(path, 0, &error),
    })?;
    let start = file.fill_buf().map_err(|error| unreadable(path, 0, &error))?;
    let is_gzip = start.starts_with(&[0x1f, 0x8b]);
    Ok(if is_gzip {
        Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file)))
    } else {
        file
    })
}

/// The error for a file that cannot be read beyond the given line.
pub(crate) fn unreadable(path: &Path, line: u64, error: &io::Error) -> JoinError {
    let path = path.display();
    JoinError::Usage(match error.kind() {
        ErrorKind::UnexpectedEof => format!(
            "{path} ends in the middle of its gzip data, after {line} lines: copy it again completely"
        ),
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            format!("{path} has damaged gzip data after line {line} ({error}): copy it again")
        }
        ErrorKind::NotFound => format!("{path} does not exist: pass the path of the log"),
        _ => format!("cannot read {path} after line {line}: {error}"),
    })
}

/// Iterates over the lines of a file with a single buffer.
pub(crate) struct Lines<'p> {
    reader: Box<dyn BufRead>,
    path: &'p Path,
    number: u64,
    line: Vec<u8>,
}

/// A line.
pub(crate) struct Line<'a> {
    /// Line number, from 1.
    pub(crate) number: u64,
    pub(crate) bytes: &'a [u8],
    /// Whether it ends with a line feed, and is therefore complete.
    pub(crate) whole: bool,
}

impl<'p> Lines<'p> {
    pub(crate) fn open(path: &'p Path) -> Result<Self, JoinError> {
        Ok(Self { reader: open(path)?, path, number: 0, line: Vec::new() })
    }

    /// Returns the next line; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read further, or a line is longer than [`MAX_LINE`].
    pub(crate) fn next(&mut self) -> Result<Option<Line<'_>>, JoinError> {
        self.line.clear();
        let most = MAX_LINE as u64 + 1;
        let mut limited = self.reader.by_ref().take(most);
        let read = limited.read_until(b'\n', &mut self.line);
        let read = read.map_err(|error| unreadable(self.path, self.number, &error))?;
        if read == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() > MAX_LINE {
            return Err(JoinError::Usage(format!(
                "line {} of {} is longer than {} MiB: not a text file with lines",
                self.number,
                self.path.display(),
                MAX_LINE >> 20
            )));
        }
        let whole = self.line.last() == Some(&b'\n');
        let bytes = self.line.trim_ascii();
        Ok(Some(Line { number: self.number, bytes, whole }))
    }
}
