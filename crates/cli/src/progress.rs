//! How a run looks while it goes on: a bar on a terminal, a line every few seconds elsewhere, or
//! nothing.

mod figures;

use std::io::IsTerminal as _;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_engine::{Control, Progress};
use plimsoll_measure::Nanos;

use crate::console;
pub(crate) use figures::time;

/// Time between two lines where there is no terminal.
const BETWEEN_LINES: Nanos = Nanos::from_secs(5);

/// Where progress is shown. Clones show on the same place.
#[derive(Clone, Debug)]
pub(crate) enum Screen {
    /// A bar that is redrawn.
    Bar(ProgressBar),
    /// Lines, one below the other.
    Lines,
    /// Nowhere.
    Quiet,
}

impl Screen {
    /// What suits stderr.
    pub(crate) fn of_stderr(quiet: bool) -> Self {
        if quiet {
            Self::Quiet
        } else if std::io::stderr().is_terminal() {
            Self::Bar(ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()))
        } else {
            Self::Lines
        }
    }

    /// Tells something without tearing the bar; nothing where the user wants quiet.
    pub(crate) fn tell(&self, message: &str) {
        match self {
            Self::Bar(bar) => bar.suspend(|| console::say(message)),
            Self::Lines => console::say(message),
            Self::Quiet => {}
        }
    }

    /// Tells something that matters, quiet or not.
    pub(crate) fn warn(&self, message: &str) {
        let warn = || console::complain("warning", message);
        match self {
            Self::Bar(bar) => bar.suspend(warn),
            Self::Lines | Self::Quiet => warn(),
        }
    }

    /// Tells that the run ends early.
    ///
    /// The terminal has just written `^C` behind the bar, so that nobody knows where the cursor is:
    /// the bar is left standing, and goes on below.
    pub(crate) fn interrupt(&self, message: &str) {
        let Self::Bar(bar) = self else { return self.tell(message) };
        bar.set_draw_target(ProgressDrawTarget::hidden());
        console::say(&format!("\n{message}"));
        bar.set_draw_target(ProgressDrawTarget::stderr());
    }

    fn begin(&self, length: Nanos) {
        let Self::Bar(bar) = self else { return };
        // The bar may have shown another run before, of which nothing must be drawn again.
        bar.set_draw_target(ProgressDrawTarget::hidden());
        bar.reset();
        bar.set_message("");
        let style = ProgressStyle::with_template("{wide_bar:.cyan/blue} {prefix}\n{msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()).progress_chars("━━╌"));
        bar.set_length(length.as_u64());
        bar.set_draw_target(ProgressDrawTarget::stderr());
        bar.set_prefix("starting");
        bar.tick();
    }
}

/// Shows the progress of one run.
pub(crate) struct Live {
    screen: Screen,
    control: Control,
    stages: Vec<String>,
    /// When the next line is due.
    next_line: Nanos,
}

impl Live {
    /// Begins to show a run of these stages.
    pub(crate) fn begin(
        screen: &Screen,
        control: &Control,
        stages: Vec<String>,
        length: Nanos,
    ) -> Self {
        screen.begin(length);
        let (screen, control) = (screen.clone(), control.clone());
        Self { screen, control, stages, next_line: Nanos::ZERO }
    }

    /// Shows where the run is.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        match &self.screen {
            Screen::Bar(bar) => {
                bar.set_position(progress.elapsed.min(progress.duration).as_u64());
                bar.set_prefix(self.place(progress));
                bar.set_message(figures::line(progress));
                bar.tick();
            }
            Screen::Lines if progress.elapsed >= self.next_line => {
                self.next_line = progress.elapsed + BETWEEN_LINES;
                console::say(&format!("{}  {}", self.place(progress), figures::line(progress)));
            }
            Screen::Lines | Screen::Quiet => {}
        }
    }

    /// Which stage, and how long still.
    fn place(&self, progress: &Progress<'_>) -> String {
        let index = progress.stage.index();
        let name = self.stages.get(index).map_or("", String::as_str);
        let stage = format!("stage {}/{} {name}", index + 1, self.stages.len());
        if progress.elapsed >= progress.duration || self.control.is_interrupted() {
            return format!("{stage}, waiting for {} answers", progress.in_flight);
        }
        let left = figures::clock(progress.duration.saturating_sub(progress.elapsed));
        format!("{stage}, {left} left")
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if let Screen::Bar(bar) = &self.screen {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::StageId;
    use plimsoll_metrics::GroupStats;

    fn place(elapsed: u64, stage: u16, control: &Control) -> String {
        let cell = GroupStats::default();
        let stages = vec!["w5:10s".to_owned(), "@7:80s".to_owned()];
        let live = Live::begin(&Screen::Quiet, control, stages, Nanos::from_secs(90));
        live.place(&Progress {
            elapsed: Nanos::from_secs(elapsed),
            duration: Nanos::from_secs(90),
            stage: StageId(stage),
            interval: &cell,
            interval_length: Nanos::from_secs(1),
            total: &cell,
            in_flight: 3,
        })
    }

    #[test]
    fn the_place_names_the_stage_and_what_is_left() {
        let control = Control::new();
        assert_eq!(place(5, 0, &control), "stage 1/2 w5:10s, 1:25 left");
        assert_eq!(place(81, 1, &control), "stage 2/2 @7:80s, 0:09 left");
        assert_eq!(place(91, 1, &control), "stage 2/2 @7:80s, waiting for 3 answers");
        control.interrupt();
        assert_eq!(place(81, 1, &control), "stage 2/2 @7:80s, waiting for 3 answers");
    }
}
