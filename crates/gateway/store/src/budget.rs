//! Budgets: the amount that a tenant may spend in a window.

use crate::StoreError;
use crate::limit::window_nanos;
use serde::Serialize;
use std::time::Duration;

/// An amount per window, in whole units of the caller's choice: tokens or millionths of a dollar.
///
/// A budget of zero refuses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: u64,
    /// Nanoseconds, never zero.
    window: u64,
}

impl Budget {
    /// An amount per window.
    ///
    /// # Errors
    /// A window shorter than a millisecond or longer than 366 days.
    pub fn new(limit: u64, window: Duration) -> Result<Self, StoreError> {
        Ok(Self { limit, window: window_nanos(window)? })
    }

    /// The amount that may be spent in a window.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window in nanoseconds, never zero.
    pub const fn window_nanos(&self) -> u64 {
        self.window
    }
}

/// The state of a budget at one time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BudgetState {
    /// The amount that may be spent in a window.
    pub limit: u64,
    /// The amount spent in this window; exceeds the limit if requests cost more than their
    /// reservations.
    pub spent: u64,
    /// The amount reserved for requests in progress.
    pub reserved: u64,
    /// The amount that can still be reserved.
    pub remaining: u64,
    /// Time until a new window begins.
    pub resets: Duration,
}

impl BudgetState {
    pub(crate) fn new(budget: &Budget, spent: u64, reserved: u64, resets: Duration) -> Self {
        let taken = spent.saturating_add(reserved);
        let remaining = budget.limit.saturating_sub(taken);
        Self { limit: budget.limit, spent, reserved, remaining, resets }
    }
}

/// The amounts that one tenant has spent and reserved: pure, with time (nanoseconds from any start)
/// as an argument.
///
/// A reservation succeeds only if the spent amount, all reservations and the estimate fit into the
/// limit together, so spending exceeds the limit only by the cost beyond estimates. At the end of a
/// window the spent amount is reset and reservations stay: a request pays in the window in which it
/// ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct BudgetCounter {
    window: u64,
    spent: u64,
    reserved: u64,
}

impl BudgetCounter {
    fn age(&mut self, budget: &Budget, now: u64) {
        let window = now / budget.window;
        if window > self.window {
            *self = Self { window, spent: 0, reserved: self.reserved };
        }
    }

    /// Reserves the estimate if enough is left.
    pub fn reserve(&mut self, budget: &Budget, now: u64, estimate: u64) -> bool {
        self.age(budget, now);
        let after = self.spent.checked_add(self.reserved).and_then(|sum| sum.checked_add(estimate));
        let fits = after.is_some_and(|after| after <= budget.limit);
        if fits {
            self.reserved += estimate;
        }
        fits
    }

    /// Releases the estimate and charges the actual cost.
    pub fn settle(&mut self, budget: &Budget, now: u64, estimate: u64, actual: u64) {
        self.age(budget, now);
        self.reserved = self.reserved.saturating_sub(estimate);
        self.spent = self.spent.saturating_add(actual);
    }

    /// Releases the estimate.
    pub fn release(&mut self, estimate: u64) {
        self.reserved = self.reserved.saturating_sub(estimate);
    }

    /// The state at a given time.
    pub fn state(&self, budget: &Budget, now: u64) -> BudgetState {
        let mut aged = *self;
        aged.age(budget, now);
        let end = aged.window.saturating_add(1).saturating_mul(budget.window);
        let resets = Duration::from_nanos(end.saturating_sub(now).min(budget.window));
        BudgetState::new(budget, aged.spent, aged.reserved, resets)
    }

    /// When the counter is equivalent to an unused one: the end of its window, unless it has
    /// reservations.
    pub(crate) fn idle_from(&self, budget: &Budget) -> u64 {
        let end = self.window.saturating_add(1).saturating_mul(budget.window);
        if self.reserved > 0 { u64::MAX } else { end }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.spent.saturating_add(self.reserved)
    }
}
