//! Rates and shares, derived from counters and the length of the stage.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::counters::Counters;
use super::metric::Unit;
use crate::edges::{Edges, WHOLE};

/// One rate or share of the catalog.
#[derive(Clone, Copy, Debug)]
pub struct RateSpec {
    /// Name in thresholds.
    pub name: &'static str,
    /// The name with its unit: the key in JSON and CSV.
    pub key: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its definition.
    pub definition: &'static str,
    /// Its value; `None` if the divisor is zero.
    pub of: fn(&Rates) -> Option<f64>,
}

macro_rules! rates {
    ($($(#[doc = $definition:literal])+ $key:ident = $name:literal($unit:ident) => $formula:expr;)+) => {
        /// Rates and shares of a group of requests; `None` if the divisor is zero.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
        pub struct Rates {
            $($(#[doc = $definition])+ pub $key: Option<f64>,)+
        }

        impl Rates {
            /// The rates of a group whose stages lasted `seconds` together.
            pub fn compute(counters: &Counters, edges: &Edges, seconds: f64) -> Self {
                let basis = Basis { counters, edges, seconds };
                Self { $($key: { let of: fn(&Basis<'_>) -> Option<f64> = $formula; of(&basis) },)+ }
            }
        }

        /// Every rate, in the order of the reports.
        pub const RATES: [RateSpec; [$($name),+].len()] = [$(RateSpec {
            name: $name,
            key: stringify!($key),
            unit: Unit::$unit,
            definition: concat!($($definition),+).trim_ascii_start(),
            of: |rates| rates.$key,
        }),+];
    };
}

rates! {
    /// `scheduled` per second of the stage; in closed stages a request counts by the share of its
    /// time in the stage.
    planned_rate_per_s = "planned_rate"(RequestsPerSecond)
        => |b| b.per_second(b.counters.scheduled, b.edges.requests);
    /// `dispatched_in_stage - unsent_in_stage` per second of the stage, without those due in an
    /// earlier stage; in closed stages a request counts by the share of its time in the stage.
    achieved_rate_per_s = "achieved_rate"(RequestsPerSecond)
        => |b| b.per_second(b.counters.dispatched_in_stage - b.counters.unsent_in_stage - b.edges.late, b.edges.requests);
    /// `completed_in_stage` per second of the stage; in closed stages an answer that began or ended
    /// in another stage counts by the share of its time in this one.
    throughput_per_s = "throughput"(RequestsPerSecond)
        => |b| b.per_second(b.counters.completed_in_stage, b.edges.completed);
    /// `good_in_stage` per second of the stage, counted as `throughput`; only where the profile
    /// states `goodput`.
    goodput_per_s = "goodput"(RequestsPerSecond)
        => |b| b.per_second(b.counters.good_in_stage, b.edges.good).filter(|_| b.counters.goodput_judged > 0);
    /// `output_tokens_reported_in_stage` per second of the stage, counted as `throughput`.
    output_token_rate_reported_per_s = "output_token_rate_reported"(TokensPerSecond)
        => |b| b.per_second(b.counters.output_tokens_reported_in_stage, b.edges.tokens_reported);
    /// `output_tokens_estimated_in_stage` per second of the stage, counted as `throughput`.
    output_token_rate_estimated_per_s = "output_token_rate_estimated"(TokensPerSecond)
        => |b| b.per_second(b.counters.output_tokens_estimated_in_stage, b.edges.tokens_estimated);
    /// `completed / scheduled`.
    success_rate = "success_rate"(Share) => |b| b.share(b.counters.completed);
    /// `rejected / scheduled`.
    reject_rate = "reject_rate"(Share) => |b| b.share(b.counters.rejected);
    /// `failed / scheduled`.
    failure_rate = "failure_rate"(Share) => |b| b.share(b.counters.failed);
    /// `timed_out / scheduled`.
    timeout_rate = "timeout_rate"(Share) => |b| b.share(b.counters.timed_out);
    /// `cancelled / scheduled`.
    cancel_rate = "cancel_rate"(Share) => |b| b.share(b.counters.cancelled);
    /// `in_flight / scheduled`.
    unfinished_rate = "unfinished_rate"(Share) => |b| b.share(b.counters.in_flight);
    /// `never_sent / scheduled`.
    unsent_rate = "unsent_rate"(Share) => |b| b.share(b.counters.never_sent);
    /// `unexpected / scheduled`: the share of planned requests without a good answer. Counted:
    /// refused, failed, timed out, in flight at the end, never sent, or with an unexpected policy
    /// decision. A refusal that the scenario expects is a good answer.
    error_rate = "error_rate"(Share) => |b| b.share(b.counters.unexpected);
    /// `(failed + timed_out + in_flight + never_sent) / scheduled`: the share of planned requests
    /// without a well-formed response, where refusals (4xx) are part of the plan.
    error_rate_excluding_rejected = "error_rate_excluding_rejected"(Share)
        => |b| b.share(b.unanswered());
    /// `handshakes_resumed / (handshakes_full + handshakes_resumed)`.
    resumption_rate = "resumption_rate"(Share)
        => |b| b.share_of(b.counters.handshakes_resumed, b.counters.handshakes_full + b.counters.handshakes_resumed);
    /// `good / goodput_judged`: the share of requests with a good answer that kept every bound of
    /// `goodput`.
    good_share = "good_share"(Share) => |b| b.share_of(b.counters.good, b.counters.goodput_judged);
    /// `repeated_tokens` divided by the input tokens of completed requests: the share that a prefix
    /// cache could serve.
    repeated_share = "repeated_share"(Share)
        => |b| b.share_of(b.counters.repeated_tokens, b.counters.prompt_tokens_reported + b.counters.prompt_tokens_estimated);
    /// `cached_tokens / prompt_tokens_reported`: the share of the reported input tokens that the
    /// target read from its prompt cache.
    cached_share = "cached_share"(Share)
        => |b| b.share_of(b.counters.cached_tokens, b.counters.prompt_tokens_reported);
    /// `as_expected / judged`: the share of answered requests with the policy decision that their
    /// scenario expects.
    policy_correctness = "policy_correctness"(Share)
        => |b| b.share_of(b.counters.as_expected, b.counters.judged);
    /// `blocked / scheduled`.
    block_rate = "block_rate"(Share) => |b| b.share(b.counters.blocked);
}

/// The input of the formulas.
struct Basis<'a> {
    counters: &'a Counters,
    edges: &'a Edges,
    seconds: f64,
}

impl Basis<'_> {
    fn per_second(&self, count: u64, shares: i64) -> Option<f64> {
        let count = count as f64 + shares as f64 / WHOLE as f64;
        (self.seconds > 0.0).then(|| count / self.seconds)
    }

    fn share(&self, count: u64) -> Option<f64> {
        self.share_of(count, self.counters.scheduled)
    }

    #[expect(clippy::unused_self, reason = "all formulas look alike")]
    fn share_of(&self, count: u64, whole: u64) -> Option<f64> {
        (whole > 0).then(|| count as f64 / whole as f64)
    }

    const fn unanswered(&self) -> u64 {
        let c = self.counters;
        c.failed + c.timed_out + c.in_flight + c.never_sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_their_definition() {
        let counters = Counters {
            scheduled: 200,
            completed: 150,
            rejected: 20,
            failed: 10,
            timed_out: 8,
            cancelled: 2,
            in_flight: 6,
            never_sent: 4,
            // 15 of the 20 refusals were expected, and 3 successes were not.
            unexpected: 36,
            dispatched_in_stage: 200,
            unsent_in_stage: 4,
            completed_in_stage: 140,
            ..Counters::default()
        };
        let rates = Rates::compute(&counters, &Edges::default(), 4.0);
        assert_eq!(rates.planned_rate_per_s, Some(50.0));
        assert_eq!(rates.achieved_rate_per_s, Some(49.0));
        assert_eq!(rates.throughput_per_s, Some(35.0));
        assert_eq!(rates.success_rate, Some(0.75));
        assert_eq!(rates.reject_rate, Some(0.1));
        assert_eq!(rates.error_rate, Some(0.18));
        assert_eq!(rates.error_rate_excluding_rejected, Some(0.14));
    }

    #[test]
    fn nothing_scheduled_or_no_time_gives_no_rate() {
        let rates = Rates::compute(&Counters::default(), &Edges::default(), 0.0);
        assert_eq!((rates.throughput_per_s, rates.error_rate), (None, None));
    }
}
