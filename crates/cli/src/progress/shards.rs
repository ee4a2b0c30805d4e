//! Shows the progress of a run that several processes carry out.

use plimsoll_measure::Nanos;
use plimsoll_report::format::digits;
use plimsoll_run_files::ShardProgress;

use super::run::LINE_INTERVAL;
use super::{StatusOutput, figures};
use crate::console;

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
    /// Starts to show a run of so many shards.
    pub(crate) fn begin(status: &StatusOutput, shards: u64) -> Self {
        let (status, next_line) = (status.clone(), Nanos::ZERO);
        Self { status, shards, shown: false, next_line, last: (0.0, 0), rate: 0.0 }
    }

    /// Shows what the shards have told; so many go on.
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
            format!("{} left", figures::clock(left))
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
