//! Times that a target reports for the parts of its work: `Server-Timing` (W3C),
//! and headers of gateways with their own overhead.

use std::sync::{Arc, OnceLock};

use plimsoll_measure::{NAMED_PARTS, Nanos, OTHER_PARTS, PartTimes, ServerParts};

use super::nanos;

/// The longest name of a part, in bytes.
const MAX_NAME: usize = 64;
/// The entry that is the whole, and no part of it.
const TOTAL: &str = "total";

/// A header that states parts of the target's time.
pub(super) enum Stated<'h> {
    /// The value of a `Server-Timing` header.
    Timing(&'h [u8]),
    /// The name of another header, and its time; `None` if it is not a number.
    Overhead(&'h str, Option<Nanos>),
}

impl<'h> Stated<'h> {
    fn parts(&self) -> Vec<Result<(&'h str, Nanos), Untrue>> {
        match self {
            Self::Timing(value) => match str::from_utf8(value) {
                Ok(text) => entries(text).filter_map(part).collect(),
                Err(_) => vec![Err(Untrue)],
            },
            Self::Overhead(name, time) => vec![time.map(|time| (*name, time)).ok_or(Untrue)],
        }
    }
}

/// A part with its name.
pub type NamedPart = (Arc<str>, Nanos);

/// The names of a run's parts: the first that any worker sees. A name never changes once it is
/// there, so that workers only read.
#[derive(Debug, Default)]
pub(super) struct PartNames([OnceLock<Arc<str>>; NAMED_PARTS]);

impl PartNames {
    /// The parts that the headers of a response state; `None` if they name none.
    pub(super) fn read(&self, stated: &[Stated<'_>]) -> Option<ServerParts> {
        let parts: Result<Vec<_>, Untrue> =
            stated.iter().flat_map(|header: &Stated<'_>| header.parts()).collect();
        let Ok(parts) = parts else { return Some(ServerParts::Refused) };
        let mut times = PartTimes::default();
        for (name, time) in &parts {
            let known = &mut times[self.number(name)];
            *known = Some(known.unwrap_or_default() + *time);
        }
        (!parts.is_empty()).then_some(ServerParts::Told(times))
    }

    /// The number of a name, which gets the next free one if there is any.
    fn number(&self, name: &str) -> usize {
        let named = (name != OTHER_PARTS).then(|| {
            self.0
                .iter()
                .position(|place: &OnceLock<Arc<str>>| **place.get_or_init(|| name.into()) == *name)
        });
        named.flatten().unwrap_or(NAMED_PARTS)
    }

    /// The names so far, in the order of their numbers.
    pub(super) fn known(&self) -> impl Iterator<Item = &Arc<str>> {
        self.0.iter().map_while(OnceLock::get)
    }

    /// The parts by their names.
    pub(super) fn named(&self, times: &PartTimes) -> Vec<NamedPart> {
        let other = Arc::from(OTHER_PARTS);
        let known = times.iter().enumerate();
        known
            .filter_map(|(number, time)| {
                let name = self.known().nth(number).unwrap_or(&other);
                Some((Arc::clone(name), (*time)?))
            })
            .collect()
    }
}

/// The entry `total`, else the longest.
pub(super) fn whole(value: &[u8]) -> Option<Nanos> {
    let mut longest = None;
    for entry in entries(str::from_utf8(value).ok()?) {
        let Some(time) = entry.dur.and_then(millis) else { continue };
        if entry.name.eq_ignore_ascii_case(TOTAL) {
            return Some(time);
        }
        longest = longest.max(Some(time));
    }
    longest
}

/// An entry of the header.
#[derive(Clone, Copy)]
struct Entry<'v> {
    name: &'v str,
    dur: Option<&'v str>,
}

fn entries(value: &str) -> impl Iterator<Item = Entry<'_>> {
    outside_quotes(value, ',').map(|entry| {
        let mut members = outside_quotes(entry, ';').map(str::trim);
        let name = members.next().unwrap_or_default();
        let dur = members.find_map(|member| {
            let (key, value) = member.split_once('=')?;
            key.trim().eq_ignore_ascii_case("dur").then(|| value.trim().trim_matches('"'))
        });
        Entry { name, dur }
    })
}

/// The pieces of a text between separators, except those in quoted strings.
fn outside_quotes(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let (mut quoted, mut escaped) = (false, false);
    text.split(move |c: char| {
        let escapes = quoted && !escaped && c == '\\';
        let plain = !std::mem::replace(&mut escaped, escapes);
        quoted ^= plain && c == '"';
        plain && !quoted && c == separator
    })
}

/// A time that is not a number, or an invalid name.
struct Untrue;

/// A part with its time; `None` where the entry has no time, or is the whole.
fn part(entry: Entry<'_>) -> Option<Result<(&str, Nanos), Untrue>> {
    let Entry { name, dur } = entry;
    let dur = dur.filter(|_| !name.eq_ignore_ascii_case(TOTAL))?;
    Some(millis(dur).filter(|_| is_name(name)).map(|time| (name, time)).ok_or(Untrue))
}

/// A token of HTTP (RFC 9110, 5.6.2), and not too long.
fn is_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn millis(dur: &str) -> Option<Nanos> {
    nanos(dur.parse().ok()?, 1e6)
}
