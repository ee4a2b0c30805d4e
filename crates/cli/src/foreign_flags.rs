//! Flags of other tools: read as ours where they mean the same, else refused with a hint. Without
//! this the parser would propose a flag of ours with a similar name and another meaning.

use std::ffi::OsString;
use std::sync::LazyLock;

use plimsoll_plan::{REDACTED, redacted_urls};

use crate::command::OwnFlag;

/// A row of `foreign_flags.tsv`, whose head explains its columns.
struct Row {
    flags: &'static str,
    tools: &'static str,
    commands: &'static str,
    condition: &'static str,
    reading: &'static str,
    text: &'static str,
}

static ROWS: LazyLock<Vec<Row>> = LazyLock::new(|| {
    let lines = include_str!("foreign_flags.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(Row::read).collect()
});

impl Row {
    fn read(line: &'static str) -> Self {
        let mut columns = line.split('\t');
        let [flags, tools, commands, condition, reading, text] =
            std::array::from_fn(|_| columns.next().unwrap_or_default());
        Self { flags, tools, commands, condition, reading, text }
    }

    fn is_for(&self, command: &str) -> bool {
        self.commands.is_empty() || self.commands.split(',').any(|known| known == command)
    }

    fn names(&self, flag: &str) -> bool {
        self.flags.split(' ').any(|known| match known.strip_suffix('*') {
            Some(family) => flag.starts_with(family),
            None => known == flag,
        })
    }

    fn fits(&self, value: Option<&str>) -> bool {
        self.condition.is_empty() || value.is_some_and(|value| meets(self.condition, value))
    }

    /// The suggested replacement.
    fn hint(&self, flag: &str) -> String {
        let Self { tools, text, .. } = self;
        match text.strip_prefix("nothing: ") {
            Some(why) => {
                format!("`{flag}` is a flag of {tools} that Plimsoll does not have: {why}")
            }
            None => format!("`{flag}` is a flag of {tools}; use {text}"),
        }
    }

    /// The words in our spelling.
    fn words(&self, value: &str) -> Vec<String> {
        let number = value.split_once('/').map_or(value, |(number, _)| number);
        let words = self.reading.split(' ').filter(|_| !self.reading.starts_with("drop"));
        words
            .map(|word: &str| {
                let word = word.replace("{number}", number);
                word.replace("{pair}", &value.replacen(':', "=", 1)).replace("{}", value)
            })
            .collect()
    }
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

fn meets(condition: &str, value: &str) -> bool {
    match condition {
        "number" => is_number(value),
        "time" => !is_number(value) && crate::flags::parse_time(value).is_ok(),
        "url" => value.contains("://"),
        "pair" => value.contains(':') && !value.contains(['<', '/', '{']),
        "media" => value.contains('/') && !value.contains("://"),
        "body" => value.starts_with(['{', '[', '@']),
        "script" => [".lua", ".js", ".py"].iter().any(|end| value.ends_with(end)),
        "rate" => {
            let (number, unit) = value.split_once('/').unwrap_or((value, "s"));
            is_number(number) && matches!(unit, "s" | "1s")
        }
        "setting" => value.contains('='),
        literals => literals.split('|').any(|known| known == value),
    }
}

/// A command line as it was understood.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// In our spelling, and how foreign flags were read.
    Ours(Vec<OsString>, Vec<String>),
    /// Hints for flags without a counterpart, or with a counterpart that the user must choose.
    Refused(String),
}

/// Reads the flags of other tools in a command line. `flags_of` gives the flags of ours that the
/// command with these words has.
pub(crate) fn read(arguments: &[OsString], flags_of: fn(&[&str]) -> Vec<OwnFlag>) -> Reading {
    let words: Vec<_> = arguments.iter().skip(1).map_while(|word| word.to_str()).collect();
    let (foreign, command) = match foreign_command(&words) {
        Some((sentence, ours)) => (Some(sentence), ours),
        None => (None, words.first().copied().unwrap_or_default()),
    };
    let own = flags_of(if foreign.is_some() { std::slice::from_ref(&command) } else { &words });
    let mut reader = Reader { command, own, ..Reader::default() };
    reader.hints.extend(foreign);
    reader.words.extend(words.first().map(|word| (*word).to_owned()));
    let mut rest = words.iter().skip(1).copied();
    while let Some(word) = rest.next() {
        if word == "--" {
            reader.words.push(word.to_owned());
            break;
        }
        if reader.takes(word, rest.clone().next()) {
            reader.words.extend(rest.next().filter(|_| reader.keeps_next).map(str::to_owned));
        }
    }
    reader.words.extend(rest.map(str::to_owned));
    if !reader.hints.is_empty() {
        return Reading::Refused(reader.hints.join("\n"));
    }
    reader.add_defaults();
    let read = reader.words.into_iter().map(OsString::from);
    let other = arguments.iter().skip(1 + words.len()).cloned();
    let program = arguments.iter().take(1).cloned();
    Reading::Ours(program.chain(read).chain(other).collect(), reader.notes)
}

#[derive(Default)]
struct Reader<'a> {
    command: &'a str,
    own: Vec<OwnFlag>,
    words: Vec<String>,
    defaults: Vec<String>,
    notes: Vec<String>,
    hints: Vec<String>,
    /// Whether the word after this one is a value of a flag of ours.
    keeps_next: bool,
}

impl Reader<'_> {
    /// Reads a word; returns whether the next one belongs to it.
    fn takes(&mut self, word: &str, next: Option<&str>) -> bool {
        self.keeps_next = false;
        if let [.., flag, bounds] = self.words.as_mut_slice()
            && flag == "--goodput"
            && OBJECTIVES.iter().any(|name| word.starts_with(name))
        {
            // vLLM gives each bound as a word.
            bounds.push(' ');
            bounds.push_str(word);
            return false;
        }
        if !word.starts_with('-') || word == "-" {
            self.words.push(word.to_owned());
            return false;
        }
        let (flag, attached) = split(word);
        let own = self.own.iter().find(|own| own.name == flag);
        let value = attached.or_else(|| next.filter(|next| !is_flag(next)));
        let row = ROWS.iter().find(|row| {
            let is_possible = own.is_none() || !row.condition.is_empty();
            is_possible && row.is_for(self.command) && row.names(flag) && row.fits(value)
        });
        let Some(row) = row else {
            self.words.push(word.to_owned());
            let own = own.filter(|own| own.takes_value && own.name == word);
            self.keeps_next = own.is_some_and(|own: &OwnFlag| own.needs_value || value.is_some());
            return self.keeps_next;
        };
        if row.reading.is_empty() {
            let hint = row.hint(flag);
            if !self.hints.contains(&hint) {
                self.hints.push(hint);
            }
            return false;
        }
        let used = row.reading.contains('{') || !row.condition.is_empty();
        let read = row.words(value.unwrap_or_default()).into_iter();
        let (defaults, words): (Vec<_>, Vec<_>) = read.partition(|word| word.starts_with('?'));
        self.note(row, flag, value.filter(|_| used), &words);
        self.words.extend(words);
        self.defaults.extend(defaults);
        used && attached.is_none() && value.is_some()
    }

    fn note(&mut self, row: &Row, flag: &str, value: Option<&str>, words: &[String]) {
        let read = words.join(" ");
        let from = value.map_or_else(|| flag.to_owned(), |value| format!("{flag} {value}"));
        let hide = |text: &str| match value.filter(|_| is_secret(words)) {
            Some(value) => text.replace(value, REDACTED),
            None => redacted_urls(text),
        };
        let (from, read) = (hide(&from), hide(&read));
        let why = row.text;
        self.notes.push(match (words.is_empty(), why.is_empty()) {
            (true, _) => format!("`{from}` has no effect: {why}"),
            (false, true) => format!("`{from}` is read as `{read}`"),
            (false, false) => format!("`{from}` is read as `{read}`: {why}"),
        });
    }

    /// Adds the defaults of other tools, where the command line does not override them.
    fn add_defaults(&mut self) {
        for word in std::mem::take(&mut self.defaults) {
            let word = word.trim_start_matches('?');
            let flag = split(word).0;
            if !self.words.iter().any(|known| split(known).0 == flag) {
                self.notes.push(format!("`{word}` is added, the default of that tool"));
                self.words.push(word.to_owned());
            }
        }
    }
}

/// How the bounds of vLLM begin.
const OBJECTIVES: [&str; 3] = ["ttft:", "tpot:", "e2el:"];

/// Whether the words have a credential.
fn is_secret(words: &[String]) -> bool {
    let secret = ["--key", "--basic-auth", "-H"];
    words.first().is_some_and(|first| secret.contains(&first.as_str()))
}

/// Whether a word is a flag, and not a negative number.
fn is_flag(word: &str) -> bool {
    word.starts_with('-') && word.parse::<f64>().is_err()
}

/// The flag and the value of a word like `--rate=5`, or of `-t12`.
fn split(word: &str) -> (&str, Option<&str>) {
    if let Some((flag, value)) = word.split_once('=') {
        return (flag, Some(value));
    }
    match word.as_bytes() {
        [b'-', letter, b'0'..=b'9', ..]
            if letter.is_ascii_alphabetic() && !ROWS.iter().any(|row| row.names(word)) =>
        {
            (&word[..2], Some(&word[2..]))
        }
        _ => (word, None),
    }
}

/// The correct beginning of a line that begins with another tool's command, with a URL or with
/// flags, and our command in it.
fn foreign_command(words: &[&str]) -> Option<(String, &'static str)> {
    let (first, rest) = words.split_first()?;
    let is_url = |word: &&str| word.contains("://");
    if is_url(first) || first.starts_with('-') && rest.iter().any(is_url) {
        let hint = "a command comes first: plimsoll http URL for any service, plimsoll llm URL for a model";
        return Some((hint.to_owned(), "http"));
    }
    let row = ROWS.iter().find(|row| row.flags == *first && !first.starts_with('-'))?;
    let Row { flags: word, tools, commands, text, .. } = row;
    let is_ours = *word == "profile"
        && rest
            .first()
            .is_none_or(|next| !next.starts_with('-') || matches!(*next, "-h" | "--help"));
    (!is_ours).then(|| (format!("`{word}` is a command of {tools}; use {text}"), *commands))
}

#[cfg(test)]
mod tests;
