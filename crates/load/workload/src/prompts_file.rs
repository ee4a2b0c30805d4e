//! Prompts of a file: plain lines, JSON lines, a JSON list (`ShareGPT` too), CSV.
//!
//! Lines are read one by one, and of a list one entry after another becomes its prompt: what is
//! kept is the prompts, and not the file.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use csv::StringRecord;
use serde::de::{DeserializeSeed, Deserializer as _, SeqAccess, Visitor};
use serde_json::Value;

/// So many broken entries are named.
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

/// The prompts of a file, of a dialogue the first line of its user.
///
/// # Errors
/// The file cannot be read, has no prompt or, unless `skip_broken`, an entry without one; in words.
fn read(file: &Path, skip_broken: bool) -> Result<Vec<Arc<str>>, String> {
    let mut found = Entries::default();
    collect(file, &mut found)?;
    let Entries { prompts, broken, count, named } = found;
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

/// What was read so far.
#[derive(Default)]
struct Entries {
    prompts: Vec<Arc<str>>,
    count: usize,
    broken: usize,
    /// Where the first broken ones are.
    named: Vec<String>,
}

impl Entries {
    /// Adds an entry, which is the `number`th line, row or entry.
    fn add(&mut self, kind: &str, number: usize, prompt: Option<&str>) {
        self.count += 1;
        if let Some(prompt) = prompt {
            self.prompts.push(Arc::from(prompt));
            return;
        }
        self.broken += 1;
        if self.named.len() < NAMED {
            self.named.push(format!("{kind} {number}"));
        }
    }
}

fn collect(file: &Path, found: &mut Entries) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("{error}; name a file of UTF-8 text");
    let mut reader =
        BufReader::with_capacity(1 << 16, plimsoll_input::open(file).map_err(unreadable)?);
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension.eq_ignore_ascii_case("csv") {
        return read_csv(reader, found);
    }
    let first = first_byte(&mut reader).map_err(unreadable)?;
    if first == Some(b'[') {
        let mut json = serde_json::Deserializer::from_reader(reader);
        let read = json.deserialize_seq(List(found));
        return read.map_err(|error| format!("is no JSON list: {error}; correct it there"));
    }
    let is_json = extension.to_ascii_lowercase().starts_with("json") || first == Some(b'{');
    for (index, line) in reader.lines().enumerate() {
        let line = line.map_err(unreadable)?;
        if line.trim().is_empty() {
            continue;
        }
        if is_json {
            let value: Option<Value> = serde_json::from_str(&line).ok();
            found.add("line", index + 1, value.as_ref().and_then(prompt_of));
        } else {
            found.add("line", index + 1, Some(line.trim()));
        }
    }
    Ok(())
}

/// The first byte that is no white space, which stays to be read. It is looked for in what one read
/// gives.
fn first_byte(reader: &mut BufReader<File>) -> io::Result<Option<u8>> {
    let bytes = reader.fill_buf()?;
    Ok(bytes.iter().copied().find(|byte| !byte.is_ascii_whitespace()))
}

/// A list, whose entries become prompts one by one.
struct List<'e>(&'e mut Entries);

impl<'de> Visitor<'de> for List<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut number = 0;
        while let Some(value) = list.next_element_seed(AnyValue)? {
            number += 1;
            self.0.add("entry", number, prompt_of(&value));
        }
        Ok(())
    }
}

/// Any JSON.
struct AnyValue;

impl<'de> DeserializeSeed<'de> for AnyValue {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        serde::Deserialize::deserialize(from)
    }
}

/// The prompt of an entry in JSON: a text, a member that holds one, or the first line of the user.
///
/// `turns` and `texts` are members of `AIPerf`'s files, and `body` is a request of a batch.
fn prompt_of(value: &Value) -> Option<&str> {
    const MEMBERS: [&str; 8] =
        ["prompt", "text", "question", "input", "content", "texts", "text_input", "value"];
    const DIALOGUES: [&str; 4] = ["messages", "conversations", "turns", "conversation"];
    if !value.is_object() {
        return text(value);
    }
    let member = MEMBERS.iter().find_map(|name| value.get(name).and_then(text));
    member
        .or_else(|| {
            let dialogue = DIALOGUES.iter().find_map(|name| value.get(name)?.as_array())?;
            dialogue.iter().find(|line| is_user(line)).and_then(prompt_of)
        })
        .or_else(|| prompt_of(value.get("body")?))
}

/// A text, or the first one in a list: of texts, or of the parts of a content.
fn text(value: &Value) -> Option<&str> {
    match value {
        Value::Array(parts) => parts.iter().find_map(|part| text(part.get("text").unwrap_or(part))),
        _ => value.as_str().filter(|text| !text.is_empty()),
    }
}

/// Whether a line of a dialogue is the user's: it says so, or nobody says who speaks.
fn is_user(line: &Value) -> bool {
    let who = line.get("role").or_else(|| line.get("from")).and_then(Value::as_str);
    matches!(who, None | Some("user" | "human"))
}

/// The column `prompt`, or the only one.
fn read_csv(reader: impl io::Read, found: &mut Entries) -> Result<(), String> {
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader);
    let mut rows = rows.records().filter(|row| row.as_ref().map_or(true, has_text));
    let unreadable = |error: csv::Error| format!("{error}; name a file of UTF-8 text");
    let head = rows.next().transpose().map_err(unreadable)?.unwrap_or_default();
    let column = head.iter().position(|name| name.trim().eq_ignore_ascii_case("prompt"));
    let column = column.or_else(|| (head.len() == 1).then_some(0)).ok_or_else(|| {
        let names: Vec<_> = head.iter().collect();
        format!("has the columns {}; name the one with prompts `prompt`", names.join(", "))
    })?;
    for (index, row) in rows.enumerate() {
        let row = row.map_err(unreadable)?;
        found.add("row", index + 2, row.get(column).filter(|cell| !cell.trim().is_empty()));
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
        assert!(error.contains("2 of 3 entries have no prompt (line 2, line 3); "), "{error}");
        assert_eq!(read_text("p.jsonl", text, true).unwrap(), ["a"]);
        assert!(read_text("p.txt", "\n", false).unwrap_err().contains("has no prompt"));
        let columns = read_text("p.csv", "a,b\n1,2\n", false).unwrap_err();
        assert!(columns.contains("has the columns a, b;"), "{columns}");
    }
}
