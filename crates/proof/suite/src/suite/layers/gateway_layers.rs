//! Layer 1, the gateway: bare, each layer alone, all; and the full stack through an upstream.
//!
//! What a layer adds comes from the same requests to the gateway with it and without.

use plimsoll_metrics::Bias;
use plimsoll_report::format::{limited_rate, percent};

use super::super::{CPU_SHORT, PAIRS_PER_S, TIMES_SHORT, comparison_length, length, passes};
use super::{KEY, TENANT};
use crate::comparison_plan::{ComparisonPlan, slug};
use crate::comparison_result::ComparisonResult;
use crate::error::SuiteError;
use crate::finding::{self, Finding};
use crate::measurement::{Length, Measurement};
use crate::options::SuiteOptions;
use crate::ratio::Ratio;
use crate::result::MeasurementResult;
use crate::runner::SuiteRunner;
use crate::target::{DIRECT, Gateway, SuiteTarget};

/// Layer 1, measured.
#[derive(Default)]
pub(super) struct GatewayLayers {
    /// `GET /` of the user's gateway, whose layers cannot be switched: there is nothing to compare.
    pub(super) as_it_is: Option<MeasurementResult>,
    /// `GET /`, which the gateway answers itself: bare, each layer, all.
    pub(super) alone: Vec<MeasurementResult>,
    /// A chat of 128 tokens through the gateway: bare, all layers with the policy.
    pub(super) chats: Vec<MeasurementResult>,
    /// What each layer adds to `GET /`.
    pub(super) added: Option<ComparisonResult>,
    /// What all add to such a chat.
    pub(super) added_to_chats: Option<ComparisonResult>,
}

/// The name of the variant with all layers.
pub(super) const ALL_LAYERS: &str = "all seven";
/// That of the chats.
pub(super) const ALL_CHAT: &str = "chat of 128 tokens, all layers and the policy scan";
/// Requests per second and target that compare `GET`s: CPU time is read in ticks of 10 ms.
const GETS_PER_S: f64 = 200.0;

/// The full stack, measured; the last result is the upstream without the gateway.
#[derive(Default)]
pub(super) struct FullStack {
    pub(super) results: Vec<MeasurementResult>,
    /// What the gateway adds to the upstream.
    pub(super) added: Option<ComparisonResult>,
}

/// Turns off every section that the preset turns on.
const BARE: [&str; 9] = [
    "request_id=null",
    "metrics=null",
    "auth=null",
    "tenant=null",
    "rate_limits=[]",
    "scrub=null",
    "cache=null",
    "budgets=null",
    "routes.0.consumers=[]",
];
const FREE_SMOKE: &str = "routes.1.consumers=[]";
pub(super) const AUTH: &str =
    "auth={header: apikey, keys: [{name: load, key: load-test-key, tenant: retail}]}";
const LIMIT: &str =
    "rate_limits=[{per: tenant, requests: 1000000000, window: 60s, algorithm: sliding}]";
const LIMITED: [&str; 2] = ["tenant={header: x-tenant-id, anonymous: true}", LIMIT];
const RESTRICTED: &str = "routes.0.consumers=[load]";
const POLICY: &str = "policy={}";

/// The settings of the bare gateway, and some more.
pub(super) fn bare_with(more: &[&str]) -> Vec<String> {
    BARE.iter().chain([&FREE_SMOKE]).chain(more).map(|&set| set.to_owned()).collect()
}

/// The setting that writes the request log to a file in the suite's folder.
pub(super) fn audit(runner: &SuiteRunner<'_>, name: &str) -> String {
    let path = runner.options.folder.join(name);
    format!("audit={}", serde_json::json!({"path": path}))
}

/// The seven layers of the published benchmark: name, and settings of the gateway.
fn features(runner: &SuiteRunner<'_>) -> Vec<(&'static str, Vec<String>)> {
    let log = audit(runner, "request-log.jsonl");
    let all_log = audit(runner, "request-log-all.jsonl");
    let all =
        [LIMITED[0], LIMIT, AUTH, RESTRICTED, "metrics={}", "request_id={}", "scrub={}", &all_log];
    vec![
        ("bare", bare_with(&[])),
        ("tenant rate limit", bare_with(&LIMITED)),
        ("key auth", bare_with(&[AUTH])),
        ("request log", bare_with(&[&log])),
        ("Prometheus", bare_with(&["metrics={}"])),
        ("request id", bare_with(&["request_id={}"])),
        ("key auth + consumer restriction", bare_with(&[AUTH, RESTRICTED])),
        ("response PII scrub", bare_with(&["scrub={}"])),
        (ALL_LAYERS, bare_with(&all)),
    ]
}

pub(super) fn measure(runner: &mut SuiteRunner<'_>) -> Result<GatewayLayers, SuiteError> {
    let clients = runner.options.clients.unwrap_or(200);
    if let Some(target) = runner.target() {
        runner.section = "What each layer adds";
        runner.skip(
            "bare against all layers, and each layer alone",
            "the suite cannot switch the layers of a target; it measures the target as it is",
        );
        let request = get("target as it is, GET /", &target, "/");
        runner.section = "The target as it is";
        if !runner.serves(&target, "/")? {
            return Ok(GatewayLayers::default());
        }
        runner.probe_limits(&request)?;
        let measurement = request.clients(clients, length(runner.options, 30));
        let results = runner.measure(&[measurement], passes(runner.options, 3, 2));
        return Ok(GatewayLayers {
            as_it_is: results.into_iter().next(),
            ..GatewayLayers::default()
        });
    }
    let (alone, added) = alone(runner, clients)?;
    let (chats, added_to_chats) = chats(runner)?;
    Ok(GatewayLayers { as_it_is: None, alone, chats, added, added_to_chats })
}

/// Results of variants by themselves, and what each adds to the first.
type Variants = (Vec<MeasurementResult>, Option<ComparisonResult>);

/// All variants run at once. First they are loaded by themselves, in turn; then beside each other.
fn alone(runner: &mut SuiteRunner<'_>, clients: u32) -> Result<Variants, SuiteError> {
    let mut gateways: Vec<(&str, Gateway)> = Vec::new();
    for (name, sets) in features(runner) {
        gateways.push((name, runner.gateway("layers", &sets, None)?));
    }
    let length = length(runner.options, 30);
    let measurements: Vec<_> = gateways
        .iter()
        .map(|(name, gateway)| get(name, &gateway.target, "/").clients(clients, length))
        .collect();
    let results = runner.measure(&measurements, passes(runner.options, 3, 1));
    let targets: Vec<_> =
        gateways.iter().map(|(name, gateway)| (slug(name), gateway.target.below("/"))).collect();
    let request = with_identity(Measurement::get_base("each layer", &targets[0].1));
    let request = request.rate(GETS_PER_S, comparison_length(runner.options, 60, CPU_SHORT));
    let comparison = ComparisonPlan::new("each layer", request, targets).of_variants();
    let added = runner.compare(&comparison.short(runner.options.short));
    Ok((results, Some(added)))
}

/// Chats of 128 tokens to the mock: bare, and with every layer and the policy scan.
fn chats(runner: &mut SuiteRunner<'_>) -> Result<Variants, SuiteError> {
    if runner.is_interrupted() {
        return Ok(Variants::default());
    }
    let provider = runner.provider(&[])?;
    let log = audit(runner, "request-log-chat.jsonl");
    let all = [
        LIMITED[0],
        LIMIT,
        AUTH,
        "metrics={}",
        "request_id={}",
        "scrub={}",
        POLICY,
        "budgets={default: 1000000000000}",
        &log,
    ];
    let bare = runner.gateway("layers", &bare_with(&[]), Some(&provider))?;
    let full = runner.gateway("layers", &bare_with(&all), Some(&provider))?;
    let length = length(runner.options, 30);
    let measurements = [
        chat_with_identity("chat of 128 tokens, bare", &bare.target).clients(64, length),
        chat_with_identity(ALL_CHAT, &full.target).clients(64, length),
    ];
    let results = runner.measure(&measurements, passes(runner.options, 3, 1));
    let label = "chat of 128 tokens";
    let request = chat_with_identity(label, &bare.target)
        .rate(PAIRS_PER_S, comparison_length(runner.options, 60, CPU_SHORT));
    let targets = vec![("bare".to_owned(), bare.target), (slug(ALL_CHAT), full.target)];
    let comparison = ComparisonPlan::new(label, request, targets).of_variants();
    let added = runner.compare(&comparison.short(runner.options.short));
    Ok((results, Some(added)))
}

fn chat_with_identity(name: &str, target: &SuiteTarget) -> Measurement {
    with_identity(Measurement::chat(name, target, false, (128, 128)))
}

/// `GET` with the consumer's key and tenant.
fn get(label: &str, target: &SuiteTarget, path: &str) -> Measurement {
    with_identity(Measurement::get(label, target, path))
}

/// Adds the consumer's key and tenant to every request to a gateway of the suite.
pub(super) fn with_identity(measurement: Measurement) -> Measurement {
    let headers = identity(&measurement.target);
    headers.iter().fold(measurement, |measurement, (name, value)| measurement.header(name, value))
}

/// The headers of the consumer's key and tenant, which only a gateway of the suite knows.
pub(super) const fn identity(target: &SuiteTarget) -> &'static [(&'static str, &'static str)] {
    if target.external { &[] } else { &[KEY, TENANT] }
}

/// The path through the gateway, and what it asks the upstream for.
const SMOKE: &str = "/smoke/get";
const UPSTREAM: &str = "/get";

/// Few and many connections of the full stack.
fn connections(options: &SuiteOptions) -> (u32, u32) {
    let few = options.clients.unwrap_or(200);
    (few, few.saturating_mul(5) / 2)
}

/// Measures requests through the gateway to an upstream, with and without keys, with few and many
/// connections, and the upstream itself.
pub(super) fn stack(runner: &mut SuiteRunner<'_>) -> Result<FullStack, SuiteError> {
    runner.section = "Full stack (gateway -> upstream -> response)";
    if let Some(target) = runner.target() {
        return stack_of_target(runner, &target);
    }
    if runner.is_interrupted() {
        return Ok(FullStack::default());
    }
    let provider = runner.provider(&[])?;
    let plain = runner.gateway("layers", &bare_with(&["metrics={}"]), Some(&provider))?;
    let keys = runner.gateway("layers", &bare_with(&["metrics={}", AUTH]), Some(&provider))?;
    let scrub = bare_with(&["metrics={}", "scrub={}"]);
    let scrub = runner.gateway("layers", &scrub, Some(&provider))?;
    let length: Length = length(runner.options, 30);
    let (few, many) = connections(runner.options);
    let key_auth = format!("gateway -> upstream + key auth ({few})");
    let [through, crowded, direct] = ways(&plain.target, &provider.target(), (few, many), length);
    let measurements =
        [through, get(&key_auth, &keys.target, SMOKE).clients(few, length), crowded, direct];
    let results = runner.measure(&measurements, passes(runner.options, 3, 2));
    let targets = vec![
        (DIRECT.to_owned(), provider.target().below(UPSTREAM)),
        ("gateway".to_owned(), plain.target.below(SMOKE)),
        ("gateway-with-key-auth".to_owned(), keys.target.below(SMOKE)),
        ("gateway-with-pii-scrub".to_owned(), scrub.target.below(SMOKE)),
    ];
    Ok(FullStack { results, added: Some(added_by(runner, targets)) })
}

/// The same of the user's gateway and of what is behind it, if the suite may load that, too.
fn stack_of_target(
    runner: &mut SuiteRunner<'_>,
    target: &SuiteTarget,
) -> Result<FullStack, SuiteError> {
    let Some(direct) = runner.direct() else {
        runner.skip("the full stack", "the upstream is not known: give it with --direct URL");
        return Ok(FullStack::default());
    };
    let serve = [runner.serves(target, SMOKE)?, runner.serves(&direct, UPSTREAM)?];
    if serve != [true; 2] || runner.is_interrupted() {
        return Ok(FullStack::default());
    }
    let (target, direct) = behind(target, &direct);
    let length: Length = length(runner.options, 30);
    let measurements = ways(&target, &direct, connections(runner.options), length);
    let results = runner.measure(&measurements, passes(runner.options, 3, 2));
    let targets = vec![
        (DIRECT.to_owned(), direct.below(UPSTREAM)),
        ("gateway".to_owned(), target.below(SMOKE)),
    ];
    Ok(FullStack { results, added: Some(added_by(runner, targets)) })
}

/// A gateway of the user's and its upstream, whose process is the provider's of both.
pub(super) fn behind(target: &SuiteTarget, direct: &SuiteTarget) -> (SuiteTarget, SuiteTarget) {
    let provider_pid = direct.gateway_pid;
    let target = SuiteTarget { provider_pid, ..target.clone() };
    (target, SuiteTarget { provider_pid, gateway_pid: None, name: String::new(), ..direct.clone() })
}

/// Through the gateway with few and with many connections, and the upstream itself.
fn ways(
    gateway: &SuiteTarget,
    upstream: &SuiteTarget,
    connections: (u32, u32),
    length: Length,
) -> [Measurement; 3] {
    let (few, many) = connections;
    [
        (format!("gateway -> upstream ({few})"), gateway, SMOKE, few),
        (format!("gateway -> upstream ({many})"), gateway, SMOKE, many),
        (format!("upstream direct, no gateway ({few})"), upstream, UPSTREAM, few),
    ]
    .map(|row: (String, &SuiteTarget, &str, u32)| get(&row.0, row.1, row.2).clients(row.3, length))
}

/// What each target adds to the first, the upstream.
fn added_by(runner: &mut SuiteRunner<'_>, targets: Vec<(String, SuiteTarget)>) -> ComparisonResult {
    let request = with_identity(Measurement::get_base("full stack", &targets[0].1))
        .rate(GETS_PER_S, comparison_length(runner.options, 30, TIMES_SHORT));
    let comparison = ComparisonPlan::new("full stack", request, targets);
    runner.compare(&comparison.short(runner.options.short))
}

/// What the gateway passes on of the upstream's own rate, with the same connections.
pub(super) fn of_upstream(stack: &FullStack) -> Option<Finding> {
    let (through, upstream) = (stack.results.first()?, stack.results.last()?);
    let (through_per_s, upstream_per_s) = (through.throughput()?, upstream.throughput()?);
    let share = Ratio::new(through_per_s, upstream_per_s, Bias::Takes)?;
    let text = format!(
        "full stack: {}/s through the gateway are {} of the {}/s that the upstream answers by itself, with {} connections each",
        limited_rate(Some(through_per_s)),
        share.text(percent),
        limited_rate(Some(upstream_per_s)),
        through.clients?
    );
    let busy = through.busy_host().or_else(|| upstream.busy_host());
    Some(busy.map_or_else(|| Finding::note(&*text), |why| finding::no_conclusion(&text, &why)))
}
