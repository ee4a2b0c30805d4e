//! The configuration file and files that it names. Pipes would block the start and devices never
//! end, so both are refused.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// The largest file in bytes.
const MOST: u64 = 16 << 20;

/// Opens a file.
///
/// # Errors
/// An error of the system, or [`ErrorKind::InvalidInput`] for a path that is not a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let kind = fs::metadata(path)?.file_type();
    let is_device = kind.is_char_device() || kind.is_block_device();
    if kind.is_fifo() || kind.is_socket() || is_device {
        let why = "it is a pipe or a device, not a file: write its content to a file first";
        return Err(io::Error::new(ErrorKind::InvalidInput, why));
    }
    File::open(path)
}

/// Reads a file of text.
///
/// # Errors
/// As [`open`], or [`ErrorKind::FileTooLarge`] for more than 16 MiB.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.take(MOST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MOST {
        return Err(io::Error::new(ErrorKind::FileTooLarge, "it has more than 16 MiB"));
    }
    Ok(text)
}
