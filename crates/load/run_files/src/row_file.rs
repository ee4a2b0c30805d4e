//! The files of rows: lines as they are, or compressed by zstd.
//!
//! A compressed file consists of frames (RFC 8878, section 3.1), one for each write of whole lines,
//! so that a run that is killed loses at most its last write, as it does without compression.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;

/// The extension of a compressed file.
const ZSTD: &str = ".zst";

/// zstd's own default: a sixth of the size of rows at 800 a second, whose ids do not compress.
const LEVEL: i32 = 3;

const BUFFER: usize = 256 << 10;

/// How lines are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum RowFormat {
    /// As they are.
    #[default]
    Plain,
    /// Compressed by zstd, in a file whose name ends with `.zst`.
    Zstd,
}

impl RowFormat {
    /// The path of the file `name` of a folder whose lines are kept so: `name` or `name.zst`.
    pub fn path(self, folder: &Path, name: &str) -> PathBuf {
        match self {
            Self::Plain => folder.join(name),
            Self::Zstd => folder.join(format!("{name}{ZSTD}")),
        }
    }
}

/// A file to which whole lines are written: each write can be read back, whatever follows.
pub struct RowWriter {
    file: File,
    compressor: Option<Compressor<'static>>,
}

impl RowWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// It exists already, or cannot be created.
    pub fn create(path: &Path, format: RowFormat) -> io::Result<Self> {
        let file = File::create_new(path)?;
        let compressor = match format {
            RowFormat::Plain => None,
            RowFormat::Zstd => Some(Compressor::new(LEVEL)?),
        };
        Ok(Self { file, compressor })
    }
}

impl fmt::Debug for RowWriter {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_compressed = self.compressor.is_some();
        out.debug_struct("RowWriter")
            .field("file", &self.file)
            .field("zstd", &is_compressed)
            .finish()
    }
}

impl Write for RowWriter {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        match &mut self.compressor {
            None => self.file.write_all(lines)?,
            Some(compressor) => self.file.write_all(&compressor.compress(lines)?)?,
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The file `name` of a folder, or `name.zst`; `None` if it has neither.
pub fn find_rows(folder: &Path, name: &str) -> Option<PathBuf> {
    let paths = [RowFormat::Plain, RowFormat::Zstd].map(|format| format.path(folder, name));
    paths.into_iter().find(|path| path.is_file())
}

/// Opens a file of rows, compressed or not, as its first bytes tell.
///
/// # Errors
/// It cannot be opened or read.
pub fn open_rows(path: &Path) -> io::Result<Box<dyn BufRead>> {
    /// A frame begins so (RFC 8878, section 3.1.1).
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut file = BufReader::with_capacity(BUFFER, plimsoll_input::open(path)?);
    if file.fill_buf()?.starts_with(&MAGIC) {
        let decoded = WholeFrames(Decoder::with_buffer(file)?);
        return Ok(Box::new(BufReader::with_capacity(BUFFER, decoded)));
    }
    Ok(Box::new(file))
}

/// Content of the complete frames: a truncated frame, such as the last of a killed run, ends the
/// file.
struct WholeFrames<R>(R);

impl<R: Read> Read for WholeFrames<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self.0.read(into) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(0),
            read => read,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn read(path: &Path) -> String {
        io::read_to_string(open_rows(path).unwrap()).unwrap()
    }

    #[test]
    fn lines_come_back_from_both_formats_and_a_cut_frame_ends_the_file() {
        for format in [RowFormat::Plain, RowFormat::Zstd] {
            let folder = tempfile::tempdir().unwrap();
            let path = format.path(folder.path(), "rows.jsonl");
            let mut file = RowWriter::create(&path, format).unwrap();
            for batch in ["{\"a\":1}\n{\"a\":2}\n", "{\"a\":3}\n"] {
                file.write_all(batch.as_bytes()).unwrap();
            }
            assert_eq!(find_rows(folder.path(), "rows.jsonl"), Some(path.clone()));
            assert_eq!(read(&path), "{\"a\":1}\n{\"a\":2}\n{\"a\":3}\n", "{format:?}");
            assert_eq!(path.extension().unwrap() == "zst", format == RowFormat::Zstd);
            let bytes = fs::read(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
            assert!(read(&path).starts_with("{\"a\":1}\n{\"a\":2}\n"), "{format:?}");
        }
    }
}
