//! How much of each part is shown, and what gives way first.

use super::Rest;
use super::section::Section;

/// Parts below the sections: what stands out, the facts, what comes next, the end.
const PARTS_BELOW: usize = 4;

/// How much is shown.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Empty lines between the parts; those further up are the last to go.
    pub(super) blanks: usize,
    /// For each section, the part that is shown.
    pub(super) shown: Vec<Shown>,
    /// Things that are pointed out.
    pub(super) stands_out: usize,
    /// Lines about what the reader may do next.
    pub(super) next: usize,
    /// Whether nothing is left out, as in a file.
    pub(super) whole: bool,
}

/// The rows of a section that are shown, and how many of them are left out last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) count: usize,
    all: usize,
    least: usize,
    /// Rows that are never left out.
    kept: usize,
    /// Whether the first row that is left out makes room for a line that says so.
    needs_line: bool,
}

impl Plan {
    /// Everything.
    pub(super) fn everything(shown: Vec<Shown>, stands_out: usize, next: usize) -> Self {
        Self { blanks: usize::MAX, shown, stands_out, next, whole: false }
    }

    /// Everything, without a limit of any kind.
    pub(super) fn whole(shown: Vec<Shown>, stands_out: usize, next: usize) -> Self {
        let mut plan = Self::everything(shown, stands_out, next);
        for shown in &mut plan.shown {
            shown.count = shown.all;
        }
        Self { whole: true, ..plan }
    }

    /// Shows a little less; `false` if nothing is left that may go. The order: empty lines, rows
    /// beyond the least of their section, all but two things that are pointed out, what comes next
    /// but for a line, and then all that is left. A sentence that is shown is whole.
    pub(super) fn give_way(&mut self) -> bool {
        let steps: [fn(&mut Self) -> bool; 9] = [
            Self::drop_blank,
            |plan| plan.drop_row(|shown| shown.least),
            |plan| plan.point_out_less(2),
            |plan| less(&mut plan.next, 1),
            |plan| plan.point_out_less(1),
            |plan| plan.drop_row(|shown| shown.kept.max(1)),
            |plan| plan.point_out_less(0),
            |plan| plan.drop_row(|shown| shown.kept),
            |plan| less(&mut plan.next, 0),
        ];
        steps.into_iter().any(|step| step(self))
    }

    /// There are never more empty lines than sections and what stands below them.
    fn drop_blank(&mut self) -> bool {
        let most = self.shown.len() + PARTS_BELOW;
        let can = self.blanks > 0;
        self.blanks = self.blanks.min(most).saturating_sub(1);
        can
    }

    fn point_out_less(&mut self, least: usize) -> bool {
        less(&mut self.stands_out, least)
    }

    /// Leaves out a row of the section that shows the most, of those with more than `least`.
    fn drop_row(&mut self, least: impl Fn(&Shown) -> usize) -> bool {
        let can = self
            .shown
            .iter_mut()
            .filter(|shown| shown.count.saturating_sub(least(shown)) >= shown.rows_at_once());
        let largest = can.max_by_key(|shown| shown.count);
        let Some(shown) = largest else { return false };
        shown.count = shown.count.saturating_sub(shown.rows_at_once()).max(least(shown));
        true
    }
}

impl Shown {
    /// All that may be shown of a section on a screen of this width.
    pub(super) fn everything(section: &Section, width: usize, rest: &Rest) -> Self {
        Self {
            count: section.most(),
            all: section.all(),
            least: section.least,
            kept: if section.keeps_least { section.least } else { 0 },
            needs_line: !section.heading_has_room(width, rest),
        }
    }

    /// Removing a first row needs a line that reports it, so two rows must go at once.
    const fn rows_at_once(&self) -> usize {
        if self.needs_line && self.count == self.all { 2 } else { 1 }
    }
}

/// One less, but not less than `least`; whether it could be.
const fn less(count: &mut usize, least: usize) -> bool {
    let can = *count > least;
    if can {
        *count -= 1;
    }
    can
}
