//! Opens files that a user names, or that others wrote.
//!
//! Opening a named pipe in a results folder would block, and a link to `/dev/zero` never ends. This
//! crate rejects them with an error message, so every command reads its input through [`open`] or
//! [`read`].

use std::fs::{self, File, FileType};
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::FileTypeExt as _;
use std::path::Path;

/// Maximum size in bytes of a file that is read completely.
pub const MOST: u64 = 256 << 20;

/// Opens a file for reading piece by piece. Standard input and the pipes of a shell's `<(COMMAND)`
/// have a writer and are accepted; other pipes, devices and sockets are rejected.
///
/// # Errors
/// Errors of the system, or [`ErrorKind::InvalidInput`] for anything except a file.
pub fn open(path: &Path) -> io::Result<File> {
    check(fs::metadata(path)?.file_type(), path)?;
    File::open(path)
}

/// Reads a complete file.
///
/// # Errors
/// The same as [`open`], or [`ErrorKind::FileTooLarge`] for more than [`MOST`] bytes.
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    read_up_to(path, MOST)
}

/// Reads a complete file of UTF-8 text.
///
/// # Errors
/// The same as [`read`], or [`ErrorKind::InvalidData`].
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read(path)?)
        .map_err(|_| io::Error::new(ErrorKind::InvalidData, "stream did not contain valid UTF-8"))
}

/// Reads a complete file of at most `most` bytes.
///
/// # Errors
/// The same as [`read`].
pub fn read_up_to(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let file = open(path)?;
    let length = file.metadata()?.len();
    let mut bytes = Vec::new();
    if length <= most {
        bytes.reserve(usize::try_from(length).unwrap_or(0));
        file.take(most + 1).read_to_end(&mut bytes)?;
    }
    if length > most || bytes.len() as u64 > most {
        let why = format!("it has more than {} MiB", most >> 20);
        return Err(io::Error::new(ErrorKind::FileTooLarge, why));
    }
    Ok(bytes)
}

fn check(kind: FileType, path: &Path) -> io::Result<()> {
    let what = if kind.is_fifo() && !is_inherited(path) {
        "a pipe"
    } else if kind.is_block_device() || kind.is_char_device() && !is_inherited(path) {
        "a device"
    } else if kind.is_socket() {
        "a socket"
    } else {
        return Ok(());
    };
    let why = format!("it is {what}, not a file: write its content to a file first");
    Err(io::Error::new(ErrorKind::InvalidInput, why))
}

/// Whether the program inherited the file: standard input, or a pipe of the shell. Decided by name,
/// because a link elsewhere may lead to it. `/dev/null` is empty.
fn is_inherited(path: &Path) -> bool {
    path == Path::new("/dev/stdin")
        || path == Path::new("/dev/null")
        || path.starts_with("/dev/fd")
        || path.starts_with("/proc/self/fd")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_no_file_is_refused_and_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        symlink(at("pipe"), at("link")).unwrap();
        symlink("/dev/zero", at("zeros")).unwrap();
        symlink("/dev/stdin", at("stdin")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        for (name, what) in
            [("pipe", "a pipe"), ("link", "a pipe"), ("zeros", "a device"), ("socket", "a socket")]
        {
            for error in [open(&at(name)).unwrap_err(), read(&at(name)).unwrap_err()] {
                assert_eq!(error.kind(), ErrorKind::InvalidInput, "{name}");
                assert!(error.to_string().starts_with(&format!("it is {what}, ")), "{error}");
            }
        }
        let missing = open(&at("missing")).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_read_up_to_its_bound() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        fs::write(&path, "four").unwrap();
        assert_eq!(read_up_to(&path, 4).unwrap(), b"four");
        assert_eq!(read_text(&path).unwrap(), "four");
        assert_eq!(read_up_to(&path, 3).unwrap_err().kind(), ErrorKind::FileTooLarge);
        // Its reported length is meaningless, so it is read to its end.
        assert!(!read(Path::new("/proc/self/status")).unwrap().is_empty());
        assert_eq!(
            read_up_to(Path::new("/proc/self/status"), 9).unwrap_err().kind(),
            ErrorKind::FileTooLarge
        );
        // A sparse file of a terabyte takes no space, and is not read.
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(read(&path).unwrap_err().to_string(), "it has more than 256 MiB");
        fs::write(&path, b"\xff").unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn what_the_shell_gives_is_read() {
        assert!(open(Path::new("/dev/null")).is_ok());
        assert!(read(Path::new("/dev/null")).unwrap().is_empty());
        let (reader, mut writer) = io::pipe().unwrap();
        io::Write::write_all(&mut writer, b"said").unwrap();
        drop(writer);
        let number = std::os::fd::AsRawFd::as_raw_fd(&reader);
        assert_eq!(read(Path::new(&format!("/dev/fd/{number}"))).unwrap(), b"said");
    }
}
