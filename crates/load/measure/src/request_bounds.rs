//! Bounds on the times of one request: a request that keeps all of them is good.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::outcome::Outcome;
use crate::sample::Sample;
use crate::time::Nanos;
use crate::timeline::Timeline;

/// Bounds that one request must keep, all of them: `ttft<500ms, tpot<50ms`.
///
/// The bounds are separated by `,`, `&` or blanks. `ttft:500` is read as `ttft<500ms`, as other
/// tools write it, and so are their names of the times, like `time_to_first_token`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestBounds(Vec<TimeBound>);

/// A bound on a time of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeBound {
    time: RequestTime,
    bound: Nanos,
}

/// A time of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestTime {
    Response,
    Service,
    Ttfb,
    Ttft,
    ResponseTtft,
    Tpot,
    LongestGap,
}

impl RequestTime {
    const ALL: [(&'static str, Self); 7] = [
        ("response_time", Self::Response),
        ("service_time", Self::Service),
        ("ttfb", Self::Ttfb),
        ("ttft", Self::Ttft),
        ("response_ttft", Self::ResponseTtft),
        ("tpot", Self::Tpot),
        ("longest_gap", Self::LongestGap),
    ];

    /// Names that other tools have, and short ones.
    const OTHER_NAMES: [(&'static str, Self); 6] = [
        ("response", Self::Response),
        ("service", Self::Service),
        ("time_to_first_token", Self::Ttft),
        ("inter_token_latency", Self::Tpot),
        ("request_latency", Self::Service),
        ("e2el", Self::Service),
    ];

    fn from_name(name: &str) -> Option<Self> {
        let mut known = Self::ALL.into_iter().chain(Self::OTHER_NAMES);
        known.find_map(|(own, time)| (own == name).then_some(time))
    }

    fn name(self) -> &'static str {
        let named = Self::ALL.into_iter().find(|(_, time)| *time == self);
        named.map_or("", |(name, _)| name)
    }

    /// Whether a whole stream should have this time: it has no token at all, or an unknown number.
    fn is_lacking(self, sample: &Sample) -> bool {
        let is_whole = sample.stream && sample.outcome == Outcome::Completed;
        is_whole
            && match self {
                Self::Ttft | Self::ResponseTtft => sample.timeline.ttft().is_none(),
                Self::Tpot => sample.hides_tokens(),
                _ => false,
            }
    }

    fn of(self, sample: &Sample, timeline: &Timeline) -> Option<Nanos> {
        match self {
            Self::Response => timeline.response_time(),
            Self::Service => timeline.service_time(),
            Self::Ttfb => timeline.ttfb(),
            Self::Ttft => timeline.ttft(),
            Self::ResponseTtft => timeline.response_ttft(),
            Self::Tpot => sample.tpot_of(timeline),
            Self::LongestGap => (sample.gaps.count > 0).then_some(sample.gaps.max),
        }
    }
}

/// Why bounds cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestBoundsError {
    /// A bound is none.
    #[error("`{0}` is no bound on a time of a request; write it like `ttft<500ms`")]
    Bound(String),
    /// A time that requests do not have.
    #[error("a request has no `{0}`; there are {names}", names = names())]
    Time(String),
}

fn names() -> String {
    RequestTime::ALL.map(|(name, _)| name).join(", ")
}

impl FromStr for RequestBounds {
    type Err = RequestBoundsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bounds: Vec<_> =
            parts(text).iter().map(|part| bound(part)).collect::<Result<_, _>>()?;
        if bounds.is_empty() {
            Err(RequestBoundsError::Bound(text.to_owned()))
        } else {
            Ok(Self(bounds))
        }
    }
}

/// The texts of single bounds. Blanks around `<` belong to a bound, others separate.
fn parts(text: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split([',', '&', ' ', '\t', '\n']).filter(|word| !word.is_empty()) {
        let goes_on = is_open || word.starts_with(['<', ':']);
        match parts.last_mut().filter(|_| goes_on) {
            Some(part) => part.push_str(word),
            None => parts.push(word.to_owned()),
        }
        is_open = word.ends_with(['<', '=', ':']);
    }
    parts
}

fn bound(text: &str) -> Result<TimeBound, RequestBoundsError> {
    let (name, bound) =
        text.split_once(['<', ':']).ok_or_else(|| RequestBoundsError::Bound(text.to_owned()))?;
    let bound = bound.trim_start_matches('=');
    // Other tools write milliseconds without a unit.
    let is_number = text.contains(':') && bound.parse::<f64>().is_ok();
    let bound = if is_number { format!("{bound}ms") } else { bound.to_owned() };
    let bound: Nanos = bound.parse().map_err(|_| RequestBoundsError::Bound(text.to_owned()))?;
    let time = RequestTime::from_name(name);
    let time = time.ok_or_else(|| RequestBoundsError::Time(name.to_owned()))?;
    Ok(TimeBound { time, bound })
}

impl fmt::Display for RequestBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, TimeBound { time, bound }) in self.0.iter().enumerate() {
            let and = if index > 0 { " & " } else { "" };
            write!(f, "{and}{}<{bound}", time.name())?;
        }
        Ok(())
    }
}

impl Serialize for RequestBounds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RequestBounds {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl RequestBounds {
    /// Whether a request is good: a good answer within all bounds. A bound on a time that a good
    /// answer does not have, such as the time per output token of a single token, is kept; but a
    /// stream without any token had no first one in time, and hidden tokens prove no bound.
    pub fn are_kept_by(&self, sample: &Sample) -> bool {
        self.are_kept(sample, &sample.timeline)
    }

    /// Whether it would be good without what the generator itself may have added.
    pub fn may_be_kept_by(&self, sample: &Sample) -> bool {
        self.are_kept(sample, &sample.timeline_without_generator())
    }

    fn are_kept(&self, sample: &Sample, timeline: &Timeline) -> bool {
        let answered = !sample.is_unexpected() && sample.outcome != Outcome::Cancelled;
        answered
            && self.0.iter().all(|TimeBound { time, bound }| match time.of(sample, timeline) {
                Some(time) => time < *bound,
                None => !time.is_lacking(sample),
            })
    }

    /// Whether a good answer has one of the times at all.
    pub fn apply_to(&self, sample: &Sample) -> bool {
        self.0.iter().any(|bound| bound.time.of(sample, &sample.timeline).is_some())
    }

    /// The first one: the name of the time, and its bound.
    pub fn first(&self) -> Option<(&'static str, Nanos)> {
        let first = self.0.first()?;
        Some((first.time.name(), first.bound))
    }

    /// The time that the first one bounds, of a request.
    pub fn first_time_of(&self, sample: &Sample) -> Option<Nanos> {
        self.0.first()?.time.of(sample, &sample.timeline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Moment;

    #[test]
    fn bounds_are_read_in_every_notation() {
        for (text, written) in [
            ("ttft<500ms", "ttft<500ms"),
            ("ttft<500ms,tpot<50ms", "ttft<500ms & tpot<50ms"),
            ("ttft < 500ms & tpot <= 50ms", "ttft<500ms & tpot<50ms"),
            ("ttft:500 tpot:50", "ttft<500ms & tpot<50ms"),
            ("time_to_first_token:500 request_latency:1500", "ttft<500ms & service_time<1.5s"),
            ("response<1s", "response_time<1s"),
        ] {
            let read: RequestBounds = text.parse().unwrap();
            assert_eq!(read.to_string(), written, "{text}");
            assert_eq!(written.parse::<RequestBounds>().unwrap(), read);
        }
        for (text, part) in [
            ("", "is no bound"),
            ("ttft", "`ttft` is no bound"),
            ("ttft<soon", "is no bound"),
            ("ttft<500", "`ttft<500` is no bound"),
            ("speed<1s", "a request has no `speed`; there are response_time, "),
        ] {
            let error = text.parse::<RequestBounds>().unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_good_request_has_a_good_answer_within_all_bounds() {
        let at = |ms| Moment::EPOCH + Nanos::from_millis(ms);
        let mut sample = Sample::unsent(at(0));
        sample.timeline.dispatched = Some(at(0));
        sample.timeline.first_token = Some(at(100));
        sample.timeline.finished = Some(at(300));
        sample.outcome = Outcome::Completed;
        for (text, kept) in [
            ("ttft<101ms", true),
            ("ttft<100ms", false),
            ("ttft<101ms, response_time<300ms", false),
            // It has no time per token: nothing is missed.
            ("ttft<101ms, tpot<1ms", true),
        ] {
            let bounds: RequestBounds = text.parse().unwrap();
            assert_eq!(bounds.are_kept_by(&sample), kept, "{text}");
        }
        // A stream of no token at all is good by no bound on its first one; by others it may be.
        let mut empty = sample;
        empty.timeline.first_token = None;
        for (text, stream, kept) in [
            ("ttft<1s", true, false),
            ("response_ttft<1s", true, false),
            ("response_time<1s, tpot<1s", true, true),
            ("ttft<1s", false, true),
        ] {
            let (bounds, sample) =
                (text.parse::<RequestBounds>().unwrap(), Sample { stream, ..empty });
            assert_eq!(bounds.are_kept_by(&sample), kept, "{text} {stream}");
        }
        // Nobody knows how many of its tokens were sent.
        let mut hidden = Sample { stream: true, ..sample };
        hidden.usage.completion = crate::TokenCount::reported(500);
        for (text, kept) in [("ttft<1s", true), ("ttft<1s, tpot<1s", false)] {
            assert_eq!(text.parse::<RequestBounds>().unwrap().are_kept_by(&hidden), kept, "{text}");
        }
        let failed = Sample { outcome: Outcome::TimedOut, ..sample };
        assert!(!"ttft<1s".parse::<RequestBounds>().unwrap().are_kept_by(&failed));
    }
}
