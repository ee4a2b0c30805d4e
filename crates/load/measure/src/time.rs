//! Points in time, durations, and the clocks of a run.

use std::cell::Cell;
use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_with::{DeserializeFromStr, SerializeDisplay};

/// A duration in nanoseconds: 0 to 584 years.
///
/// Arithmetic saturates, because a measuring instrument must not panic on a strange clock reading.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    SerializeDisplay,
    DeserializeFromStr,
)]
pub struct Nanos(u64);

impl Nanos {
    /// Zero.
    pub const ZERO: Self = Self(0);
    /// The longest duration that can be represented.
    pub const MAX: Self = Self(u64::MAX);

    /// Creates a duration from nanoseconds.
    pub const fn new(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Creates a duration from microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }

    /// Creates a duration from milliseconds.
    pub const fn from_millis(millis: u64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// Creates a duration from whole seconds.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Creates a duration from seconds; negative values and NaN become zero, too large ones
    /// [`Nanos::MAX`].
    #[expect(
        clippy::cast_possible_truncation,
        reason = "float-to-int casts saturate, which is the documented behaviour"
    )]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as u64)
    }

    /// The duration in nanoseconds.
    pub const fn as_u64(self) -> u64 {
        self.0
    }

    /// The duration in seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The duration in milliseconds.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The duration in microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// Converts to the standard library's type.
    pub const fn to_duration(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Multiplies by a factor, rounded to a nanosecond; negative factors give zero.
    pub fn scale(self, factor: f64) -> Self {
        Self::from_secs_f64(self.as_secs_f64() * factor)
    }

    /// `self - other`, or zero.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<Duration> for Nanos {
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(iter: I) -> Self {
        iter.fold(Self::ZERO, Add::add)
    }
}

/// Unit names and their size in nanoseconds, longest first.
const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

/// Formats the duration in the largest unit that needs at most three decimals: `90s`, `1.5ms`,
/// `2h`.
///
/// The text is canonical, because fingerprints of schedules are computed over it.
impl fmt::Display for Nanos {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("0s");
        }
        // Minutes and hours only as integers, because "90s" reads better than "1.5m".
        let (unit, size) = UNITS
            .iter()
            .find(|&&(unit, size): &&(&str, u64)| match unit {
                "h" | "m" => self.0.is_multiple_of(size),
                "ns" => true,
                _ => self.0 >= size && self.0.is_multiple_of(size / 1_000),
            })
            .copied()
            .unwrap_or(("ns", 1));
        write!(f, "{}{unit}", self.0 as f64 / size as f64)
    }
}

/// The error for a text that is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a length of time: write a number and a unit (ns, us, ms, s, m, h), like `500ms`, `30s` or `1m30s`"
)]
pub struct ParseNanosError(String);

/// Parses `500ms`, `1.5s`, `1m30s`. A number without a unit is rejected.
impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        nanos_in(text.trim()).ok_or_else(|| ParseNanosError(text.to_owned()))
    }
}

fn nanos_in(text: &str) -> Option<Nanos> {
    if text == "0" {
        return Some(Nanos::ZERO);
    }
    let (mut rest, mut total, mut seen) = (text, 0.0, false);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(letters);
        let (_, size) = UNITS.iter().find(|(name, _)| *name == unit)?;
        total += number.parse::<f64>().ok()? * *size as f64;
        (rest, seen) = (tail, true);
    }
    (seen && total < u64::MAX as f64).then(|| Nanos::from_secs_f64(total / 1e9))
}

/// A point on the run's clock: nanoseconds since the clock's epoch.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct Moment(u64);

impl Moment {
    /// The clock's epoch.
    pub const EPOCH: Self = Self(0);

    /// The point `nanos` after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this point; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Nanos> for Moment {
    type Output = Self;
    fn add(self, duration: Nanos) -> Self {
        Self(self.0.saturating_add(duration.0))
    }
}

impl Sub<Nanos> for Moment {
    type Output = Self;
    fn sub(self, duration: Nanos) -> Self {
        Self(self.0.saturating_sub(duration.0))
    }
}

/// A source of the current time. All other code takes times as arguments.
pub trait Clock {
    /// The current moment; never earlier than one returned before.
    fn now(&self) -> Moment;
}

/// Number of paired readings of the system's two clocks.
const READINGS: usize = 8;

/// The machine's monotonic clock, with the wall-clock time of its epoch read once.
#[derive(Clone, Copy, Debug)]
pub struct MonotonicClock {
    epoch: Instant,
    epoch_unix_nanos: u64,
}

impl MonotonicClock {
    /// Creates a clock whose epoch is now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the only place that reads the system's clocks; all other code uses a Clock"
    )]
    pub fn start() -> Self {
        let epoch = Instant::now();
        // The thread may lose its CPU between two readings, so the closest of several pairs counts.
        let readings = (0..READINGS).map(|_| {
            let before = epoch.elapsed();
            let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let apart = epoch.elapsed().saturating_sub(before);
            (apart, unix.saturating_sub(before))
        });
        let (_, unix) = readings.min_by_key(|(apart, _)| *apart).unwrap_or_default();
        Self { epoch, epoch_unix_nanos: Nanos::from(unix).as_u64() }
    }

    /// Wall-clock time of a moment, in nanoseconds since 1970 UTC, from the clocks' readings at
    /// the epoch: later steps of the wall clock have no effect.
    pub const fn unix_nanos(&self, moment: Moment) -> u64 {
        self.epoch_unix_nanos.saturating_add(moment.0)
    }
}

impl Clock for MonotonicClock {
    #[inline]
    fn now(&self) -> Moment {
        Moment(Nanos::from(self.epoch.elapsed()).as_u64())
    }
}

/// A clock for tests that moves only when advanced.
#[derive(Debug, Default)]
pub struct ManualClock(Cell<u64>);

impl ManualClock {
    /// Advances the clock.
    pub fn advance(&self, duration: Nanos) {
        self.0.set(self.0.get().saturating_add(duration.0));
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Moment(self.0.get())
    }
}

// The instants of one turn, and the durations that the glossary defines on them.

/// The instants of one turn; `None` for those that it did not reach.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Scheduled time of the request; closed model: when the virtual user became free.
    pub intended: Moment,
    /// Time at which the generator started to process it, before connection set-up and the first
    /// write. A turn that waits for a connection ([`ConnectPhases::wait`]) is dispatched when a
    /// used one becomes free, or when its new one begins to be opened.
    pub dispatched: Option<Moment>,
    /// Time at which the connection was ready; equals `dispatched` for a reused one.
    pub connected: Option<Moment>,
    /// Time at which the last byte of the request was passed to the kernel.
    pub sent: Option<Moment>,
    /// Time at which the first byte of the response arrived.
    pub first_byte: Option<Moment>,
    /// Time at which the first event with content arrived (text, reasoning or tool call).
    pub first_token: Option<Moment>,
    /// Time at which the first event with content other than reasoning arrived.
    pub first_output_token: Option<Moment>,
    /// Time at which the last event with content arrived.
    pub last_token: Option<Moment>,
    /// Time at which the turn was complete, failed or cancelled.
    pub finished: Option<Moment>,
}

impl Timeline {
    /// Creates a timeline with the intended start only.
    pub fn intended(at: Moment) -> Self {
        Self { intended: at, ..Self::default() }
    }

    /// `finished - intended`: the time that a user waits.
    pub fn response_time(&self) -> Option<Nanos> {
        Some(self.finished?.since(self.intended))
    }

    /// `finished - dispatched`: the target's time, including connection set-up.
    pub fn service_time(&self) -> Option<Nanos> {
        self.since_dispatch(self.finished)
    }

    /// `dispatched - intended`: the generator's delay, plus the waits for a slot of `max_in_flight`
    /// and for a connection.
    pub fn dispatch_lag(&self) -> Option<Nanos> {
        Some(self.dispatched?.since(self.intended))
    }

    /// First byte of the response minus dispatched.
    pub fn ttfb(&self) -> Option<Nanos> {
        self.since_dispatch(self.first_byte)
    }

    /// First event with content minus dispatched.
    pub fn ttft(&self) -> Option<Nanos> {
        self.since_dispatch(self.first_token)
    }

    /// First event with content minus intended.
    pub fn response_ttft(&self) -> Option<Nanos> {
        Some(self.first_token?.since(self.intended))
    }

    /// First event with content other than reasoning, minus dispatched.
    pub fn ttfot(&self) -> Option<Nanos> {
        self.since_dispatch(self.first_output_token)
    }

    /// Time from the first byte of the response to the end of the turn.
    pub fn transfer_time(&self) -> Option<Nanos> {
        Some(self.finished?.since(self.first_byte?))
    }

    /// `service_time / output_tokens`.
    pub fn ntpot(&self, output_tokens: u32) -> Option<Nanos> {
        self.service_time()?.as_u64().checked_div(u64::from(output_tokens)).map(Nanos::new)
    }

    fn since_dispatch(&self, moment: Option<Moment>) -> Option<Nanos> {
        Some(moment?.since(self.dispatched?))
    }
}

/// Durations of the phases of getting a connection; all `None` for an idle one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectPhases {
    /// Wait for a pooled connection, or for the permission to open one; it ends with `dispatched`.
    pub wait: Option<Nanos>,
    /// Name resolution; `None` for an address.
    pub dns: Option<Nanos>,
    /// The TCP handshake.
    pub tcp: Option<Nanos>,
    /// The TLS handshake.
    pub tls: Option<Nanos>,
    /// Whether the TLS handshake resumed an earlier session (by a ticket or a session id).
    pub resumed: bool,
    /// The handshake of a WebSocket, from the ready connection to the 101.
    pub upgrade: Option<Nanos>,
    /// Whether the turn was the first on an idle connection, which was opened before the run, or
    /// for a turn that another connection served first.
    pub ahead: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_and_written_with_their_unit() {
        for (text, nanos, written) in [
            ("500ms", 500_000_000, "500ms"),
            ("1.5s", 1_500_000_000, "1.5s"),
            ("1m30s", 90_000_000_000, "90s"),
            ("2h", 7_200_000_000_000, "2h"),
            ("0", 0, "0s"),
            ("250us", 250_000, "250us"),
            ("7ns", 7, "7ns"),
        ] {
            let duration: Nanos = text.parse().unwrap();
            assert_eq!(
                (duration.as_u64(), duration.to_string().as_str()),
                (nanos, written),
                "{text}"
            );
        }
    }

    #[test]
    fn a_duration_without_a_unit_or_with_nonsense_is_refused() {
        for text in ["", "10", "ten", "10x", "-5s", "s", "1..5s", "5s6", "1e3s"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_duration_that_is_written_reads_back_equal(nanos in 0u64..10_000_000_000_000) {
            let duration = Nanos::new(nanos);
            prop_assert_eq!(duration.to_string().parse::<Nanos>().unwrap(), duration);
        }
    }
}

#[cfg(test)]
mod timeline_tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::EPOCH + Nanos::from_millis(ms)
    }

    #[test]
    fn durations_follow_the_glossary() {
        let line = Timeline {
            intended: at(100),
            dispatched: Some(at(110)),
            connected: Some(at(111)),
            sent: Some(at(112)),
            first_byte: Some(at(150)),
            first_token: Some(at(210)),
            first_output_token: Some(at(230)),
            last_token: Some(at(510)),
            finished: Some(at(520)),
        };
        let ms = |length: Option<Nanos>| length.map(Nanos::as_millis_f64);
        assert_eq!(ms(line.response_time()), Some(420.0));
        assert_eq!(ms(line.service_time()), Some(410.0));
        assert_eq!(ms(line.dispatch_lag()), Some(10.0));
        assert_eq!(ms(line.ttfb()), Some(40.0));
        assert_eq!(ms(line.ttft()), Some(100.0));
        assert_eq!(ms(line.response_ttft()), Some(110.0));
        assert_eq!(ms(line.ttfot()), Some(120.0));
        assert_eq!(ms(line.transfer_time()), Some(370.0));
        assert_eq!(ms(line.ntpot(41)), Some(10.0));
    }

    #[test]
    fn no_response_gives_no_value() {
        let line = Timeline::intended(at(5));
        assert_eq!(line.response_time(), None);
    }
}
