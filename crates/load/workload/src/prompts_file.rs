//! Prompts of a file: plain lines, JSON in any arrangement, CSV.
//!
//! JSON is read to its end: one document, several in a row, one a line; each an entry or a list of
//! them. Entries are read one by one: the prompts are kept in memory, not the file. An entry gives
//! one prompt, and every other member of it is counted as not sent.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use csv::StringRecord;
use plimsoll_protocol::Dialect;
use serde::Deserialize as _;
use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Value, json};

/// The most broken entries that are named.
const NAMED: usize = 5;
/// The most members that are named as not sent; the others are counted together.
const NAMED_MEMBERS: usize = 40;

/// The prompts of a file, or why there are none. Copies share them: a profile is checked before its
/// load begins, and a search or several rounds send it again and again.
#[derive(Clone, Default)]
pub struct FilePrompts(Arc<OnceLock<Result<Prompts, String>>>);

/// The prompts, or in words why there are none.
pub(crate) type PromptsRead = Result<Arc<[Arc<str>]>, String>;

/// The prompts of a file.
struct Prompts {
    texts: Arc<[Arc<str>]>,
    /// The members that are not sent, with their counts.
    unsent: String,
}

impl FilePrompts {
    /// Reads the file for a protocol, the first time.
    pub(crate) fn get(&self, file: &Path, protocol: Dialect, skip_broken: bool) -> PromptsRead {
        let read = self.0.get_or_init(|| read(file, protocol, skip_broken));
        read.as_ref().map(|prompts| Arc::clone(&prompts.texts)).map_err(Clone::clone)
    }

    /// The members that are not sent, like `image_url (1), temperature (2)`, once the file is read
    /// and if there are any.
    pub(crate) fn unsent(&self) -> Option<&str> {
        let prompts = self.0.get()?.as_ref().ok()?;
        Some(&*prompts.unsent).filter(|unsent| !unsent.is_empty())
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
fn read(file: &Path, protocol: Dialect, skip_broken: bool) -> Result<Prompts, String> {
    let mut found = Entries { protocol, ..Entries::default() };
    collect(file, &mut found)?;
    let Entries { prompts, broken, count, named, mut unsent, .. } = found;
    if !skip_broken && broken > 0 {
        let more = if broken > NAMED { ", ..." } else { "" };
        return Err(format!(
            "{broken} of {count} entries have no prompt for {} ({}{more}); correct them, or leave them out with `skip_broken: true` (--skip-broken)",
            protocol.name(),
            named.join(", "),
        ));
    }
    if prompts.is_empty() {
        return Err("has no prompt; write one on each line".to_owned());
    }
    if broken > 0 {
        unsent.insert("entries without a prompt".to_owned(), broken);
    }
    let unsent: Vec<_> = unsent.iter().map(|(name, count)| format!("{name} ({count})")).collect();
    Ok(Prompts { texts: prompts.into(), unsent: unsent.join(", ") })
}

/// The entries read so far.
#[derive(Default)]
struct Entries {
    protocol: Dialect,
    prompts: Vec<Arc<str>>,
    count: usize,
    broken: usize,
    /// Positions of the first broken ones.
    named: Vec<String>,
    /// Members that are not sent, with their counts.
    unsent: BTreeMap<String, usize>,
    /// The current line, where a line is an entry.
    line: Option<usize>,
}

impl Entries {
    /// Adds an entry in JSON.
    fn add_json(&mut self, entry: &Value) {
        let mut unsent = Vec::new();
        let is_for = is_for(self.protocol, entry);
        self.add(is_for.then(|| prompt_of(entry, "messages", &mut unsent)).flatten().as_deref());
        for name in unsent {
            self.leave_out(name);
        }
    }

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

    fn leave_out(&mut self, name: String) {
        let full = self.unsent.len() >= NAMED_MEMBERS && !self.unsent.contains_key(&name);
        let name = if full { "other members".to_owned() } else { name };
        *self.unsent.entry(name).or_default() += 1;
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
    if found.count > 0 && found.prompts.iter().all(|line| is_logged(line)) {
        let fix = "write lines like `POST URL` for `plimsoll http --urls FILE`";
        return Err(format!("is an access log, not prompts; {fix}"));
    }
    Ok(())
}

/// Whether this is a line of an access log in the common or combined format: a time like
/// `[02/Oct/2026:08:00:00 +0200]`, and then the request in quotes.
fn is_logged(line: &str) -> bool {
    let start = line.split_once("] \"").and_then(|parts| parts.0.rsplit_once('['));
    start.is_some_and(|parts| parts.1.len() == 26 && parts.1.matches(':').count() == 3)
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
        self.0.add_json(&text.into());
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.add_json(&Value::deserialize(MapAccessDeserializer::new(map))?);
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut messages = Vec::new();
        while let Some(entry) = list.next_element::<Value>()? {
            // A list of messages is one entry.
            if speaker(&entry).is_some() || !messages.is_empty() {
                messages.push(entry);
            } else {
                self.0.add_json(&entry);
            }
        }
        if !messages.is_empty() {
            self.0.add_json(&Value::Array(messages));
        }
        Ok(())
    }
}

/// The column `prompt`, or the only one.
fn read_csv(reader: BufReader<File>, found: &mut Entries) -> Result<(), String> {
    let head = reader.buffer().split(|byte| *byte == b'\n').next().unwrap_or_default();
    let delimiter = [b'\t', b';', b',']
        .into_iter()
        .max_by_key(|delimiter: &u8| head.split(|byte| byte == delimiter).count())
        .unwrap_or(b',');
    let mut rows = csv::ReaderBuilder::new();
    let rows = rows.has_headers(false).flexible(true).delimiter(delimiter);
    let mut rows = rows.from_reader(reader);
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
        for (at, cell) in row.iter().enumerate() {
            if at != column && !cell.is_empty() {
                found.leave_out(head.get(at).unwrap_or("column").to_owned());
            }
        }
    }
    Ok(())
}

fn has_text(row: &StringRecord) -> bool {
    row.iter().any(|cell| !cell.is_empty())
}

/// The members that may hold a text or its parts; the first one that has a text is sent.
const TEXTS: [&str; 8] =
    ["prompt", "text", "question", "input", "content", "texts", "text_input", "value"];
/// The members that may hold messages, or a request with them.
const REQUESTS: [&str; 5] = ["messages", "conversations", "turns", "conversation", "body"];

/// The prompt of an entry, or of a part of one, which is in the member `holder`. Adds every other
/// member to `unsent`.
fn prompt_of(value: &Value, holder: &str, unsent: &mut Vec<String>) -> Option<String> {
    let before = unsent.len();
    let found = match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => Some(prompt_of_list(items, holder, unsent)),
        _ if speaker(value).is_some_and(|who| !matches!(who, "user" | "human")) => None,
        _ => prompt_of_object(value, unsent),
    };
    let found = found.filter(|text| !text.trim().is_empty());
    if found.is_none() {
        unsent.truncate(before);
    }
    found
}

fn prompt_of_object(value: &Value, unsent: &mut Vec<String>) -> Option<String> {
    let (holder, prompt) = TEXTS.iter().chain(&REQUESTS).find_map(|holder| {
        let held = value.get(holder).filter(|held| *holder != "body" || held.is_object())?;
        Some((*holder, prompt_of(held, holder, unsent)?))
    })?;
    for (name, other) in value.as_object()? {
        let is_kind = match &**name {
            "role" | "from" => true,
            "type" => matches!(other.as_str(), Some("text" | "input_text" | "message")),
            _ => false,
        };
        if name != holder && !is_kind && !is_empty(other) {
            unsent.push(name.clone());
        }
    }
    Some(prompt)
}

/// The texts of the parts of a content, or the first message of the user.
fn prompt_of_list(items: &[Value], holder: &str, unsent: &mut Vec<String>) -> String {
    // Some datasets have each message as JSON text.
    let decoded = items.iter().map(|item| serde_json::from_str(item.as_str()?).ok());
    let decoded: Option<Vec<Value>> = decoded.map(|item| item.filter(Value::is_object)).collect();
    let items = decoded.as_deref().unwrap_or(items);
    let is_dialogue = items.iter().any(|item| speaker(item).is_some());
    let is_content = !is_dialogue && items.iter().any(|item| item.get("type").is_some());
    let mut texts = Vec::new();
    for item in items {
        if !is_content && !texts.is_empty() {
            let user_turn = if is_dialogue { " user turn" } else { "" };
            unsent.push(format!("{holder} after the first{user_turn}"));
            continue;
        }
        // Messages without an author are the user's; results of tools have a type.
        let may_be_sent = if is_content {
            item.get("text").is_some()
        } else {
            speaker(item).is_some() || item.get("type").is_none()
        };
        match Some(item).filter(|_| may_be_sent).and_then(|item| prompt_of(item, holder, unsent)) {
            Some(text) => texts.push(text),
            None => unsent.push(kind(item).unwrap_or(holder).to_owned()),
        }
    }
    texts.join("\n")
}

fn is_empty(value: &Value) -> bool {
    [json!(null), json!(""), json!([]), json!({})].contains(value)
}

/// The author of a message.
fn speaker(message: &Value) -> Option<&str> {
    message.get("role").or_else(|| message.get("from"))?.as_str()
}

/// The author of a message, or the type of a part.
fn kind(item: &Value) -> Option<&str> {
    speaker(item).or_else(|| item.get("type")?.as_str())
}

/// Whether an entry may be sent with the protocol. Of a batch these are the requests of its kind: a
/// text for a model is not sent as an embedding, nor the other way round.
fn is_for(protocol: Dialect, entry: &Value) -> bool {
    let Some((url, _)) = entry.get("url").and_then(Value::as_str).zip(entry.get("body")) else {
        return true;
    };
    let path = url.split('?').next().unwrap_or_default();
    let mut known = Dialect::ALL.into_iter();
    let asked = known.find(|known| known.endpoint().is_some_and(|end| path.ends_with(end)));
    let embeds = Dialect::OpenaiEmbeddings;
    asked.is_some_and(|asked| (asked == embeds) == (protocol == embeds))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHAT: Dialect = Dialect::OpenaiChat;

    /// The prompts of a file with this text, and the members that are not sent.
    fn read_as(
        name: &str,
        text: &str,
        protocol: Dialect,
        skip_broken: bool,
    ) -> Result<(Vec<String>, String), String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        let read = read(&file, protocol, skip_broken)?;
        Ok((read.texts.iter().map(ToString::to_string).collect(), read.unsent))
    }

    fn read_text(name: &str, text: &str, skip_broken: bool) -> Result<Vec<String>, String> {
        read_as(name, text, CHAT, skip_broken).map(|read| read.0)
    }

    fn unsent(name: &str, text: &str) -> String {
        read_as(name, text, CHAT, false).unwrap().1
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
            ("p.csv", "\u{feff}prompt;id\r\na;1\r\nb;2\r\n"),
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
            (
                "{\"prompt\": \"a\"}\ngarbage",
                "1 of 2 entries have no prompt for openai-chat (line 2)",
            ),
            ("{\"prompt\": \"a\"} 5", "1 of 2 entries have no prompt for openai-chat (line 1)"),
            ("[{\"prompt\": \"a\"}", "is not valid JSON: EOF while parsing a list at line 1"),
        ] {
            let error = read_text("p.json", text, false).unwrap_err();
            assert!(error.starts_with(place), "{text}: {error}");
        }
    }

    #[test]
    fn every_member_that_is_not_sent_is_counted() {
        let image = r#"{"type": "image_url", "image_url": {"url": "data:,"}}"#;
        let text = r#"{"type": "text", "text": "a", "cache_control": {}}"#;
        let user = r#"{"role": "user", "content": "a"}"#;
        for (entry, expected) in [
            // Nothing is lost: the prompt is all that the entry has.
            (r#"{"prompt": "a", "image": null, "tools": []}"#.to_owned(), ""),
            (format!(r#"{{"messages": [{user}]}}"#), ""),
            (r#"{"prompt": "a", "output_length": 9, "stream": false}"#.to_owned(), "output_length (1), stream (1)"),
            // Parts of a content.
            (format!(r#"{{"messages": [{{"role": "user", "content": [{text}, {image}, {image}]}}]}}"#), "image_url (2)"),
            (r#"{"content": [{"type": "text", "text": "a", "x": 1}, {"type": "audio"}]}"#.to_owned(), "audio (1), x (1)"),
            (r#"{"content": [{"text": "a"}, {"type": "tool_result", "content": "x"}]}"#.to_owned(), "tool_result (1)"),
            // Messages before and after the prompt, whoever wrote them.
            (format!(r#"[{{"role": "system", "content": "x"}}, {{"role": "assistant", "content": "x"}}, {user}, {user}, {user}]"#), "assistant (1), messages after the first user turn (2), system (1)"),
            (r#"{"id": 1, "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "a", "image": "x"}]}"#.to_owned(), "gpt (1), id (1), image (1)"),
            (r#"{"conversations": ["{\"from\": \"gpt\", \"value\": \"x\"}", "{\"from\": \"human\", \"value\": \"a\"}"]}"#.to_owned(), "gpt (1)"),
            (r#"{"input": [{"type": "message", "role": "user", "content": "a"}, {"type": "function_call", "name": "x"}]}"#.to_owned(), "input after the first user turn (1)"),
            // A request of a batch.
            (format!(r#"{{"url": "/v1/chat/completions?v=1", "body": {{"messages": [{user}], "temperature": 0, "tools": [1]}}}}"#), "temperature (1), tools (1), url (1)"),
(r#"{"turns": [{"role": "system", "text": "x"}, {"text": "a"}, {"text": "x"}]}"#.to_owned(), "system (1), turns after the first user turn (1)"),
            (r#"{"texts": ["a", "x"]}"#.to_owned(), "texts after the first (1)"),
            (r#"{"prompt": "a", "messages": [{"role": "user", "content": "x"}]}"#.to_owned(), "messages (1)"),
        ] {
            let (prompts, found) = read_as("p.jsonl", &entry, CHAT, false).unwrap();
            assert_eq!((prompts.join("|"), &*found), ("a".to_owned(), expected), "{entry}");
        }
        let rows = "prompt,id\na,1\nb\n\"c\",2,x\n";
        assert_eq!(unsent("p.csv", rows), "column (1), id (2)");
        let broken = "{\"prompt\": \"a\"}\n{\"id\": 1}\n";
        let skipped = read_as("p.jsonl", broken, CHAT, true);
        assert_eq!(skipped.unwrap().1, "entries without a prompt (1)");
        let texts =
            r#"{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#;
        assert_eq!(
            read_as("p.json", texts, CHAT, false).unwrap(),
            (vec!["a\nb".to_owned()], String::new())
        );
        let foreign: Vec<_> = (0..100).map(|name| format!("\"m{name}\": 1")).collect();
        let foreign = format!("{{\"prompt\": \"a\", {}}}", foreign.join(", "));
        let counted = unsent("p.json", &foreign);
        assert!(counted.contains("other members (60)"), "{counted}");
    }

    #[test]
    fn only_the_text_of_a_user_is_sent_to_a_protocol_that_it_was_written_for() {
        let embedding = r#"{"url": "/v1/embeddings", "body": {"input": "a"}}"#;
        let chat = r#"{"url": "/v1/responses", "body": {"input": "a"}}"#;
        for (entry, protocol, is_sent) in [
            (chat, CHAT, true),
            (chat, Dialect::OpenaiEmbeddings, false),
            (embedding, CHAT, false),
            (embedding, Dialect::OpenaiEmbeddings, true),
            (r#"{"url": "/v1/moderations", "body": {"input": "a"}}"#, CHAT, false),
            (r#"{"url": "/v1/chat/completions", "body": "eyJh"}"#, CHAT, false),
            (r#"{"role": "assistant", "content": "x"}"#, CHAT, false),
            (
                r#"[{"role": "assistant", "content": "x"}, {"type": "reasoning", "content": "x"}]"#,
                CHAT,
                false,
            ),
            (
                r#"{"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}"#,
                CHAT,
                false,
            ),
        ] {
            match read_as("p.jsonl", entry, protocol, false) {
                Ok(read) => assert!(is_sent && read.0 == ["a"], "{entry}: {read:?}"),
                Err(error) => assert!(!is_sent && error.starts_with("1 of 1 entries"), "{error}"),
            }
        }
    }

    #[test]
    fn an_access_log_is_refused() {
        let line =
            "::1 - - [02/Oct/2026:08:00:00 +0200] \"GET /a HTTP/1.1\" 200 5 \"-\" \"curl\"\n";
        for log in [line, &[line, "\n", line].concat()] {
            let error = read_text("p.log", log, false).unwrap_err();
            assert!(error.contains("is an access log, not prompts"), "{log}: {error}");
        }
        for prompts in [&[line, "Explain this line.\n"].concat(), "At [12:30:00] \"now\"\n"] {
            assert!(read_text("p.txt", prompts, false).is_ok(), "{prompts}");
        }
    }

    #[test]
    fn copies_share_what_was_read() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("p.txt");
        std::fs::write(&file, "a\n").unwrap();
        let prompts = FilePrompts::default();
        let copy = prompts.clone();
        let first = prompts.get(&file, CHAT, false).unwrap();
        std::fs::remove_file(&file).unwrap();
        assert!(Arc::ptr_eq(&first, &copy.get(&file, CHAT, false).unwrap()));
        assert!(FilePrompts::default().get(&file, CHAT, false).is_err());
    }

    #[test]
    fn broken_entries_are_counted_and_named() {
        let text = "{\"prompt\": \"a\"}\n{\"prompt\": \n{\"other\": 1}\n";
        let error = read_text("p.jsonl", text, false).unwrap_err();
        let named = "2 of 3 entries have no prompt for openai-chat (line 2, line 3); ";
        assert!(error.contains(named), "{error}");
        assert_eq!(read_text("p.jsonl", text, true).unwrap(), ["a"]);
        assert!(read_text("p.txt", "\n", false).unwrap_err().contains("has no prompt"));
        let columns = read_text("p.csv", "a,b\n1,2\n", false).unwrap_err();
        assert!(columns.contains("has the columns a, b;"), "{columns}");
    }
}
