//! What each request must keep, and the share of requests that must.

use std::fmt;
use std::str::FromStr;

use plimsoll_measure::{Nanos, Sample, Timeline};

/// An objective: `ttft<500ms & tpot<30ms : 99%`.
#[derive(Clone, Debug, PartialEq)]
pub struct Objective {
    conditions: Vec<Condition>,
    share: f64,
}

/// A bound on a time of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Condition {
    time: Time,
    bound: Nanos,
}

/// A time of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Time {
    Response,
    Service,
    Ttfb,
    Ttft,
    ResponseTtft,
    Tpot,
    LongestGap,
}

impl Time {
    const ALL: [(&'static str, Self); 7] = [
        ("response_time", Self::Response),
        ("service_time", Self::Service),
        ("ttfb", Self::Ttfb),
        ("ttft", Self::Ttft),
        ("response_ttft", Self::ResponseTtft),
        ("tpot", Self::Tpot),
        ("longest_gap", Self::LongestGap),
    ];

    fn of(self, sample: &Sample, timeline: &Timeline) -> Option<Nanos> {
        match self {
            Self::Response => timeline.response_time(),
            Self::Service => timeline.service_time(),
            Self::Ttfb => timeline.ttfb(),
            Self::Ttft => timeline.ttft(),
            Self::ResponseTtft => timeline.response_ttft(),
            Self::Tpot => sample.tpot().and(timeline.tpot(sample.output_tokens()?)),
            Self::LongestGap => (sample.gaps.count > 0).then_some(sample.gaps.max),
        }
    }
}

/// Why an objective cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ObjectiveError {
    /// The share is missing or no share.
    #[error("`{0}` has no share of requests after `:`; write it like `ttft<500ms : 99%`")]
    Share(String),
    /// A condition is none.
    #[error("`{0}` is no condition on a request; write it like `ttft<500ms`")]
    Condition(String),
    /// A time that requests do not have.
    #[error("a request has no `{0}`; there are {names}", names = names())]
    Time(String),
}

fn names() -> String {
    Time::ALL.map(|(name, _)| name).join(", ")
}

impl FromStr for Objective {
    type Err = ObjectiveError;

    fn from_str(text: &str) -> Result<Self, ObjectiveError> {
        let refuse = || ObjectiveError::Share(text.trim().to_owned());
        let (conditions, share) = text.rsplit_once(':').ok_or_else(refuse)?;
        let percent: f64 = share
            .trim()
            .strip_suffix('%')
            .and_then(|text| text.trim().parse().ok())
            .ok_or_else(refuse)?;
        if !(percent > 0.0 && percent < 100.0) {
            return Err(refuse());
        }
        let conditions = conditions.split('&').map(condition).collect::<Result<_, _>>()?;
        Ok(Self { conditions, share: percent / 100.0 })
    }
}

fn condition(text: &str) -> Result<Condition, ObjectiveError> {
    let refuse = || ObjectiveError::Condition(text.trim().to_owned());
    let (name, bound) = text.split_once('<').ok_or_else(refuse)?;
    let bound: Nanos = bound.trim_start_matches('=').trim().parse().map_err(|_| refuse())?;
    let name = name.trim();
    let named = Time::ALL.into_iter().find(|(known, _)| {
        *known == name || known.strip_suffix("_time").is_some_and(|short| short == name)
    });
    let (_, time) = named.ok_or_else(|| ObjectiveError::Time(name.to_owned()))?;
    Ok(Condition { time, bound })
}

impl fmt::Display for Objective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, condition) in self.conditions.iter().enumerate() {
            let name = Time::ALL.into_iter().find(|(_, time)| *time == condition.time);
            let and = if index > 0 { " & " } else { "" };
            write!(f, "{and}{}<{}", name.map_or("", |(name, _)| name), condition.bound)?;
        }
        write!(f, " : {}%", (self.share * 1e6).round() / 1e4)
    }
}

impl Objective {
    /// The share of requests that must keep it, above 0 and below 1.
    pub const fn share(&self) -> f64 {
        self.share
    }

    /// Its first condition: the name of the time, and its bound.
    pub fn first_bound(&self) -> Option<(&'static str, Nanos)> {
        let first = self.conditions.first()?;
        let (name, _) = Time::ALL.into_iter().find(|(_, time)| *time == first.time)?;
        Some((name, first.bound))
    }

    /// Whether a request kept it: a good answer within all bounds. A bound on a time that a good
    /// answer does not have, such as the time per output token of a single token, is kept.
    pub fn is_kept_by(&self, sample: &Sample) -> bool {
        self.is_kept(sample, &sample.timeline)
    }

    /// Whether it would have been kept without what the generator itself may have added.
    pub fn may_be_kept_by(&self, sample: &Sample) -> bool {
        self.is_kept(sample, &sample.timeline_without_generator())
    }

    fn is_kept(&self, sample: &Sample, timeline: &Timeline) -> bool {
        !sample.is_unexpected()
            && self.conditions.iter().all(|condition: &Condition| {
                condition.time.of(sample, timeline).is_none_or(|time| time < condition.bound)
            })
    }

    /// Whether a good answer has one of the times at all.
    pub fn applies_to(&self, sample: &Sample) -> bool {
        self.conditions
            .iter()
            .any(|condition| condition.time.of(sample, &sample.timeline).is_some())
    }

    /// Name of the time of its first condition.
    pub fn first_time(&self) -> &'static str {
        let first = self.conditions.first().map(|condition| condition.time);
        let named = Time::ALL.into_iter().find(|(_, time)| Some(*time) == first);
        named.map_or("", |(name, _)| name)
    }

    /// The time of its first condition, in milliseconds.
    pub fn first_time_ms(&self, sample: &Sample) -> Option<f64> {
        let time = self.conditions.first()?.time.of(sample, &sample.timeline)?;
        Some(time.as_micros_f64() / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::{Moment, Outcome};

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
            ("ttft : 99%", "is no condition"),
            ("ttft<5 : 99%", "is no condition"),
            ("speed<5ms : 99%", "a request has no `speed`; there are response_time,"),
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
        // 2 ms of it are the generator's.
        sample.timeline.dispatched = Some(at + Nanos::from_millis(2));
        sample.generator.dispatch = Nanos::from_millis(2);
        assert!(!objective.is_kept_by(&sample) && objective.may_be_kept_by(&sample));
        sample.outcome = Outcome::Rejected(429);
        sample.timeline.finished = Some(at + Nanos::from_millis(1));
        assert!(!objective.is_kept_by(&sample));
    }
}
