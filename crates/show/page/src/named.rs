//! A run with readable stage names.

use std::borrow::Cow;

use plimsoll_metrics::{RunExemplars, RunSummary, RunTimeline};
use plimsoll_report::{StageName, shown_summary};

use crate::input::Input;

/// The parts of a page's input that name stages.
pub(crate) struct Named<'a> {
    summary: Cow<'a, RunSummary>,
    timeline: Option<Cow<'a, RunTimeline>>,
    exemplars: Option<Cow<'a, RunExemplars>>,
}

impl<'a> Named<'a> {
    pub(crate) fn new(input: &Input<'a>) -> Self {
        let mut named = Self {
            summary: shown_summary(input.summary),
            timeline: input.timeline.map(Cow::Borrowed),
            exemplars: input.exemplars.map(Cow::Borrowed),
        };
        if let Some(name) = StageName::of_counted(input.summary) {
            named.rename(&name);
        }
        named
    }

    fn rename(&mut self, name: &StageName) {
        if let Some(timeline) = &mut self.timeline {
            let intervals = timeline.to_mut().intervals.iter_mut();
            let groups = intervals.flat_map(|interval| &mut interval.groups);
            groups.for_each(|group| name.replace_in(&mut group.stage));
        }
        if let Some(exemplars) = &mut self.exemplars {
            let requests = exemplars.to_mut().requests.iter_mut();
            requests.for_each(|request| name.replace_in(&mut request.stage));
        }
    }

    /// The input with these names.
    pub(crate) fn input<'n>(&'n self, input: &Input<'n>) -> Input<'n> {
        Input {
            summary: &self.summary,
            timeline: self.timeline.as_deref(),
            exemplars: self.exemplars.as_deref(),
            ..*input
        }
    }
}
