//! Exit codes, the same for every command.

use std::future::poll_fn;
use std::process::ExitCode;
use std::task::{Context, Poll};
use std::{io, thread};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use nix::sys::signal::{Signal, raise};
use plimsoll_measure::{Clock as _, MonotonicClock, Nanos};
use plimsoll_metrics::{RunEnd, RunJudgement, RunSummary, Verdict};
use plimsoll_mock::MockError;
use plimsoll_plan::{REDACTED, redacted_urls};
use plimsoll_profile::Problems;
use plimsoll_runner::RunnerError;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal as SignalStream, SignalKind, signal};

use crate::console;

/// The outcome of a command, the most severe last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Done, and every threshold passed.
    Pass,
    /// The measurement is good, but does not decide.
    Inconclusive,
    /// The measurement must not be used, or could not be made.
    Invalid,
    /// The target failed, or a threshold.
    Fail,
    /// Wrong usage, or a bad profile.
    Usage,
    /// The user interrupted it.
    Interrupted,
}

impl Exit {
    /// The exit code. 130 is 128 plus the number of SIGINT, as in shells.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Inconclusive => 4,
            Self::Interrupted => 130,
        }
    }

    /// The outcome of a verdict.
    pub(crate) const fn of(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
            Verdict::Inconclusive => Self::Inconclusive,
        }
    }

    /// The outcome of a run. With `allow_invalid`, an invalid run can still pass or fail by its
    /// thresholds.
    pub(crate) fn of_run(summary: &RunSummary, allow_invalid: bool) -> Self {
        match summary.judgement(allow_invalid) {
            RunJudgement::Passed => Self::Pass,
            RunJudgement::Failed(_) | RunJudgement::TargetFailed => Self::Fail,
            RunJudgement::Invalid => Self::Invalid,
            RunJudgement::Inconclusive(_) => Self::Inconclusive,
            RunJudgement::Interrupted => Self::Interrupted,
        }
    }

    /// The outcome of printing the report of a stored run: whether it is whole, not whether it is
    /// good.
    pub(crate) const fn of_report(summary: &RunSummary) -> Self {
        match summary.metadata.run.ended {
            RunEnd::Unfinished => Self::Invalid,
            RunEnd::Complete
            | RunEnd::Interrupted
            | RunEnd::TooManyErrors
            | RunEnd::Decided
            | RunEnd::Aborted => Self::Pass,
        }
    }
}

/// Wrong usage, with the cause and the fix.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// The target answered none of the requests, with the reason.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct TargetError(pub(crate) String);

/// Prints the error, if there is one, and returns the exit code.
pub(crate) fn code(result: anyhow::Result<Exit>) -> ExitCode {
    let exit = result.unwrap_or_else(|error| {
        let exit = exit_for(&error);
        let label = if exit == Exit::Fail { "FAIL" } else { "error" };
        console::eprint_labelled(label, &error_chain(&error));
        exit
    });
    ExitCode::from(exit.number())
}

/// The error and its causes. A cause that the text already contains is not repeated.
pub(crate) fn error_chain(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |text, cause| match cause.to_string() {
        cause if text.is_empty() => cause,
        cause if text.contains(&cause) => text,
        cause => format!("{text}: {cause}"),
    })
}

fn exit_for(error: &anyhow::Error) -> Exit {
    if matches!(error.downcast_ref(), Some(RunnerError::InterruptedBeforeStart)) {
        return Exit::Interrupted;
    }
    let mock_error = error.downcast_ref::<MockError>();
    let bad_mock_config = matches!(
        mock_error,
        Some(MockError::Syntax(_) | MockError::Config(_) | MockError::Answers { .. })
    );
    if error.is::<Problems>() || error.is::<UsageError>() || bad_mock_config {
        Exit::Usage
    } else if error.is::<TargetError>() {
        Exit::Fail
    } else {
        Exit::Invalid
    }
}

/// Prints what to type instead of a flag of another tool, and returns the exit code.
pub(crate) fn with_hint(hint: &str) -> ExitCode {
    console::eprint_labelled("error", hint);
    ExitCode::from(Exit::Usage.number())
}

/// Prints the message of the command line's parser, help and versions to stdout and usage errors to
/// stderr, and returns the exit code.
pub(crate) fn from_parse_error(mut error: clap::Error) -> ExitCode {
    let refused = error.get(ContextKind::InvalidArg).map(ToString::to_string);
    let refused = refused.filter(|_| error.kind() == ErrorKind::UnknownArgument);
    if let Some(flag) = refused {
        remove_far_tips(&mut error, &flag);
    }
    hide_secrets(&mut error);
    let text = error.to_string();
    let shown = redacted_urls(&text);
    if shown == text {
        // There is nowhere left to report a write error.
        let _ = error.print();
    } else {
        console::eprint_line(shown.trim_end());
    }
    ExitCode::from(if error.use_stderr() { Exit::Usage } else { Exit::Pass }.number())
}

/// Flags whose values are credentials, or have some.
const SECRET_FLAGS: [&str; 3] = ["--key", "--header", "--basic-auth"];

/// The parser quotes the value that it refuses.
fn hide_secrets(error: &mut clap::Error) {
    let flag = error.get(ContextKind::InvalidArg).map(ToString::to_string).unwrap_or_default();
    let is_secret =
        SECRET_FLAGS.iter().any(|secret| flag.split([' ', '=', ',']).any(|word| word == *secret));
    if is_secret && error.get(ContextKind::InvalidValue).is_some() {
        error.insert(ContextKind::InvalidValue, ContextValue::String(REDACTED.to_owned()));
    }
}

/// The parser proposes the nearest of its own words, however far that is, and a way to pass the
/// flag as a value. Only the tip for a slip of the finger helps.
fn remove_far_tips(error: &mut clap::Error, flag: &str) {
    const SLIP: usize = 2;
    error.remove(ContextKind::Suggested);
    error.remove(ContextKind::TrailingArg);
    let nearest = error.get(ContextKind::SuggestedArg).map(ToString::to_string);
    if nearest.is_none_or(|nearest| strsim::osa_distance(&nearest, flag) > SLIP) {
        error.remove(ContextKind::SuggestedArg);
    }
}

// Ctrl-C and SIGTERM: the first ends the command in an orderly way, a later one at once.

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_of_several_outcomes_counts() {
        for (one, other, both) in [
            (Exit::Pass, Exit::Pass, Exit::Pass),
            (Exit::Pass, Exit::Fail, Exit::Fail),
            (Exit::Invalid, Exit::Fail, Exit::Fail),
            (Exit::Inconclusive, Exit::Invalid, Exit::Invalid),
            (Exit::Interrupted, Exit::Pass, Exit::Interrupted),
        ] {
            assert_eq!((one.max(other), other.max(one)), (both, both), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn each_cause_is_printed_once() {
        let error = anyhow::anyhow!("no room").context("cannot write x").context("no report");
        assert_eq!(error_chain(&error), "no report: cannot write x: no room");
        let error = anyhow::anyhow!("no room").context("cannot write x: no room; make some");
        assert_eq!(error_chain(&error), "cannot write x: no room; make some");
    }

    #[test]
    fn usage_errors_and_other_errors_have_different_exit_codes() {
        let disk_full = io::Error::from(io::ErrorKind::StorageFull);
        for (error, exit) in [
            (UsageError("no".to_owned()).into(), Exit::Usage),
            (Problems::default().into(), Exit::Usage),
            (MockError::Syntax("no".to_owned()).into(), Exit::Usage),
            (TargetError("no".to_owned()).into(), Exit::Fail),
            (anyhow::Error::from(disk_full).context("cannot write"), Exit::Invalid),
        ] {
            assert_eq!(exit_for(&error), exit, "{error:?}");
        }
    }
}
