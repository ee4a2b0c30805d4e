//! Shows the progress of one run.

use plimsoll_engine::{Control, ProcessStat, Progress, Run};
use plimsoll_live::{RunFacts, SoFar, StageFacts, View};
use plimsoll_measure::Nanos;
use plimsoll_metrics::{GroupStats, IntervalUpdate, Limit, RunMetadata};
use plimsoll_report::{counted_stage, format};

use super::{Judge, StatusOutput};
use crate::{console, progress};

/// Interval of the lines if stderr is not a terminal.
pub(super) const LINE_INTERVAL: Nanos = Nanos::from_secs(5);

/// Description of a run that begins.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    facts: RunFacts,
    metadata: RunMetadata,
    thresholds: Vec<Limit>,
}

impl Shown {
    /// A run that is judged by these thresholds.
    pub(crate) fn new(run: &Run, thresholds: &[Limit]) -> Self {
        let metadata = run.metadata();
        let plans = run.schedule().stages().iter().zip(&metadata.stages);
        let max_requests = metadata.max_requests;
        let facts = RunFacts {
            name: metadata.run.name.clone(),
            stages: plans
                .map(|(plan, info): (&plimsoll_schedule::StagePlan, &_)| {
                    let plimsoll_metrics::StageInfo { name, warmup, .. } = info;
                    let counted = max_requests.filter(|_| !warmup);
                    let counted = counted.and_then(|most| counted_stage(name, most));
                    let (name, warmup) = (counted.unwrap_or_else(|| name.clone()), *warmup);
                    StageFacts { name, warmup, start: plan.start, end: plan.end, load: plan.load }
                })
                .collect(),
            scenarios: metadata.scenarios.clone(),
            targets: metadata.targets.iter().map(|target| target.name.clone()).collect(),
            compares: run.pairs().is_some(),
            time: metadata.headline_time(),
            max_requests,
        };
        Self { facts, metadata, thresholds: thresholds.to_vec() }
    }
}

/// Shows the progress of one run.
pub(crate) struct ProgressView {
    status: StatusOutput,
    control: Control,
    facts: RunFacts,
    /// When the next line is due.
    next_line: Nanos,
    full: Option<Full>,
    /// Where somebody looks at the verdict.
    judge: Option<Judge>,
}

/// Additional state of the full-screen view.
struct Full {
    view: View,
    /// CPU time of this process up to the last look.
    own: Option<Nanos>,
}

/// Ends the run, as Ctrl-C does.
fn end(control: &Control, view: &View) {
    if !control.is_interrupted() {
        control.interrupt();
        // The view shows the message, so it returns no text to print.
        let _ = view.say(ENDING.to_owned());
    }
}

impl ProgressView {
    /// Starts to show a run.
    pub(crate) fn begin(status: &StatusOutput, control: &Control, shown: Shown) -> Self {
        status.begin(shown.facts.duration());
        let judge = status.view().map(|_| Judge::new(shown.metadata, shown.thresholds));
        let facts = shown.facts.clone();
        let full = status.view().map(|view| {
            let (ending, told) = (control.clone(), view.clone());
            view.begin(shown.facts, move || end(&ending, &told));
            Full { view: view.clone(), own: None }
        });
        let (status, control) = (status.clone(), control.clone());
        Self { status, control, facts, next_line: Nanos::ZERO, full, judge }
    }

    /// Shows the current progress.
    pub(crate) fn show(&mut self, progress: &Progress<'_>) {
        let so_far = self.judge.as_mut().and_then(|judge| judge.look(progress));
        let ended = measured(progress, &self.facts.stages);
        if let Some(full) = &mut self.full {
            let ending = self.control.is_interrupted();
            full.show(IntervalUpdate { ended, ending, ..of_interval(progress) }, so_far);
            return;
        }
        match &self.status {
            StatusOutput::Bar(bar) => {
                bar.set_position(self.facts.position(progress.elapsed, ended).as_u64());
                bar.set_prefix(self.stage_text(progress, ended));
                bar.set_message(progress::line_of_figures(progress, self.facts.time));
                bar.tick();
            }
            StatusOutput::Lines if progress.elapsed >= self.next_line => {
                self.next_line = progress.elapsed + LINE_INTERVAL;
                console::eprint_line(&format!(
                    "{}  {}",
                    self.stage_text(progress, ended),
                    progress::line_of_figures(progress, self.facts.time)
                ));
            }
            _ => {}
        }
    }

    /// The stage, and its remaining requests if a number of requests ends the run, otherwise its
    /// remaining time.
    fn stage_text(&self, progress: &Progress<'_>, ended: u64) -> String {
        let index = progress.stage.index();
        let name = self.facts.stages.get(index).map_or("", |stage| stage.name.as_str());
        let stage = format!("stage {}/{} {name}", index + 1, self.facts.stages.len());
        if progress.elapsed >= progress.duration || self.control.is_interrupted() {
            return format!("{stage}, waiting for {} responses", progress.in_flight);
        }
        if let Some(most) = self.facts.max_requests {
            let [ended, most] = [ended, most].map(format::count);
            return format!("{stage}, {ended} of {most} requests");
        }
        let left = progress::clock(progress.duration.saturating_sub(progress.elapsed));
        format!("{stage}, {left} left")
    }
}

/// Measured requests that have ended since the start.
fn measured(progress: &Progress<'_>, stages: &[StageFacts]) -> u64 {
    let cells = progress.before.cells().chain(progress.cells.cells());
    let measured =
        cells.filter(|(key, _)| stages.get(key.stage.index()).is_none_or(|stage| !stage.warmup));
    measured.map(|(_, cell): (_, &GroupStats)| cell.counters().ended()).sum()
}

/// Said when the user ends a run.
pub(crate) const ENDING: &str =
    "ending the load and writing the report; press Ctrl-C again to stop at once";

/// The last interval, for a run that goes on.
fn of_interval<'p>(progress: &Progress<'p>) -> IntervalUpdate<'p> {
    IntervalUpdate {
        elapsed: progress.elapsed,
        stage: progress.stage.index(),
        length: progress.interval_length,
        cells: progress.cells,
        in_flight: progress.in_flight,
        ended: 0,
        ending: false,
        taken_out: progress.taken_out,
        processes: progress.processes.clone(),
        own_cpu: ProcessStat::read(std::process::id()).map(|stat| stat.cpu),
        own_cores: None,
    }
}

impl Full {
    fn show(&mut self, mut update: IntervalUpdate<'_>, so_far: Option<SoFar>) {
        let used = update.own_cpu.zip(std::mem::replace(&mut self.own, update.own_cpu));
        let seconds = update.length.as_secs_f64();
        update.own_cores = used
            .filter(|_| seconds > 0.0)
            .map(|(now, before)| now.saturating_sub(before).as_secs_f64() / seconds);
        self.view.change(|model| {
            model.update(update);
            if let Some(so_far) = so_far {
                model.judge(so_far);
            }
        });
    }
}

impl Drop for ProgressView {
    fn drop(&mut self) {
        if let Some(full) = &self.full {
            full.view.finish().iter().for_each(|message| console::eprint_line(message));
        } else if let StatusOutput::Bar(bar) = &self.status {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::StageId;
    use plimsoll_metrics::{Metric, Snapshot, TimeSeries};
    use plimsoll_schedule::Load;

    fn stage_text(
        elapsed: u64,
        stage: u16,
        control: &Control,
        max_requests: Option<u64>,
    ) -> String {
        let (group, cells) = (GroupStats::default(), Snapshot::new());
        let stage_facts = |name: &str, end: u64| StageFacts {
            name: name.to_owned(),
            warmup: false,
            start: Nanos::ZERO,
            end: Nanos::from_secs(end),
            load: Load::Trace,
        };
        let facts = RunFacts {
            name: String::new(),
            stages: vec![stage_facts("w5:10s", 10), stage_facts("@7:80s", 90)],
            scenarios: Vec::new(),
            targets: Vec::new(),
            compares: false,
            time: Metric::ResponseTime,
            max_requests,
        };
        let shown = Shown { facts, metadata: RunMetadata::default(), thresholds: Vec::new() };
        let view = ProgressView::begin(&StatusOutput::Quiet, control, shown);
        let progress = Progress {
            origin: plimsoll_measure::Moment::EPOCH,
            elapsed: Nanos::from_secs(elapsed),
            duration: Nanos::from_secs(90),
            stage: StageId(stage),
            interval: &group,
            interval_length: Nanos::from_secs(1),
            total: &group,
            in_flight: 3,
            cells: &cells,
            before: &cells,
            series: &TimeSeries::default(),
            processes: Vec::new(),
            taken_out: &[],
        };
        view.stage_text(&progress, measured(&progress, &view.facts.stages))
    }

    #[test]
    fn the_stage_and_the_time_left_are_shown() {
        let control = Control::new();
        let counted = stage_text(5, 0, &control, Some(4_000));
        assert_eq!(counted, "stage 1/2 w5:10s, 0 of 4,000 requests");
        assert_eq!(stage_text(5, 0, &control, None), "stage 1/2 w5:10s, 1:25 left");
        assert_eq!(stage_text(81, 1, &control, None), "stage 2/2 @7:80s, 0:09 left");
        assert_eq!(stage_text(91, 1, &control, None), "stage 2/2 @7:80s, waiting for 3 responses");
        control.interrupt();
        assert_eq!(stage_text(81, 1, &control, None), "stage 2/2 @7:80s, waiting for 3 responses");
    }
}
