//! A comparison as a pull request comment: its screen, and the runs.

use crate::comparison::{Comparison, RunRef};

/// Maximum number of runs shown.
const RUNS_SHOWN: usize = 100;

impl Comparison {
    /// Formats the comparison as Markdown, below 60,000 bytes. Names come from files and are
    /// escaped.
    pub fn markdown(&self) -> String {
        let base = self.base.iter().map(|run| line("base", run));
        let runs = base.chain(self.new.iter().map(|run| line("new", run)));
        let lines = runs.take(RUNS_SHOWN).collect::<Vec<_>>().join("\n");
        let runs = format!("<details><summary>runs</summary>\n\n{lines}\n\n</details>");
        self.screen().markdown(&runs)
    }
}

fn line(side: &str, run: &RunRef) -> String {
    format!("- {side}: `{}`", run.path.replace(['`', '\n', '\r'], " "))
}
