//! Which form of progress suits.

use std::env;
use std::io::{self, IsTerminal as _};

use clap::ValueEnum;
use plimsoll_live::is_foreground;
use terminal_size::{Height, Width, terminal_size_of};

/// The smallest terminal on which the whole of it is used unasked.
const FULL: (u16, u16) = (100, 30);

/// The form of progress, as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UiFlag {
    /// `full` on a terminal of at least 100x30 outside of CI, `bar` on any other terminal, else
    /// `lines`
    #[default]
    Auto,
    /// The whole terminal: verdict so far, stages, rates, times, outcomes, processes
    Full,
    /// Two lines that are redrawn
    Bar,
    /// A line every five seconds
    Lines,
    /// No progress, but messages
    None,
}

/// The form of progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ui {
    Full,
    Bar,
    Lines,
    None,
    Quiet,
}

/// What decides.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts of the terminal")]
struct Stderr {
    terminal: bool,
    size: Option<(u16, u16)>,
    /// Whether the terminal understands more than lines.
    capable: bool,
    /// Whether a shell has put this process in the background.
    background: bool,
    ci: bool,
}

impl Ui {
    /// The form for this process.
    pub(crate) fn for_process(flag: UiFlag, quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let size = terminal_size_of(io::stderr());
        Self::choose(
            flag,
            quiet,
            Stderr {
                terminal,
                size: size.map(|(Width(width), Height(height))| (width, height)),
                capable: env::var("TERM").is_ok_and(|term| !term.is_empty() && term != "dumb"),
                background: terminal && !is_foreground(),
                ci: env::var("CI").is_ok_and(|value| !value.is_empty() && value != "false"),
            },
        )
    }

    /// What needs a terminal and has none becomes lines.
    fn choose(flag: UiFlag, quiet: bool, stderr: Stderr) -> Self {
        let large = stderr.size.is_some_and(|(width, height)| width >= FULL.0 && height >= FULL.1);
        match flag {
            _ if quiet => Self::Quiet,
            UiFlag::None => Self::None,
            _ if !stderr.terminal || flag == UiFlag::Lines => Self::Lines,
            UiFlag::Full if stderr.capable => Self::Full,
            UiFlag::Auto if large && stderr.capable && !stderr.background && !stderr.ci => {
                Self::Full
            }
            _ => Self::Bar,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_terminal_is_used_where_it_is_large_and_somebody_looks_at_it() {
        let good = Stderr {
            terminal: true,
            size: Some((100, 30)),
            capable: true,
            background: false,
            ci: false,
        };
        let auto = |stderr| Ui::choose(UiFlag::Auto, false, stderr);
        assert_eq!(auto(good), Ui::Full);
        for size in [Some((99, 30)), Some((100, 29)), None] {
            assert_eq!(auto(Stderr { size, ..good }), Ui::Bar, "{size:?}");
        }
        assert_eq!(auto(Stderr { capable: false, ..good }), Ui::Bar);
        assert_eq!(auto(Stderr { background: true, ..good }), Ui::Bar);
        assert_eq!(auto(Stderr { ci: true, ..good }), Ui::Bar);
        assert_eq!(auto(Stderr { terminal: false, ..good }), Ui::Lines);
    }

    #[test]
    fn what_is_asked_for_is_used_if_the_terminal_can_do_it() {
        let small = Stderr {
            terminal: true,
            size: Some((20, 5)),
            capable: true,
            background: false,
            ci: true,
        };
        let none = Stderr { terminal: false, ..small };
        let dumb = Stderr { capable: false, ..small };
        for (flag, stderr, ui) in [
            (UiFlag::Full, small, Ui::Full),
            (UiFlag::Full, dumb, Ui::Bar),
            (UiFlag::Full, none, Ui::Lines),
            (UiFlag::Bar, small, Ui::Bar),
            (UiFlag::Bar, none, Ui::Lines),
            (UiFlag::Lines, small, Ui::Lines),
            (UiFlag::None, small, Ui::None),
            (UiFlag::None, none, Ui::None),
        ] {
            assert_eq!(Ui::choose(flag, false, stderr), ui, "{flag:?} {stderr:?}");
            assert_eq!(Ui::choose(flag, true, stderr), Ui::Quiet, "{flag:?}");
        }
    }
}
