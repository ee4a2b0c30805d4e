//! What the user sees: results on stdout, all else on stderr.

use std::io::{self, ErrorKind, IsTerminal as _, Write as _};

use plimsoll_report::Style;
use terminal_size::{Width, terminal_size_of};

/// Writes results to stdout as they are. A reader that went away (`| head`) is not an error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    forgive(stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()))
}

/// Writes a line of results to stdout.
pub(crate) fn print_line(line: &str) -> io::Result<()> {
    print(&format!("{line}\n"))
}

/// How reports look on stdout. On a terminal they are as wide as that, if it is narrower than a
/// file, and have colours, unless `NO_COLOR` forbids them.
pub(crate) fn style() -> Style {
    let file = Style::default();
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return file;
    }
    let colourless = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let columns = terminal_size_of(stdout).map_or(file.width, |(Width(columns), _)| columns.into());
    Style { width: file.width.min(columns), color: !colourless }
}

/// Tells something on stderr. If nobody listens there, nobody can be told.
pub(crate) fn say(message: &str) {
    let _ = writeln!(io::stderr().lock(), "{message}");
}

/// Tells what went wrong, each line with its mark, so that it is found in a log.
pub(crate) fn complain(mark: &str, message: &str) {
    for line in message.lines() {
        say(&format!("{mark}: {line}"));
    }
}

fn forgive(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
