//! Ctrl-C and SIGTERM: the first ends the command in an orderly way, the second at once.

use std::io;
use std::thread;

use nix::sys::signal::{Signal, raise};
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use crate::exit::Exit;

/// A signal to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerSignal {
    /// SIGHUP: read the configuration again.
    Reload,
    /// Ctrl-C or SIGTERM: shut down.
    Stop,
}

/// A signal to a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunSignal {
    /// Ctrl-C or SIGTERM, the first one: end the load, and report.
    Interrupt,
    /// SIGHUP: the terminal is closed.
    HangUp,
    /// Ctrl-Z: this process is about to be stopped.
    Suspend,
    /// It goes on.
    Continue,
}

/// From here on, `handle` receives every signal. The second signal to stop ends the process at
/// once.
pub(crate) fn on_server_signal(
    mut handle: impl FnMut(ServerSignal) + Send + 'static,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    drop(guard);
    thread::Builder::new()
        .name("plimsoll-signal".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                loop {
                    tokio::select! {
                        () = interrupt_or_terminate(&mut interrupt, &mut terminate) => break,
                        _ = hang_up.recv() => handle(ServerSignal::Reload),
                    }
                }
                handle(ServerSignal::Stop);
                interrupt_or_terminate(&mut interrupt, &mut terminate).await;
            });
            exit_now();
        })
        .map(drop)
}

/// From here on, the first Ctrl-C or SIGTERM calls `first`, and the second ends the process at
/// once.
pub(crate) fn on_interrupt(first: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    drop(guard);
    thread::Builder::new()
        .name("plimsoll-signal".to_owned())
        .spawn(move || {
            runtime.block_on(async {
                interrupt_or_terminate(&mut interrupt, &mut terminate).await;
                first();
                interrupt_or_terminate(&mut interrupt, &mut terminate).await;
            });
            exit_now();
        })
        .map(drop)
}

/// From here on, `handle` receives every signal. The second Ctrl-C or SIGTERM ends the process at
/// once; a closed terminal does not end it.
pub(crate) fn on_run_signal(mut handle: impl FnMut(RunSignal) + Send + 'static) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_io().build()?;
    let guard = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut suspend = signal(SignalKind::from_raw(Signal::SIGTSTP as i32))?;
    let mut go_on = signal(SignalKind::from_raw(Signal::SIGCONT as i32))?;
    drop(guard);
    thread::Builder::new().name("plimsoll-signal".to_owned()).spawn(move || {
        let mut interrupted = false;
        #[expect(clippy::infinite_loop, reason = "as long as the process")]
        loop {
            let received = runtime.block_on(async {
                tokio::select! {
                    () = interrupt_or_terminate(&mut interrupt, &mut terminate) => RunSignal::Interrupt,
                    _ = hang_up.recv() => RunSignal::HangUp,
                    _ = suspend.recv() => RunSignal::Suspend,
                    _ = go_on.recv() => RunSignal::Continue,
                }
            });
            if received == RunSignal::Interrupt && std::mem::replace(&mut interrupted, true) {
                exit_now();
            }
            handle(received);
            if received == RunSignal::Suspend {
                // The whole process stops here, as it would have without us.
                let _ = raise(Signal::SIGSTOP);
                handle(RunSignal::Continue);
            }
        }
    }).map(drop)
}

async fn interrupt_or_terminate(interrupt: &mut SignalStream, terminate: &mut SignalStream) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

#[expect(clippy::exit, reason = "the user asked twice: the process must end now")]
pub(crate) fn exit_now() {
    plimsoll_live::restore();
    std::process::exit(Exit::Interrupted.number().into())
}
