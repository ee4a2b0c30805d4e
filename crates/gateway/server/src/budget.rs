//! What tenants may spend, and what they have spent.

use std::collections::HashMap;

use hyper::StatusCode;
use hyper::header::{HeaderName, HeaderValue};
use plimsoll_gateway_dialect::Usage;
use plimsoll_gateway_store::{Budget, BudgetState, Grant, LimitKey, Reservation};
use serde_json::json;

use crate::clock;
use crate::config::Config;
use crate::exchange::Exchange;
use crate::refusal::Refusal;
use crate::service::{Answer, Call, json as answer_json};
use crate::spec::{BudgetSpec, BudgetUnit};

/// Completion tokens that are set aside for a request that names no maximum.
const UNSAID: u64 = 1_024;

/// Dollars are counted in millionths.
const MICRO: f64 = 1e6;

/// Budgets of the tenants.
#[derive(Debug)]
pub(crate) struct Budgets {
    unit: BudgetUnit,
    /// Millionths of a dollar per token.
    prompt_price: f64,
    completion_price: f64,
    default: Budget,
    tenants: HashMap<String, Budget>,
}

/// The name under which requests without a tenant spend.
const NOBODY: &str = "";

impl Budgets {
    /// # Errors
    /// In words, for numbers that make no sense.
    pub(crate) fn new(spec: &BudgetSpec) -> Result<Self, String> {
        let budget = |amount: f64| {
            let units = units(amount, spec.unit);
            let units = units.ok_or_else(|| format!("budgets: {amount} is no amount"))?;
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

    fn of(&self, tenant: &str) -> &Budget {
        self.tenants.get(tenant).unwrap_or(&self.default)
    }

    /// What so many tokens cost, in whole units.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "prices have no sign, and a saturated cost is as good as any that large"
    )]
    pub(crate) fn cost(&self, prompt: u64, completion: u64) -> u64 {
        match self.unit {
            BudgetUnit::Tokens => prompt.saturating_add(completion),
            BudgetUnit::Usd => {
                let cost =
                    prompt as f64 * self.prompt_price + completion as f64 * self.completion_price;
                cost.ceil() as u64
            }
        }
    }
}

/// Tokens, or millionths of a dollar.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the sign and the size are checked"
)]
fn units(amount: f64, unit: BudgetUnit) -> Option<u64> {
    let scaled = if unit == BudgetUnit::Usd { amount * MICRO } else { amount };
    (0.0..9e15).contains(&scaled).then(|| scaled.round() as u64)
}

/// What a request has set aside until its cost is known.
#[derive(Debug)]
pub(crate) struct Tab {
    reservation: Reservation,
    /// What the request was estimated to bring in, for answers that say nothing.
    prompt: u64,
}

/// Sets aside what a request may cost.
pub(crate) async fn open(
    exchange: &Exchange,
    prompt: u64,
    most: Option<u64>,
) -> Result<Option<Tab>, Refusal> {
    let Some(budgets) = &exchange.config.budgets else { return Ok(None) };
    let tenant = exchange.tenant.as_deref().unwrap_or(NOBODY);
    let estimate = budgets.cost(prompt, most.unwrap_or(UNSAID));
    let (store, subject) = (exchange.worker.store(), LimitKey::new("tenant", tenant));
    let grant = store.reserve(clock::now(), subject, budgets.of(tenant), estimate).await;
    match grant.map_err(|_| Refusal::store_gone("the store of the budgets is gone"))? {
        Grant::Reserved(reservation) => Ok(Some(Tab { reservation, prompt })),
        Grant::Refused(state) => {
            let mut refusal = Refusal::over_budget("the tenant's budget is spent");
            refusal.headers.push(remaining(&exchange.config, &state));
            Err(refusal)
        }
    }
}

impl Tab {
    /// Settles with what the answer says it cost, or with what was counted on the way.
    pub(crate) async fn settle(self, config: &Config, usage: Option<Usage>, counted: u64) {
        let Some(budgets) = &config.budgets else { return };
        let (prompt, completion) =
            usage.map_or((self.prompt, counted), |usage| (usage.prompt, usage.completion));
        self.reservation.settle(clock::now(), budgets.cost(prompt, completion)).await;
    }

    /// What is left, for the answer's headers.
    pub(crate) const fn state(&self) -> &BudgetState {
        self.reservation.state()
    }
}

/// The quota header, in tokens or dollars.
pub(crate) fn remaining(config: &Config, state: &BudgetState) -> (HeaderName, HeaderValue) {
    let name = HeaderName::from_static("x-quota-remaining");
    let in_dollars = config.budgets.as_ref().is_some_and(|budgets| budgets.unit == BudgetUnit::Usd);
    let dollars = in_dollars.then(|| format!("{:.6}", state.remaining as f64 / MICRO));
    let dollars = dollars.and_then(|dollars| HeaderValue::try_from(dollars).ok());
    (name, dollars.unwrap_or_else(|| state.remaining.into()))
}

/// `GET /v1/budget/{tenant}`.
pub(crate) async fn show(call: &Call) -> Answer {
    let (Some(budgets), Some(tenant)) = (&call.exchange.config.budgets, &call.parameter) else {
        return Err(Refusal::not_found("there are no budgets"));
    };
    if call.exchange.tenant.as_deref().is_some_and(|own| own != tenant) {
        return Err(Refusal::forbidden("tenant mismatch: this budget is another tenant's"));
    }
    let (store, subject) = (call.exchange.worker.store(), LimitKey::new("tenant", tenant));
    let state = store.budget(clock::now(), subject, budgets.of(tenant)).await;
    let state = state.map_err(|_| Refusal::store_gone("the store of the budgets is gone"))?;
    let scale = if budgets.unit == BudgetUnit::Usd { 1.0 / MICRO } else { 1.0 };
    let shown = |amount: u64| amount as f64 * scale;
    let told = json!({
        "tenant": tenant,
        "unit": if budgets.unit == BudgetUnit::Usd { "usd" } else { "tokens" },
        "limit": shown(state.limit),
        "spent": shown(state.spent),
        "reserved": shown(state.reserved),
        "remaining": shown(state.remaining),
        "resets_in_s": state.resets.as_secs(),
    });
    Ok(answer_json(StatusCode::OK, told.to_string()))
}
