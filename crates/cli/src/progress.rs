//! Progress of a run on stderr: a bar on a terminal, else a line every few seconds, or nothing.

mod figures;

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_engine::{Control, Progress};
use plimsoll_measure::Nanos;

use crate::console;
pub(crate) use figures::time;

/// Interval of the lines where stderr is no terminal.
const LINE_INTERVAL: Nanos = Nanos::from_secs(5);

/// The form of progress and messages on stderr. Clones share one bar.
#[derive(Clone, Debug)]
pub(crate) enum StatusOutput {
    /// A bar that is redrawn in place.
    Bar(ProgressBar),
    /// One line after another.
    Lines,
    /// Warnings only.
    Quiet,
}

impl StatusOutput {
    /// The form that suits stderr.
    pub(crate) fn for_stderr(quiet: bool) -> Self {
        if quiet {
            Self::Quiet
        } else if std::io::stderr().is_terminal() {
            Self::Bar(ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()))
        } else {
            Self::Lines
        }
    }

    /// Prints a message above the bar; nothing with `--quiet`.
    pub(crate) fn info(&self, message: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| console::eprint_line(message)),
            Self::Lines => console::eprint_line(message),
            Self::Quiet => {}
        }
    }

    /// Prints a warning, also with `--quiet`.
    pub(crate) fn warn(&self, message: &str) {
        let warn = || console::eprint_labelled("warning", message);
        match self {
            Self::Bar(bar) => bar.suspend(warn),
            Self::Lines | Self::Quiet => warn(),
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

/// Shows the progress of one run.
pub(crate) struct ProgressView {
    status: StatusOutput,
    control: Control,
    stages: Vec<String>,
    /// When the next line is due.
    next_line: Nanos,
}

impl ProgressView {
    /// Starts to show a run with these stages.
    pub(crate) fn begin(
        status: &StatusOutput,
        control: &Control,
        stages: Vec<String>,
        duration: Nanos,
    ) -> Self {
        status.begin(duration);
        let (status, control) = (status.clone(), control.clone());
        Self { status, control, stages, next_line: Nanos::ZERO }
    }

    /// Shows the current progress.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        match &self.status {
            StatusOutput::Bar(bar) => {
                bar.set_position(progress.elapsed.min(progress.duration).as_u64());
                bar.set_prefix(self.stage_text(progress));
                bar.set_message(figures::line(progress));
                bar.tick();
            }
            StatusOutput::Lines if progress.elapsed >= self.next_line => {
                self.next_line = progress.elapsed + LINE_INTERVAL;
                console::eprint_line(&format!(
                    "{}  {}",
                    self.stage_text(progress),
                    figures::line(progress)
                ));
            }
            StatusOutput::Lines | StatusOutput::Quiet => {}
        }
    }

    /// The stage and the time left.
    fn stage_text(&self, progress: &Progress<'_>) -> String {
        let index = progress.stage.index();
        let name = self.stages.get(index).map_or("", String::as_str);
        let stage = format!("stage {}/{} {name}", index + 1, self.stages.len());
        if progress.elapsed >= progress.duration || self.control.is_interrupted() {
            return format!("{stage}, waiting for {} responses", progress.in_flight);
        }
        let left = figures::clock(progress.duration.saturating_sub(progress.elapsed));
        format!("{stage}, {left} left")
    }
}

impl Drop for ProgressView {
    fn drop(&mut self) {
        if let StatusOutput::Bar(bar) = &self.status {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::StageId;
    use plimsoll_metrics::GroupStats;

    fn stage_text(elapsed: u64, stage: u16, control: &Control) -> String {
        let group = GroupStats::default();
        let stages = vec!["w5:10s".to_owned(), "@7:80s".to_owned()];
        let view = ProgressView::begin(&StatusOutput::Quiet, control, stages, Nanos::from_secs(90));
        view.stage_text(&Progress {
            elapsed: Nanos::from_secs(elapsed),
            duration: Nanos::from_secs(90),
            stage: StageId(stage),
            interval: &group,
            interval_length: Nanos::from_secs(1),
            total: &group,
            in_flight: 3,
            taken_out: &[],
        })
    }

    #[test]
    fn the_stage_and_the_time_left_are_shown() {
        let control = Control::new();
        assert_eq!(stage_text(5, 0, &control), "stage 1/2 w5:10s, 1:25 left");
        assert_eq!(stage_text(81, 1, &control), "stage 2/2 @7:80s, 0:09 left");
        assert_eq!(stage_text(91, 1, &control), "stage 2/2 @7:80s, waiting for 3 responses");
        control.interrupt();
        assert_eq!(stage_text(81, 1, &control), "stage 2/2 @7:80s, waiting for 3 responses");
    }
}
