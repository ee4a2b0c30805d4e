//! Live metrics of a search or a suite, from its many short runs.

use plimsoll_engine::Progress;
use plimsoll_export::{LiveMetrics, Verdict};
use plimsoll_metrics::{RunMetadata, RunSummary, Snapshot};
use plimsoll_runner::RunWatcher;

use super::run::serve;
use super::so_far::Judge;

/// Hands the runs over to whoever asks for metrics; without metrics it looks away.
#[derive(Default)]
pub(crate) struct LiveRuns {
    live: Option<LiveMetrics>,
    /// The target of the present part, where it has a name.
    target: String,
    judge: Option<Judge>,
}

impl LiveRuns {
    /// Those of a search or a suite that begins.
    pub(crate) fn new(live: Option<LiveMetrics>) -> Self {
        live.iter().for_each(LiveMetrics::begin_series);
        Self { live, ..Self::default() }
    }
}

impl RunWatcher for LiveRuns {
    fn part(&mut self, name: &str, target: &str) {
        target.clone_into(&mut self.target);
        self.live.iter().for_each(|live| live.begin_part(name, target));
    }

    fn begin(&mut self, mut run: RunMetadata) {
        let Some(live) = &self.live else { return };
        // Each target of a search has a plan of its own, whose only target has the profile's name.
        if let ([target], false) = (run.targets.as_mut_slice(), self.target.is_empty()) {
            target.name.clone_from(&self.target);
        }
        self.judge = Some(Judge::new(run.clone(), Vec::new()));
        live.begin(run);
    }

    fn interval(&mut self, progress: &Progress<'_>) {
        let Some((live, judge)) = self.live.as_ref().zip(self.judge.as_mut()) else { return };
        serve(live, progress, judge.look(progress).as_ref());
    }

    fn end(&mut self, whole: &Snapshot, summary: &RunSummary) {
        let verdict = Verdict::of(summary.is_valid(), &summary.thresholds);
        self.live.iter().for_each(|live| live.end(whole, verdict));
    }
}
