//! Bounds on the times of one request: a request that meets all of them is good.

use std::fmt;
use std::str::FromStr;

use serde_with::{DeserializeFromStr, SerializeDisplay};

use crate::outcome::Outcome;
use crate::sample::Sample;
use crate::time::{Nanos, Timeline};

/// Bounds that one request must meet, all of them: `ttft<500ms, tpot<50ms`.
///
/// The bounds are separated by `,`, `&` or spaces. Notations of other tools are accepted:
/// `ttft:500` for `ttft<500ms`, and their names of times, such as `time_to_first_token`.
#[derive(Clone, Debug, PartialEq, Eq, SerializeDisplay, DeserializeFromStr)]
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

    /// Short names, and names used by other tools.
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

    /// Whether a complete stream lacks this time although it should have it: it has no token at
    /// all, or an unknown number.
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

/// Why bounds are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestBoundsError {
    /// A malformed bound.
    #[error("invalid bound `{0}`: expected a form such as `ttft<500ms`")]
    Bound(String),
    /// An unknown time.
    #[error("unknown time `{0}`: expected one of {names}", names = names())]
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

/// Splits the text into single bounds. Spaces around `<` belong to a bound, others separate bounds.
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

impl RequestBounds {
    /// Whether a request is good: successful and within all bounds. A bound is met if a successful
    /// request does not have its time, such as the time per output token of a single token. But a
    /// stream without any token misses a bound on the first one, and hidden tokens prove no bound.
    pub fn are_kept_by(&self, sample: &Sample) -> bool {
        self.are_kept(sample, &sample.timeline)
    }

    /// Whether it would be good without the measurement error.
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

    /// Whether a successful request has any of the times.
    pub fn apply_to(&self, sample: &Sample) -> bool {
        self.0.iter().any(|bound| bound.time.of(sample, &sample.timeline).is_some())
    }

    /// Name and limit of the first bound.
    pub fn first(&self) -> Option<(&'static str, Nanos)> {
        let first = self.0.first()?;
        Some((first.time.name(), first.bound))
    }

    /// The first bound's time of a request.
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
            ("", "invalid bound"),
            ("ttft", "invalid bound `ttft`"),
            ("ttft<soon", "invalid bound"),
            ("ttft<500", "invalid bound `ttft<500`"),
            ("speed<1s", "unknown time `speed`: expected one of response_time, "),
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
            // It has no time per token, so the bound is met.
            ("ttft<101ms, tpot<1ms", true),
        ] {
            let bounds: RequestBounds = text.parse().unwrap();
            assert_eq!(bounds.are_kept_by(&sample), kept, "{text}");
        }
        // A stream without any token misses bounds on its first token, but may meet others.
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
        // The number of sent tokens is unknown.
        let mut hidden = Sample { stream: true, ..sample };
        hidden.usage.completion = crate::TokenCount::reported(500);
        for (text, kept) in [("ttft<1s", true), ("ttft<1s, tpot<1s", false)] {
            assert_eq!(text.parse::<RequestBounds>().unwrap().are_kept_by(&hidden), kept, "{text}");
        }
        let failed = Sample { outcome: Outcome::TimedOut, ..sample };
        assert!(!"ttft<1s".parse::<RequestBounds>().unwrap().are_kept_by(&failed));
    }
}
