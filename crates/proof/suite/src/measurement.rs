//! A measurement to be made: its requests, its target and its load.

use std::path::Path;

use plimsoll_measure::Nanos;
use plimsoll_plan::Plan;
use plimsoll_profile::{EnvVars, Overrides, Profile, Purpose, load};
use serde_json::{Map, Value, json};

use crate::error::SuiteError;
use crate::figures::TimedResponses;
use crate::result::ERROR_GATE;
use crate::target::{DIRECT, SuiteTarget};

/// The length of a load: the warm-up, which is recorded separately, and the measured part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    pub(crate) warmup: Nanos,
    pub(crate) measured: Nanos,
}

impl Length {
    pub(crate) const fn new(warmup: Nanos, measured: Nanos) -> Self {
        Self { warmup, measured }
    }

    /// Stages of one load shape, in the notation of profiles.
    fn stages(self, shape: &str) -> String {
        let measured = format!("{shape}:{}", self.measured);
        match self.warmup {
            Nanos::ZERO => measured,
            warmup => format!("w{shape}:{warmup},{measured}"),
        }
    }
}

/// The load: virtual users, or arrivals per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum LoadShape {
    /// Clients that each wait for their response.
    Clients(u32),
    /// Requests per second, evenly spaced, independent of the target.
    Rate(f64),
}

impl LoadShape {
    fn notation(self) -> String {
        match self {
            Self::Clients(clients) => clients.to_string(),
            Self::Rate(rate) => format!("@{rate}"),
        }
    }
}

/// A measurement to be made.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    /// Its name in the report.
    pub(crate) label: String,
    pub(crate) target: SuiteTarget,
    pub(crate) shape: LoadShape,
    /// The highest share of requests without an expected answer with which figures may be used.
    pub(crate) error_gate: f64,
    /// Whether it looks for the highest load.
    pub(crate) explores: bool,
    /// Whether errors are expected, and not a fault of the gateway.
    pub(crate) errors_expected: bool,
    /// The responses whose times are shown.
    pub(crate) responses: TimedResponses,
    profile: Map<String, Value>,
    /// A built-in profile, in place of `profile`.
    builtin: Option<String>,
    /// Overrides of the profile, such as the headers of the user's target.
    overrides: Overrides,
}

impl Measurement {
    /// A measurement of a target; `request` are members of a profile.
    fn new(label: &str, target: &SuiteTarget, request: Value) -> Self {
        let mut profile = match request {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        profile.insert("name".to_owned(), "suite".into());
        profile.insert("target".to_owned(), literal(&target.base).into());
        profile.entry("timeout").or_insert_with(|| "10s".into());
        profile.entry("drain").or_insert_with(|| "5s".into());
        if let Some(key) = &target.key {
            profile.insert("key".to_owned(), literal(key).into());
        }
        let mut overrides = Overrides {
            headers: target.headers.clone(),
            sets: Vec::from_iter(target.http2.then(|| HTTP2.to_owned())),
            ..Overrides::default()
        };
        if target.insecure {
            overrides = overrides.with("insecure", "tls.insecure", "true");
        }
        let (label, target) = (label.to_owned(), target.clone());
        Self {
            label,
            target,
            shape: LoadShape::Clients(1),
            error_gate: ERROR_GATE,
            explores: false,
            errors_expected: false,
            responses: TimedResponses::Completed,
            profile,
            builtin: None,
            overrides,
        }
    }

    /// `GET` of a path relative to the target's URL.
    pub(crate) fn get(label: &str, target: &SuiteTarget, path: &str) -> Self {
        let path = format!("{}{path}", target.prefix());
        let request = json!({"protocol": "http", "http": {"method": "GET", "path": path}});
        Self::new(label, target, request)
    }

    /// `POST` of a JSON document to a path relative to the target's URL.
    pub(crate) fn post(label: &str, target: &SuiteTarget, path: &str, body: &Value) -> Self {
        let path = format!("{}{path}", target.prefix());
        let http = json!({
            "method": "POST",
            "path": path,
            "headers": {"content-type": "application/json"},
            "body": literal(&body.to_string()),
        });
        Self::new(label, target, json!({"protocol": "http", "http": http}))
    }

    /// `GET` of the target's URL itself: for comparisons of targets with different paths.
    pub(crate) fn get_base(label: &str, target: &SuiteTarget) -> Self {
        Self::new(label, target, json!({"protocol": "http", "http": {"method": "GET"}}))
    }

    /// Chat completions with about `tokens.0` input tokens, and at most `tokens.1` output tokens.
    pub(crate) fn chat(
        label: &str,
        target: &SuiteTarget,
        stream: bool,
        tokens: (u32, u32),
    ) -> Self {
        let request = json!({
            "protocol": "openai-chat",
            "model": target.model,
            "stream": stream,
            "content": {"mode": "sized", "approx_input_tokens": tokens.0},
            "max_tokens": tokens.1,
            "cache_mode": "bust",
            "key": literal(key(target)),
        });
        Self::new(label, target, request)
    }

    /// Scenarios of any protocols, in shares by their weights.
    pub(crate) fn scenarios(label: &str, target: &SuiteTarget, scenarios: &[Value]) -> Self {
        let key = literal(key(target));
        let request = json!({"model": target.model, "key": key, "scenarios": scenarios});
        Self::new(label, target, request)
    }

    /// A built-in profile with another target; `sets` are settings of it, `PATH=VALUE`.
    pub(crate) fn builtin(label: &str, target: &SuiteTarget, name: &str, sets: &[&str]) -> Self {
        let mut measurement = Self::new(label, target, json!({}));
        measurement.builtin = Some(name.to_owned());
        // The key is in place of the profile's placeholder.
        let overrides = measurement.overrides.with("target", "target", target.base.as_str());
        measurement.overrides = overrides.with("key", "key", key(target));
        let models = std::iter::once(format!("model={}", target.model));
        let sets = models.chain(sets.iter().map(|&set| set.to_owned()));
        measurement.overrides.sets.extend(sets);
        measurement
    }

    /// The built-in policy profile `name`. Its requests have a path of their own, relative to the
    /// target's URL.
    pub(crate) fn policy(label: &str, target: &SuiteTarget, name: &str, sets: &[&str]) -> Self {
        let mut measurement = Self::builtin(label, target, name, sets);
        let path = format!("http.path={}/api/request", target.prefix());
        let scenarios: &[&str] =
            if name == "policy-llm" { &["llm-explain", "llm-summarise", "llm-draft"] } else { &[] };
        let own = scenarios.iter().map(|scenario| format!("scenarios.{scenario}.{path}"));
        measurement.overrides.sets.extend(own);
        measurement.overrides.sets.push(path);
        // Refusals are among the expected answers.
        Self { responses: TimedResponses::All, ..measurement }
    }

    /// The stages, in the notation of profiles; for a load of several shapes.
    pub(crate) fn stages(mut self, shape: LoadShape, stages: &str) -> Self {
        self.shape = shape;
        if self.builtin.is_some() {
            self.overrides = self.overrides.with("stages", "stages", stages);
        }
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

    /// A step of a search for the highest load: a step that the generator cannot send ends the
    /// search.
    pub(crate) fn explores(self) -> Self {
        Self { explores: true, ..self }
    }

    /// With a number of threads of the load.
    pub(crate) fn threads(mut self, threads: Option<u16>) -> Self {
        self.overrides.sets.extend(threads.map(|threads| format!("{THREADS}{threads}")));
        self
    }

    /// Whether it has one.
    pub(crate) fn has_threads(&self) -> bool {
        self.overrides.sets.iter().any(|set| set.starts_with(THREADS))
    }

    /// With a number of clients, for a length of time.
    pub(crate) fn clients(self, clients: u32, length: Length) -> Self {
        let shape = LoadShape::Clients(clients);
        self.stages(shape, &length.stages(&shape.notation()))
    }

    /// With a number of requests per second, for a length of time.
    pub(crate) fn rate(self, rate: f64, length: Length) -> Self {
        let shape = LoadShape::Rate(rate);
        self.stages(shape, &length.stages(&shape.notation()))
    }

    /// The plan of a pass. Each pass has different prompts, or the second would find the answers of
    /// the first in a cache; the same pass of several measurements has the same prompts.
    ///
    /// # Errors
    /// If the target's address or a header cannot be used.
    pub(crate) fn plan(&self, pass: u32) -> Result<Plan, SuiteError> {
        let overrides = self.overrides.clone().with("seed", "seed", (pass + 1).to_string());
        let mut plan = self.load(self.profile.clone(), &overrides, Purpose::Run)?;
        if !has_key(&self.target) {
            plan.targets.iter_mut().for_each(|target| target.key = None);
        }
        Ok(plan)
    }

    fn load(
        &self,
        profile: Map<String, Value>,
        overrides: &Overrides,
        purpose: Purpose,
    ) -> Result<Plan, SuiteError> {
        let profile = match self.builtin.as_deref() {
            Some(name) => Profile::open(name)?,
            None => {
                Profile::new(Path::new("suite"), Value::Object(profile).to_string().into_bytes())
            }
        };
        // Environment variables are meant for the user's profiles.
        Ok(load(&profile, &EnvVars::default(), overrides, purpose)?)
    }

    /// The plan of a comparison: these requests to each target, the first of which is the
    /// reference. Each target gets only its own key and headers.
    ///
    /// # Errors
    /// If an address or a header cannot be used.
    pub(crate) fn comparison_plan(
        &self,
        targets: &[(String, SuiteTarget)],
        settings: &[&str],
    ) -> Result<Plan, SuiteError> {
        let keys = self.profile.contains_key("key") || self.overrides.get("key").is_some();
        let listed = targets.iter().map(|(name, target)| {
            let mut own = json!({
                "name": name, "url": target.base, "model": target.model,
                "role": if name == DIRECT { DIRECT } else { "gateway" },
                "headers": headers(target),
            });
            if keys {
                own["key"] = key(target).into();
            }
            own
        });
        let listed = Value::Array(listed.collect()).to_string();
        let mut profile = self.profile.clone();
        profile.remove("target");
        let mut overrides = Overrides { headers: Vec::new(), ..self.overrides.clone() };
        overrides.keys.retain(|own| own.key != "target");
        overrides = overrides.with("target", "targets", listed).with("seed", "seed", "1");
        overrides.sets.extend(settings.iter().map(|&set| set.to_owned()));
        let mut plan = self.load(profile, &overrides, Purpose::Versus)?;
        for planned in &mut plan.targets {
            let own = targets.iter().find(|(name, _)| planned.name == *name);
            if !own.is_some_and(|(_, target)| has_key(target)) {
                planned.key = None;
            }
        }
        Ok(plan)
    }
}

/// The headers of a target as a profile has them.
fn headers(target: &SuiteTarget) -> Map<String, Value> {
    target
        .headers
        .iter()
        .filter_map(|header| {
            let (name, value) = header.split_once(':')?;
            Some((name.trim().to_owned(), value.trim().into()))
        })
        .collect()
}

/// Whether requests include a key: the user's gateway gets only keys from the user.
const fn has_key(target: &SuiteTarget) -> bool {
    target.key.is_some() || !target.external
}

const THREADS: &str = "workers=";
const HTTP2: &str = "http_version=http2";

/// The key of LLM requests. The suite's own gateways that check keys accept this one, and all get
/// the same bytes; the user's gateway gets only keys from the user.
fn key(target: &SuiteTarget) -> &str {
    target.key.as_deref().unwrap_or("any")
}

/// Escapes `$`, which has a meaning in profiles.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use plimsoll_plan::TargetRole;

    use super::*;
    use crate::fixtures::plan_path;

    fn target() -> SuiteTarget {
        let model = "mock-fast".to_owned();
        SuiteTarget { base: "http://127.0.0.1:1".to_owned(), model, ..SuiteTarget::default() }
    }

    #[test]
    fn measurements_are_plans_that_can_be_carried_out() {
        let length = Length::new(Nanos::from_millis(500), Nanos::from_secs(2));
        let measurements = [
            Measurement::get("a", &target(), "/health?x=$y").clients(64, length),
            Measurement::chat("b", &target(), true, (128, 64)).rate(12.5, length),
            Measurement::get("c", &target(), "/").header("x-tenant-id", "a$b").clients(1, length),
        ];
        let stages: Vec<_> = measurements
            .iter()
            .map(|measurement| measurement.plan(0).unwrap().stages.0.len())
            .collect();
        assert_eq!(stages, [2, 2, 2]);
        let builtin =
            Measurement::builtin("d", &target(), "perf-128-stream", &[]).rate(5.0, length);
        let plan = builtin.plan(0).unwrap();
        assert_eq!(plan.stages.0.len(), 2);
        assert_ne!(plan.seed, builtin.plan(1).unwrap().seed);
        assert_eq!(plan.targets[0].url.to_string(), "http://127.0.0.1:1");
    }

    #[test]
    fn the_load_has_as_many_threads_as_asked_for_whatever_it_is() {
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        for measurement in [
            Measurement::get("a", &target(), "/health"),
            Measurement::builtin("b", &target(), "perf-128-stream", &[]),
            Measurement::policy("c", &target(), "policy", &[]),
        ] {
            assert!(!measurement.has_threads());
            let measurement = measurement.threads(Some(3)).clients(8, length);
            assert!(measurement.has_threads());
            assert_eq!(
                measurement.plan(0).unwrap().limits.workers,
                Some(3),
                "{}",
                measurement.label
            );
        }
    }

    #[test]
    fn no_warm_up_is_no_stage() {
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        assert_eq!(length.stages("@50"), "@50:1s");
        let length = Length::new(Nanos::from_millis(250), Nanos::from_secs(1));
        assert_eq!(length.stages("8"), "w8:250ms,8:1s");
    }

    #[test]
    fn every_path_comes_after_that_of_the_target() {
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        let base = "http://127.0.0.1:1/team".to_owned();
        let target = SuiteTarget { base, http2: true, ..target() };
        for (measurement, path) in [
            (Measurement::get("a", &target, "/health"), "/team/health"),
            (Measurement::policy("b", &target, "policy", &[]), "/team/api/request"),
            (Measurement::policy("c", &target, "policy-llm", &[]), "/team/api/request"),
        ] {
            let plan = measurement.clients(1, length).plan(0).unwrap();
            assert_eq!(plan_path(&plan).as_deref(), Some(path));
            assert_eq!(plan.http.version, plimsoll_plan::HttpVersion::Http2);
        }
    }

    #[test]
    fn the_users_gateway_gets_no_key_that_the_user_did_not_give() {
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(1));
        let key = Some("of the user".to_owned());
        let external = SuiteTarget { external: true, ..target() };
        for (target, own, with_key) in [
            (target(), "the suite's", true),
            (external.clone(), "without a key", false),
            (SuiteTarget { key, ..external }, "with a key", true),
        ] {
            for measurement in [
                Measurement::chat("b", &target, true, (8, 8)),
                Measurement::builtin("c", &target, "perf-550-nonstream", &[]),
                Measurement::policy("d", &target, "policy", &[]),
            ] {
                let measurement = measurement.clients(1, length);
                assert_eq!(plan_has_key(&measurement.plan(0).unwrap()), with_key, "{own}");
            }
        }
    }

    fn plan_has_key(plan: &Plan) -> bool {
        plan.targets[0].key.is_some()
    }

    fn at(port: u16, more: SuiteTarget) -> SuiteTarget {
        let (base, model) = (format!("http://127.0.0.1:{port}"), "m".to_owned());
        SuiteTarget { base, model, ..more }
    }

    #[test]
    fn every_target_has_its_own_address_key_and_headers_and_none_is_loaded_twice() {
        let user = SuiteTarget { external: true, ..SuiteTarget::default() };
        let keyed = SuiteTarget {
            key: Some("of $a".to_owned()),
            headers: vec!["x-team: t".to_owned()],
            ..user.clone()
        };
        let targets = vec![("direct".to_owned(), at(1, user)), ("a".to_owned(), at(2, keyed))];
        let length = Length::new(Nanos::from_millis(300), Nanos::from_secs(9));
        let chat = Measurement::chat("c", &targets[0].1, false, (8, 8));
        let builtin = Measurement::builtin("c", &targets[0].1, "perf-550-nonstream", &[]);
        for request in [chat, builtin] {
            let request = request.rate(100.0, length);
            let plan = request.comparison_plan(&targets, &["versus.alone=0s"]).unwrap();
            let names: Vec<_> =
                plan.targets.iter().map(|target| (&*target.name, target.role)).collect();
            let expected = [("direct", TargetRole::Reference), ("a", TargetRole::Candidate)];
            assert_eq!(names, expected);
            let keys: Vec<_> = plan.targets.iter().map(|target| target.key.is_some()).collect();
            assert_eq!(keys, [false, true], "a key goes to nobody else");
            let headers: Vec<_> = plan.targets.iter().map(|target| target.headers.len()).collect();
            assert_eq!(headers[1], headers[0] + 1, "{headers:?}");
            assert_eq!(plan.targets[1].url.to_string(), "http://127.0.0.1:2");
            assert_eq!(plan.versus.unwrap().alone, Nanos::ZERO);
        }
    }

    #[test]
    fn a_plain_get_goes_to_the_path_of_each_address() {
        let of = |port, path: &str| at(port, SuiteTarget::default()).below(path);
        let targets =
            vec![("direct".to_owned(), of(1, "/health")), ("a".to_owned(), of(2, "/smoke"))];
        let length = Length::new(Nanos::ZERO, Nanos::from_secs(9));
        let request = Measurement::get_base("g", &targets[0].1).rate(100.0, length);
        let plan = request.comparison_plan(&targets, &[]).unwrap();
        let urls: Vec<_> = plan.targets.iter().map(|target| target.url.to_string()).collect();
        assert!(urls[0].ends_with("/health") && urls[1].ends_with("/smoke"), "{urls:?}");
        assert_eq!(plan_path(&plan).as_deref(), Some(""));
    }
}
