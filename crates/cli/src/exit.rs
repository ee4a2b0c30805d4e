//! How the process ends: the same codes everywhere.

use std::process::ExitCode;

use plimsoll_metrics::{BandLevel, Judgement, RunEnd, RunSummary};
use plimsoll_mock::MockError;
use plimsoll_profile::Problems;

use crate::console;

/// What became of what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, and every threshold was kept.
    Pass,
    /// A threshold was broken.
    Fail,
    /// Wrong usage, or a bad profile.
    Usage,
    /// The run is invalid or inconclusive, or could not be carried out.
    Invalid,
    /// The user ended it.
    Interrupted,
}

impl Exit {
    /// The code; 130 is 128 and the number of SIGINT, as shells have it.
    pub(crate) const fn number(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Interrupted => 130,
        }
    }

    /// What a run's summary comes to. `allow_invalid` accepts an instrument that was not good
    /// enough.
    pub(crate) fn of_run(summary: &RunSummary, allow_invalid: bool) -> Self {
        let judged = |wanted: fn(&Judgement) -> bool| {
            summary.thresholds.iter().any(|threshold| wanted(&threshold.judgement))
        };
        if summary.metadata.run.ended == RunEnd::Interrupted {
            return Self::Interrupted;
        }
        if !(summary.validity.is_valid() || allow_invalid) {
            return Self::Invalid;
        }
        let stands = |wanted: fn(&BandLevel) -> bool| {
            summary.bands.iter().any(|standing| wanted(&standing.level))
        };
        if judged(|judgement| matches!(judgement, Judgement::Fail))
            || stands(|level| matches!(level, BandLevel::Critical))
        {
            return Self::Fail;
        }
        // No data is never a pass, also where no threshold asks for any.
        // An expected refusal is data, too.
        let counters = &summary.results.total.counters;
        let nothing = counters.completed == 0 && counters.as_expected == 0;
        if nothing
            || judged(|judgement| matches!(judgement, Judgement::Inconclusive(_)))
            || stands(|level| matches!(level, BandLevel::Inconclusive(_)))
        {
            return Self::Invalid;
        }
        Self::Pass
    }

    /// The worse of two, where several runs are one command.
    pub(crate) fn and(self, other: Self) -> Self {
        let rank = |exit| match exit {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Invalid => 2,
            Self::Usage => 3,
            Self::Interrupted => 4,
        };
        if rank(self) >= rank(other) { self } else { other }
    }
}

/// What was asked for makes no sense: the cause and the fix.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(pub(crate) String);

/// Tells what went wrong, and gives the code.
pub(crate) fn code(done: anyhow::Result<Exit>) -> ExitCode {
    let exit = done.unwrap_or_else(|error| {
        console::complain("error", &told(&error));
        of_error(&error)
    });
    ExitCode::from(exit.number())
}

/// The error and its causes; a cause that the error itself quotes is not told twice.
pub(crate) fn told(error: &anyhow::Error) -> String {
    error.chain().fold(String::new(), |told, cause| match cause.to_string() {
        cause if told.is_empty() => cause,
        cause if told.contains(&cause) => told,
        cause => format!("{told}: {cause}"),
    })
}

fn of_error(error: &anyhow::Error) -> Exit {
    let of_mock = error.downcast_ref::<MockError>();
    let bad_mock = matches!(of_mock, Some(MockError::Syntax(_) | MockError::Config(_)));
    if error.is::<Problems>() || error.is::<Usage>() || bad_mock {
        Exit::Usage
    } else {
        Exit::Invalid
    }
}

/// The answer of the command line's parser: help and versions go to stdout, complaints to stderr.
pub(crate) fn from_parse_error(answer: &clap::Error) -> ExitCode {
    // As for every other output: if nobody listens, nobody can be told.
    let _ = answer.print();
    ExitCode::from(if answer.use_stderr() { Exit::Usage } else { Exit::Pass }.number())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_runs_the_worst_counts() {
        for (one, other, both) in [
            (Exit::Pass, Exit::Pass, Exit::Pass),
            (Exit::Pass, Exit::Fail, Exit::Fail),
            (Exit::Invalid, Exit::Fail, Exit::Invalid),
            (Exit::Interrupted, Exit::Pass, Exit::Interrupted),
        ] {
            assert_eq!((one.and(other), other.and(one)), (both, both), "{one:?} and {other:?}");
        }
    }

    #[test]
    fn causes_are_told_once() {
        let error = anyhow::anyhow!("no room").context("cannot write x").context("no report");
        assert_eq!(told(&error), "no report: cannot write x: no room");
        let error = anyhow::anyhow!("no room").context("cannot write x: no room; make some");
        assert_eq!(told(&error), "cannot write x: no room; make some");
    }

    #[test]
    fn errors_of_the_user_are_told_from_those_of_the_world() {
        let world = std::io::Error::from(std::io::ErrorKind::StorageFull);
        for (error, exit) in [
            (Usage("no".to_owned()).into(), Exit::Usage),
            (Problems::default().into(), Exit::Usage),
            (MockError::Syntax("no".to_owned()).into(), Exit::Usage),
            (anyhow::Error::from(world).context("cannot write"), Exit::Invalid),
        ] {
            assert_eq!(of_error(&error), exit, "{error:?}");
        }
    }
}
