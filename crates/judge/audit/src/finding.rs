//! What was found, with its place and its arithmetic.

use schemars::JsonSchema;
use serde::Serialize;

/// How sure a finding is. Its order is that of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// No measurement can give these figures together, whatever was measured.
    Impossible,
    /// The document's words, targets or changes do not agree with its own figures.
    Contradicted,
    /// The figures may be true; what is given does not carry them.
    CannotTell,
}

impl Level {
    /// The word in the report.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Impossible => "impossible",
            Self::Contradicted => "contradicted",
            Self::CannotTell => "cannot tell",
        }
    }
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Finding {
    /// How sure it is.
    pub level: Level,
    /// The name of the rule, like `order`.
    pub rule: &'static str,
    /// The line of the file, from 1.
    pub line: usize,
    /// The cell as `row, column`, or the beginning of the sentence.
    pub cell: String,
    /// What the document says, with the figures as printed.
    pub says: String,
    /// The arithmetic, with what the printed digits allow.
    pub because: String,
    /// What would make it true, or what is missing.
    pub fix: String,
}

/// Collects the findings of one file.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    list: Vec<Finding>,
    left_out: usize,
}

/// More findings than this are counted, and not kept.
const MOST: usize = 500;

impl Findings {
    pub(crate) fn add(&mut self, finding: Finding) {
        let known = self.list.iter().any(|old| {
            (old.rule, old.line, &old.cell, &old.says)
                == (finding.rule, finding.line, &finding.cell, &finding.says)
        });
        if known {
            return;
        }
        if self.list.len() < MOST {
            self.list.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    /// By level, then by line; and how many were left out.
    pub(crate) fn finish(mut self) -> (Vec<Finding>, usize) {
        self.list.sort_by_key(|finding| (finding.level, finding.line));
        (self.list, self.left_out)
    }
}
