//! What a run may spend: tokens, and money.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_measure::{TokenSource, Usage};
use plimsoll_plan::{BudgetPlan, Limits};

/// Money is counted in billionths.
const UNITS: f64 = 1e9;

/// Bytes of a token, where the target does not report its input.
const TOKEN_BYTES: u64 = 4;

/// What a run has spent, warm-up included, and the most that it may. All workers share it.
#[derive(Debug)]
pub(crate) struct Spending {
    budget: BudgetPlan,
    tokens: AtomicU64,
    /// In billionths.
    cost: AtomicU64,
}

impl Spending {
    /// Nothing spent yet; `None` where nothing limits it. A shard has its part.
    pub(crate) fn new(limits: &Limits, share: impl Fn(u64) -> u64) -> Option<Self> {
        let mut budget = limits.budget?;
        budget.tokens = budget.tokens.map(&share);
        let units = budget.cost.map(|cost| share(units(cost)));
        budget.cost = units.map(|units| units as f64 / UNITS);
        let (tokens, cost) = (AtomicU64::new(0), AtomicU64::new(0));
        Some(Self { budget, tokens, cost })
    }

    /// Adds the usage of an answer, or the total that the target reports if that is more. An
    /// unreported input is estimated from its bytes.
    pub(crate) fn add(&self, usage: &Usage, total: Option<u32>, request_bytes: u64) {
        let input = match usage.prompt.source {
            TokenSource::Reported => u64::from(usage.prompt.count),
            _ => request_bytes / TOKEN_BYTES,
        };
        let output = u64::from(usage.completion.count);
        let tokens = (input + output).max(total.unwrap_or(0).into());
        self.tokens.fetch_add(tokens, Ordering::Relaxed);
        let for_input = input as f64 * self.budget.input_price / 1e6;
        let for_output = output as f64 * self.budget.output_price / 1e6;
        self.cost.fetch_add(units(for_input + for_output), Ordering::Relaxed);
    }

    /// Whether a limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        let tokens = self.tokens.load(Ordering::Relaxed);
        let cost = self.cost.load(Ordering::Relaxed);
        self.budget.tokens.is_some_and(|most| tokens >= most)
            || self.budget.cost.is_some_and(|most| cost >= units(most))
    }

    /// What was spent, in words.
    pub(crate) fn sentence(&self) -> String {
        let tokens = self.tokens.load(Ordering::Relaxed);
        let cost = self.cost.load(Ordering::Relaxed) as f64 / UNITS;
        let mut parts = Vec::new();
        if let Some(most) = self.budget.tokens {
            parts.push(format!("{tokens} tokens of {most} (--budget-tokens)"));
        }
        if let Some(most) = self.budget.cost {
            parts.push(format!("{cost:.4} of {most} by the prices of --price (--budget-cost)"));
        }
        format!("spent {}", parts.join(", "))
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked: 0 or more")]
fn units(money: f64) -> u64 {
    (money * UNITS).round().max(0.0) as u64
}

#[cfg(test)]
mod tests {
    use plimsoll_measure::TokenCount;

    use super::*;

    fn usage(input: u32, output: u32) -> Usage {
        let reported = |count| TokenCount { count, source: TokenSource::Reported };
        Usage { prompt: reported(input), completion: reported(output), ..Usage::default() }
    }

    fn spending(tokens: Option<u64>, cost: Option<f64>) -> Spending {
        let budget = BudgetPlan { tokens, cost, input_price: 0.5, output_price: 2.0 };
        let limits = Limits { budget: Some(budget), ..Limits::DEFAULT };
        Spending::new(&limits, |all| all).unwrap()
    }

    #[test]
    fn tokens_and_money_are_limits_of_their_own() {
        let by_tokens = spending(Some(100), None);
        by_tokens.add(&usage(40, 50), None, 0);
        assert!(!by_tokens.is_spent());
        by_tokens.add(&usage(5, 4), Some(10), 0);
        assert!(by_tokens.is_spent());
        assert!(by_tokens.sentence().starts_with("spent 100 tokens of 100 (--budget-tokens)"));
        // 1,000 tokens of input at 0.5 a million and 2,000 of output at 2: 0.0045.
        let by_cost = spending(None, Some(0.009));
        by_cost.add(&usage(1_000, 2_000), Some(3_000), 0);
        assert!(!by_cost.is_spent());
        assert!(by_cost.sentence().contains("0.0045 of 0.009"), "{}", by_cost.sentence());
        by_cost.add(&usage(1_000, 2_000), Some(3_000), 0);
        assert!(by_cost.is_spent());
    }

    #[test]
    fn an_unreported_input_counts_by_its_bytes() {
        let spending = spending(Some(100), None);
        spending.add(&Usage::default(), None, 396);
        assert!(!spending.is_spent());
        spending.add(&Usage::default(), None, 4);
        assert!(spending.is_spent());
    }
}
