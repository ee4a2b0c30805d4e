//! One measurement to be made: what is sent where, and how much of it.

use std::path::Path;

use plimsoll_measure::Nanos;
use plimsoll_profile::{Environment, Overrides, Plan, Profile, Purpose, load};
use serde_json::{Map, Value, json};

use crate::error::SuiteError;
use crate::subject::Subject;

/// How long a load lasts: warm-up, which is recorded apart, and the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) warmup: Nanos,
    pub(crate) measured: Nanos,
}

impl Length {
    pub(crate) const fn new(warmup: Nanos, measured: Nanos) -> Self {
        Self { warmup, measured }
    }

    /// Stages of one shape, in the notation of profiles.
    fn stages(self, shape: &str) -> String {
        let measured = format!("{shape}:{}", self.measured);
        match self.warmup {
            Nanos::ZERO => measured,
            warmup => format!("w{shape}:{warmup},{measured}"),
        }
    }
}

/// How much: virtual users, or arrivals per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Amount {
    /// Clients that each wait for their answer.
    Clients(u32),
    /// Requests per second, evenly spaced, whatever the target does.
    Rate(f64),
}

impl Amount {
    fn shape(self) -> String {
        match self {
            Self::Clients(clients) => clients.to_string(),
            Self::Rate(rate) => format!("@{rate}"),
        }
    }
}

/// One measurement to be made.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// What it is called in the report.
    pub(crate) label: String,
    pub(crate) subject: Subject,
    pub(crate) amount: Amount,
    profile: Map<String, Value>,
    /// A built-in profile in its place.
    builtin: Option<String>,
    /// Files and headers of the user's, for a target of theirs.
    overrides: Overrides,
}

impl Job {
    /// A job against a subject; `request` are members of a profile.
    fn new(label: &str, subject: &Subject, request: Value) -> Self {
        let mut profile = match request {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        profile.insert("name".to_owned(), "suite".into());
        profile.insert("target".to_owned(), literal(&subject.base).into());
        profile.entry("timeout").or_insert_with(|| "10s".into());
        profile.entry("drain").or_insert_with(|| "5s".into());
        if let Some(key) = &subject.key {
            profile.insert("key".to_owned(), literal(key).into());
        }
        let overrides = Overrides {
            headers: subject.headers.clone(),
            insecure: subject.insecure,
            ..Overrides::default()
        };
        let (label, subject) = (label.to_owned(), subject.clone());
        Self { label, subject, amount: Amount::Clients(1), profile, builtin: None, overrides }
    }

    /// `GET` of a path.
    pub(crate) fn get(label: &str, subject: &Subject, path: &str) -> Self {
        let request = json!({"protocol": "http", "http": {"method": "GET", "path": path}});
        Self::new(label, subject, request)
    }

    /// Chat completions with about so many tokens in, and at most so many out.
    pub(crate) fn chat(label: &str, subject: &Subject, stream: bool, tokens: (u32, u32)) -> Self {
        let request = json!({
            "protocol": "openai-chat",
            "model": subject.model,
            "stream": stream,
            "content": {"mode": "sized", "approx_input_tokens": tokens.0},
            "max_tokens": tokens.1,
            "cache_mode": "bust",
        });
        let job = Self::new(label, subject, request);
        if subject.key.is_some() { job } else { job.with("key", "any") }
    }

    /// A built-in profile, aimed at a subject; `sets` are settings of it, `PATH=VALUE`.
    pub(crate) fn builtin(label: &str, subject: &Subject, name: &str, sets: &[&str]) -> Self {
        let mut job = Self::new(label, subject, json!({}));
        job.builtin = Some(name.to_owned());
        job.overrides.target = Some(subject.base.clone());
        job.overrides.key = Some(subject.key.clone().unwrap_or_else(|| "any".to_owned()));
        let models = std::iter::once(format!("model={}", subject.model));
        job.overrides.sets = models.chain(sets.iter().map(|&set| set.to_owned())).collect();
        job
    }

    /// The stages, in the notation of profiles; for a load of several shapes.
    pub(crate) fn stages(mut self, amount: Amount, stages: &str) -> Self {
        self.amount = amount;
        self.overrides.stages = self.builtin.as_ref().map(|_| stages.to_owned());
        self.with("stages", stages)
    }

    /// A member of the profile.
    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.profile.insert(key.to_owned(), value.into());
        self
    }

    /// A header of every request.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        let headers = self.profile.entry("headers").or_insert_with(|| json!({}));
        if let Some(headers) = headers.as_object_mut() {
            headers.insert(name.to_owned(), literal(value).into());
        }
        self
    }

    /// So many clients, for so long.
    pub(crate) fn clients(self, clients: u32, length: Length) -> Self {
        let amount = Amount::Clients(clients);
        self.stages(amount, &length.stages(&amount.shape()))
    }

    /// So many requests per second, for so long.
    pub(crate) fn rate(self, rate: f64, length: Length) -> Self {
        let amount = Amount::Rate(rate);
        self.stages(amount, &length.stages(&amount.shape()))
    }

    /// The plan of a pass. Each pass has prompts of its own, or the second would find the first one's answers in a
    /// cache; and the same pass of several jobs has the same.
    ///
    /// # Errors
    /// Where the target's address or a header cannot be used.
    pub(crate) fn plan(&self, pass: u32) -> Result<Plan, SuiteError> {
        let own = || {
            let text = Value::Object(self.profile.clone()).to_string().into_bytes();
            Ok(Profile::new(Path::new("suite"), text))
        };
        let profile = self.builtin.as_deref().map_or_else(own, Profile::open)?;
        let seed = Some((pass + 1).to_string());
        let overrides = Overrides { seed, ..self.overrides.clone() };
        // Variables are meant for the user's own profiles.
        Ok(load(&profile, &Environment::default(), &overrides, Purpose::Run)?)
    }
}

/// A text as it is: in profiles `$` has a meaning.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject() -> Subject {
        let model = "mock-fast".to_owned();
        Subject { base: "http://127.0.0.1:1".to_owned(), model, ..Subject::default() }
    }

    #[test]
    fn jobs_are_plans_that_can_be_carried_out() {
        let length = Length::new(Nanos::from_millis(500), Nanos::from_secs(2));
        let jobs = [
            Job::get("a", &subject(), "/health?x=$y").clients(64, length),
            Job::chat("b", &subject(), true, (128, 64)).rate(12.5, length),
            Job::get("c", &subject(), "/").header("x-tenant-id", "a$b").clients(1, length),
        ];
        let stages: Vec<_> = jobs.iter().map(|job| job.plan(0).unwrap().stages.0.len()).collect();
        assert_eq!(stages, [2, 2, 2]);
        let builtin = Job::builtin("d", &subject(), "perf-128-stream", &[]).rate(5.0, length);
        let plan = builtin.plan(0).unwrap();
        assert_eq!(plan.stages.0.len(), 2);
        assert_ne!(plan.seed, builtin.plan(1).unwrap().seed);
        assert_eq!(plan.targets[0].url.to_string(), "http://127.0.0.1:1");
    }

    #[test]
    fn no_warm_up_is_no_stage() {
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        assert_eq!(length.stages("@50"), "@50:1s");
        let length = Length::new(Nanos::from_millis(250), Nanos::from_secs(1));
        assert_eq!(length.stages("8"), "w8:250ms,8:1s");
    }
}
