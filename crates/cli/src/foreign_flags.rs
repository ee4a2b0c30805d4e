//! Hints for flags of other tools. Without them the parser would propose a flag of ours with a
//! similar name and another meaning.

use std::ffi::OsString;
use std::sync::LazyLock;

/// A row of `foreign_flags.tsv`, whose head explains its columns.
#[derive(Clone, Copy)]
struct ForeignFlag<'a> {
    flag: &'a str,
    tools: &'a str,
    commands: &'a str,
    ours: &'a str,
}

impl ForeignFlag<'_> {
    fn is_for(&self, command: &str) -> bool {
        self.commands.is_empty() || self.commands.split(',').any(|known| known == command)
    }

    fn matches(&self, flag: &str) -> bool {
        match self.flag.strip_suffix('*') {
            Some(family) => flag.starts_with(family),
            None => self.flag == flag,
        }
    }
}

static FLAGS: LazyLock<Vec<ForeignFlag<'static>>> =
    LazyLock::new(|| rows().filter(|row| row.flag.starts_with('-')).collect());

fn rows() -> impl Iterator<Item = ForeignFlag<'static>> {
    let lines = include_str!("foreign_flags.tsv").lines().filter(|line| !line.starts_with('#'));
    lines.map(read_row)
}

fn read_row(line: &str) -> ForeignFlag<'_> {
    let mut columns = line.split('\t');
    let [flag, tools, commands, ours] = std::array::from_fn(|_| columns.next().unwrap_or(""));
    ForeignFlag { flag, tools, commands, ours }
}

/// The hints for a command line of another tool: for its command, and for each flag that another
/// tool has and the parser refuses, or would misread: `-header` would be `-h`, and `-q 50` would be
/// `--quiet` and a URL. `flags_of` gives the flags of a command of ours.
pub(crate) fn hint(
    arguments: &[OsString],
    refused: Option<&str>,
    flags_of: fn(&str) -> Vec<String>,
) -> Option<String> {
    let words: Vec<_> = arguments.iter().skip(1).map_while(|word| word.to_str()).collect();
    let (foreign, command) = match foreign_command(&words) {
        Some((sentence, ours)) => (Some(sentence), ours),
        None => (None, words.first().copied().unwrap_or_default()),
    };
    let refused = refused.map(flag_of);
    let misread = words.iter().copied().map(flag_of).find(|flag| is_misread(flag, command));
    let rate = rate_of_hey(&words, command);
    let first = misread.or(refused).and_then(|flag| Some((flag, sentence(flag, command)?)));
    if foreign.is_none() && rate.is_none() && first.is_none() {
        return None;
    }
    let first_flag = first.as_ref().map(|(flag, _)| *flag);
    let mut hints: Vec<String> = foreign.into_iter().chain(rate).collect();
    hints.extend(first.map(|(_, hint)| hint));
    let own = flags_of(command);
    for word in words.iter().skip(1).filter(|word| word.starts_with('-')) {
        let flag = flag_of(word);
        let is_own = own.iter().any(|own| *own == flag || is_cluster_of(own, flag));
        if !is_own && Some(flag) != first_flag {
            hints.extend(sentence(flag, command).filter(|hint| !hints.contains(hint)));
        }
    }
    Some(hints.join("\n"))
}

/// The flag of a word like `--rate=5`, or of `-t12`.
fn flag_of(word: &str) -> &str {
    let flag = word.split([' ', '=']).next().unwrap_or_default();
    match flag.as_bytes() {
        [b'-', letter, b'0'..=b'9', ..]
            if letter.is_ascii_alphabetic() && FLAGS.iter().all(|known| known.flag != flag) =>
        {
            &flag[..2]
        }
        _ => flag,
    }
}

/// Whether `-c40` is the flag `-c` with its value.
fn is_cluster_of(own: &str, word: &str) -> bool {
    own.len() == 2 && word.starts_with(own) && !word.starts_with("--")
}

/// Whether our parser would take a word for something else.
fn is_misread(flag: &str, command: &str) -> bool {
    is_single_dash_word(flag) && find(flag, command).is_some()
}

/// `-q 50` of oha and hey.
fn rate_of_hey(words: &[&str], command: &str) -> Option<String> {
    let quiet = words.iter().position(|word| *word == "-q")?;
    let rate = words.get(quiet + 1).filter(|word| word.parse::<f64>().is_ok())?;
    let ours = if matches!(command, "http" | "llm") { "--rate N" } else { "--stages @RATE:TIME" };
    Some(format!(
        "`-q {rate}` is the rate of oha, and of each client of hey; use {ours}, the total rate"
    ))
}

/// What a line that begins with another tool's command, with a URL or with flags should begin
/// with, and which command of ours that is.
fn foreign_command(words: &[&str]) -> Option<(String, &'static str)> {
    let (first, rest) = words.split_first()?;
    let is_url = |word: &&str| word.contains("://");
    if is_url(first) || first.starts_with('-') && rest.iter().any(is_url) {
        let hint = "a command comes first: plimsoll http URL for any service, plimsoll llm URL \
                    --model NAME for a model";
        return Some((hint.to_owned(), "http"));
    }
    let row = rows().find(|row| row.flag == *first && !first.starts_with('-'))?;
    let ForeignFlag { flag: word, tools, commands, ours } = row;
    let is_ours = word == "profile"
        && rest
            .first()
            .is_none_or(|next| !next.starts_with('-') || matches!(*next, "-h" | "--help"));
    (!is_ours).then(|| (format!("`{word}` is a command of {tools}; use {ours}"), commands))
}

/// What to type in place of a flag that another tool has.
fn sentence(flag: &str, command: &str) -> Option<String> {
    let ForeignFlag { tools, ours, .. } = find(flag, command)?;
    Some(match ours.strip_prefix("nothing: ") {
        Some(why) => format!("`{flag}` is a flag of {tools} that Plimsoll does not have: {why}"),
        None => format!("`{flag}` is a flag of {tools}; use {ours}"),
    })
}

/// Whether a word looks like `-rate`: a dash, and more than one letter.
fn is_single_dash_word(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|name| name.len() > 1 && !name.starts_with('-'))
}

fn find(flag: &str, command: &str) -> Option<ForeignFlag<'static>> {
    FLAGS.iter().copied().find(|known| known.is_for(command) && known.matches(flag))
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tools;
