//! Budgets: tokens or dollars that tenants may spend, and have spent.

use std::collections::HashMap;
use std::sync::Arc;

use hyper::header::{HeaderName, HeaderValue};
use plimsoll_gateway_dialect::Usage;
use plimsoll_gateway_store::{Budget, BudgetState, Grant, LimitKey, Reservation, Store};
use serde_json::{Value, json};

use crate::clock;
use crate::error_response::ErrorResponse;
use crate::identity::Identity;
use crate::spec::{BudgetSpec, BudgetUnit};

/// Completion tokens that are reserved for a request that names no maximum.
const DEFAULT_MAX_TOKENS: u64 = 1_024;

/// Dollars are counted in millionths.
const MICRO: f64 = 1e6;

/// The budgets of the tenants.
#[derive(Debug)]
pub(crate) struct Budgets {
    unit: BudgetUnit,
    /// Millionths of a dollar per token.
    prompt_price: f64,
    completion_price: f64,
    default: Budget,
    tenants: HashMap<String, Budget>,
}

impl Budgets {
    /// # Errors
    /// A message about an invalid amount.
    pub(crate) fn new(spec: &BudgetSpec) -> Result<Self, String> {
        let budget = |amount: f64| {
            let units = to_units(amount, spec.unit);
            let units = units.ok_or_else(|| format!("budgets: {amount} is not an amount"))?;
            Budget::new(units, spec.window.0).map_err(|error| format!("budgets: {error}"))
        };
        let tenants =
            spec.tenants.iter().map(|(name, amount)| Ok((name.clone(), budget(*amount)?)));
        Ok(Self {
            unit: spec.unit,
            prompt_price: spec.usd_per_1k_prompt * MICRO / 1e3,
            completion_price: spec.usd_per_1k_completion * MICRO / 1e3,
            default: budget(spec.default)?,
            tenants: tenants.collect::<Result<_, String>>()?,
        })
    }

    fn of(&self, tenant: Option<&str>) -> &Budget {
        tenant.and_then(|tenant| self.tenants.get(tenant)).unwrap_or(&self.default)
    }

    /// The cost of these tokens, in whole units.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
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

    /// Reserves the most that a request may cost.
    ///
    /// # Errors
    /// The budget is spent, or the store is unavailable.
    pub(crate) async fn reserve(
        self: &Arc<Self>,
        store: &Store,
        identity: &Identity,
        (prompt, max_tokens): (u64, Option<u64>),
    ) -> Result<RequestReservation, ErrorResponse> {
        let budget = self.of(identity.tenant.as_deref());
        let estimate = self.cost(prompt, max_tokens.unwrap_or(DEFAULT_MAX_TOKENS));
        let grant = store.reserve(clock::now(), identity.tenant_key(), budget, estimate).await;
        match grant.map_err(|_| unavailable())? {
            Grant::Reserved(reservation) => {
                Ok(RequestReservation { budgets: Arc::clone(self), reservation, prompt })
            }
            Grant::Refused(state) => {
                let mut error = ErrorResponse::budget_exceeded("the tenant's budget is spent");
                error.headers.push(self.remaining_header(&state));
                Err(error)
            }
        }
    }

    /// The header with the budget's remainder, in tokens or dollars.
    fn remaining_header(&self, state: &BudgetState) -> (HeaderName, HeaderValue) {
        let name = HeaderName::from_static("x-quota-remaining");
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
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the sign and the size are checked"
)]
fn to_units(amount: f64, unit: BudgetUnit) -> Option<u64> {
    let scaled = if unit == BudgetUnit::Usd { amount * MICRO } else { amount };
    (0.0..9e15).contains(&scaled).then(|| scaled.round() as u64)
}

/// The amount reserved for one request until its cost is known.
#[derive(Debug)]
pub(crate) struct RequestReservation {
    budgets: Arc<Budgets>,
    reservation: Reservation,
    /// Estimated prompt tokens, for responses that report no usage.
    prompt: u64,
}

impl RequestReservation {
    /// Settles with the usage that the response reported, or with the completion tokens counted as
    /// it passed.
    pub(crate) async fn settle(self, usage: Option<Usage>, counted: u64) {
        let (prompt, completion) =
            usage.map_or((self.prompt, counted), |usage| (usage.prompt, usage.completion));
        self.reservation.settle(clock::now(), self.budgets.cost(prompt, completion)).await;
    }

    /// The header with the budget's remainder.
    pub(crate) fn remaining_header(&self) -> (HeaderName, HeaderValue) {
        self.budgets.remaining_header(self.reservation.state())
    }
}
