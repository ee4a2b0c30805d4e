//! Budgets of tenants, in tokens or dollars.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use plimsoll_gateway_dialect::Usage;
use plimsoll_gateway_store::{Budget, BudgetState, Grant, LimitKey, Reservation, Store};
use serde::Deserialize;
use serde_json::{Value, json};
use smart_default::SmartDefault;

use crate::base::clock;
use crate::base::poll_or_spawn::poll_or_spawn;
use crate::config::units::HumanDuration;
use crate::http::error_response::ErrorResponse;
use crate::layers::LayerName as _;
use crate::layers::identity::Identity;
use crate::layers::{Layer, Setup};

/// Budgets of the tenants.
#[derive(Clone, Debug, SmartDefault, Deserialize)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct BudgetSpec {
    /// The unit of all amounts.
    pub unit: BudgetUnit,
    /// Price of a thousand prompt tokens, in US dollars; for `unit: usd`.
    #[default(0.001)]
    pub usd_per_1k_prompt: f64,
    /// Price of a thousand completion tokens, in US dollars; for `unit: usd`.
    #[default(0.002)]
    pub usd_per_1k_completion: f64,
    /// Amount per window of tenants that are not in `tenants`.
    #[default(1_000_000.0)]
    pub default: f64,
    /// Completion tokens to reserve for a request without a maximum: the longest answer of the
    /// models.
    #[default(4_096)]
    pub max_tokens: u64,
    /// Length of the window, after which spending is reset.
    #[default(HumanDuration::secs(86_400))]
    pub window: HumanDuration,
    /// Amount per window, by tenant.
    pub tenants: BTreeMap<String, f64>,
}

/// The unit of a budget.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[cfg_attr(test, derive(serde::Serialize, schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum BudgetUnit {
    /// prompt and completion tokens
    #[default]
    Tokens,
    /// US dollars
    Usd,
}

/// Dollars are counted in millionths.
const MICRO: f64 = 1e6;

/// The budgets of the tenants.
#[derive(Debug)]
pub(crate) struct Budgets {
    unit: BudgetUnit,
    /// Millionths of a dollar per token.
    prompt_price: f64,
    completion_price: f64,
    /// Completion tokens of a request without a maximum.
    max_tokens: u64,
    default: Budget,
    tenants: HashMap<String, Budget>,
}

impl Budgets {
    /// # Errors
    /// A message about an invalid amount.
    pub(crate) fn new(spec: &BudgetSpec) -> Result<Self, String> {
        let tenants =
            spec.tenants.iter().map(|(name, amount)| Ok((name.clone(), budget(spec, *amount)?)));
        Ok(Self {
            unit: spec.unit,
            prompt_price: spec.usd_per_1k_prompt * MICRO / 1e3,
            completion_price: spec.usd_per_1k_completion * MICRO / 1e3,
            max_tokens: spec.max_tokens,
            default: budget(spec, spec.default)?,
            tenants: tenants.collect::<Result<_, String>>()?,
        })
    }

    fn of(&self, tenant: Option<&str>) -> &Budget {
        tenant.and_then(|tenant| self.tenants.get(tenant)).unwrap_or(&self.default)
    }

    /// The cost of these tokens, in whole units.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "prices are not negative, and a cost beyond u64 may saturate"
    )]
    fn cost(&self, prompt: u64, completion: u64) -> u64 {
        match self.unit {
            BudgetUnit::Tokens => prompt.saturating_add(completion),
            BudgetUnit::Usd => {
                let cost =
                    prompt as f64 * self.prompt_price + completion as f64 * self.completion_price;
                cost.ceil() as u64
            }
        }
    }

    /// Reserves the maximum cost of a request.
    ///
    /// # Errors
    /// The budget is spent, or the store is unavailable.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        store: &Store,
        identity: &Identity,
        demand: Demand,
    ) -> Result<RequestReservation, ErrorResponse> {
        let answer = demand.max_tokens.unwrap_or(self.max_tokens);
        let estimate = self.cost(demand.prompt_limit, answer.saturating_mul(demand.answers));
        let budget = self.of(identity.tenant.as_deref());
        let grant = store.reserve(clock::now(), identity.tenant_key(), budget, estimate).await;
        match grant.map_err(|_| unavailable())? {
            Grant::Reserved(reservation) => {
                let budgets = Arc::clone(self);
                let (reservation, prompt) = (Some(reservation), demand.prompt);
                Ok(RequestReservation { budgets, reservation, prompt, at_risk: false })
            }
            Grant::Refused(state) => {
                let mut error = ErrorResponse::budget_exceeded("the tenant's budget is spent");
                error.headers.push(self.remaining_header(&state));
                Err(error.by(<Arc<Self>>::NAME))
            }
        }
    }

    /// The header with the budget's remainder, in tokens or dollars.
    fn remaining_header(&self, state: &BudgetState) -> (HeaderName, HeaderValue) {
        let name = const { HeaderName::from_static("x-quota-remaining") };
        let in_dollars = self.unit == BudgetUnit::Usd;
        let dollars = in_dollars.then(|| format!("{:.6}", state.remaining as f64 / MICRO));
        let dollars = dollars.and_then(|dollars| HeaderValue::try_from(dollars).ok());
        (name, dollars.unwrap_or_else(|| state.remaining.into()))
    }

    /// The state of a tenant's budget, as JSON.
    ///
    /// # Errors
    /// The store is unavailable.
    pub(crate) async fn state(&self, store: &Store, tenant: &str) -> Result<Value, ErrorResponse> {
        let key = LimitKey::new("tenant", tenant);
        let state = store.budget(clock::now(), key, self.of(Some(tenant))).await;
        let state = state.map_err(|_| unavailable())?;
        let scale = if self.unit == BudgetUnit::Usd { 1.0 / MICRO } else { 1.0 };
        let scaled = |amount: u64| amount as f64 * scale;
        Ok(json!({
            "tenant": tenant,
            "unit": if self.unit == BudgetUnit::Usd { "usd" } else { "tokens" },
            "limit": scaled(state.limit),
            "spent": scaled(state.spent),
            "reserved": scaled(state.reserved),
            "remaining": scaled(state.remaining),
            "resets_in_s": state.resets.as_secs(),
        }))
    }
}

fn unavailable() -> ErrorResponse {
    ErrorResponse::store_unavailable("the store of the budgets is unavailable")
}

/// Tokens, or millionths of a dollar.
#[expect(clippy::cast_possible_truncation, reason = "the sign and the size are checked")]
fn to_units(amount: f64, unit: BudgetUnit) -> Option<u64> {
    let scaled = if unit == BudgetUnit::Usd { amount * MICRO } else { amount };
    (0.0..9e15).contains(&scaled).then(|| scaled.round() as u64)
}

/// The maximum usage of a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demand {
    /// Estimated prompt tokens.
    pub(crate) prompt: u64,
    /// The maximum prompt tokens, because tools, schemas and images are part of the prompt.
    pub(crate) prompt_limit: u64,
    /// Completion tokens of one answer, if the request sets a maximum.
    pub(crate) max_tokens: Option<u64>,
    /// Requested answers.
    pub(crate) answers: u64,
}

/// The amount reserved for one request until its cost is known.
///
/// Dropping it before the request was sent upstream releases it. Dropping it later, with an unknown
/// cost, charges it in full.
#[derive(Debug)]
pub(crate) struct RequestReservation {
    budgets: Arc<Budgets>,
    reservation: Option<Reservation>,
    /// Estimated prompt tokens, for responses without usage.
    prompt: u64,
    /// Whether an upstream may have received the request.
    at_risk: bool,
}

/// Larger reports are ignored: no model has a context of a billion tokens.
const PLAUSIBLE: u64 = 1 << 30;

impl RequestReservation {
    /// Marks the request as sent upstream.
    pub(crate) const fn risk(&mut self) {
        self.at_risk = true;
    }

    /// Charges nothing, because the upstream did no work.
    pub(crate) fn release(mut self) {
        self.at_risk = false;
    }

    /// Settles with the reported usage. Missing or implausible counts (too large, or less than a
    /// sixteenth of the estimate) are replaced by the estimates of prompt and completion tokens.
    pub(crate) async fn settle(mut self, usage: Option<Usage>, estimated: u64) {
        let prompt = believed(usage.map(|usage| usage.prompt), self.prompt);
        let completion = believed(usage.map(|usage| usage.completion), estimated);
        let cost = self.budgets.cost(prompt, completion);
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(clock::now(), cost).await;
        }
    }

    /// The header with the budget's remainder.
    pub(crate) fn remaining_header(&self) -> Option<(HeaderName, HeaderValue)> {
        let state = self.reservation.as_ref().map(Reservation::state);
        state.map(|state| self.budgets.remaining_header(state))
    }
}

impl Drop for RequestReservation {
    fn drop(&mut self) {
        if let Some(reservation) = self.reservation.take().filter(|_| self.at_risk) {
            let estimate = reservation.estimate();
            poll_or_spawn(async move { reservation.settle(clock::now(), estimate).await });
        }
    }
}

/// The budget of an amount, in the units of the configuration.
fn budget(spec: &BudgetSpec, amount: f64) -> Result<Budget, String> {
    let units = to_units(amount, spec.unit);
    let units = units.ok_or_else(|| format!("budgets: {amount} is not an amount"))?;
    Budget::new(units, spec.window.0).map_err(|error| format!("budgets: {error}"))
}

/// The reported tokens if plausible, or else the estimate.
fn believed(reported: Option<u64>, estimate: u64) -> u64 {
    reported.filter(|tokens| *tokens < PLAUSIBLE && *tokens * 16 >= estimate).unwrap_or(estimate)
}

impl Layer for Arc<Budgets> {
    type Section = BudgetSpec;
    const READS_ANSWERS: bool = true;

    fn new(section: &BudgetSpec, _setup: &Setup<'_>) -> Result<Self, String> {
        Budgets::new(section).map(Self::new)
    }
}
