//! The table of formats, and which one a file is.

use std::sync::LazyLock;

use serde_json::Value;

/// The name of the canonical format.
pub(crate) const OWN: &str = "plimsoll";

/// How many rows decide.
pub(crate) const SAMPLE: usize = 100;

static FORMATS: LazyLock<Vec<Format>> = LazyLock::new(|| parse(include_str!("formats.txt")));

/// A format: how it is recognised, and what becomes of its members.
#[derive(Debug, Default)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Alternatives, each a list of members.
    signs: Vec<Vec<&'static str>>,
    /// The members on the way to the list of rows.
    pub(crate) rows: Vec<&'static str>,
    pub(crate) text: &'static str,
    /// A member, then the values that make a row a request.
    pub(crate) only: Vec<String>,
    pub(crate) sort: bool,
    pub(crate) dialect: &'static str,
    pub(crate) refuse: &'static str,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    path: String,
    rule: Rule,
}

/// What becomes of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    Use {
        target: &'static str,
        argument: &'static str,
    },
    LeaveOut(&'static str),
    /// Members of this one have rules.
    Descend,
    Unknown,
}

impl Format {
    /// What becomes of a member, and whether `*` says so.
    pub(crate) fn rule(&self, path: &str) -> Rule {
        if let Some(member) = self.members.iter().find(|member| member.path == path) {
            return member.rule;
        }
        if self.members.iter().any(|member| is_inside(&member.path, path)) {
            return Rule::Descend;
        }
        let rest = self.members.iter().find(|member| member.path == "*");
        rest.map_or(Rule::Unknown, |member| member.rule)
    }

    /// The members that have this target, with its argument.
    pub(crate) fn members_for(&self, wanted: &str) -> impl Iterator<Item = (&str, &'static str)> {
        self.members.iter().filter_map(move |member| match member.rule {
            Rule::Use { target, argument } if target == wanted => Some((&*member.path, argument)),
            _ => None,
        })
    }

    /// The signs that the row has.
    fn signs_in(&self, row: &Value) -> Option<&[&'static str]> {
        let mut all = self.signs.iter();
        let found = all.find(|signs| {
            signs.iter().all(|sign| match sign.strip_prefix('!') {
                Some(absent) => find(row, absent).is_none(),
                None => find(row, &unescape(sign)).is_some(),
            })
        });
        found.map(Vec::as_slice)
    }

    /// The rows inside a value of the file.
    pub(crate) fn rows_of(&self, value: Value) -> Vec<Value> {
        let mut values = vec![value];
        for step in &self.rows {
            if !values.iter().any(|value| value.get(step).is_some()) {
                break;
            }
            let inner = values.iter_mut().filter_map(|value| value.get_mut(step)).map(Value::take);
            values = inner
                .flat_map(|value| match value {
                    Value::Array(rows) => rows,
                    other => vec![other],
                })
                .collect();
        }
        values.iter_mut().for_each(flatten_attributes);
        values
    }
}

fn is_inside(path: &str, of: &str) -> bool {
    path.strip_prefix(of).is_some_and(|rest| rest.starts_with('.'))
}

/// `[{"key": K, "value": {"stringValue": V}}]` of OTLP becomes `{K: V}`.
fn flatten_attributes(row: &mut Value) {
    let Some(Value::Array(list)) = row.get_mut("attributes") else { return };
    let entries = list.iter_mut().filter_map(|entry| {
        Some((entry.get("key")?.as_str()?.to_owned(), any_value(entry.get_mut("value")?)))
    });
    row["attributes"] = Value::Object(entries.collect());
}

fn any_value(value: &mut Value) -> Value {
    let Some((kind, inner)) = value.as_object_mut().and_then(|object| object.iter_mut().next())
    else {
        return Value::Null;
    };
    match kind.as_str() {
        "arrayValue" => match inner.get_mut("values") {
            Some(Value::Array(list)) => list.iter_mut().map(any_value).collect(),
            _ => Value::Array(Vec::new()),
        },
        "kvlistValue" => {
            let mut row = serde_json::json!({ "attributes": inner["values"].take() });
            flatten_attributes(&mut row);
            row["attributes"].take()
        }
        "intValue" => match inner.as_str().and_then(|text| text.parse::<i64>().ok()) {
            Some(number) => number.into(),
            None => inner.take(),
        },
        _ => inner.take(),
    }
}

/// The member at a path; names may have dots.
pub(crate) fn find<'v>(value: &'v Value, path: &str) -> Option<&'v Value> {
    let element = path.parse::<usize>().ok().and_then(|index| value.get(index));
    if let Some(found) = element.or_else(|| value.get(path)) {
        return Some(found).filter(|value| !value.is_null());
    }
    let mut dots = path.match_indices('.');
    dots.find_map(|(at, _)| find(find(value, &path[..at])?, &path[at + 1..]))
}

/// All formats.
pub(crate) fn all() -> &'static [Format] {
    &FORMATS
}

/// The format of this name.
pub(crate) fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The format that was chosen, why, and the others that fit as well.
#[derive(Debug)]
pub(crate) struct Choice {
    pub(crate) format: &'static Format,
    pub(crate) why: String,
    pub(crate) also: Vec<&'static str>,
}

/// The format that most of the first rows have.
pub(crate) fn recognise(sample: &[Value]) -> Option<Choice> {
    let fits = FORMATS.iter().map(|format| {
        let rows = sample.iter().flat_map(|value| format.rows_of(value.clone()));
        let rows: Vec<_> = rows.take(SAMPLE).collect();
        let signs: Vec<_> = rows.iter().filter_map(|row| format.signs_in(row)).collect();
        let share = signs.len() as f64 / rows.len().max(1) as f64;
        // What is refused is refused wherever it is seen.
        let share = if format.refuse.is_empty() || share == 0.0 { share } else { 1.0 };
        (format, share, signs.first().map_or_else(String::new, |signs| signs.join(", ")))
    });
    let mut fits: Vec<_> = fits.filter(|(_, share, _)| *share > 0.0).collect();
    fits.sort_by(|(_, one, _), (_, other, _)| other.total_cmp(one));
    let (format, share, signs) = fits.first()?;
    let also = fits[1..].iter().filter(|(_, other, _)| other >= share);
    let why = format!("{} % of the first rows have {}", (share * 100.0).round(), unescape(signs));
    Some(Choice { format, why, also: also.map(|(format, ..)| format.name).collect() })
}

fn unescape(text: &str) -> String {
    text.replace("\\u0020", " ")
}

fn parse(table: &'static str) -> Vec<Format> {
    let mut formats: Vec<Format> = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
        if first == "format" {
            let (name, title) = rest.split_once(": ").unwrap_or((rest, rest));
            formats.push(Format { name, title, ..Format::default() });
        } else if let Some(format) = formats.last_mut() {
            format.read_line(first, rest);
        }
    }
    formats
}

impl Format {
    fn read_line(&mut self, first: &'static str, rest: &'static str) {
        match (first, rest.split_once(' ')) {
            (_, Some(("=", target))) => {
                let (target, argument) = target.split_once(' ').unwrap_or((target, ""));
                let rule = Rule::Use { target, argument };
                self.members.push(Member { path: unescape(first), rule });
            }
            (_, Some(("-", reason))) => {
                let rule = Rule::LeaveOut(reason);
                self.members.push(Member { path: unescape(first), rule });
            }
            ("has", _) => self.signs.push(rest.split(' ').collect()),
            ("rows", _) => self.rows = rest.split('.').collect(),
            ("text", _) => self.text = rest,
            ("only", _) => self.only = rest.split(' ').map(unescape).collect(),
            ("sort", _) => self.sort = true,
            ("dialect", _) => self.dialect = rest,
            ("refuse", _) => self.refuse = rest,
            _ => {}
        }
    }
}

/// Whether a row is the first line of a canonical file.
pub(crate) fn has_version(row: &Value) -> bool {
    row.get("plimsoll_traffic").is_some()
}
