//! A screen in Markdown, for a comment of a pull request or the summary of a job.

use super::{Chapter, Item, Part, Screen};
use crate::table::Table;

/// Places of pull requests take 65,536 characters.
const MOST_BYTES: usize = 60_000;

/// The most rows of a table, and the most sentences in a row.
const MOST_ROWS: usize = 100;

impl Screen {
    /// The whole of it in Markdown, below 60,000 bytes: the verdict first, then what the screen
    /// shows in its order, then what it may leave out. Texts come from targets and files, and are
    /// escaped; `below` is Markdown that follows.
    pub fn markdown(&self, below: &str) -> String {
        let mut blocks = Vec::new();
        blocks.extend(
            self.verdict.as_ref().map(|last| format!("**{}{}**", last.word(), escape(last.text()))),
        );
        for part in self.parts() {
            match part {
                Part::Title(title) => blocks.push(escape(title)),
                Part::Judged { heading, items } => blocks.extend([escape(heading), list(items)]),
                Part::Table { heading, table: rows, notes } => {
                    blocks.extend([escape(heading), table(&rows)]);
                    blocks.extend(notes.iter().map(|note| escape(note)));
                }
            }
        }
        blocks.push(list(&self.stands_out));
        blocks.extend(self.facts.iter().map(|fact| escape(fact)));
        blocks.push(below.to_owned());
        // Where a screen counts the tables that it leaves out, they follow.
        blocks.extend(self.chapters.iter().filter(|_| self.more.is_some()).map(folded));
        blocks.retain(|block| !block.is_empty());
        shorten(blocks.join("\n\n") + "\n")
    }
}

/// A chapter that a click opens, as in a file: no line of an indented block is Markdown.
fn folded(chapter: &Chapter) -> String {
    let lines = chapter.lines(140).into_iter().skip(1).map(|line| format!("    {}", line.text));
    let text = lines.collect::<Vec<_>>().join("\n");
    format!("<details><summary>{}</summary>\n\n{text}\n\n</details>", escape(chapter.heading()))
}

fn list(items: &[Item]) -> String {
    items.iter().take(MOST_ROWS).map(sentence).collect::<Vec<_>>().join("\n")
}

/// A sentence with its word in bold, and its advice.
fn sentence(item: &Item) -> String {
    let word = match item.word() {
        "" => String::new(),
        word => format!("**{}** ", escape(word)),
    };
    let text = escape(item.text().trim_start_matches(':').trim_start());
    let fix = item.advice().map_or_else(String::new, |fix| format!("; {}", escape(fix)));
    format!("- {word}{text}{fix}")
}

/// The names to the left, all figures to the right.
fn table(table: &Table) -> String {
    let columns = table.head.len();
    let mut lines = vec![cells(&table.head, columns)];
    lines.push(format!("|---|{}", "--:|".repeat(columns.saturating_sub(1))));
    lines.extend(table.rows.iter().take(MOST_ROWS).map(|row| cells(row, columns)));
    let left_out = table.rows.len().saturating_sub(MOST_ROWS);
    if left_out > 0 {
        lines.push(format!("\n{left_out} more rows"));
    }
    lines.join("\n")
}

fn cells(row: &[String], columns: usize) -> String {
    let cells = row.iter().map(|cell| match cell.as_str() {
        "FAIL" => "**FAIL**".to_owned(),
        cell => escape(cell),
    });
    let empty = std::iter::repeat_n(String::new(), columns.saturating_sub(row.len()));
    format!("| {} |", cells.chain(empty).collect::<Vec<_>>().join(" | "))
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
    const CUT: &str = "\n\n(cut here: the report has everything)\n";
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
