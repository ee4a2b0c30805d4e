//! Requests that the edges of a stage cut.
//!
//! In a closed stage an answer counts by the share of its time that lies in the stage. The sum of
//! the shares is unbiased for independent answers however long they are (renewal reward: Cox, 1962,
//! 4.2). In an open stage an answer counts where it ends, because shares would count the requests
//! of a growing backlog as answered.

use plimsoll_measure::{Moment, Outcome, Sample, TokenCount, TokenSource};
use serde::{Deserialize, Serialize};

/// A whole request, in the unit of shares.
pub(crate) const WHOLE: i64 = 1_000_000;

/// The requests in flight at the edges of a stage. The signed fields are what shares add to the
/// counters of whole requests, which count them at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edges {
    /// In flight when the stage began.
    pub(crate) entered: u64,
    /// In flight when the stage ended.
    pub(crate) left: u64,
    /// Part of `entered` that completed in the stage.
    pub(crate) entered_completed: u64,
    /// Open model: sent in the stage, and due in an earlier one.
    pub(crate) late: u64,
    /// Sums of the times of `entered`, and of their squares.
    pub(crate) time: u128,
    pub(crate) squares: u128,
    pub(crate) requests: i64,
    pub(crate) completed: i64,
    pub(crate) tokens_reported: i64,
    pub(crate) tokens_estimated: i64,
    pub(crate) good: i64,
}

impl Edges {
    pub(crate) const fn merge(&mut self, other: &Self) {
        self.entered += other.entered;
        self.left += other.left;
        self.entered_completed += other.entered_completed;
        self.late += other.late;
        self.time += other.time;
        self.squares += other.squares;
        self.requests += other.requests;
        self.completed += other.completed;
        self.tokens_reported += other.tokens_reported;
        self.tokens_estimated += other.tokens_estimated;
        self.good += other.good;
    }

    /// Counts a request that is in flight until `until`, for its part between two moments.
    pub(crate) fn part(&mut self, sample: &Sample, part: [Moment; 2], until: Moment, good: bool) {
        let [from, to] = part;
        let (intended, whole) = (sample.timeline.intended, until.since(sample.timeline.intended));
        if from > intended && sample.timeline.finished.is_some() {
            self.time += u128::from(whole.as_u64());
            self.squares += u128::from(whole.as_u64()).pow(2);
        }
        self.entered += u64::from(from > intended);
        self.left += u64::from(to < until);
        if is_shared(sample) {
            let share = u128::from(to.since(from).as_u64()) * u128::from(WHOLE.unsigned_abs())
                / u128::from(whole.as_u64().max(1));
            let share = i64::try_from(share).unwrap_or(WHOLE);
            self.requests += share;
            self.answer(sample, share, good);
        }
    }

    /// Counts a share of an answer.
    pub(crate) fn answer(&mut self, sample: &Sample, share: i64, good: bool) {
        self.good += i64::from(good) * share;
        if sample.outcome != Outcome::Completed {
            return;
        }
        self.completed += share;
        let TokenCount { count, source } = sample.usage.completion;
        let tokens = i64::from(count) * share;
        match source {
            TokenSource::Unknown => {}
            TokenSource::Reported => self.tokens_reported += tokens,
            TokenSource::Estimated => self.tokens_estimated += tokens,
        }
    }
}

/// Whether a request counts by shares: it is of a virtual user, and its end is known.
pub(crate) const fn is_shared(sample: &Sample) -> bool {
    !sample.conversation.is_arrival()
        && sample.timeline.finished.is_some()
        && !sample.is_unconnected()
}
