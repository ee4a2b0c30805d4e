//! Output to the user: results on stdout, everything else on stderr.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};
use std::ops::RangeInclusive;
use std::path::Path;

use anyhow::Context as _;
use nix::errno::Errno;
use nix::sys::stat::{SFlag, fstat};
use plimsoll_plan::redacted_urls;
use plimsoll_report::screen::{COLUMNS, Screen};
use plimsoll_report::{Style, printable};
use terminal_size::{Height, Width, terminal_size_of};

/// Writes results to stdout: on a terminal with control characters written out, else unchanged. A
/// closed pipe (`| head`) or terminal is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let text = if stdout.is_terminal() { printable(text) } else { text.into() };
    ignore_gone_reader(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Why a file was not written.
pub(crate) fn cannot_write(path: &Path) -> String {
    format!("cannot write {}", path.display())
}

/// Writes a line of results to stdout.
pub(crate) fn print_line(line: &str) -> io::Result<()> {
    print(&format!("{line}\n"))
}

/// How much of a result is printed at the end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Text that fits the terminal; elsewhere 80 columns and 60 lines.
    Screen,
    /// Everything, as report.txt holds it.
    Full,
    /// Output for programs: levels.json, or its equivalent.
    Json,
    /// No output yet: the command shows several results together.
    Nothing,
}

/// The style of screens on stdout: the terminal's width, or the usual width elsewhere.
fn screen_style() -> Style {
    full_style(COLUMNS)
}

/// The style of full reports on stdout: in colour on a terminal, unless `NO_COLOR` is set, and as
/// wide and high as that; elsewhere with the given number of columns, as in a file. On a terminal
/// that is smaller
/// than a page can be, the terminal wraps and scrolls the lines.
pub(crate) fn full_style(columns: usize) -> Style {
    const WIDTHS: RangeInclusive<usize> = 60..=200;
    // A log has room for every table of a screen.
    const LINES_OF_LOG: usize = 60;
    let (stdout, plain) = (io::stdout(), Style::plain(columns));
    if !stdout.is_terminal() {
        return Style { lines: LINES_OF_LOG, ..plain };
    }
    let color = !colourless();
    let Some((Width(columns), Height(lines))) = terminal_size_of(stdout) else {
        return Style { color, ..plain };
    };
    let width = usize::from(columns).clamp(*WIDTHS.start(), *WIDTHS.end());
    // The last line is reserved for the prompt.
    let lines = usize::from(lines).saturating_sub(1).max(plain.lines);
    Style { width, lines, color }
}

/// Prints a screen.
pub(crate) fn print_screen(screen: &Screen) -> io::Result<()> {
    print(&screen.text(screen_style()))
}

/// Writes a result as `JUnit` XML, if that is wanted.
pub(crate) fn write_junit(path: Option<&Path>, screen: &Screen) -> anyhow::Result<()> {
    let Some(path) = path else { return Ok(()) };
    std::fs::write(path, screen.junit()?).with_context(|| cannot_write(path))
}

/// Prints the end of a full report: the files and the verdict.
pub(crate) fn print_end(screen: &Screen) -> io::Result<()> {
    print(&format!("\n{}", screen.end(screen_style())))
}

/// Whether `NO_COLOR` is set.
pub(crate) fn colourless() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Writes a line to stderr, with control characters written out and without credentials of URLs: it
/// may quote a file, a flag or the target. Errors are ignored: there is nowhere left to report
/// them.
pub(crate) fn eprint_line(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", printable(&redacted_urls(message)));
}

/// Writes a message to stderr. Each line starts with a label such as `error`, so that logs can be
/// searched for it.
pub(crate) fn eprint_labelled(label: &str, message: &str) {
    for line in message.lines() {
        eprint_line(&format!("{label}: {line}"));
    }
}

fn ignore_gone_reader(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        // A terminal that was closed; the files of a run must still be written.
        Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) && is_device() => Ok(()),
        other => other,
    }
}

/// Whether stdout is a device, such as a terminal: a closed terminal no longer identifies itself.
fn is_device() -> bool {
    fstat(io::stdout())
        .is_ok_and(|stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT == SFlag::S_IFCHR)
}
