//! Runs tasks in virtual time.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tokio::task::LocalSet;

use super::world::Simulation;

/// Runs a future and the tasks that it spawns. Time moves on when all of them wait.
///
/// # Panics
/// If all wait, and none for a deadline.
pub(crate) fn run_simulated<F: Future>(
    simulation: &Simulation,
    tasks: &LocalSet,
    future: F,
) -> F::Output {
    run(tasks, future, || {
        assert!(simulation.advance(), "at {:?} every task waits for another", simulation.now());
    })
}

/// Runs a future and the tasks that it spawns, which wait for nothing but each other.
///
/// # Panics
/// If all wait.
pub(crate) fn run_until_stalled<F: Future>(future: F) -> F::Output {
    run(&LocalSet::new(), future, || panic!("every task waits for another"))
}

fn run<F: Future>(tasks: &LocalSet, future: F, mut when_idle: impl FnMut()) -> F::Output {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(tasks.run_until(future));
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        if !woken.0.swap(false, Ordering::Relaxed) {
            when_idle();
        }
    }
}

/// Whether any task was woken since the last look.
#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
