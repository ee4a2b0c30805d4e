//! The files of rows: lines as they are, or compressed by zstd.
//!
//! A compressed file consists of frames (RFC 8878, section 3.1), one for each write of whole lines,
//! so that a run that is killed loses at most its last write, as it does without compression.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use flate2::bufread::MultiGzDecoder;
use plimsoll_metrics::{IntervalHistogram, TimeRecord};
use serde::{Deserialize, Serialize};
use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;

use crate::error::RunFileError;

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

/// The file `name` of a folder, or `name.zst`, or `name.gz` of a user; `None` if it has none.
pub fn find_rows(folder: &Path, name: &str) -> Option<PathBuf> {
    ["", ZSTD, ".gz"]
        .map(|end| folder.join(format!("{name}{end}")))
        .into_iter()
        .find(|path| path.is_file())
}

/// Opens a file of rows, compressed or not, as its first bytes tell.
///
/// # Errors
/// It cannot be opened or read.
pub fn open_rows(path: &Path) -> io::Result<Box<dyn BufRead>> {
    /// A frame begins so (RFC 8878, section 3.1.1).
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    /// Also a member of gzip (RFC 1952, section 2.3.1).
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    let mut file = BufReader::with_capacity(BUFFER, plimsoll_input::open(path)?);
    if file.fill_buf()?.starts_with(&MAGIC) {
        let decoded = WholeFrames(Decoder::with_buffer(file)?);
        return Ok(Box::new(BufReader::with_capacity(BUFFER, decoded)));
    }
    if file.buffer().starts_with(&GZIP) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))));
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

// `histograms.hlog`: the interval log of HdrHistogram, format 1.3, which its own tools read.
//
// A line is an interval of a metric: a tag, start and length in seconds, the largest value in
// milliseconds, and the histogram in nanoseconds.

/// The log of a run. Stages that share an interval have a line each.
///
/// The tag is the name of the metric, like `response_time`. With several targets the name of the
/// target follows, like `response_time.direct`; requests of warm-up stages have the prefix
/// `warmup.`. Characters that are not allowed in a tag are replaced by `_`.
pub fn interval_log(record: &TimeRecord) -> String {
    let started = record.timeline.started_unix_ns;
    // Readers add this time to the start of every interval.
    let seconds = format!("{}.{:03}", started / 1_000_000_000, started / 1_000_000 % 1_000);
    let mut log = format!(
        "#[Times in nanoseconds, largest value in milliseconds; written by Plimsoll]\n\
         #[Histogram log format version 1.3]\n\
         #[StartTime: {seconds} (seconds since epoch), {date}]\n\
         #[BaseTime: {seconds} (seconds since epoch)]\n\
         \"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"\n",
        date = humantime::format_rfc3339_seconds(UNIX_EPOCH + Duration::from_nanos(started)),
    );
    let several = record.timeline.targets.len() > 1;
    for interval in &record.histograms {
        let IntervalHistogram { start_s, length_s, max_ms, histogram, .. } = interval;
        let tag = tag(interval, several);
        // Writing to a String cannot fail.
        let _ = writeln!(log, "Tag={tag},{start_s:.3},{length_s:.3},{max_ms:.6},{histogram}");
    }
    log
}

fn tag(interval: &IntervalHistogram, several: bool) -> String {
    let warmup = if interval.warmup { "warmup." } else { "" };
    let metric = interval.metric.name();
    if !several {
        return format!("{warmup}{metric}");
    }
    let target = interval
        .target
        .chars()
        .map(|c| if !c.is_whitespace() && !c.is_control() && c != ',' { c } else { '_' });
    format!("{warmup}{metric}.{}", target.collect::<String>())
}

// Reads a file line by line with bounded memory.

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
    failed: Option<io::Error>,
}

impl<R: BufRead> BoundedLines<R> {
    /// The lines of `reader`.
    pub const fn new(reader: R) -> Self {
        Self { reader, limit: MAX_LINE, number: 0, too_long: false, failed: None }
    }

    /// Why the file cannot be read further.
    pub const fn failure(&self) -> Option<&io::Error> {
        self.failed.as_ref()
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
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut line);
        let read = read.map_err(|error| self.failed = Some(error)).ok()?;
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

#[cfg(test)]
mod bounded_lines_tests {
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
