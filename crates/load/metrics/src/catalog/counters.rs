//! Counters: whole numbers that add up over requests, workers and shards.

use std::fmt;

use plimsoll_measure::{
    CacheState, Moment, Nanos, Outcome, PolicyDecision, Sample, TokenCount, TokenSource,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::metric::Unit;

/// One counter of the catalog.
#[derive(Clone, Copy, Debug)]
pub struct CounterSpec {
    /// Name in thresholds, JSON and CSV.
    pub name: &'static str,
    /// Its unit.
    pub unit: Unit,
    /// Its definition.
    pub definition: &'static str,
    /// Its value.
    pub of: fn(&Counters) -> u64,
}

macro_rules! counters {
    ($($(#[doc = $definition:literal])+ $name:ident($unit:ident);)+) => {
        /// The counters of a group of requests.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(default)]
        pub struct Counters {
            $($(#[doc = $definition])+ pub $name: u64,)+
        }

        impl Counters {
            /// Adds the counters of another group.
            pub const fn merge(&mut self, other: &Self) {
                $(self.$name += other.$name;)+
            }
        }

        /// Every counter, in the order of the reports.
        pub const COUNTERS: [CounterSpec; [$(stringify!($name)),+].len()] = [$(CounterSpec {
            name: stringify!($name),
            unit: Unit::$unit,
            definition: concat!($($definition),+).trim_ascii_start(),
            of: |counters| counters.$name,
        }),+];
    };
}

counters! {
    /// Requests that the schedule asked for; counted when planned, whatever their outcome.
    scheduled(Requests);
    /// A complete, well-formed success.
    completed(Requests);
    /// A well-formed refusal: 4xx.
    rejected(Requests);
    /// Ended by an error of one of the error classes; a 5xx is a failure.
    failed(Requests);
    /// The time limit of the request passed.
    timed_out(Requests);
    /// Given up by the generator, for a stated reason.
    cancelled(Requests);
    /// Still unanswered when the drain time was over.
    in_flight(Requests);
    /// Scheduled, but never sent: dropped by the overflow policy, or still queued at the end.
    never_sent(Requests);
    /// Arrivals that the schedule of an open stage planned: the first turn of each conversation.
    arrivals_planned(Requests);
    /// Part of `arrivals_planned`: dispatched while their stage lasted.
    arrivals_in_stage(Requests);
    /// Part of `arrivals_planned`: not dispatched while their stage lasted because the generator
    /// was late. Other missing arrivals waited for a connection or for a free slot of
    /// `max_in_flight`, or were dropped because no slot was free.
    arrivals_late_by_generator(Requests);
    /// Requests dispatched while the stage lasted.
    dispatched_in_stage(Requests);
    /// Part of `dispatched_in_stage`: requests that got no connection, and so were not sent.
    unsent_in_stage(Requests);
    /// Requests completed while the stage lasted, whichever stage they were scheduled in; responses
    /// of the drain time belong to no stage.
    completed_in_stage(Requests);
    /// Output tokens of `completed_in_stage`, where the target reported them.
    output_tokens_reported_in_stage(Tokens);
    /// Output tokens of `completed_in_stage`, where content events were counted instead.
    output_tokens_estimated_in_stage(Tokens);
    /// Part of `completed_in_stage`: unknown number of output tokens. Token rates exclude them.
    completed_without_tokens(Requests);
    /// Input tokens of completed requests, as the target reported them.
    prompt_tokens_reported(Tokens);
    /// Input tokens of completed requests, estimated where the target reported none.
    prompt_tokens_estimated(Tokens);
    /// Output tokens of completed requests, as the target reported them.
    output_tokens_reported(Tokens);
    /// Output tokens of completed requests, counted as content events where the target reported
    /// none.
    output_tokens_estimated(Tokens);
    /// Reported input tokens that were read from the target's prompt cache.
    cached_tokens(Tokens);
    /// Input tokens of shared prefixes (`prefix_pool`) that an earlier request, of the warm-up too,
    /// had sent to the same target: the share of the prefix in the text of a completed request,
    /// times its input tokens. Each process counts for itself.
    repeated_tokens(Tokens);
    /// Reported output tokens that were spent on reasoning.
    reasoning_tokens(Tokens);
    /// Content-bearing stream events received.
    content_events(Events);
    /// Part of `content_events`: received in the same read as the previous event. `itl` excludes
    /// the gap between the two.
    events_together(Events);
    /// Part of `events_together`: possibly received together only because the generator read late.
    /// Upper bound: the lateness of the read divided by the mean time between the events of the
    /// stream.
    events_together_late(Events);
    /// Responses with impossible token counts: not whole numbers, or more tokens than requested and
    /// than their bytes can represent. Such a count is taken as not reported.
    usage_refused(Requests);
    /// Part of `completed`: tool calls whose result has `isError`, and messages to agents whose
    /// task failed or was rejected.
    tool_errors(Requests);
    /// Messages that tool servers and agents sent before their answers: progress, updates of tasks.
    notifications(Events);
    /// Bytes of requests, heads included.
    bytes_out(Bytes);
    /// Bytes of responses, heads included, after TLS.
    bytes_in(Bytes);
    /// Requests that opened a connection.
    connections_opened(Connections);
    /// Requests that went over a connection used before.
    connections_reused(Connections);
    /// Requests that were the first on a connection that was idle: opened before the run, or for a
    /// request that another connection served first.
    connections_ahead(Connections);
    /// Requests that had to wait for a connection; `connection_wait` is the time.
    connection_waits(Requests);
    /// Requests that were sent again, because the target had not worked on them: it had closed
    /// their idle connection, or refused their stream. Their times count from the first start.
    retries(Requests);
    /// Opened connections with a full TLS handshake.
    handshakes_full(Connections);
    /// Opened connections whose TLS handshake resumed an earlier session.
    handshakes_resumed(Connections);
    /// HTTP/2 requests that had to wait for the target's flow-control windows or its limit of
    /// concurrent streams; `send_stall` is the time.
    send_stalls(Requests);
    /// HTTP/2 responses that the generator read so late that its own flow-control window may have
    /// held the target up.
    receive_stalls(Requests);
    /// Responses whose headers report a cache hit, with any outcome.
    cache_hits(Requests);
    /// Responses whose headers report a cache miss.
    cache_misses(Requests);
    /// Responses whose headers report that the cache was bypassed.
    cache_bypassed(Requests);
    /// Responses whose headers report that the target retried its upstream.
    retried_upstream(Requests);
    /// Responses with status 429, 503 or 529 whose head has Retry-After.
    retry_after_seen(Requests);
    /// The number of times that the target asked its upstream again, as the headers say, over all
    /// responses.
    upstream_retries(Requests);
    /// Completed requests that the target let through: policy decision `allow` or `redact`.
    allowed(Requests);
    /// Requests that the target blocked: policy decision `block`, expected or not.
    blocked(Requests);
    /// Requests with an expected policy decision that were answered.
    judged(Requests);
    /// Part of `judged`: the policy decision is the expected one.
    as_expected(Requests);
    /// Requests judged by the `goodput` of the profile: all but the cancelled ones; 0 where it
    /// states none.
    goodput_judged(Requests);
    /// Part of `goodput_judged`: a good answer within every bound of `goodput`.
    good(Requests);
    /// Good requests whose answer ended while the stage lasted, whichever stage they were scheduled
    /// in.
    good_in_stage(Requests);
    /// Requests in flight while the target worked off the arrivals that a pause of the generator
    /// had held back. The measurement error includes the time that they spent in such intervals.
    affected(Requests);
    /// Part of `goodput_judged`: not `good`, but possibly only because of the measurement error of
    /// their times.
    good_but_for_generator(Requests);
    /// Requests without a good answer: with another policy decision than the expected one or, if
    /// none is expected or none came, without success (`cancelled` left out).
    unexpected(Requests);
}

impl Counters {
    /// Requests with a good answer, which a refusal that their scenario expects is, too.
    pub const fn ok(&self) -> u64 {
        self.scheduled.saturating_sub(self.unexpected + self.cancelled)
    }

    /// The share of all requests that got a good answer.
    pub fn ok_share(&self) -> Option<f64> {
        (self.scheduled > 0).then(|| self.ok() as f64 / self.scheduled as f64)
    }

    /// Refusals that no scenario expects, as far as the counters tell: those without an expected
    /// decision, and those beyond all answers that are as expected.
    pub fn refused(&self) -> u64 {
        let wrongly_decided = self.judged.saturating_sub(self.as_expected);
        let unjudged = self.badly_answered().saturating_sub(wrongly_decided);
        let beyond = self.rejected.saturating_sub(self.as_expected);
        unjudged.max(beyond).min(self.badly_answered())
    }

    /// Other answers that are not the expected ones: with another policy decision.
    pub fn wrongly_decided(&self) -> u64 {
        self.badly_answered() - self.refused()
    }

    /// Part of [`Counters::failures`] that was answered.
    const fn badly_answered(&self) -> u64 {
        self.failures().saturating_sub(self.failed + self.timed_out)
    }

    /// Requests that were sent and have ended, however they did.
    pub const fn ended(&self) -> u64 {
        self.completed + self.rejected + self.failed + self.timed_out + self.cancelled
    }

    /// Requests that the target ended, however it did.
    pub const fn answered(&self) -> u64 {
        self.ended() - self.cancelled
    }

    /// Part of [`Counters::answered`] without a good answer.
    pub const fn failures(&self) -> u64 {
        self.unexpected.saturating_sub(self.in_flight + self.never_sent)
    }

    /// Arrivals that waited for a free slot of `max_in_flight` until their stage was over, or were
    /// dropped for want of one.
    pub const fn arrivals_held(&self) -> u64 {
        let in_time = self.arrivals_in_stage + self.arrivals_late_by_generator;
        self.arrivals_planned.saturating_sub(in_time)
    }

    /// Counts all of a request except what belongs to the stage that lasted at the time:
    /// [`Counters::dispatch`] and [`Counters::complete`].
    pub(crate) const fn count(&mut self, sample: &Sample) {
        *self.outcome(sample.outcome) += 1;
        self.affected += sample.affected as u64;
        self.content_events += sample.events as u64;
        self.events_together += sample.events_together() as u64;
        self.events_together_late += sample.gaps.late_together as u64;
        self.usage_refused += sample.usage_refused as u64;
        self.tool_errors += sample.rpc.tool_error as u64;
        self.notifications += sample.rpc.notifications as u64;
        self.bytes_out += sample.bytes_out;
        self.bytes_in += sample.bytes_in;
        if sample.reused {
            self.connections_reused += 1;
        } else if sample.connect.tcp.is_some() {
            self.connections_opened += 1;
        }
        self.connections_ahead += sample.connect.ahead as u64;
        self.connection_waits += sample.connect.wait.is_some() as u64;
        self.retries += sample.retried_after.is_some() as u64;
        if sample.connect.tls.is_some() {
            self.handshakes_resumed += sample.connect.resumed as u64;
            self.handshakes_full += !sample.connect.resumed as u64;
        }
        self.send_stalls += sample.flow.send_stall.is_some() as u64;
        self.receive_stalls += sample.flow.receive_stall as u64;
        self.server(sample);
        if matches!(sample.outcome, Outcome::Completed) {
            self.tokens(sample);
        }
    }

    /// Counts an arrival of the open model, whose stage ends at `end`.
    pub(crate) fn arrival(&mut self, sample: &Sample, end: Moment) {
        self.arrivals_planned += 1;
        match sample.timeline.dispatched {
            Some(at) if at < end => self.arrivals_in_stage += 1,
            Some(at) => {
                let ready = at - sample.connect.wait.unwrap_or_default();
                let is_late = ready >= end && ready - sample.pacing_lag() < end;
                self.arrivals_late_by_generator += u64::from(is_late);
            }
            None => {
                self.arrivals_late_by_generator +=
                    u64::from(sample.generator.dispatch > Nanos::ZERO);
            }
        }
    }

    /// Counts a dispatch within the stage's time.
    pub(crate) const fn dispatch(&mut self, sample: &Sample) {
        self.dispatched_in_stage += 1;
        self.unsent_in_stage += sample.is_unconnected() as u64;
    }

    /// Counts a completion within the stage's time.
    pub(crate) const fn complete(&mut self, output: TokenCount) {
        self.completed_in_stage += 1;
        let count = output.count as u64;
        match output.source {
            TokenSource::Unknown => self.completed_without_tokens += 1,
            TokenSource::Reported => self.output_tokens_reported_in_stage += count,
            TokenSource::Estimated => self.output_tokens_estimated_in_stage += count,
        }
    }

    /// Counts the policy decision.
    pub(crate) fn judge(&mut self, sample: &Sample) {
        match sample.policy_decision {
            Some(PolicyDecision::Allow | PolicyDecision::Redact)
                if sample.outcome == Outcome::Completed =>
            {
                self.allowed += 1;
            }
            Some(PolicyDecision::Block) => self.blocked += 1,
            _ => {}
        }
        if let Some(as_expected) = sample.as_expected() {
            self.judged += 1;
            self.as_expected += u64::from(as_expected);
        }
        self.unexpected += u64::from(sample.is_unexpected());
    }

    /// Counts the facts in the response's headers.
    const fn server(&mut self, sample: &Sample) {
        match sample.server.cache {
            None => {}
            Some(CacheState::Hit) => self.cache_hits += 1,
            Some(CacheState::Miss) => self.cache_misses += 1,
            Some(CacheState::Bypass) => self.cache_bypassed += 1,
        }
        self.retried_upstream += (sample.server.retries > 0) as u64;
        self.upstream_retries += sample.server.retries as u64;
        self.retry_after_seen += sample.server.retry_after as u64;
    }

    const fn tokens(&mut self, sample: &Sample) {
        let (prompt, output) = (sample.usage.prompt, sample.usage.completion);
        match prompt.source {
            TokenSource::Unknown => {}
            TokenSource::Reported => self.prompt_tokens_reported += prompt.count as u64,
            TokenSource::Estimated => self.prompt_tokens_estimated += prompt.count as u64,
        }
        match output.source {
            TokenSource::Unknown => {}
            TokenSource::Reported => self.output_tokens_reported += output.count as u64,
            TokenSource::Estimated => self.output_tokens_estimated += output.count as u64,
        }
        self.cached_tokens += sample.usage.cached as u64;
        self.repeated_tokens += sample.repeated_tokens as u64;
        self.reasoning_tokens += sample.usage.reasoning as u64;
    }

    const fn outcome(&mut self, outcome: Outcome) -> &mut u64 {
        match outcome {
            Outcome::Completed => &mut self.completed,
            Outcome::Rejected(_) => &mut self.rejected,
            Outcome::Failed(_) => &mut self.failed,
            Outcome::TimedOut => &mut self.timed_out,
            Outcome::Cancelled => &mut self.cancelled,
            Outcome::InFlight => &mut self.in_flight,
            Outcome::NeverSent => &mut self.never_sent,
        }
    }
}

// The accounting identity: every scheduled request has exactly one outcome.

/// `scheduled = completed + rejected + failed + timed out + cancelled + in flight at the end +
/// never sent`.
impl Counters {
    /// The sum of all outcomes.
    pub const fn accounted(&self) -> u64 {
        self.completed
            + self.rejected
            + self.failed
            + self.timed_out
            + self.cancelled
            + self.in_flight
            + self.never_sent
    }

    /// Whether the identity holds.
    pub const fn balanced(&self) -> bool {
        self.scheduled == self.accounted()
    }
}

/// The identity on one line. If it does not hold, it is written with `!=` and the sum.
impl fmt::Display for Counters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.balanced() { "=" } else { "!=" };
        write!(
            f,
            "{} scheduled {sign} {} completed + {} rejected + {} failed + {} timed out \
             + {} cancelled + {} in flight + {} never sent",
            self.scheduled,
            self.completed,
            self.rejected,
            self.failed,
            self.timed_out,
            self.cancelled,
            self.in_flight,
            self.never_sent
        )?;
        if self.balanced() { Ok(()) } else { write!(f, " (= {})", self.accounted()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_whether_the_identity_holds() {
        let even =
            Counters { scheduled: 10, completed: 7, rejected: 1, failed: 2, ..Default::default() };
        assert!(even.balanced());
        assert_eq!(
            even.to_string(),
            "10 scheduled = 7 completed + 1 rejected + 2 failed + 0 timed out \
             + 0 cancelled + 0 in flight + 0 never sent"
        );
        let odd = Counters { scheduled: 11, ..even };
        assert!(!odd.balanced());
        assert!(odd.to_string().starts_with("11 scheduled != 7"), "{odd}");
        assert!(odd.to_string().ends_with("(= 10)"), "{odd}");
    }
}
