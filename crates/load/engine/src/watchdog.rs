//! The time limit of a request, without a timer operation per request.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use plimsoll_measure::{Clock, Moment};
use tokio::time::{Instant, Sleep, sleep};

/// Watches one request after another.
///
/// The timer is only moved when it fires: a limit that is hardly ever reached costs one look per wake-up,
/// and one move per limit's length. It fires with tokio's grain of a millisecond, never early.
#[derive(Debug)]
pub(crate) struct Watchdog {
    alarm: Pin<Box<Sleep>>,
}

impl Watchdog {
    /// A watchdog on the current runtime.
    pub(crate) fn new() -> Self {
        Self { alarm: Box::pin(sleep(std::time::Duration::ZERO)) }
    }

    /// Runs `work` until it is done or `limit` has passed, which gives `None`.
    ///
    /// Limits of successive calls must not run backwards by more than the alarm's slack allows: with the
    /// one time limit of a plan they never do.
    pub(crate) async fn guard<C: Clock, F: Future>(
        &mut self,
        clock: &C,
        limit: Moment,
        mut work: Pin<&mut F>,
    ) -> Option<F::Output> {
        poll_fn(|context| {
            if let Poll::Ready(output) = work.as_mut().poll(context) {
                return Poll::Ready(Some(output));
            }
            if self.is_past(clock, limit, context) { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }

    /// Has `limit` passed? If not, the alarm wakes the task when it may have.
    fn is_past<C: Clock>(&mut self, clock: &C, limit: Moment, context: &mut Context<'_>) -> bool {
        while self.alarm.as_mut().poll(context).is_ready() {
            let left = limit.since(clock.now()).to_duration();
            if left.is_zero() {
                return true;
            }
            self.alarm.as_mut().reset(Instant::now() + left);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::pin::pin;

    use plimsoll_measure::{MonotonicClock, Nanos};

    use super::*;

    #[test]
    fn work_is_cut_off_at_its_limit_and_not_before() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let clock = MonotonicClock::start();
            let mut dog = Watchdog::new();
            let limit = |ms| clock.now() + Nanos::from_millis(ms);
            assert_eq!(dog.guard(&clock, limit(5), pin!(ready(7))).await, Some(7));
            for ms in [5, 10] {
                let (began, limit) = (clock.now(), limit(ms));
                assert_eq!(dog.guard(&clock, limit, pin!(pending::<()>())).await, None);
                assert!(
                    clock.now() >= limit && clock.now().since(began) < Nanos::from_millis(ms + 200)
                );
            }
            let slow = sleep(std::time::Duration::from_millis(20));
            assert_eq!(dog.guard(&clock, limit(500), pin!(slow)).await, Some(()));
        });
    }
}
