//! HTML: cells of tables, and the text around them.

use html5gum::{DefaultEmitter, StartTag, Token, Tokenizer};

use super::parts;
use crate::document::{Document, Grid, LineIndex};

/// An element whose text is treated apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inside {
    #[default]
    Page,
    Hidden,
    Code,
}

/// What is being read.
#[derive(Debug, Default)]
struct State {
    text: String,
    at: usize,
    /// Inside of `script`, `style` or `pre`.
    inside: Inside,
    /// Inside of `td` or `th`.
    in_cell: bool,
    /// Tables may lie in each other: the outer ones are for layout.
    tables: Vec<Grid>,
    row: Vec<String>,
}

/// Tables within tables deeper than this are not read.
const DEEPEST: usize = 16;

pub(super) fn read(text: &str) -> Document {
    let lines = LineIndex::new(text);
    let mut document = Document::default();
    let mut state = State::default();
    let mut emitter = DefaultEmitter::<usize>::new_with_span();
    emitter.naively_switch_states(true);
    for token in Tokenizer::new_with_emitter(text, emitter) {
        let Ok(token) = token;
        match token {
            Token::StartTag(tag) => {
                state.start(&tag, lines.line(tag.span.start), &mut document);
            }
            Token::EndTag(tag) => state.end(&tag.name, &mut document),
            Token::String(text) if state.inside != Inside::Hidden => {
                if state.text.trim().is_empty() {
                    state.at = lines.line(text.span.start);
                }
                state.text.push_str(&String::from_utf8_lossy(&text.value));
            }
            _ => {}
        }
    }
    state.finish_row(0);
    state.flush(&mut document);
    for table in state.tables.drain(..) {
        document.grid(headed(table));
    }
    document
}

impl State {
    fn start(&mut self, tag: &StartTag<usize>, line: usize, document: &mut Document) {
        match tag.name.as_slice() {
            b"table" => {
                self.flush(document);
                self.row.clear();
                if self.tables.len() < DEEPEST {
                    self.tables.push(Grid { line, ..Grid::default() });
                }
            }
            b"tr" => self.finish_row(line),
            b"td" | b"th" => {
                self.finish_cell();
                self.at = line;
                self.in_cell = true;
                self.cells_that_span(tag, document);
            }
            b"script" | b"style" => self.inside = Inside::Hidden,
            b"pre" => {
                self.flush(document);
                self.inside = Inside::Code;
            }
            b"br" if self.tables.is_empty() && self.inside != Inside::Code => self.flush(document),
            b"br" => self.text.push('\n'),
            b"p" | b"li" | b"div" | b"h1" | b"h2" | b"h3" | b"h4" if self.tables.is_empty() => {
                self.flush(document);
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &[u8], document: &mut Document) {
        match name {
            b"td" | b"th" => self.finish_cell(),
            b"tr" => self.finish_row(self.at),
            b"table" => {
                self.finish_row(self.at);
                if let Some(table) = self.tables.pop() {
                    document.grid(headed(table));
                }
                self.text.clear();
            }
            b"script" | b"style" => self.inside = Inside::Page,
            b"pre" => {
                self.flush(document);
                self.inside = Inside::Page;
            }
            b"h1" | b"h2" | b"h3" | b"h4" => {
                let text = std::mem::take(&mut self.text);
                document.heading(self.at, &text);
            }
            b"p" | b"li" | b"div" if self.tables.is_empty() => self.flush(document),
            _ => {}
        }
    }

    /// Columns below cells that span several cannot be separated: the table is not read.
    fn cells_that_span(&mut self, tag: &StartTag<usize>, document: &mut Document) {
        let wide = [&b"colspan"[..], &b"rowspan"[..]].iter().any(|name: &&[u8]| {
            tag.attributes.get(*name).is_some_and(|value| value.as_slice() != b"1")
        });
        if let Some(table) = self.tables.last_mut().filter(|table| wide && !table.broken) {
            table.broken = true;
            document.not_read(table.line, "a table whose cells span rows or columns");
        }
    }

    fn finish_cell(&mut self) {
        let text = std::mem::take(&mut self.text);
        let words: Vec<&str> = text.split_whitespace().collect();
        if std::mem::take(&mut self.in_cell) && !self.tables.is_empty() {
            self.row.push(words.join(" "));
        }
    }

    fn finish_row(&mut self, line: usize) {
        self.finish_cell();
        let row = std::mem::take(&mut self.row);
        if let Some(table) = self.tables.last_mut().filter(|_| !row.is_empty()) {
            table.rows.push((if line == 0 { self.at } else { line }, row));
        }
    }

    fn flush(&mut self, document: &mut Document) {
        if !self.tables.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        if self.inside == Inside::Code {
            parts::read_code(&text, self.at, document);
        } else {
            let words: Vec<&str> = text.split_whitespace().collect();
            document.line(self.at, &words.join(" "), false);
        }
    }
}

/// The first row is the header.
fn headed(mut table: Grid) -> Grid {
    if !table.rows.is_empty() {
        table.header = table.rows.remove(0).1;
    }
    table
}
