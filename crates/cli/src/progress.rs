//! The progress display on stderr: the live view, a bar, lines, or nothing.
//!
//! One mechanism for all commands: [`StatusOutput`] prints messages, [`ProgressView`] shows a run
//! from its snapshots, and [`Steps`] shows whatever else takes long.

mod figures;
mod live_runs;
mod run;
mod shards;
mod so_far;
mod steps;
mod ui;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_live::View;
use plimsoll_measure::Nanos;

use crate::console;
use crate::signal::RunSignal;
pub(crate) use figures::time;
pub(crate) use live_runs::LiveRuns;
pub(crate) use run::{ENDING, ProgressView, Shown};
pub(crate) use shards::ShardsView;
pub(crate) use steps::Steps;
pub(crate) use ui::{Ui, UiFlag};

/// The form of progress and messages on stderr. Clones share one display.
#[derive(Clone, Debug)]
pub(crate) enum StatusOutput {
    /// The whole terminal.
    Full(View),
    /// A bar that is redrawn in place.
    Bar(ProgressBar),
    /// One line after another.
    Lines,
    /// Messages without progress.
    Messages,
    /// Warnings only.
    Quiet,
}

impl StatusOutput {
    /// The form that the user asked for, or that suits stderr.
    pub(crate) fn open(ui: Ui) -> Self {
        match ui {
            Ui::Full => Self::Full(View::new(!console::colourless())),
            Ui::Bar => {
                Self::Bar(ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()))
            }
            Ui::Lines => Self::Lines,
            Ui::None => Self::Messages,
            Ui::Quiet => Self::Quiet,
        }
    }

    /// Prints a message above the bar; nothing with `--quiet`.
    pub(crate) fn info(&self, message: &str) {
        match self {
            Self::Full(view) => say(view, message.to_owned()),
            Self::Bar(bar) => bar.suspend(|| console::eprint_line(message)),
            Self::Lines | Self::Messages => console::eprint_line(message),
            Self::Quiet => {}
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub(crate) fn warn(&self, message: &str) {
        match self {
            Self::Full(view) => {
                message.lines().for_each(|line| say(view, format!("warning: {line}")));
            }
            Self::Bar(bar) => bar.suspend(|| console::eprint_labelled("warning", message)),
            Self::Lines | Self::Messages | Self::Quiet => {
                console::eprint_labelled("warning", message);
            }
        }
    }

    /// Prints that the run ends early.
    ///
    /// The terminal has just written `^C` behind the bar, so the position of the cursor is unknown:
    /// the old bar stays, and a new one is drawn below.
    pub(crate) fn interrupted(&self, message: &str) {
        let Self::Bar(bar) = self else { return self.info(message) };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        console::eprint_line(&format!("\n{message}"));
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    /// Follows what happens to the terminal. A terminal that is closed does not end a run.
    pub(crate) fn follow(&self, signal: RunSignal) {
        let Some(view) = self.view() else { return };
        match signal {
            RunSignal::Interrupt => {}
            RunSignal::HangUp => view.hang_up(),
            RunSignal::Suspend => view.suspend(),
            RunSignal::Continue => view.resume(),
        }
    }

    /// The view of the whole terminal, if that is the form.
    pub(crate) const fn view(&self) -> Option<&View> {
        match self {
            Self::Full(view) => Some(view),
            _ => None,
        }
    }

    fn begin(&self, duration: Nanos) {
        let Self::Bar(bar) = self else { return };
        // The bar may have shown another run before; nothing of it must be drawn again.
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.reset();
        bar.set_message("");
        let style = ProgressStyle::with_template("{wide_bar:.cyan/blue} {prefix}\n{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━╌"));
        bar.set_length(duration.as_u64());
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_prefix("starting");
        bar.tick();
    }
}

/// Shows a message in the view, or where the view is not shown prints it.
fn say(view: &View, message: String) {
    if let Some(message) = view.say(message) {
        console::eprint_line(&message);
    }
}
