//! A run as people read it, with descriptive names of stages.

use std::borrow::Cow;

use plimsoll_metrics::{RunEnd, RunSummary};

/// The name of a stage that a number of requests or the end of its input ended. Its notation says
/// how long it might have lasted, `64:1h`, which says nothing of it: it is named by its load and
/// its end, `64, -n 1000` or `64, whole input`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageName {
    notation: String,
    name: String,
}

impl StageName {
    /// `None` if time ended every stage, because the notation then describes it.
    pub fn of_counted(summary: &RunSummary) -> Option<Self> {
        let mut measured = summary.results.by_stage.iter().filter(|stage| !stage.warmup);
        let (stage, None) = (measured.next()?, measured.next()) else { return None };
        let (notation, run) = (stage.stage.clone()?, &summary.metadata.run);
        let name = match summary.metadata.max_requests {
            Some(most) if !stage.has_lasted() || stage.counters.scheduled >= most => {
                counted_stage(&notation, most)?
            }
            None if !stage.has_lasted() && run.ended == RunEnd::Complete => {
                let (load, _) = notation.rsplit_once(':').filter(|_| run.stopped.is_none())?;
                format!("{load}, whole input")
            }
            _ => return None,
        };
        Some(Self { notation, name })
    }

    /// Writes the name for the notation.
    pub fn replace_in(&self, stage: &mut String) {
        if *stage == self.notation {
            stage.clone_from(&self.name);
        }
    }
}

/// The name of a stage with this notation that ends after a number of requests; `None` for one
/// without a length.
pub fn counted_stage(notation: &str, most: u64) -> Option<String> {
    let (load, _) = notation.rsplit_once(':')?;
    Some(format!("{load}, -n {most}"))
}

/// The same run as people read it: its stage has a name, and findings have the names of the levels.
/// JSON, CSV and Prometheus have the notation.
pub fn shown_summary(summary: &RunSummary) -> Cow<'_, RunSummary> {
    let (name, mut named) = (StageName::of_counted(summary), summary.clone());
    let values = named.findings.iter_mut().flat_map(|finding| &mut finding.values);
    values.filter(|(key, _)| *key == "stage").for_each(|(_, stage)| match &name {
        Some(name) => name.replace_in(stage),
        None => *stage = crate::levels::level_name(summary, stage),
    });
    let Some(name) = name else { return Cow::Owned(named) };
    let groups = named.results.by_stage.iter_mut().chain(&mut named.results.cells);
    let groups = groups.filter_map(|group| group.stage.as_mut());
    let processes = named.processes.iter_mut().filter_map(|process| process.stage.as_mut());
    let stages = named.metadata.stages.iter_mut().map(|stage| &mut stage.name);
    groups.chain(processes).chain(stages).for_each(|stage| name.replace_in(stage));
    Cow::Owned(named)
}
