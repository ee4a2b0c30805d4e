//! The tests, each a plain function from the bench to what was found.

mod accounting;
mod arrivals;
mod cross_check;
mod delays;
mod errors;
mod floor;
mod littles_law;
mod merge;
mod overhead;
mod phases;
mod saturation;
mod soak;
mod stalls;
mod streams;
mod time_line;

use plimsoll_measure::{Clock as _, Moment, MonotonicClock};

use crate::bench::Bench;
use crate::error::CalibrateError;
use crate::finding::{Check, Finding, TestResult};

/// Figures and notes of one test.
#[derive(Debug, Default)]
struct Found {
    checks: Vec<Check>,
    notes: Vec<String>,
}

impl From<Vec<Check>> for Found {
    fn from(checks: Vec<Check>) -> Self {
        Self { checks, notes: Vec::new() }
    }
}

type Body = fn(&Bench) -> Result<Found, CalibrateError>;

/// A test of the instrument.
#[derive(Clone, Copy, Debug)]
pub struct Test {
    /// `T1` to `T21`.
    pub id: &'static str,
    /// What it is about.
    pub title: &'static str,
    body: Where,
}

/// Where a test is carried out.
#[derive(Clone, Copy, Debug)]
enum Where {
    /// On every host.
    Here(Body),
    /// On hosts that have other tools to compare with.
    WithTools(Body),
    /// Only where it is asked for: it takes long.
    OnRequest(Body),
    /// Not on a user's host.
    Elsewhere(&'static str),
}

const CLOCK: &str = "stepping the clock of a live host is not for a user's tool: the unit tests of `plimsoll-transport` (stamp) step it by a second in both directions";
const CORPUS: &str = "needs no host: the parser's corpus is compared with hyper in the test suite (`cargo test -p plimsoll-transport --test oracle`), and fuzzed in `fuzz/`";

/// Every test, in the order in which they are carried out: T1 finds the limits that later ones refer to.
pub const TESTS: [Test; 21] = [
    here("T1", "floor of this host", floor::t1_zero_server),
    here("T2", "known delays", delays::t2_constant_delays),
    here("T3", "known distributions", delays::t3_distributions),
    here("T4", "known stall", stalls::t4_stalled_target),
    here("T5", "stalled generator", stalls::t5_stalled_generator),
    here("T6", "known rates", arrivals::t6_rates),
    here("T7", "Poisson arrivals", arrivals::t7_poisson),
    here("T8", "ramps and traces", arrivals::t8_shapes),
    here("T9", "conservation", accounting::t9_conservation),
    here("T10", "known errors", errors::t10_error_mix),
    here("T11", "known stream", streams::t11_known_stream),
    here("T12", "many streams at once", streams::t12_many_streams),
    here("T13", "Little's law", littles_law::t13_steady_state),
    here("T14", "known overhead", overhead::t14_planted_overhead),
    here("T15", "saturation", saturation::t15_squeezed),
    here("T16", "connection phases", phases::t16_phases),
    here("T17", "merge", merge::t17_shards),
    Test { id: "T18", title: "soak", body: Where::OnRequest(soak::t18_memory) },
    Test { id: "T19", title: "stepped wall clock", body: Where::Elsewhere(CLOCK) },
    Test {
        id: "T20",
        title: "wrk and h2load",
        body: Where::WithTools(cross_check::t20_other_tools),
    },
    Test { id: "T21", title: "parser against hyper", body: Where::Elsewhere(CORPUS) },
];

const fn here(id: &'static str, title: &'static str, body: Body) -> Test {
    Test { id, title, body: Where::Here(body) }
}

impl Test {
    /// The test of this name, in capitals or not.
    pub fn named(id: &str) -> Option<Self> {
        TESTS.into_iter().find(|test| test.id.eq_ignore_ascii_case(id))
    }

    /// Must it be asked for by name?
    pub const fn is_on_request(self) -> bool {
        matches!(self.body, Where::OnRequest(_))
    }

    /// Carries it out. What keeps it from being carried out is part of the finding.
    pub fn run(self, bench: &Bench) -> Finding {
        let clock = MonotonicClock::start();
        let (result, found) = match self.body {
            Where::Elsewhere(place) => (TestResult::Elsewhere(place.to_owned()), Found::default()),
            Where::Here(body) | Where::OnRequest(body) | Where::WithTools(body) => {
                self.judge(body(bench))
            }
        };
        Finding {
            test: self.id.to_owned(),
            title: self.title.to_owned(),
            result,
            checks: found.checks,
            notes: found.notes,
            seconds: clock.now().since(Moment::EPOCH).as_secs_f64(),
        }
    }

    fn judge(self, found: Result<Found, CalibrateError>) -> (TestResult, Found) {
        match found {
            Err(CalibrateError::Missing(why)) if matches!(self.body, Where::WithTools(_)) => {
                (TestResult::Elsewhere(why), Found::default())
            }
            Err(error) => (TestResult::NotRun(error.to_string()), Found::default()),
            // No figure is never a pass.
            Ok(found) if found.checks.is_empty() => {
                (TestResult::NotRun("nothing was measured".to_owned()), found)
            }
            Ok(found) if found.checks.iter().all(Check::passes) => (TestResult::Pass, found),
            Ok(found) => (TestResult::Fail, found),
        }
    }
}

/// Requests for the mock provider, as small as they can be: tests of time, not of content.
const SMALL: &str = "content: {mode: sized, approx_input_tokens: 16}\nmax_tokens: 1\n";

/// Requests for servers that look at nothing but the number in the path.
const NUMBERED: &str = "protocol: http\nhttp: {path: '/{{seq}}'}\n";
