//! The time limit of a request, without a timer operation per request.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
#[cfg(test)]
use std::rc::Rc;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock as _, Moment};
use tokio::time::{Instant, Sleep, sleep};

use crate::clock::WorkerClock;
#[cfg(test)]
use crate::simulation_tests::{Simulated as _, Simulation};

/// A timeout for one request after another of one task, re-armed lazily.
///
/// The timer is moved only when it fires: a limit that is hardly ever reached costs one poll of the
/// timer per wake-up, and one move per limit's length. It fires with tokio's precision of a
/// millisecond, never early.
#[derive(Debug)]
pub(crate) struct LazyTimeout {
    alarm: Alarm,
    /// Whether the alarm already has the task to wake.
    knows_task: bool,
}

/// Outside of unit tests there is one variant, so that matching it costs nothing.
#[derive(Debug)]
enum Alarm {
    Tokio(Pin<Box<Sleep>>),
    #[cfg(test)]
    Simulated(Rc<Simulation>),
}

impl LazyTimeout {
    /// A timeout on the current runtime, by this clock.
    #[cfg_attr(not(test), expect(unused_variables, reason = "unit tests may pass virtual time"))]
    pub(crate) fn new(clock: &WorkerClock) -> Self {
        #[cfg(test)]
        if let Some(simulation) = clock.simulation() {
            return Self { alarm: Alarm::Simulated(Rc::clone(simulation)), knows_task: false };
        }
        let alarm = Alarm::Tokio(Box::pin(sleep(std::time::Duration::ZERO)));
        Self { alarm, knows_task: false }
    }

    /// Runs `work` until it is done, or returns `None` when `limit` has passed.
    ///
    /// The limit of a call must not be earlier than the limit of the previous call: the alarm may
    /// then fire too late. With the one time limit of a plan this holds.
    // No `async fn`: its future would hold the arguments twice.
    pub(crate) fn run<F: Future>(
        &mut self,
        clock: &WorkerClock,
        limit: Moment,
        mut work: Pin<&mut F>,
    ) -> impl Future<Output = Option<F::Output>> {
        poll_fn(move |context| self.poll(clock, limit, work.as_mut(), context))
    }

    fn poll<F: Future>(
        &mut self,
        clock: &WorkerClock,
        limit: Moment,
        mut work: Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<Option<F::Output>> {
        let mut is_past = false;
        loop {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if is_past {
                return Poll::Ready(None);
            }
            is_past = self.is_past(clock, limit, context);
            if !is_past {
                return Poll::Pending;
            }
            // Polls once more, because data that a busy worker received before the limit counts
            // even if it is handled after it.
        }
    }

    /// To be called before another task uses it.
    pub(crate) const fn forget_task(&mut self) {
        self.knows_task = false;
    }

    /// Whether `limit` has passed. If not, the alarm wakes the task when it may have.
    fn is_past(&mut self, clock: &WorkerClock, limit: Moment, context: &mut Context<'_>) -> bool {
        match &mut self.alarm {
            Alarm::Tokio(sleep) => {
                if mem::replace(&mut self.knows_task, true) && !sleep.is_elapsed() {
                    return false;
                }
                is_past(sleep.as_mut(), clock, limit, context)
            }
            #[cfg(test)]
            Alarm::Simulated(simulation) => simulation.is_past_or_wake(limit, context),
        }
    }
}

fn is_past(
    mut sleep: Pin<&mut Sleep>,
    clock: &WorkerClock,
    limit: Moment,
    context: &mut Context<'_>,
) -> bool {
    while sleep.as_mut().poll(context).is_ready() {
        let left = limit.since(clock.now()).to_duration();
        if left.is_zero() {
            return true;
        }
        sleep.as_mut().reset(Instant::now() + left);
    }
    false
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use plimsoll_measure::{MonotonicClock, Nanos};

    use super::*;

    #[test]
    fn work_that_needs_two_turns_is_not_cut_off_between_them() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = WorkerClock::new(MonotonicClock::start());
            let limit = clock.now() + Nanos::from_millis(5);
            let late = sleep(std::time::Duration::from_millis(10));
            late.await;
            // It has read its response, and handles it in its next turn.
            let two_turns = pin!(tokio::task::yield_now());
            let mut timeout = LazyTimeout::new(&clock);
            assert_eq!(timeout.run(&clock, limit, two_turns).await, Some(()));
        });
    }

    #[test]
    fn work_is_cut_off_at_its_limit_and_not_before() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = WorkerClock::new(MonotonicClock::start());
            let mut timeout = LazyTimeout::new(&clock);
            let limit = |ms| clock.now() + Nanos::from_millis(ms);
            assert_eq!(timeout.run(&clock, limit(5), pin!(ready(7))).await, Some(7));
            for ms in [5, 10] {
                let (began, limit) = (clock.now(), limit(ms));
                assert_eq!(timeout.run(&clock, limit, pin!(pending::<()>())).await, None);
                assert!(
                    clock.now() >= limit && clock.now().since(began) < Nanos::from_millis(ms + 200)
                );
            }
            let slow = sleep(std::time::Duration::from_millis(20));
            assert_eq!(timeout.run(&clock, limit(500), pin!(slow)).await, Some(()));
        });
    }
}
