//! Results of a command, pushed to Prometheus at its end.

use plimsoll_export::PushTarget;

use crate::progress::StatusOutput;

/// Pushes the figures of a run or of a suite, if that is wanted. They are in its files, too, so a
/// failure is only told.
pub(crate) fn push(target: Option<&PushTarget>, run: &str, page: &str, status: &StatusOutput) {
    let Some(target) = target else { return };
    let host = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
    if let Err(error) = target.push(run, &host.unwrap_or_default(), page) {
        status.warn(&error.to_string());
    }
}
