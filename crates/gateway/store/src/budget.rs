//! How much a tenant may spend in a window.

use crate::StoreError;
use crate::limit::window_nanos;
use serde::Serialize;
use std::time::Duration;

/// So much in a window, in whole units of the caller's choice: tokens or millionths of a dollar.
///
/// A budget of zero refuses everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: u64,
    /// Nanoseconds, never zero.
    window: u64,
}

impl Budget {
    /// So much in a window.
    ///
    /// # Errors
    /// A window shorter than a millisecond or longer than 366 days.
    pub fn new(limit: u64, window: Duration) -> Result<Self, StoreError> {
        Ok(Self { limit, window: window_nanos(window)? })
    }

    /// What may be spent in a window.
    pub const fn limit(&self) -> u64 {
        self.limit
    }

    /// The window in nanoseconds, never zero.
    pub const fn window_nanos(&self) -> u64 {
        self.window
    }
}

/// What a budget looks like now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BudgetState {
    /// What may be spent in a window.
    pub limit: u64,
    /// What was spent in this one; more than the limit when requests cost more than was reserved
    /// for them.
    pub spent: u64,
    /// What is set aside for requests that run.
    pub reserved: u64,
    /// What can still be reserved.
    pub remaining: u64,
    /// Until a new window begins.
    pub resets: Duration,
}

impl BudgetState {
    pub(crate) fn new(budget: &Budget, spent: u64, reserved: u64, resets: Duration) -> Self {
        let taken = spent.saturating_add(reserved);
        let remaining = budget.limit.saturating_sub(taken);
        Self { limit: budget.limit, spent, reserved, remaining, resets }
    }
}

/// What one tenant has spent and set aside: pure, with time (nanoseconds from any start) as an
/// argument.
///
/// A reservation is made only if spent, reserved and the estimate fit into the limit together, so
/// that spending goes over the limit by no more than requests cost beyond their estimates. At the
/// window's end what was spent is forgotten and what is reserved stays so: a request pays in the
/// window in which it ends.
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

    /// Sets the estimate aside, if there is enough left.
    pub fn reserve(&mut self, budget: &Budget, now: u64, estimate: u64) -> bool {
        self.age(budget, now);
        let after = self.spent.checked_add(self.reserved).and_then(|sum| sum.checked_add(estimate));
        let fits = after.is_some_and(|after| after <= budget.limit);
        if fits {
            self.reserved += estimate;
        }
        fits
    }

    /// Gives the estimate back and takes what it did cost, less or more.
    pub fn settle(&mut self, budget: &Budget, now: u64, estimate: u64, actual: u64) {
        self.age(budget, now);
        self.reserved = self.reserved.saturating_sub(estimate);
        self.spent = self.spent.saturating_add(actual);
    }

    /// Gives the estimate back.
    pub fn release(&mut self, estimate: u64) {
        self.reserved = self.reserved.saturating_sub(estimate);
    }

    /// What it looks like at a time.
    pub fn state(&self, budget: &Budget, now: u64) -> BudgetState {
        let mut aged = *self;
        aged.age(budget, now);
        let end = aged.window.saturating_add(1).saturating_mul(budget.window);
        let resets = Duration::from_nanos(end.saturating_sub(now).min(budget.window));
        BudgetState::new(budget, aged.spent, aged.reserved, resets)
    }

    /// When it is as good as new: the end of its window, unless something is reserved.
    pub(crate) fn idle_from(&self, budget: &Budget) -> u64 {
        let end = self.window.saturating_add(1).saturating_mul(budget.window);
        if self.reserved > 0 { u64::MAX } else { end }
    }

    pub(crate) fn taken(&self) -> u64 {
        self.spent.saturating_add(self.reserved)
    }
}
