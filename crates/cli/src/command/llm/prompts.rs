//! Prompts of a file: plain lines, JSON lines, `ShareGPT`, CSV.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::exit::UsageError;

/// So many broken entries are named.
const NAMED: usize = 5;

/// The prompts of a file, of a dialogue the first line of its user.
///
/// # Errors
/// The file cannot be read, has no prompt or, unless `skip_broken`, an entry without one.
pub(super) fn read(file: &Path, skip_broken: bool) -> Result<Vec<String>, UsageError> {
    let refuse = |why: String| UsageError(format!("--prompts {}: {why}", file.display()));
    let text = fs::read_to_string(file)
        .map_err(|error| refuse(format!("{error}; name a file of UTF-8 text")))?;
    let entries = entries(file, &text).map_err(refuse)?;
    let broken: Vec<_> = entries
        .iter()
        .filter(|entry| entry.prompt.is_none())
        .map(|entry| entry.place.clone())
        .collect();
    if !skip_broken && !broken.is_empty() {
        let named: Vec<_> = broken.iter().take(NAMED).map(String::as_str).collect();
        let more = if broken.len() > NAMED { ", ..." } else { "" };
        return Err(refuse(format!(
            "{} of {} entries have no prompt ({}{more}); correct them, or leave them out with --skip-broken",
            broken.len(),
            entries.len(),
            named.join(", "),
        )));
    }
    let prompts: Vec<_> = entries.into_iter().filter_map(|entry| entry.prompt).collect();
    if prompts.is_empty() {
        return Err(refuse("has no prompt; write one on each line".to_owned()));
    }
    Ok(prompts)
}

/// One entry of a file.
struct Entry {
    /// Where it is, for people.
    place: String,
    prompt: Option<String>,
}

fn entries(file: &Path, text: &str) -> Result<Vec<Entry>, String> {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    if extension.eq_ignore_ascii_case("csv") {
        return csv(text);
    }
    if text.trim_start().starts_with('[') {
        let list: Vec<Value> = serde_json::from_str(text)
            .map_err(|error| format!("is no JSON list: {error}; correct it there"))?;
        let numbered = list.iter().enumerate();
        return Ok(numbered
            .map(|(index, value)| Entry {
                place: format!("entry {}", index + 1),
                prompt: prompt_of(value),
            })
            .collect());
    }
    let is_json = extension.to_ascii_lowercase().starts_with("json") || text.starts_with('{');
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    Ok(lines
        .map(|(index, line)| {
            let prompt = if is_json {
                serde_json::from_str(line).ok().as_ref().and_then(prompt_of)
            } else {
                Some(line.trim().to_owned())
            };
            Entry { place: format!("line {}", index + 1), prompt }
        })
        .collect())
}

/// The prompt of an entry in JSON: a text, a member that holds one, or the first line of the user.
fn prompt_of(value: &Value) -> Option<String> {
    let text = |value: &Value| value.as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    if value.is_string() {
        return text(value);
    }
    let member = ["prompt", "text", "question", "input", "content"]
        .iter()
        .find_map(|name| value.get(name).and_then(text));
    let dialogue = value.get("messages").or_else(|| value.get("conversations"));
    let first_line = || {
        let lines = dialogue?.as_array()?;
        let is_user = |line: &&Value| {
            let who = line.get("role").or_else(|| line.get("from")).and_then(Value::as_str);
            matches!(who, Some("user" | "human"))
        };
        let line = lines.iter().find(is_user)?;
        line.get("content").or_else(|| line.get("value")).and_then(text)
    };
    member.or_else(first_line)
}

/// The column `prompt`, or the only one.
fn csv(text: &str) -> Result<Vec<Entry>, String> {
    let mut rows = csv_rows(text).into_iter();
    let head = rows.next().unwrap_or_default();
    let column = head.iter().position(|name| name.trim().eq_ignore_ascii_case("prompt"));
    let column = column.or_else(|| (head.len() == 1).then_some(0)).ok_or_else(|| {
        format!("has the columns {}; name the one with prompts `prompt`", head.join(", "))
    })?;
    Ok(rows
        .enumerate()
        .map(|(index, row)| Entry {
            place: format!("row {}", index + 2),
            prompt: row.get(column).filter(|cell| !cell.trim().is_empty()).cloned(),
        })
        .collect())
}

/// Rows of cells; cells in quotes may contain commas, line feeds and doubled quotes (RFC 4180).
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut cell) = (Vec::new(), Vec::new(), String::new());
    let (mut quoted, mut characters) = (false, text.chars().peekable());
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            '\r' if !quoted => {}
            c => cell.push(c),
        }
    }
    if !cell.is_empty() || !row.is_empty() {
        row.push(cell);
        rows.push(row);
    }
    rows.retain(|row| row.iter().any(|cell| !cell.is_empty()));
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str, skip_broken: bool) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(name);
        fs::write(&file, text).unwrap();
        read(&file, skip_broken).map_err(|error| error.to_string())
    }

    #[test]
    fn prompts_are_read_from_every_kind_of_file() {
        let sharegpt = r#"[{"conversations": [{"from": "system", "value": "s"},
            {"from": "human", "value": "a"}, {"from": "gpt", "value": "x"}]},
            {"conversations": [{"from": "human", "value": "b"}]}]"#;
        let messages = r#"{"messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "a"}]}
            {"prompt": "b"}"#;
        for (name, text) in [
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
