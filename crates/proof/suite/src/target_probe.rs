//! What the user's gateway has, found by a few requests before any load: which routes it serves and
//! what they cost, whether it has a cache, whether it limits the rate, whether it checks the key.
//!
//! What is absent or costly is left out of the suite and named in the report.

mod cache;

use plimsoll_measure::{Nanos, Outcome, Sample};
use plimsoll_report::format::{or_dash, time};

use crate::error::SuiteError;
use crate::measurement::{LoadShape, Measurement};
use crate::runner::SuiteRunner;
use crate::target::SuiteTarget;

/// Time limit of a single request to a cheap route.
const ROUTE_TIMEOUT: &str = "2s";
/// A route that takes longer than this, and longer than [`ROUND_TRIPS`] to the target, does work
/// for each request that a suite must not ask for thousands of times: some gateways call every
/// model for `GET /health`.
const CHEAP: Nanos = Nanos::from_millis(100);
const ROUND_TRIPS: u64 = 4;
/// Seeds of probes begin far from those of passes.
const FIRST_SEED: u32 = 1_000_000;
/// A path that no gateway serves.
const UNKNOWN: &str = "/plimsoll-no-such-route";
/// Requests at once that show whether the rate is limited.
const BURST: u64 = 20;

impl SuiteRunner<'_> {
    /// Whether `path` of a target can be loaded. Anything of the reference gateway can; a route of
    /// the user's is tried once, and left out and named if it is absent, refused or costly (which
    /// is tried twice: one slow answer may be a pause of this host).
    pub(crate) fn serves(&mut self, target: &SuiteTarget, path: &str) -> Result<bool, SuiteError> {
        let what = target.label(&format!("GET {path}"));
        let request = Measurement::get(&what, target, path).with("timeout", ROUTE_TIMEOUT);
        self.try_out(&what, request, true)
    }

    /// Whether the target answers 200 to anything: then its routes are not shown to exist.
    pub(crate) fn probe_unknown_route(&mut self, target: &SuiteTarget) -> Result<(), SuiteError> {
        let what = target.label(&format!("GET {UNKNOWN}"));
        let request = Measurement::get(&what, target, UNKNOWN).with("timeout", ROUTE_TIMEOUT);
        let samples = self.send(request, 1, 10.0)?;
        let answers = samples.first().is_some_and(|sample| sample.outcome == Outcome::Completed);
        if answers {
            self.found(&what, samples.first(), "answers any path");
            let why = "the target answers 200 to a path that nothing serves";
            self.skip(&target.label("routes"), why);
        }
        Ok(())
    }

    /// Whether a target answers chats. They may take as long as its model takes.
    pub(crate) fn answers_chats(
        &mut self,
        target: &SuiteTarget,
        stream: bool,
    ) -> Result<bool, SuiteError> {
        let how = if stream { ", streamed" } else { "" };
        let what = target.label(&format!("POST /v1/chat/completions{how}"));
        self.answers(&what, Measurement::chat(&what, target, stream, (8, 16)))
    }

    /// Whether a target gives the expected answer to a request. It may take its time.
    pub(crate) fn answers(&mut self, what: &str, request: Measurement) -> Result<bool, SuiteError> {
        self.try_out(what, request, false)
    }

    fn try_out(
        &mut self,
        what: &str,
        request: Measurement,
        must_be_cheap: bool,
    ) -> Result<bool, SuiteError> {
        if self.options.targets.is_empty() {
            return Ok(true);
        }
        let has_key = request.target.key.is_some();
        let mut samples = self.send(request.clone(), 1, 10.0)?;
        if must_be_cheap && samples.first().and_then(too_long).is_some() {
            samples = self.send(request, 1, 10.0)?;
        }
        let refusal = samples
            .first()
            .map_or_else(|| Some("no answer".to_owned()), |sample| refusal(sample, must_be_cheap))
            .map(|why| with_key_in_mind(why, samples.first(), has_key));
        let conclusion = refusal.clone().map_or("answers", |_| "left out");
        self.found(what, samples.first(), conclusion);
        if let Some(why) = &refusal {
            self.miss(what, why);
        }
        Ok(refusal.is_none())
    }

    /// Sends `count` requests, at a rate.
    fn send(
        &mut self,
        request: Measurement,
        count: u64,
        per_s: f64,
    ) -> Result<Vec<Sample>, SuiteError> {
        let length = Nanos::from_secs_f64(count as f64 / per_s);
        let stages = format!("@{per_s}:{length}");
        // With the seed of another probe or of a pass, a cache would know these prompts.
        let seed = FIRST_SEED + u32::try_from(self.tried_routes.rows.len()).unwrap_or(0);
        let plan = request.stages(LoadShape::Rate(per_s), &stages).plan(seed)?;
        self.probe(plan)
    }

    /// Whether the user's gateway limits the rate, and whether it checks the key, by requests that
    /// it has just answered.
    pub(crate) fn probe_limits(&mut self, request: &Measurement) -> Result<(), SuiteError> {
        if self.options.targets.is_empty() {
            return Ok(());
        }
        let samples = self.send(request.clone(), BURST, 1_000.0)?;
        let limited = samples.iter().filter(|sample| sample.status == 429).count();
        let conclusion = if limited > 0 {
            let why = format!(
                "{limited} of {BURST} requests at once got 429: raise the limit of this key"
            );
            self.miss(&request.target.label("rate limit"), &why);
            format!("{limited} got 429")
        } else {
            "no 429".to_owned()
        };
        let what = request.target.label(&format!("{BURST} requests at once"));
        self.found(&what, samples.first(), &conclusion);
        if request.target.key.is_some() {
            let samples = self.send(request.clone().without_key(), 1, 10.0)?;
            let status = samples.first().map(|sample| sample.status);
            let is_checked = matches!(status, Some(401 | 403));
            let conclusion = if is_checked { "key checked" } else { "key ignored" };
            let what = request.target.label("without key");
            self.found(&what, samples.first(), conclusion);
        }
        Ok(())
    }

    fn found(&mut self, what: &str, sample: Option<&Sample>, conclusion: &str) {
        self.log(&format!("probe: {what}: {conclusion}"));
        let (answer, time) = (or_dash(sample, answer), or_dash(sample.and_then(own_time), shown));
        self.tried_routes.row([what, &answer, &time, conclusion]);
    }
}

fn shown(of: Nanos) -> String {
    time(of.as_millis_f64())
}

/// The time of a request without connection set-up.
fn own_time(sample: &Sample) -> Option<Nanos> {
    let timeline = &sample.timeline;
    Some(timeline.finished?.since(timeline.connected.or(timeline.dispatched)?))
}

/// The end of a request in a word or two.
fn answer(sample: &Sample) -> String {
    match sample.outcome {
        _ if sample.status > 0 => sample.status.to_string(),
        Outcome::Failed(class) => class.name().to_owned(),
        Outcome::TimedOut => "none in time".to_owned(),
        _ => "none".to_owned(),
    }
}

/// Why a route must be left out; `None` if it can be loaded.
fn refusal(sample: &Sample, must_be_cheap: bool) -> Option<String> {
    let answer = answer(sample);
    if sample.as_expected() == Some(true) || sample.outcome == Outcome::Completed {
        let took = too_long(sample).filter(|_| must_be_cheap)?;
        return Some(format!("a single request took {}: too costly", shown(took)));
    }
    Some(match sample.outcome {
        Outcome::Rejected(401 | 403) => format!("it answers {answer}: give --key or -H"),
        Outcome::Rejected(404 | 405 | 410) => format!("no such route: {answer}"),
        Outcome::Rejected(429) => "it answers 429 (rate limited) to a single request".to_owned(),
        Outcome::Rejected(_) => format!("it answers {answer}"),
        Outcome::TimedOut => "a single request timed out".to_owned(),
        // The status alone does not say what is wrong.
        Outcome::Failed(class) if (1..400).contains(&sample.status) => {
            format!("failed: {answer}, {}", class.name())
        }
        Outcome::Failed(_) => format!("failed: {answer}"),
        _ => "no answer".to_owned(),
    })
}

/// Who gave a key is not told to give one.
fn with_key_in_mind(why: String, sample: Option<&Sample>, has_key: bool) -> String {
    match sample.map(|sample| sample.status) {
        Some(status @ (401 | 403)) if has_key => {
            format!(
                "the target answers {status} to the key that was given: it may not be for this route"
            )
        }
        _ => why,
    }
}

/// The time of a request that took too long to send thousands of them.
fn too_long(sample: &Sample) -> Option<Nanos> {
    let round_trip = sample.connect.tcp.unwrap_or_default();
    let cheap = CHEAP.max(Nanos::new(round_trip.as_u64().saturating_mul(ROUND_TRIPS)));
    own_time(sample).filter(|took| *took > cheap)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::sample;
    use plimsoll_measure::ErrorClass;

    #[test]
    fn a_route_is_loaded_only_if_it_is_there_open_and_cheap() {
        for (outcome, status, millis, part) in [
            (Outcome::Completed, 200, 5, None),
            (Outcome::Completed, 200, 99, None),
            (Outcome::Completed, 200, 140, Some("took 140ms: too costly")),
            (Outcome::Rejected(404), 404, 1, Some("no such route: 404")),
            (Outcome::Rejected(429), 429, 1, Some("answers 429")),
            (Outcome::Rejected(401), 401, 1, Some("--key")),
            (Outcome::Rejected(418), 418, 1, Some("answers 418")),
            (Outcome::TimedOut, 0, 2_000, Some("timed out")),
            (Outcome::InFlight, 0, 2_000, Some("no answer")),
            (Outcome::Failed(ErrorClass::ServerError), 503, 1, Some("failed: 503")),
            (Outcome::Failed(ErrorClass::Reset), 0, 1, Some("failed: reset")),
            (Outcome::Failed(ErrorClass::RpcError), 200, 1, Some("failed: 200, rpc_error")),
        ] {
            let sample = sample(outcome, status, Nanos::from_millis(millis));
            let found = refusal(&sample, true);
            let fits = match part {
                None => found.is_none(),
                Some(part) => found.as_ref().is_some_and(|why| why.contains(part)),
            };
            assert!(fits, "{part:?}: {found:?}");
        }
    }

    #[test]
    fn a_key_that_was_given_is_not_asked_for() {
        for (status, has_key, part) in [
            (403, false, "give --key"),
            (403, true, "answers 403 to the key that was given"),
            (401, true, "answers 401 to the key that was given"),
            (404, true, "no such route"),
        ] {
            let sample = sample(Outcome::Rejected(status), status, Nanos::from_millis(1));
            let why = refusal(&sample, true).unwrap();
            let why = with_key_in_mind(why, Some(&sample), has_key);
            assert!(why.contains(part), "{status} {has_key}: {why}");
        }
    }

    #[test]
    fn a_model_may_take_its_time_and_so_may_a_long_path() {
        let mut slow = sample(Outcome::Completed, 200, Nanos::from_millis(140));
        assert_eq!(refusal(&slow, false), None);
        slow.connect.tcp = Some(Nanos::from_millis(40));
        assert_eq!(refusal(&slow, true), None);
    }
}
