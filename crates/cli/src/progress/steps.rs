//! Progress of what is no run: a line that says what goes on, and for how long.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::StatusOutput;
use crate::console;

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(250);

/// Shows one step after another. On a terminal the present one is redrawn with its time; elsewhere
/// each is a line.
#[derive(Debug)]
pub(crate) struct Steps {
    bar: Option<ProgressBar>,
    /// Whether steps are printed where nothing is redrawn.
    lines: bool,
}

impl Steps {
    /// Shows steps that somebody may want to read later, too.
    pub(crate) fn begin(status: &StatusOutput) -> Self {
        let bar = spinner(status);
        if let Some(bar) = &bar {
            bar.enable_steady_tick(TICK);
        }
        Self { bar, lines: matches!(status, StatusOutput::Lines) }
    }

    /// Shows a step of which a log needs no line.
    pub(crate) fn passing(status: &StatusOutput, text: &str) -> Self {
        let steps = Self { bar: spinner(status), lines: false };
        steps.step(text);
        steps.bar.iter().for_each(|bar| bar.enable_steady_tick(TICK));
        steps
    }

    /// Shows what begins now.
    pub(crate) fn step(&self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.reset_elapsed();
            bar.set_message(plimsoll_report::printable(text).into_owned());
            bar.tick();
        } else if self.lines {
            console::eprint_line(text);
        }
    }

    /// Writes above the line that is redrawn.
    pub(crate) fn above<T>(&self, write: impl FnOnce() -> T) -> T {
        match &self.bar {
            Some(bar) => bar.suspend(write),
            None => write(),
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The line that is redrawn, where the form of progress has such.
fn spinner(status: &StatusOutput) -> Option<ProgressBar> {
    if !matches!(status, StatusOutput::Full(_) | StatusOutput::Bar(_)) {
        return None;
    }
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner:.cyan} {wide_msg} {elapsed}");
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
    bar.set_message("starting");
    Some(bar)
}
