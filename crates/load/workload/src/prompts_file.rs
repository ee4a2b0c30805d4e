//! Prompts of a file: plain lines, JSON in any arrangement, CSV.
//!
//! JSON is read to its end: one document, several in a row, one a line; each an entry or a list of
//! them. Entries are read one by one: the prompts are kept in memory, not the file. An entry gives
//! one prompt.

mod search;

use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use csv::StringRecord;
use serde::Deserialize as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use search::{prompt_of, speaker};

/// The most broken entries that are named.
const NAMED: usize = 5;

/// The prompts of a file, or why there are none. Copies share them: a profile is checked before its
/// load begins, and a search or several rounds send it again and again.
#[derive(Clone, Default)]
pub struct FilePrompts(Arc<OnceLock<PromptsRead>>);

/// The prompts, or in words why there are none.
pub(crate) type PromptsRead = Result<Arc<[Arc<str>]>, String>;

impl FilePrompts {
    /// Reads the file, the first time.
    pub(crate) fn get(&self, file: &Path, skip_broken: bool) -> PromptsRead {
        self.0.get_or_init(|| read(file, skip_broken).map(Arc::from)).clone()
    }
}

impl fmt::Debug for FilePrompts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FilePrompts").finish_non_exhaustive()
    }
}

/// They follow from the file, which is compared.
impl PartialEq for FilePrompts {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// The prompts of a file, of a dialogue the first message of its user.
///
/// # Errors
/// The file cannot be read, has no prompt or, unless `skip_broken`, an entry without one; in words.
fn read(file: &Path, skip_broken: bool) -> Result<Vec<Arc<str>>, String> {
    let mut found = Entries::default();
    collect(file, &mut found)?;
    let Entries { prompts, broken, count, named, .. } = found;
    if !skip_broken && broken > 0 {
        let more = if broken > NAMED { ", ..." } else { "" };
        return Err(format!(
            "{broken} of {count} entries have no prompt ({}{more}); correct them, or leave them out with `skip_broken: true` (--skip-broken)",
            named.join(", "),
        ));
    }
    if prompts.is_empty() {
        return Err("has no prompt; write one on each line".to_owned());
    }
    Ok(prompts)
}

/// The entries read so far.
#[derive(Default)]
struct Entries {
    prompts: Vec<Arc<str>>,
    count: usize,
    broken: usize,
    /// Positions of the first broken ones.
    named: Vec<String>,
    /// The current line, where a line is an entry.
    line: Option<usize>,
}

impl Entries {
    fn add(&mut self, prompt: Option<&str>) {
        self.count += 1;
        if let Some(prompt) = prompt {
            self.prompts.push(Arc::from(prompt));
            return;
        }
        self.broken += 1;
        if self.named.len() < NAMED {
            let entry = format!("entry {}", self.count);
            self.named.push(self.line.map_or(entry, |line| format!("line {line}")));
        }
    }
}

fn unreadable(error: impl fmt::Display) -> String {
    format!("{error}; name a file of UTF-8 text")
}

fn collect(file: &Path, found: &mut Entries) -> Result<(), String> {
    let mut reader =
        BufReader::with_capacity(1 << 16, plimsoll_input::open(file).map_err(unreadable)?);
    let start = reader.fill_buf().map_err(unreadable)?;
    let mark = if start.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    reader.consume(mark);
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension.eq_ignore_ascii_case("csv") {
        return read_csv(reader, found);
    }
    // Looked for in the first piece that is read.
    let first = reader.buffer().iter().find(|byte| !byte.is_ascii_whitespace());
    let is_json = extension.to_ascii_lowercase().starts_with("json") || first == Some(&b'{');
    match first {
        Some(b'[') => read_documents(reader, found),
        _ if is_json => read_json_lines(reader, found),
        _ => read_lines(reader, found),
    }
}

fn read_lines(reader: BufReader<File>, found: &mut Entries) -> Result<(), String> {
    for line in reader.lines() {
        let line = line.map_err(unreadable)?;
        if !line.trim().is_empty() {
            found.add(Some(line.trim()));
        }
    }
    Ok(())
}

/// Reads a document a line. A broken line does not spoil the others. If the first one does not end
/// in its line, the file has documents of several lines.
fn read_json_lines(mut reader: BufReader<File>, found: &mut Entries) -> Result<(), String> {
    let (mut line, mut number) = (String::new(), 0);
    while reader.read_line(&mut line).map_err(unreadable)? > 0 {
        number += 1;
        if line.trim().is_empty() {
            continue;
        }
        found.line = Some(number);
        let read = documents(&mut serde_json::Deserializer::from_str(&line), found);
        if found.count == 0 && read.as_ref().is_err_and(serde_json::Error::is_eof) {
            found.line = None;
            return read_documents(line.as_bytes().chain(reader), found);
        }
        if read.is_err() {
            found.add(None);
        }
        line.clear();
    }
    Ok(())
}

fn read_documents(reader: impl Read, found: &mut Entries) -> Result<(), String> {
    documents(&mut serde_json::Deserializer::from_reader(reader), found)
        .map_err(|error| format!("is not valid JSON: {error}; correct it there"))
}

fn documents<'de, R: serde_json::de::Read<'de>>(
    json: &mut serde_json::Deserializer<R>,
    found: &mut Entries,
) -> serde_json::Result<()> {
    while json.end().is_err() {
        Document(&mut *found).deserialize(&mut *json)?;
    }
    Ok(())
}

/// A document: an entry, or a list of entries, which become prompts one by one.
struct Document<'e>(&'e mut Entries);

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a prompt or a list of prompts")
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        self.0.add(Some(text).filter(|text| !text.trim().is_empty()));
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let entry = Value::deserialize(MapAccessDeserializer::new(map))?;
        self.0.add(prompt_of(&entry).as_deref());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut messages = Vec::new();
        while let Some(entry) = list.next_element::<Value>()? {
            // A list of messages is one entry.
            if speaker(&entry).is_some() || !messages.is_empty() {
                messages.push(entry);
            } else {
                self.0.add(prompt_of(&entry).as_deref());
            }
        }
        if !messages.is_empty() {
            self.0.add(prompt_of(&Value::Array(messages)).as_deref());
        }
        Ok(())
    }
}

/// The column `prompt`, or the only one.
fn read_csv(reader: BufReader<File>, found: &mut Entries) -> Result<(), String> {
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader);
    let mut rows = rows.records().filter(|row| row.as_ref().map_or(true, has_text));
    let head = rows.next().transpose().map_err(unreadable)?.unwrap_or_default();
    let column = head.iter().position(|name| name.trim().eq_ignore_ascii_case("prompt"));
    let column = column.or_else(|| (head.len() == 1).then_some(0)).ok_or_else(|| {
        let names: Vec<_> = head.iter().collect();
        format!("has the columns {}; name the one with prompts `prompt`", names.join(", "))
    })?;
    for (index, row) in rows.enumerate() {
        let row = row.map_err(unreadable)?;
        found.line = Some(index + 2);
        found.add(row.get(column).filter(|cell| !cell.trim().is_empty()));
    }
    Ok(())
}

fn has_text(row: &StringRecord) -> bool {
    row.iter().any(|cell| !cell.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str, skip_broken: bool) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let prompts = read(&file, skip_broken)?;
        Ok(prompts.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn prompts_are_read_from_every_kind_of_file() {
        let sharegpt = r#"[{"conversations": [{"from": "system", "value": "s"},
            {"from": "human", "value": "a"}, {"from": "gpt", "value": "x"}]},
            {"conversations": [{"from": "human", "value": "b"}]}]"#;
        let messages = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]}
            {"prompt": "b"}"#;
        let aiperf = r#"{"session_id": "1", "turns": [{"text": "a", "delay": 10}, {"text": "x"}]}
            {"texts": ["b", "x"], "output_length": 7}"#;
        let batch = r#"{"custom_id": "1", "method": "POST", "body": {"model": "m", "messages":
            [{"role": "system", "content": "s"}, {"role": "user", "content": [{"type": "image_url"},
            {"type": "text", "text": "a"}]}]}}"#;
        let batch = batch.replace('\n', " ") + "\n{\"body\": {\"input\": \"b\"}}";
        let spec_bench = "{\"question_id\": 1, \"turns\": [\"a\", \"x\"]}\n{\"turns\": [\"b\"]}";
        for (name, text) in [
            ("aiperf.jsonl", aiperf),
            ("batch.jsonl", &batch),
            ("spec.jsonl", spec_bench),
            ("p.txt", "a\n\nb\n"),
            ("p.txt", "\u{feff}a\r\nb\r\n"),
            ("p.json", sharegpt),
            ("p.jsonl", messages),
            ("p.csv", "id,prompt\n1,a\n2,b\n"),
        ] {
            assert_eq!(read_text(name, text, false).unwrap(), ["a", "b"], "{name}");
        }
        let quoted = "prompt\n\"a, \"\"b\"\"\nc\"\n";
        assert_eq!(read_text("p.csv", quoted, false).unwrap(), ["a, \"b\"\nc"]);
    }

    #[test]
    fn json_is_read_to_its_end_however_it_is_arranged() {
        let dialogue =
            r#"[{"role": "user", "content": "a"}, {"role": "assistant", "content": "x"}]"#;
        let other = dialogue.replace("\"a\"", "\"b\"");
        for text in [
            // A list a line, lists in a row, a list of lists, and one document of several lines.
            &format!("{dialogue}\n{other}\n"),
            &format!("\u{feff}{dialogue}\r\n\r\n{other}"),
            &format!("[{dialogue}, {other}]"),
            &format!("{{\n\"messages\": {dialogue}\n}}\n{{\n\"messages\": {other}\n}}"),
            &format!("{{\"messages\": {dialogue}}} {{\"messages\": {other}}}"),
            "[{\"prompt\": \"a\"}]\n[{\"prompt\": \"b\"}]",
            "[{\"prompt\": \"a\"}][[\"b\", \"x\"]]",
            "[\"a\",\n\"b\"]",
            "{\"prompt\": \"a\"}\n[\"b\"]\n",
            "\n{\"prompt\": \"a\"}\n\n\"b\"\n",
        ] {
            for name in ["p.json", "p.jsonl", "p.txt"] {
                assert_eq!(read_text(name, text, false).unwrap(), ["a", "b"], "{text}");
            }
        }
        for (text, place) in [
            (
                "[{\"prompt\": \"a\"}]\n\n{garbage\n",
                "is not valid JSON: key must be a string at line 3",
            ),
            ("{\n\"prompt\": \"a\"\n}\ngarbage", "is not valid JSON: expected value at line 4"),
            ("{\"prompt\": \"a\"}\ngarbage", "1 of 2 entries have no prompt (line 2)"),
            ("{\"prompt\": \"a\"} 5", "1 of 2 entries have no prompt (line 1)"),
            ("[{\"prompt\": \"a\"}", "is not valid JSON: EOF while parsing a list at line 1"),
        ] {
            let error = read_text("p.json", text, false).unwrap_err();
            assert!(error.starts_with(place), "{text}: {error}");
        }
    }

    #[test]
    fn copies_share_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.txt");
        std::fs::write(&file, "a\n").unwrap();
        let prompts = FilePrompts::default();
        let copy = prompts.clone();
        let first = prompts.get(&file, false).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(Arc::ptr_eq(&first, &copy.get(&file, false).unwrap()));
        assert!(FilePrompts::default().get(&file, false).is_err());
    }

    #[test]
    fn broken_entries_are_counted_and_named() {
        let text = "{\"prompt\": \"a\"}\n{\"prompt\": \n{\"other\": 1}\n";
        let error = read_text("p.jsonl", text, false).unwrap_err();
        let named = "2 of 3 entries have no prompt (line 2, line 3); ";
        assert!(error.contains(named), "{error}");
        assert_eq!(read_text("p.jsonl", text, true).unwrap(), ["a"]);
        assert!(read_text("p.txt", "\n", false).unwrap_err().contains("has no prompt"));
        let columns = read_text("p.csv", "a,b\n1,2\n", false).unwrap_err();
        assert!(columns.contains("has the columns a, b;"), "{columns}");
    }
}
