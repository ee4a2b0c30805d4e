//! The table of formats, and the choice of the format of a file.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::value::{is_empty, list, text};

/// Number of rows by which a format is recognised.
pub(crate) const SAMPLE: usize = 100;

/// Plimsoll's own format.
pub(crate) const OWN: &str = "plimsoll";

/// The format of a load without requests.
pub(crate) const LOAD: &str = "k6";

/// The format of a client whose requests are drawn.
pub(crate) const CLIENT: &str = "servegen";

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| parse(include_str!("formats.yaml")));
/// The APIs, by the members of a request.
static DIALECTS: LazyLock<Vec<Format>> = LazyLock::new(|| parse(include_str!("dialects.yaml")));

/// A test checks that the tables are valid.
fn parse(table: &str) -> Vec<Format> {
    serde_saphyr::from_str(table).unwrap_or_default()
}

/// How a format is recognised, and how its members are converted.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Format {
    pub(crate) name: String,
    pub(crate) title: String,
    /// Alternatives, each a list of members.
    has: Vec<Vec<String>>,
    /// The members that lead to the list of rows.
    rows: Vec<String>,
    /// Pattern of a record, for formats of text.
    #[serde(deserialize_with = "pattern")]
    line: Option<Regex>,
    /// Whether a line that does not match continues the record before.
    pub(crate) several: bool,
    /// Alternatives, each a member, then the values that make a row a request.
    only: Vec<Vec<String>>,
    /// Alternatives of signs of rows that are not requests.
    skip: Vec<Vec<String>>,
    /// Members that inner rows get from the outer ones.
    outer: Vec<String>,
    /// Alternatives of signs of replies, for formats in which each row is a message.
    reply: Vec<Vec<String>>,
    /// Whether a prompt without a reply is a request, in such a format.
    pub(crate) unanswered: bool,
    /// Whether prompts repeat earlier prompts and their replies.
    pub(crate) history: bool,
    /// Members that requests lack, each with alternatives of signs that they had it.
    missing: BTreeMap<String, Vec<Vec<String>>>,
    pub(crate) sort: bool,
    pub(crate) dialect: Option<String>,
    pub(crate) refuse: Option<String>,
    /// Texts in place of truncated content.
    pub(crate) cut: Vec<String>,
    /// The name by which it is written, then the members to write.
    pub(crate) export: Vec<String>,
    /// Alternatives of signs of requests that can be written.
    needs: Vec<Vec<String>>,
    /// The first line of such a file.
    pub(crate) header: Value,
    members: BTreeMap<String, String>,
}

/// How a member is handled.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Rule<'f> {
    /// Converted: the conversion, and the path of the result.
    Use(&'f str, &'f str),
    /// Counted as unused, with the reason.
    LeaveOut(&'f str),
    /// Some of its own members have rules.
    Descend,
    Unknown,
}

impl Format {
    /// The rule of a member, or the rule for `*`.
    pub(crate) fn rule(&self, path: &str) -> Rule<'_> {
        let rule = match self.members.get(path) {
            None if self.members.keys().any(|inner| is_inside(inner, path)) => {
                return Rule::Descend;
            }
            None => self.members.get("*").or_else(|| self.rule_of_group(path)),
            own => own,
        };
        match rule.map(|rule| rule.split_once(' ').unwrap_or((rule, ""))) {
            None => Rule::Unknown,
            Some(("-", reason)) => Rule::LeaveOut(reason),
            Some((conversion, target)) => Rule::Use(conversion, target),
        }
    }

    /// The rule for `GROUP.*`, of all members in it.
    fn rule_of_group(&self, path: &str) -> Option<&String> {
        let groups =
            self.members.iter().filter_map(|(name, rule)| Some((name.strip_suffix(".*")?, rule)));
        groups.filter(|(group, _)| is_inside(path, group)).map(|(_, rule)| rule).next()
    }

    /// The kind of a row that is not a request.
    pub(crate) fn other_kind(&self, row: &Value) -> Option<String> {
        if let Some(signs) = fitting(&self.skip, row) {
            return Some(format!("rows with {signs} (not requests)"));
        }
        let kind = |member| find(row, member, &|_| true).map(text).unwrap_or_default();
        let mut alternatives = self.only.iter().filter_map(|one| one.split_first());
        let is_request = alternatives.clone().any(|(member, kinds)| kinds.contains(&kind(member)));
        let (member, _) = alternatives.next().filter(|_| !is_request)?;
        Some(format!("rows whose {member} is `{}` (not requests)", kind(member)))
    }

    /// Names of the members that a request lacks although it had them.
    pub(crate) fn missing_in(&self, request: &Value) -> Vec<String> {
        let missing = self.missing.iter().filter(|(_, signs)| fitting(signs, request).is_some());
        missing.map(|(name, _)| name.clone()).collect()
    }

    /// The signs that a request lacks to be written.
    pub(crate) fn lacks_for_export(&self, request: &Value) -> Option<String> {
        let needed = self.needs.iter().map(|signs| signs.join(", "));
        fitting(&self.needs, request).is_none().then(|| needed.collect::<Vec<_>>().join(" or "))
    }

    /// The signs of a row that belongs to the format.
    fn signs_in(&self, row: &Value) -> Option<String> {
        fitting(&self.has, row)
    }

    /// Whether rows are messages, and this one is a part of a reply.
    pub(crate) fn is_reply(&self, row: &Value) -> Option<bool> {
        (!self.reply.is_empty()).then(|| fitting(&self.reply, row).is_some())
    }

    /// The rows inside a value of the file. The members around them are in `dropped`.
    pub(crate) fn rows_of(&self, value: Value, dropped: &mut Vec<String>) -> Vec<Value> {
        let mut values = vec![value];
        for step in &self.rows {
            values =
                values.into_iter().flat_map(|outer| self.inner(outer, step, dropped)).collect();
        }
        for row in &mut values {
            if let Some(pairs @ Value::Array(_)) = row.get_mut("attributes") {
                *pairs = attributes(pairs);
            }
        }
        values
    }

    /// The rows of a member, or the value itself without this member.
    fn inner(&self, mut outer: Value, step: &str, dropped: &mut Vec<String>) -> Vec<Value> {
        let Some(inner) = outer.as_object_mut().and_then(|members| members.remove(step)) else {
            return vec![outer];
        };
        let mut rows = list(inner);
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            for name in self.outer.iter().filter(|name| outer.get(name).is_some()) {
                row.entry(name).or_insert_with(|| outer[name].clone());
            }
        }
        let others = outer.as_object().into_iter().flatten();
        let others = others.filter(|(name, value)| !self.outer.contains(name) && !is_empty(value));
        dropped.extend(others.map(|(name, _)| format!("{name} (beside {step})")));
        rows
    }

    pub(crate) const fn is_text(&self) -> bool {
        self.line.is_some()
    }

    /// Whether its rows have ids.
    pub(crate) fn has_ids(&self) -> bool {
        self.members.contains_key("id")
    }

    /// Whether a line begins a record.
    pub(crate) fn begins(&self, line: &str) -> bool {
        self.line.as_ref().is_some_and(|pattern| pattern.is_match(line))
    }

    /// The members of a record of text; `Null` for any other line, which is common in logs.
    pub(crate) fn parse(&self, record: &str) -> Value {
        let found = self.line.as_ref().and_then(|line| Some((line, line.captures(record)?)));
        let Some((pattern, found)) = found else { return Value::Null };
        let named = pattern.capture_names().flatten();
        let members = named.filter_map(|name| Some((name, found.name(name)?.as_str())));
        let members = members.filter(|(_, text)| *text != "-");
        members.map(|(name, text)| (name.to_owned(), unescaped(text))).collect()
    }
}

/// The first alternative of which a row has all signs.
fn fitting(alternatives: &[Vec<String>], row: &Value) -> Option<String> {
    let signs = alternatives.iter().find(|signs| signs.iter().all(|sign| has(row, sign)))?;
    Some(signs.join(", "))
}

fn is_inside(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.starts_with('.'))
}

fn pattern<'de, D: Deserializer<'de>>(table: D) -> Result<Option<Regex>, D::Error> {
    let pattern = String::deserialize(table)?;
    Regex::new(&pattern).map(Some).map_err(serde::de::Error::custom)
}

/// Undoes `\xNN`, the escape of access logs.
fn unescaped(text: &str) -> Value {
    let mut parts = text.split("\\x");
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let byte = part.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.extend(byte);
        bytes.extend_from_slice(&part.as_bytes()[if byte.is_some() { 2 } else { 0 }..]);
    }
    String::from_utf8_lossy(&bytes).into()
}

/// `[{"key": K, "value": {"stringValue": V}}]` of OTLP as `{K: V}`.
fn attributes(pairs: &mut Value) -> Value {
    let pairs = pairs.as_array_mut().into_iter().flatten();
    pairs.map(|pair| (text(&pair["key"]), any_value(&mut pair["value"]))).collect()
}

fn any_value(value: &mut Value) -> Value {
    let kind = value.as_object_mut().and_then(|kinds| kinds.iter_mut().next());
    match kind {
        None => Value::Null,
        Some((kind, inner)) => match kind.as_str() {
            "arrayValue" => list(inner["values"].take()).iter_mut().map(any_value).collect(),
            "kvlistValue" => attributes(&mut inner["values"]),
            "intValue" => text(inner).parse::<i64>().map_or_else(|_| inner.take(), Value::from),
            _ => inner.take(),
        },
    }
}

/// Whether a row has a member: `PATH`, `!PATH` for an absent one, or `PATH~END` for a text with
/// this end.
fn has(row: &Value, sign: &str) -> bool {
    let (path, end) = sign.split_once('~').unwrap_or((sign, ""));
    let (path, is_wanted) = path.strip_prefix('!').map_or((path, true), |path| (path, false));
    let fits = find(row, path, &|value| end.is_empty() || text(value).ends_with(end));
    fits.is_some() == is_wanted
}

/// The first fitting member at a path. Names may contain dots, and `*` is every element.
fn find<'v>(value: &'v Value, path: &str, fits: &dyn Fn(&Value) -> bool) -> Option<&'v Value> {
    let element = path.parse::<usize>().ok().and_then(|index| value.get(index));
    if let Some(found) = element.or_else(|| value.get(path)) {
        return Some(found).filter(|value| !value.is_null() && fits(value));
    }
    path.match_indices('.').find_map(|(at, _)| {
        let (first, rest) = (&path[..at], &path[at + 1..]);
        match (first, value) {
            ("*", Value::Array(list)) => list.iter().find_map(|one| find(one, rest, fits)),
            ("*", Value::Object(members)) => members.values().find_map(|one| find(one, rest, fits)),
            _ => find(find(value, first, &|_| true)?, rest, fits),
        }
    })
}

/// All formats.
pub(crate) fn all() -> &'static [Format] {
    &FORMATS
}

/// The format of this name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The text format of most lines, or the one that the first line starts.
pub(crate) fn of_lines(lines: &[&str]) -> Option<&'static Format> {
    FORMATS.iter().find(|format| {
        let begins = lines.iter().filter(|line| format.begins(line)).count();
        begins * 2 > lines.len() || format.several && begins > 0
    })
}

/// The API of a request.
pub(crate) fn dialect(request: &Value) -> Option<&'static str> {
    let mut dialects = DIALECTS.iter();
    dialects.find(|dialect| dialect.signs_in(request).is_some()).map(|dialect| &*dialect.name)
}

/// The chosen format, why it was chosen, and the others that fit as well.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) format: &'static Format,
    pub(crate) why: String,
    pub(crate) also: Vec<&'static str>,
}

impl Choice {
    pub(crate) fn new(format: &'static Format, why: &str) -> Self {
        Self { format, why: why.to_owned(), also: Vec::new() }
    }
}

/// The format of most of the first rows.
pub(crate) fn recognise(sample: &[Value]) -> Option<Choice> {
    let fits = FORMATS.iter().map(|format| {
        let rows = sample.iter().flat_map(|value| format.rows_of(value.clone(), &mut Vec::new()));
        let rows: Vec<_> = rows.take(SAMPLE).collect();
        let signs: Vec<_> = rows.iter().filter_map(|row| format.signs_in(row)).collect();
        let share = signs.len() as f64 / rows.len().max(1) as f64;
        // A format that cannot be sent is refused even if few rows have it.
        let share = if format.refuse.is_none() || share == 0.0 { share } else { 1.0 };
        (share, format, signs)
    });
    let mut fits: Vec<_> = fits.filter(|(share, ..)| *share > 0.0).collect();
    fits.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
    let (share, format, signs) = fits.first()?;
    let also = fits[1..].iter().filter(|(other, ..)| other >= share);
    let why = format!("{} % of the first rows have {}", (share * 100.0).round(), signs.first()?);
    Some(Choice { format, why, also: also.map(|(_, format, _)| &*format.name).collect() })
}
