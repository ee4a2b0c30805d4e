//! A comparison as a comment of a pull request: the verdict first, in a stable order, and short.

use crate::comparison::{Comparison, Rule};
use crate::text::{explanations, row};

/// Places of pull requests take 65,536 characters.
const MOST_BYTES: usize = 60_000;
/// Most cells that are shown.
const CELLS_SHOWN: usize = 20;
/// Most gates and runs that are shown.
const ROWS_SHOWN: usize = 100;

impl Comparison {
    /// The comparison in Markdown, below 60,000 bytes. Names come from files, and are escaped.
    pub fn markdown(&self) -> String {
        let mut parts =
            vec![format!("**{}**", escape(&self.verdict_sentence())), escape(&self.headline())];
        parts.extend(list(self.obstacles.iter().cloned()));
        parts.extend((!self.gates.is_empty()).then(|| self.gates_table()));
        parts.extend(list(explanations(&self.gates).into_iter().take(ROWS_SHOWN)));
        let facts = self.spread_sentence().into_iter().chain(self.worth_a_look(CELLS_SHOWN));
        let facts = facts.chain(self.change_sentences()).chain(self.notes.iter().cloned());
        parts.extend(list(facts));
        parts.push(self.runs());
        let text = parts.join("\n\n") + "\n";
        shorten(text)
    }

    fn gates_table(&self) -> String {
        let simple = self.rule == Rule::Simple;
        let head = if simple { "change" } else { "change [95 %]" };
        let mut lines = vec![
            format!("| gate | verdict | base | new | {head} | margin | could see |"),
            "|---|---|--:|--:|--:|--:|--:|".to_owned(),
        ];
        for gate in self.gates.iter().take(ROWS_SHOWN) {
            let mut cells = row(gate).map(|cell| escape(&cell));
            if cells[1] == "FAIL" {
                "**FAIL**".clone_into(&mut cells[1]);
            }
            lines.push(format!("| {} |", cells.join(" | ")));
        }
        lines.join("\n")
    }

    fn runs(&self) -> String {
        let base = self.base.iter().map(|run| ("base", run));
        let runs = base.chain(self.new.iter().map(|run| ("new", run)));
        let lines: Vec<_> = runs
            .take(ROWS_SHOWN)
            .map(|(side, run): (&str, &crate::comparison::RunRef)| {
                format!("- {side}: `{}`", run.path.replace(['`', '\n', '\r'], " "))
            })
            .collect();
        format!("<details><summary>runs</summary>\n\n{}\n\n</details>", lines.join("\n"))
    }
}

fn list(items: impl Iterator<Item = String>) -> Option<String> {
    let lines: Vec<_> = items.map(|item| format!("- {}", escape(&item))).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// A text of a file as Markdown shows it unchanged: on one line, without cells, tags, links,
/// emphasis and mentions of people.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '|' | '`' | '*' | '_' | '\\' | '#' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '@' => escaped.push_str("&#64;"),
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

/// The text, cut after a whole line where it is too long.
fn shorten(text: String) -> String {
    const CUT: &str = "\n\n(cut: comparison.json has everything)\n";
    if text.len() < MOST_BYTES {
        return text;
    }
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        if end + line.len() + CUT.len() >= MOST_BYTES {
            break;
        }
        end += line.len();
    }
    text[..end].trim_end().to_owned() + CUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_stay_text() {
        assert_eq!(
            escape("a|b`c`\n<img src=x> @all **x**"),
            "a\\|b\\`c\\` &lt;img src=x&gt; &#64;all \\*\\*x\\*\\*"
        );
    }

    #[test]
    fn a_long_text_is_cut_after_a_line_below_the_limit() {
        let text = shorten("0123456789\n".repeat(10_000));
        assert!(text.len() < MOST_BYTES && text.ends_with("has everything)\n"));
        assert!(
            text.lines().all(|line| line.is_empty() || line.len() == 10 || line.contains("cut"))
        );
        assert_eq!(shorten("short\n".to_owned()), "short\n");
    }
}
