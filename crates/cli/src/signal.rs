//! Ctrl-C and SIGTERM: the first ends in good order, the second at once.

use std::io;
use std::thread;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::exit::Exit;

/// What a signal asks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerSignal {
    /// SIGHUP: read the configuration again.
    Reload,
    /// Ctrl-C or SIGTERM: end in good order.
    Stop,
}

/// From here on, `take` gets every signal; the second one to stop ends the process at once.
pub(crate) fn server_signals(
    mut take: impl FnMut(ServerSignal) + Send + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(guard);
    let wait = move || {
        runtime.block_on(async {
            loop {
                tokio::select! {
                    () = either(&mut interrupt, &mut terminate) => break,
                    _ = hang_up.recv() => take(ServerSignal::Reload),
                }
            }
            take(ServerSignal::Stop);
            either(&mut interrupt, &mut terminate).await;
        });
        stop_at_once();
    };
    thread::Builder::new().name("plimsoll-signal".to_owned()).spawn(wait).map(drop)
}

/// From here on, the first signal calls `first`, and the second ends the process. Until then a
/// signal does what it does to every process.
pub(crate) fn listen(first: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(guard);
    let wait = move || {
        runtime.block_on(async {
            either(&mut interrupt, &mut terminate).await;
            first();
            either(&mut interrupt, &mut terminate).await;
        });
        stop_at_once();
    };
    thread::Builder::new().name("plimsoll-signal".to_owned()).spawn(wait).map(drop)
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[expect(clippy::exit, reason = "the user asked twice: nothing may hold the process up")]
fn stop_at_once() {
    std::process::exit(Exit::Interrupted.number().into())
}
