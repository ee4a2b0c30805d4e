//! The objective of a request, and the share of requests that must meet it.

use std::fmt;
use std::str::FromStr;

use plimsoll_measure::{Nanos, RequestBounds, RequestBoundsError, Sample};

/// An objective: `ttft<500ms & tpot<30ms : 99%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    bounds: RequestBounds,
    share: f64,
}

/// Why an objective is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// The share is missing or invalid.
    #[error("`{0}` has no share of requests after `:`; expected a form such as `ttft<500ms : 99%`")]
    Share(String),
    /// The bounds are invalid.
    #[error(transparent)]
    Bounds(#[from] RequestBoundsError),
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let (bounds, percent) = split_share(text)
            .filter(|(_, percent)| *percent > 0.0 && *percent < 100.0)
            .ok_or_else(|| ObjectiveError::Share(text.trim().to_owned()))?;
        Ok(Self { bounds: bounds.parse()?, share: percent / 100.0 })
    }
}

/// Splits `BOUNDS:PERCENT%` into bounds and percentage.
fn split_share(text: &str) -> Option<(&str, f64)> {
    let (bounds, share) = text.rsplit_once(':')?;
    let percent = share.trim().strip_suffix('%')?.trim().parse().ok()?;
    Some((bounds, percent))
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} : {}%", self.bounds, (self.share * 1e6).round() / 1e4)
    }
}

impl Objective {
    /// Share of requests that must meet the bounds, above 0 and below 1.
    pub const fn share(&self) -> f64 {
        self.share
    }

    /// Time and limit of the first bound.
    pub fn first_bound(&self) -> Option<(&'static str, Nanos)> {
        self.bounds.first()
    }

    /// Whether a request met it, see [`RequestBounds::are_kept_by`].
    pub fn is_kept_by(&self, sample: &Sample) -> bool {
        self.bounds.are_kept_by(sample)
    }

    /// Whether a request would have met it without the measurement error.
    pub fn may_be_kept_by(&self, sample: &Sample) -> bool {
        self.bounds.may_be_kept_by(sample)
    }

    /// Whether a successful response has any of the times.
    pub fn applies_to(&self, sample: &Sample) -> bool {
        self.bounds.apply_to(sample)
    }

    /// Name of the first bound's time.
    pub fn first_time(&self) -> &'static str {
        self.bounds.first().map_or("", |(name, _)| name)
    }

    /// The first bound's time of a request, in milliseconds.
    pub fn first_time_ms(&self, sample: &Sample) -> Option<f64> {
        Some(self.bounds.first_time_of(sample)?.as_micros_f64() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Moment, Outcome, Timeline};

    #[test]
    fn an_objective_is_read_and_written() {
        let read: Objective = "ttft<500ms & tpot < 30ms : 99%".parse().unwrap();
        assert_eq!(read.to_string(), "ttft<500ms & tpot<30ms : 99%");
        assert_eq!(read.first_time(), "ttft");
        assert!((read.share() - 0.99).abs() < 1e-12);
        let short: Objective = "response<=1s:99.95%".parse().unwrap();
        assert_eq!(short.to_string(), "response_time<1s : 99.95%");
        for (text, says) in [
            ("ttft<500ms", "has no share"),
            ("ttft<500ms : 100%", "has no share"),
            ("ttft<500ms : 0.99", "has no share"),
            ("ttft : 99%", "invalid bound"),
            ("ttft<5 : 99%", "invalid bound"),
            ("speed<5ms : 99%", "unknown time `speed`: expected one of response_time,"),
        ] {
            let error = text.parse::<Objective>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }

    #[test]
    fn a_request_without_a_good_answer_misses() {
        let objective: Objective = "response_time<20ms : 99%".parse().unwrap();
        let at = Moment::EPOCH + Nanos::from_millis(1);
        let mut sample = Sample::unsent(at);
        assert!(!objective.is_kept_by(&sample));
        sample.outcome = Outcome::Completed;
        sample.timeline = Timeline::intended(at);
        sample.timeline.finished = Some(at + Nanos::from_millis(19));
        assert!(objective.is_kept_by(&sample));
        sample.timeline.finished = Some(at + Nanos::from_millis(20));
        assert!(!objective.is_kept_by(&sample));
        // The generator caused 2 ms of it.
        sample.timeline.dispatched = Some(at + Nanos::from_millis(2));
        sample.generator.dispatch = Nanos::from_millis(2);
        assert!(!objective.is_kept_by(&sample) && objective.may_be_kept_by(&sample));
        sample.outcome = Outcome::Rejected(429);
        sample.timeline.finished = Some(at + Nanos::from_millis(1));
        assert!(!objective.is_kept_by(&sample));
    }
}
