//! The progress display on stderr: the live view, a bar, lines, or no display.
//!
//! One mechanism for all commands: [`StatusOutput`] prints messages, [`ProgressView`] shows a run
//! from its snapshots, and [`Steps`] shows whatever else takes long.

mod run;

use std::env;
use std::io::{self, IsTerminal as _};
use std::time::Duration;

use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_engine::Progress;
use plimsoll_live::{SoFar, View, is_foreground};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_metrics::{
    Counters, Distribution, Edges, InstrumentHealth, Judgement, Level, Limit, Metric, Rates,
    RunEnd, RunMetadata, RunSummary, StageInfo, ThresholdResult,
};
use plimsoll_report::format::{self, digits, or_dash};
use plimsoll_run_files::ShardProgress;
pub(crate) use run::{ENDING, ProgressView, Shown};
use terminal_size::{Height, Width, terminal_size_of};

use crate::console;
use crate::exit::RunSignal;
use crate::progress::run::LINE_INTERVAL;

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

    /// Prints a message above the bar; prints nothing with `--quiet`.
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
        // The bar may have shown another run, whose content must not be drawn again.
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

/// Shows the progress of all shards in one line.
pub(crate) struct ShardsView {
    status: StatusOutput,
    shards: u64,
    shown: bool,
    next_line: Nanos,
    /// Time and completed requests at the last look, and their rate.
    last: (f64, u64),
    rate: f64,
}

impl ShardsView {
    /// Starts to show a run with this number of shards.
    pub(crate) fn begin(status: &StatusOutput, shards: u64) -> Self {
        let (status, next_line) = (status.clone(), Nanos::ZERO);
        Self { status, shards, shown: false, next_line, last: (0.0, 0), rate: 0.0 }
    }

    /// Shows the progress of the shards; `running` is the number of shards that are still running.
    pub(crate) fn show(&mut self, told: &[ShardProgress], running: u64) {
        let furthest = told.iter().max_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
        let Some(furthest) = furthest else { return };
        let completed = told.iter().map(|shard| shard.completed).sum::<u64>();
        let (before, counted) = self.last;
        if furthest.elapsed_s < before + 0.9 && before > 0.0 {
            return;
        }
        self.rate = completed.saturating_sub(counted) as f64 / (furthest.elapsed_s - before);
        self.last = (furthest.elapsed_s, completed);
        let [elapsed, duration] =
            [furthest.elapsed_s, furthest.duration_s].map(Nanos::from_secs_f64);
        let line = self.line(told, running, duration.saturating_sub(elapsed));
        if !std::mem::replace(&mut self.shown, true) {
            self.status.begin(duration);
        }
        match &self.status {
            StatusOutput::Bar(bar) => {
                bar.set_position(elapsed.min(duration).as_u64());
                bar.set_prefix(format!("{running} of {} shards", self.shards));
                bar.set_message(line);
                bar.tick();
            }
            StatusOutput::Lines if elapsed >= self.next_line => {
                self.next_line = elapsed + LINE_INTERVAL;
                console::eprint_line(&format!("{running} of {} shards, {line}", self.shards));
            }
            _ => {}
        }
    }

    fn line(&self, told: &[ShardProgress], running: u64, left: Nanos) -> String {
        let in_flight: u64 = told.iter().map(|shard| shard.in_flight).sum();
        let failed: u64 = told.iter().map(|shard| shard.failed).sum();
        let rejected = match told.iter().map(|shard| shard.rejected).sum() {
            0 => String::new(),
            count => format!("  {count} rejected"),
        };
        let left = if left > Nanos::ZERO && running > 0 {
            format!("{} left", clock(left))
        } else {
            format!("waiting for {in_flight} responses")
        };
        let rate = digits(self.rate);
        format!("{left}  {rate} done/s  {in_flight} in flight  {failed} failed{rejected}")
    }
}

impl Drop for ShardsView {
    fn drop(&mut self) {
        if let StatusOutput::Bar(bar) = &self.status {
            bar.finish_and_clear();
        }
    }
}

/// Time between two interim evaluations, at least.
const LOOK: Nanos = Nanos::from_secs(2);
/// Inverse of the maximum share of time for interim evaluations, which use CPU that the load needs.
const SHARE: u64 = 200;

/// Judges what there is, by the rules of the report.
struct Judge {
    metadata: RunMetadata,
    thresholds: Vec<Limit>,
    clock: MonotonicClock,
    /// When the next look is due, after the run's start.
    next: Nanos,
}

impl Judge {
    fn new(mut metadata: RunMetadata, thresholds: Vec<Limit>) -> Self {
        metadata.run.ended = RunEnd::Interrupted;
        Self { metadata, thresholds, clock: MonotonicClock::start(), next: LOOK }
    }

    /// Takes a look at the figures, if it is time. Events of the last second are not included.
    fn look(&mut self, progress: &Progress<'_>) -> Option<SoFar> {
        if progress.elapsed < self.next || progress.before.cells().next().is_none() {
            return None;
        }
        let began = self.clock.now();
        let seen = progress.elapsed.saturating_sub(progress.interval_length);
        let metadata = until(&self.metadata, seen.as_secs_f64());
        let health = InstrumentHealth::default();
        let summary = RunSummary::build(metadata, health, progress.before, &self.thresholds).ok();
        let took = self.clock.now().since(began).as_u64();
        self.next = progress.elapsed + LOOK.max(Nanos::new(took.saturating_mul(SHARE)));
        summary.map(|summary| SoFar {
            invalid: invalid(&summary),
            thresholds: still_open(summary.thresholds, &summary.results.total.counters),
        })
    }
}

/// The thresholds without failures for want of answers: requests in flight lower the share of good
/// ones, and may still get one.
fn still_open(mut thresholds: Vec<ThresholdResult>, total: &Counters) -> Vec<ThresholdResult> {
    let over = total.ended() + total.in_flight + total.never_sent;
    let shares = thresholds.iter_mut().filter(|found| found.metric.starts_with("success_rate"));
    let broken = shares.filter(|found| found.judgement == Judgement::Fail);
    for found in broken.filter(|_| total.scheduled > over) {
        found.judgement = Judgement::Inconclusive("requests are in flight".to_owned());
    }
    thresholds
}

/// The stages as they would be if the run had ended at `seconds`.
fn until(metadata: &RunMetadata, seconds: f64) -> RunMetadata {
    RunMetadata {
        stages: metadata
            .stages
            .iter()
            .map(|stage: &StageInfo| StageInfo {
                duration_s: stage.duration_s.min((seconds - stage.start_s).max(0.0)),
                ..stage.clone()
            })
            .collect(),
        ..metadata.clone()
    }
}

/// Effects of the generator on headline figures, and its own errors. Requests in flight are
/// unaccounted for until the end, which is not an error.
fn invalid(summary: &RunSummary) -> Vec<String> {
    let invalid = summary.of_level(Level::Invalid);
    let own = invalid.filter(|finding| matches!(finding.code, 101..=103));
    own.map(|finding| format!("{} {}", finding.text(), finding.fix())).collect()
}

/// Time between two pictures.
const TICK: Duration = Duration::from_millis(250);

/// Shows one step after another. On a terminal the present one is redrawn with its time; elsewhere
/// each is a line.
#[derive(Debug)]
pub(crate) struct Steps {
    bar: Option<ProgressBar>,
    /// Whether steps are printed if the display does not redraw.
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

    /// Shows a step that a log does not need.
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

/// Properties of stderr that choose the display.
#[derive(Clone, Copy, Debug)]
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

    /// Displays that need a terminal fall back to lines.
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

// The figures of the last second, on one line.

/// The line: throughput, requests in flight, failed and rejected requests, and the time that the
/// report of the run has, by its name.
fn line_of_figures(progress: &Progress<'_>, time: Metric) -> String {
    let (counters, seconds) =
        (progress.interval.counters(), progress.interval_length.as_secs_f64());
    let rates = Rates::compute(counters, &Edges::default(), seconds);
    let times = progress.interval.distribution(time);
    let so_far = progress.total.counters();
    let rejected = match so_far.rejected {
        0 => String::new(),
        count => format!("  {count} rejected"),
    };
    format!(
        "{} done/s  {} in flight  {} {}  {} failed{rejected}",
        digits(rates.throughput_per_s.unwrap_or_default()),
        progress.in_flight,
        time.title(),
        spread(times),
        so_far.failed + so_far.timed_out,
    )
}

/// The median, and the 99th percentile where a second has values enough for one; else the largest.
fn spread(times: Option<&Distribution>) -> String {
    let p50 = times.and_then(|times| times.nearest_rank(0.5));
    let (name, upper) = match times.and_then(|times| times.quantile(0.99)) {
        Some(p99) => ("p99", Some(p99)),
        None => ("max", times.and_then(Distribution::max)),
    };
    format!("p50 {}  {name} {}", or_dash(p50, short_time), or_dash(upper, short_time))
}

/// A duration with three significant digits.
pub(crate) fn short_time(duration: Nanos) -> String {
    format::time(duration.as_millis_f64())
}

/// Minutes and seconds, rounded up, so that 0:00 means the end.
fn clock(duration: Nanos) -> String {
    let seconds = duration.as_u64().div_ceil(1_000_000_000);
    match seconds / 3_600 {
        0 => format!("{}:{:02}", seconds / 60, seconds % 60),
        hours => format!("{hours}:{:02}:{:02}", seconds / 60 % 60, seconds % 60),
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_metrics::Finding;

    use super::*;

    #[test]
    fn a_stage_that_has_not_begun_or_not_ended_is_as_long_as_it_lasted() {
        let stage = |start_s, duration_s| StageInfo { start_s, duration_s, ..StageInfo::default() };
        let stages = vec![stage(0.0, 2.0), stage(2.0, 10.0), stage(12.0, 5.0)];
        let metadata = RunMetadata { stages, ..RunMetadata::default() };
        let lengths = |seconds| -> Vec<f64> {
            until(&metadata, seconds).stages.iter().map(|stage| stage.duration_s).collect()
        };
        assert_eq!(lengths(5.0), [2.0, 3.0, 0.0]);
        assert_eq!(lengths(99.0), [2.0, 10.0, 5.0]);
    }

    #[test]
    fn requests_in_flight_break_no_share_of_good_answers() {
        let judged = |metric: &str, scheduled: u64| {
            let threshold = ThresholdResult {
                metric: metric.to_owned(),
                expression: "rate>99%".to_owned(),
                measured: Some(0.9),
                generator: None,
                unit: plimsoll_metrics::Unit::Share,
                judgement: Judgement::Fail,
                level: None,
            };
            let total = Counters { scheduled, completed: 90, ..Counters::default() };
            still_open(vec![threshold], &total)[0].judgement == Judgement::Fail
        };
        assert!(!judged("success_rate", 100) && judged("success_rate", 90));
        assert!(judged("error_rate", 100));
    }

    #[test]
    fn only_the_generators_own_part_makes_a_run_invalid_before_its_end() {
        let codes = [106, 102, 103];
        let findings = codes.map(|code| Finding::new(code).at(Level::Invalid)).into();
        let found = invalid(&RunSummary { findings, ..RunSummary::default() });
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(invalid(&RunSummary::default()).is_empty());
    }

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

#[cfg(test)]
mod figures_tests {
    use super::*;

    #[test]
    fn times_have_three_digits() {
        for (nanos, text) in [
            (0, "0ns"),
            (7, "7.00ns"),
            (41_234, "41.2us"),
            (41_250_000, "41.2ms"),
            (999_600_000, "1.00s"),
            (1_234_000_000, "1.23s"),
            (61_400_000_000, "61.4s"),
        ] {
            assert_eq!(short_time(Nanos::new(nanos)), text, "{nanos}");
        }
    }

    #[test]
    fn a_second_of_few_requests_has_no_p99() {
        let second = |count: u64| {
            let mut times = Distribution::default();
            (1..=count).for_each(|us| times.record(Nanos::from_micros(us)));
            spread(Some(&times))
        };
        // The histogram has steps of some percent.
        let few = second(10);
        assert!(few.starts_with("p50 5.") && few.ends_with("us  max 10.0us"), "{few}");
        let many = second(1_000);
        assert!(many.starts_with("p50 5") && many.contains("us  p99 9"), "{many}");
        assert_eq!(spread(None), "p50 -  max -");
    }

    #[test]
    fn the_time_left_is_rounded_up() {
        for (millis, text) in [(0, "0:00"), (1, "0:01"), (59_001, "1:00"), (3_600_000, "1:00:00")] {
            assert_eq!(clock(Nanos::from_millis(millis)), text, "{millis} ms");
        }
    }
}
