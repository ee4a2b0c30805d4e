//! Every reason of an invalid run, with its causes: what stands out has one for each thing to do.

use std::collections::BTreeSet;

use plimsoll_metrics::{Reason, RunSummary, Validity};

use crate::screen::Chapter;

pub(super) fn chapter(summary: &RunSummary) -> Chapter {
    let mut chapter = Chapter::new("Why the run is invalid");
    let Validity::Invalid(reasons) = &summary.validity else { return chapter };
    let fixes: BTreeSet<&str> = reasons.iter().map(|reason| &*reason.fix).collect();
    if fixes.len() == reasons.len() && reasons.iter().all(|reason| reason.causes.is_empty()) {
        return chapter;
    }
    for Reason { what, measured, bound, causes, .. } in reasons {
        let causes = match causes.join("; ") {
            none if none.is_empty() => none,
            causes => format!("; causes: {causes}"),
        };
        chapter.text(&format!("{what}: {measured} (limit: {bound}){causes}"));
    }
    chapter
}
