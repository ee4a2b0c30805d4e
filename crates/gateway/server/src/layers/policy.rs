//! The policy layer: evaluates texts before they are forwarded.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use plimsoll_gateway_inspect::{FileRule, Inspector, Source, Unread, Unreadable};
use plimsoll_gateway_policy::{Action, Actions, EvaluatedChecks, InputKind, Match, Policy};
use ring::digest::{Digest, SHA256, digest};
use serde::Deserialize;
use smart_default::SmartDefault;

use crate::config::file;
use crate::http::error_response::ErrorResponse;
use crate::layers::LlmInfo;
use crate::layers::counters::LayerCounter;
use crate::layers::metrics::Metrics;
use crate::layers::offload::{self, file_rule};
use crate::layers::{Layer, LayerName as _, RequestFacts, Setup};

/// The policy for texts of requests.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct PolicySpec {
    /// File with rules that replace the built-in ones.
    pub rules: Option<PathBuf>,
    /// Whether `POST /api/request` is served.
    pub endpoint: bool,
    /// The action for each category: `allow`, `log`, `warn`, `redact` or `block`.
    #[cfg_attr(test, schemars(with = "crate::assembly::spec::reference::ActionsSchema"))]
    #[cfg_attr(test, serde(skip_serializing))]
    pub actions: Actions,
    /// Treatment of files in requests that are not text.
    pub unreadable: Unread,
    /// Types of files that pass unread; `image/*` matches all images.
    #[default(FileRule::default().pass_types)]
    pub pass_types: Vec<String>,
    /// Treatment of requests with a body to paths that look like an LLM API but have no supported
    /// dialect, on routes without `llm: true`.
    pub unjudged: Unread,
}

/// The rules, and the actions taken on their matches.
#[derive(Debug)]
pub(crate) struct PolicyLayer {
    policy: Arc<Policy>,
    /// SHA-256 of the file with the rules.
    rules_digest: Option<Digest>,
    actions: Actions,
    inspector: Arc<Inspector>,
    /// The injected fault `policy_off`: every text passes unread.
    off: bool,
}

/// Matches by category and action.
static MATCHES: LayerCounter = LayerCounter {
    name: "policy_verdicts",
    help: "Policy matches by category and action",
    labels: &["category", "action"],
    known: &[],
};

/// The built-in rules, compiled once.
///
/// # Errors
/// A message; never in a build that passed its tests.
pub(crate) fn builtin() -> Result<Arc<Policy>, String> {
    static BUILTIN: OnceLock<Arc<Policy>> = OnceLock::new();
    if let Some(policy) = BUILTIN.get() {
        return Ok(Arc::clone(policy));
    }
    let policy = Policy::builtin().map_err(|error| format!("policy: {error}"))?;
    Ok(Arc::clone(BUILTIN.get_or_init(|| Arc::new(policy))))
}

impl Layer for PolicyLayer {
    type Section = PolicySpec;
    const READS_ANSWERS: bool = true;
    const JUDGES_REQUESTS: bool = true;
    const COUNTERS: &'static [&'static LayerCounter] = &[&MATCHES];

    fn new(spec: &PolicySpec, setup: &Setup<'_>) -> Result<Self, String> {
        let mut rules_digest = None;
        let policy = match &spec.rules {
            None => builtin()?,
            Some(path) => {
                let text = file::read_text(path)
                    .map_err(|error| format!("policy: cannot read {}: {error}", path.display()))?;
                rules_digest = Some(digest(&SHA256, text.as_bytes()));
                let policy = Policy::from_yaml(&text);
                Arc::new(policy.map_err(|error| format!("policy: {}: {error}", path.display()))?)
            }
        };
        let files = file_rule(spec.unreadable, &spec.pass_types);
        let inspector = Arc::new(Inspector::new(Arc::clone(&policy), spec.actions, files));
        Ok(Self {
            policy,
            rules_digest,
            actions: spec.actions,
            inspector,
            off: setup.faults.policy_off,
        })
    }

    async fn request(
        &self,
        facts: RequestFacts<'_>,
        document: &Bytes,
        source: Source,
    ) -> Result<Option<Bytes>, ErrorResponse> {
        if self.off {
            return Ok(None);
        }
        let judgement = offload::check_document(&self.inspector, document, source).await?;
        let judgement = judgement.map_err(|error| match error {
            Unreadable::File(_) => ErrorResponse::unsupported_media_type(format!(
                "the policy cannot read the request: {error}"
            ))
            .by(Self::NAME),
            _ => ErrorResponse::bad_request(format!("the body cannot be read: {error}")),
        })?;
        decide(facts.metrics, facts.info, &judgement.matches)?;
        Ok(judgement.document.map(Bytes::from))
    }
}

impl PolicyLayer {
    /// The digest of the file with the rules, if configured.
    pub(crate) const fn rules_digest(&self) -> Option<Digest> {
        self.rules_digest
    }

    /// Evaluates a text, and records the decision in `info` and the metrics. Returns the text,
    /// redacted as the policy requires.
    ///
    /// # Errors
    /// The text must not pass.
    pub(crate) async fn evaluate(
        &self,
        metrics: &Metrics,
        info: &mut Option<Box<LlmInfo>>,
        text: String,
        reading: InputKind,
    ) -> Result<String, ErrorResponse> {
        if self.off {
            return Ok(text);
        }
        let (policy, actions) = (Arc::clone(&self.policy), self.actions);
        let (matches, text) = offload::run(text.len(), move || {
            let decision = policy.scan(&text, reading, &actions);
            (decision.matches, decision.text.into_owned())
        })
        .await?;
        decide(metrics, info, &matches)?;
        Ok(text)
    }

    /// The policies and checks that are evaluated.
    pub(crate) fn evaluated(&self) -> EvaluatedChecks<'_> {
        self.policy.evaluated()
    }
}

/// Records the matches in a request. The error names the rule and omits the text.
fn decide(
    metrics: &Metrics,
    info: &mut Option<Box<LlmInfo>>,
    matches: &[Match],
) -> Result<(), ErrorResponse> {
    if matches.is_empty() {
        return Ok(());
    }
    for found in matches {
        metrics.count(&MATCHES, &[found.category.into(), found.action.into()]);
    }
    record(info.get_or_insert_default(), matches);
    match matches.iter().find(|found| found.action == Action::Block) {
        None => Ok(()),
        Some(cause) => {
            let (category, rule) = (cause.category, &cause.rule_id);
            let reason = format!("blocked by policy: {category} ({rule})");
            Err(ErrorResponse::policy_blocked(reason).by(PolicyLayer::NAME))
        }
    }
}

/// Adds matches to the request's record, and keeps the most severe action.
fn record(info: &mut LlmInfo, matches: &[Match]) {
    let action = matches.iter().map(|found| found.action).max().unwrap_or_default();
    info.policy_decision = info.policy_decision.max(Some(action));
    for found in matches {
        if !info.rules.iter().any(|known| **known == *found.rule_id) {
            info.rules.push(found.rule_id.to_string());
        }
    }
}
