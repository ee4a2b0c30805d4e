//! Reads the data that a target reports in the headers of a response: the state of its cache, its
//! retries, its own time and the parts of it.
//!
//! A header costs one test of a bit for the length and two letters of its name. Only a header that
//! has them is compared, and only one of the right name is parsed. Memory is allocated only for
//! texts that a profile asks to record, and for the reported parts of a target's time.

mod server_timing;

use std::sync::Arc;

use plimsoll_measure::{CacheState, Nanos, ServerParts, ServerReport};
use plimsoll_plan::ResponseHeaders;
use plimsoll_transport::ResponseHead;
pub use server_timing::NamedPart;
use server_timing::{PartNames, Stated};

/// Headers of this length or longer are not read.
const MAX_NAME: usize = 64;
/// Bytes of a recorded text.
const MAX_TEXT: usize = 256;

/// The header with parts of the target's time, by their names.
const SERVER_TIMING: &str = "server-timing";

/// Headers whose times are in seconds.
const IN_SECONDS: [&str; 2] = ["x-runtime", "x-process-time"];

/// A recorded header: its name and its text.
pub type RecordedHeader = (Arc<str>, String);

/// Reads the headers that a plan names.
#[derive(Debug)]
pub(crate) struct HeaderReader {
    /// By length: bit `n` is set if a name of that length that begins with the `n`th letter is
    /// read.
    letters: [u32; MAX_NAME],
    entries: Vec<Entry>,
    record: Vec<Arc<str>>,
    parts: PartNames,
}

/// The values of the response, as far as it was read.
#[derive(Debug, Default)]
struct Found {
    report: ServerReport,
    /// The position in the list of the header that the time is of.
    rank: Option<usize>,
    /// Whether a header states parts of the target's time.
    parts: bool,
}

#[derive(Debug)]
struct Entry {
    name: String,
    meaning: Meaning,
}

impl Entry {
    fn new(name: &str, meaning: Meaning) -> Self {
        Self { name: name.to_ascii_lowercase(), meaning }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    Cache,
    /// The number of requests to the upstream that were not retries.
    Retries {
        first: u32,
    },
    /// The position in the list, and the unit of a number without one.
    Time {
        rank: usize,
        unit: f64,
    },
    ServerTiming {
        rank: usize,
    },
    /// The target's own part of the time.
    Overhead,
}

impl HeaderReader {
    pub(crate) fn new(headers: &ResponseHeaders) -> Self {
        let mut entries = Vec::new();
        entries.extend(headers.cache.iter().map(|name| Entry::new(name, Meaning::Cache)));
        let retries = Meaning::Retries { first: 0 };
        entries.extend(headers.retries.iter().map(|name| Entry::new(name, retries)));
        let attempts = Meaning::Retries { first: 1 };
        entries.extend(headers.attempts.iter().map(|name| Entry::new(name, attempts)));
        entries.extend(headers.overhead.iter().map(|name| Entry::new(name, Meaning::Overhead)));
        for (rank, name) in headers.server_time.iter().enumerate() {
            let in_seconds = IN_SECONDS.iter().any(|known| name.eq_ignore_ascii_case(known));
            let unit = if in_seconds { 1e9 } else { 1e6 };
            let meaning = if name.eq_ignore_ascii_case(SERVER_TIMING) {
                Meaning::ServerTiming { rank }
            } else {
                Meaning::Time { rank, unit }
            };
            entries.push(Entry::new(name, meaning));
        }
        entries.retain(|entry| entry.name.len() < MAX_NAME);
        let mut letters = [0; MAX_NAME];
        for entry in &entries {
            letters[entry.name.len()] |= letter(&entry.name);
        }
        let record = headers.record.iter().map(|name| name.to_ascii_lowercase().into()).collect();
        Self { letters, entries, record, parts: PartNames::default() }
    }

    /// The values of the response, and whether it reports parts of its time, which
    /// [`HeaderReader::parts`] reads.
    #[inline]
    pub(crate) fn read(&self, head: &ResponseHead<'_>) -> (ServerReport, bool) {
        let mut found = Found::default();
        for header in head.headers {
            let letters = self.letters.get(header.name.len()).copied().unwrap_or_default();
            if letters & letter(header.name) != 0 {
                self.read_one(header.name, header.value, &mut found);
            }
        }
        (found.report, found.parts)
    }

    /// The parts that headers state; `None` if they name none.
    pub(crate) fn parts(&self, head: &ResponseHead<'_>) -> Option<ServerParts> {
        let headers = head.headers.iter();
        let stated: Vec<_> = headers
            .flat_map(|header| self.entries_of(header.name).map(move |entry| (entry, header.value)))
            .filter_map(|found: (&Entry, &[u8])| match found.0.meaning {
                Meaning::ServerTiming { .. } => Some(Stated::Timing(found.1)),
                Meaning::Overhead => Some(Stated::Overhead(&found.0.name, time(found.1, 1e6))),
                Meaning::Cache | Meaning::Retries { .. } | Meaning::Time { .. } => None,
            })
            .collect();
        self.parts.read(&stated)
    }

    /// The names of parts so far, in the order of their numbers.
    pub(crate) fn part_names(&self) -> Vec<String> {
        self.parts.known().map(ToString::to_string).collect()
    }

    /// Parts by their names; none if they are refused.
    pub(crate) fn named(&self, parts: &ServerParts) -> Vec<NamedPart> {
        parts.times().map_or_else(Vec::new, |times| self.parts.named(times))
    }

    fn read_one(&self, name: &str, value: &[u8], found: &mut Found) {
        for entry in self.entries_of(name) {
            match entry.meaning {
                Meaning::Cache => {
                    found.report.cache = worse(found.report.cache, CacheState::from_words(value));
                }
                Meaning::Retries { first } => {
                    let count = whole_number(value).unwrap_or_default().saturating_sub(first);
                    found.report.retries = found.report.retries.max(count);
                }
                Meaning::Time { rank, unit } => found.set_time(rank, time(value, unit)),
                Meaning::ServerTiming { rank } => {
                    found.parts = true;
                    found.set_time(rank, server_timing::whole(value));
                }
                Meaning::Overhead => found.parts = true,
            }
        }
    }

    fn entries_of(&self, name: &str) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry: &&Entry| {
            entry.name.len() == name.len() && entry.name.eq_ignore_ascii_case(name)
        })
    }

    /// Whether texts are recorded.
    pub(crate) const fn records(&self) -> bool {
        !self.record.is_empty()
    }

    /// The texts to record.
    pub(crate) fn recorded(&self, head: &ResponseHead<'_>) -> Vec<RecordedHeader> {
        self.record
            .iter()
            .filter_map(|name: &Arc<str>| {
                let header = head.headers.iter().find(|h| h.name.eq_ignore_ascii_case(name))?;
                let value = &header.value[..header.value.len().min(MAX_TEXT)];
                Some((Arc::clone(name), String::from_utf8_lossy(value).into_owned()))
            })
            .collect()
    }
}

/// The bit of a name's first and last letter, in either case; several pairs share a bit.
#[inline]
fn letter(name: &str) -> u32 {
    let bytes = name.as_bytes();
    let (first, last) = (bytes.first().unwrap_or(&0), bytes.last().unwrap_or(&0));
    1 << ((first ^ last.wrapping_mul(3)) & 31)
}

impl Found {
    fn set_time(&mut self, rank: usize, time: Option<Nanos>) {
        if time.is_some() && self.rank.is_none_or(|best| rank < best) {
            (self.report.time, self.rank) = (time, Some(rank));
        }
    }
}

/// The more informative of two values: a hit, then a miss.
const fn worse(one: Option<CacheState>, other: Option<CacheState>) -> Option<CacheState> {
    match (one, other) {
        (Some(CacheState::Hit), _) | (_, Some(CacheState::Hit)) => Some(CacheState::Hit),
        (Some(CacheState::Miss), _) | (_, Some(CacheState::Miss)) => Some(CacheState::Miss),
        (None, other) => other,
        (one, _) => one,
    }
}

fn whole_number(value: &[u8]) -> Option<u32> {
    str::from_utf8(value).ok()?.trim().parse().ok()
}

/// A number with an optional unit; without one, in the given unit in nanoseconds.
fn time(value: &[u8], unit: f64) -> Option<Nanos> {
    let text = str::from_utf8(value).ok()?.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let unit = match rest.trim() {
        "" => unit,
        "ms" => 1e6,
        "s" => 1e9,
        "us" | "\u{b5}s" => 1e3,
        _ => return None,
    };
    nanos(number.parse().ok()?, unit)
}

fn nanos(number: f64, unit: f64) -> Option<Nanos> {
    let nanos = number * unit;
    (0.0..1e18).contains(&nanos).then(|| Nanos::from_secs_f64(nanos / 1e9))
}

// How long a response asks to wait: `Retry-After` (RFC 9110, 10.2.3), and `retry-after-ms` of
// `OpenAI`'s and Azure's services, which is more exact.

/// The wait that a response asks for, if it does.
pub(crate) fn asked(head: &ResponseHead<'_>) -> Option<Nanos> {
    let exact = head.header("retry-after-ms").and_then(|asked| decimal(asked, 1e6));
    exact.or_else(|| wait(head.header("retry-after")?, head.header("date")))
}

/// A number of units, each of the given nanoseconds. RFC 9110 has whole seconds; some services are
/// more exact.
#[expect(clippy::cast_possible_truncation, reason = "checked before")]
fn decimal(asked: &str, unit: f64) -> Option<Nanos> {
    let digits = asked.trim().bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let nanos = asked.trim().parse::<f64>().ok().filter(|_| digits)? * unit;
    Some(Nanos::new(nanos.min(f64::from(u32::MAX) * 1e9) as u64))
}

/// Seconds, or until a date. The date and the `Date` of the response both use the target's clock,
/// so their difference is independent of this host's clock. A date without a `Date` is ignored.
fn wait(asked: &str, date: Option<&str>) -> Option<Nanos> {
    let asked = asked.trim();
    decimal(asked, 1e9).or_else(|| {
        let [until, now] = [asked, date?.trim()].map(httpdate::parse_http_date);
        // A date that has passed asks for no wait.
        let wait = until.ok()?.duration_since(now.ok()?).unwrap_or_default();
        let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX);
        Some(Nanos::from_secs(seconds.into()))
    })
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod retry_after_tests {
    use super::*;

    #[test]
    fn a_wait_is_in_seconds_or_until_a_date_by_the_targets_own_clock() {
        let now = Some("Fri, 31 Dec 1999 23:59:58 GMT");
        for (asked, date, seconds) in [
            ("2", None, Some(2)),
            (" 120 ", now, Some(120)),
            ("0", None, Some(0)),
            ("Sat, 01 Jan 2000 00:00:00 GMT", now, Some(2)),
            // The obsolete forms, which a recipient must read too.
            ("Saturday, 01-Jan-00 00:00:00 GMT", now, Some(2)),
            ("Sat Jan  1 00:00:00 2000", now, Some(2)),
            ("Fri, 31 Dec 1999 23:59:58 GMT", now, Some(0)),
            ("Fri, 31 Dec 1999 12:00:00 GMT", now, Some(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", now, Some(u32::MAX)),
            ("Sat, 01 Jan 2000 00:00:00 GMT", None, None),
            ("Sat, 01 Jan 2000 00:00:00 GMT", Some("soon"), None),
            ("soon", now, None),
            ("-1", now, None),
            ("1e3", now, None),
            ("inf", now, None),
            ("", now, None),
            (".", now, None),
        ] {
            let expected = seconds.map(|seconds: u32| Nanos::from_secs(seconds.into()));
            assert_eq!(wait(asked, date), expected, "{asked} at {date:?}");
        }
        assert_eq!(wait("1.5", None), Some(Nanos::from_millis(1_500)));
        assert_eq!(decimal("250", 1e6), Some(Nanos::from_millis(250)));
        assert_eq!(decimal("99999999999999999999", 1e9), Some(Nanos::from_secs(u32::MAX.into())));
    }
}
