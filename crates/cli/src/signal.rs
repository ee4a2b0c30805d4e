//! Ctrl-C and SIGTERM: the first ends the command in an orderly way, a later one at once.

use std::future::poll_fn;
use std::io;
use std::task::{Context, Poll};
use std::thread;

use nix::sys::signal::{Signal, raise};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use crate::exit::Exit;

/// A signal to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunSignal {
    /// Ctrl-C or SIGTERM, the first one: end the load and report, or shut the server down.
    Interrupt,
    /// SIGHUP: the terminal is closed, or a server is to read its configuration again.
    HangUp,
    /// Ctrl-Z: this process is about to be stopped.
    Suspend,
    /// The process continues.
    Continue,
}

/// Signals within so short a time are one: whoever signals a whole process group reaches a process
/// once more through its parent.
const ONE_STOP: Nanos = Nanos::from_millis(200);

const STOPS: [(Signal, RunSignal); 2] =
    [(Signal::SIGINT, RunSignal::Interrupt), (Signal::SIGTERM, RunSignal::Interrupt)];

/// Additional signals of commands with a load.
const OF_RUNS: [(Signal, RunSignal); 3] = [
    (Signal::SIGHUP, RunSignal::HangUp),
    (Signal::SIGTSTP, RunSignal::Suspend),
    (Signal::SIGCONT, RunSignal::Continue),
];

/// From here on, `handle` receives every signal of a command with a load.
pub(crate) fn on_run_signal(handle: impl FnMut(RunSignal) + Send + 'static) -> io::Result<()> {
    on_signals(&OF_RUNS, handle)
}

/// From here on, `handle` receives Ctrl-C, SIGTERM and these signals. A later Ctrl-C or SIGTERM
/// ends the process at once.
pub(crate) fn on_signals(
    others: &[(Signal, RunSignal)],
    mut handle: impl FnMut(RunSignal) + Send + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut streams: Vec<(SignalStream, RunSignal)> = Vec::new();
    for (number, meaning) in STOPS.iter().chain(others) {
        streams.push((signal(SignalKind::from_raw(*number as i32))?, *meaning));
    }
    drop(guard);
    thread::Builder::new()
        .name("plimsoll-signal".to_owned())
        .spawn(move || {
            let (clock, mut interrupted) = (MonotonicClock::start(), None);
            #[expect(clippy::infinite_loop, reason = "as long as the process")]
            loop {
                let received = runtime.block_on(poll_fn(|context| next(&mut streams, context)));
                let now = clock.now();
                let first = match received {
                    RunSignal::Interrupt => *interrupted.get_or_insert(now),
                    _ => now,
                };
                if now.since(first) > ONE_STOP {
                    exit_now();
                }
                if now > first {
                    continue;
                }
                handle(received);
                if received == RunSignal::Suspend {
                    // The whole process stops here, as it would have without us.
                    let _ = raise(Signal::SIGSTOP);
                    handle(RunSignal::Continue);
                }
            }
        })
        .map(drop)
}

/// The first signal that has come, if any has.
fn next(streams: &mut [(SignalStream, RunSignal)], context: &mut Context<'_>) -> Poll<RunSignal> {
    let came = streams
        .iter_mut()
        .find_map(|(stream, meaning)| stream.poll_recv(context).is_ready().then_some(*meaning));
    came.map_or(Poll::Pending, Poll::Ready)
}

#[expect(clippy::exit, reason = "the user asked twice: the process must end now")]
pub(crate) fn exit_now() {
    plimsoll_live::restore();
    std::process::exit(Exit::Interrupted.number().into())
}
