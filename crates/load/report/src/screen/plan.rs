//! How much of each part is shown, and what gives way first.

use super::section::Section;

/// Lines of a sentence, while there is room.
const ITEM_LINES: usize = 2;

/// Parts below the sections: what stands out, the facts, what comes next, the end.
const PARTS_BELOW: usize = 4;

/// How much is shown.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Empty lines between the parts; those further up are the last to go.
    pub(super) blanks: usize,
    /// Of each section.
    pub(super) shown: Vec<Shown>,
    /// Things that are pointed out.
    pub(super) stands_out: usize,
    /// The most lines of a sentence.
    pub(super) item_lines: usize,
}

/// The rows of a section that are shown, and how many of them are left out last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shown {
    pub(super) count: usize,
    least: usize,
}

impl Plan {
    /// Everything.
    pub(super) fn of(sections: &[Section], stands_out: usize) -> Self {
        let shown = |section: &Section| Shown { count: section.most(), least: section.least };
        Self {
            blanks: usize::MAX,
            shown: sections.iter().map(shown).collect(),
            stands_out,
            item_lines: ITEM_LINES,
        }
    }

    /// Shows a little less; `false` if nothing is left that may go. The order: empty lines, rows
    /// beyond the least of their section, all but two things that are pointed out, second lines of
    /// sentences, rows down to one, and then all that is left.
    pub(super) fn give_way(&mut self) -> bool {
        let steps: [fn(&mut Self) -> bool; 7] = [
            Self::drop_blank,
            |plan| plan.drop_row(|shown| shown.least),
            |plan| plan.point_out_less(2),
            |plan| std::mem::replace(&mut plan.item_lines, 1) > 1,
            |plan| plan.drop_row(|_| 1),
            |plan| plan.point_out_less(0),
            |plan| plan.drop_row(|_| 0),
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
        let can = self.stands_out > least;
        self.stands_out -= usize::from(can);
        can
    }

    /// Leaves out a row of the section that shows the most, of those with more than `least`.
    fn drop_row(&mut self, least: impl Fn(&Shown) -> usize) -> bool {
        let can = self.shown.iter_mut().filter(|shown| shown.count > least(shown));
        let largest = can.max_by_key(|shown| shown.count);
        largest.map(|shown| shown.count -= 1).is_some()
    }
}
