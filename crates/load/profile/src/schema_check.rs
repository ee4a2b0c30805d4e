//! Checks a profile against its schema, and explains every deviation.

use std::net::IpAddr;

use plimsoll_measure::{Nanos, RequestBounds};
use plimsoll_plan::{ConnectTo, ProxyUrl};
use plimsoll_schedule::{ScheduleError, Stages};
use plimsoll_workload::StatusSet;
use serde_json::{Map, Value};

use crate::byte_size::ByteSize;
use crate::error::Fault;
use crate::path::{self, ConfigPath};
use crate::schema::{self, Kind, Node};

/// Every deviation of `root` from the schema of a profile, with its path.
pub(crate) fn faults(root: &Value) -> Vec<(ConfigPath, Fault)> {
    let mut check = SchemaCheck { faults: Vec::new() };
    check.value(root, schema::top(), &ConfigPath::root());
    check.faults
}

struct SchemaCheck {
    faults: Vec<(ConfigPath, Fault)>,
}

impl SchemaCheck {
    fn report(&mut self, path: &ConfigPath, fault: Fault) {
        self.faults.push((path.clone(), fault));
    }

    fn value(&mut self, value: &Value, schema: &Value, path: &ConfigPath) {
        let forms = schema::forms(schema);
        let allowed: Vec<_> =
            forms.iter().copied().filter(|form| form.allows(Kind::from_value(value))).collect();
        if allowed.is_empty() {
            return self.report(path, wrong_kind(value, &forms));
        }
        match value {
            Value::Object(map) => match select(map, &allowed) {
                Ok(form) => self.mapping(map, form, path),
                Err(fault) => self.report(path, fault),
            },
            Value::Array(items) => self.list(items, allowed[0], path),
            Value::String(text) => self.text(text, &allowed, path),
            Value::Number(number) => {
                let fault = number.as_f64().and_then(|number| out_of_range(number, allowed[0]));
                if let Some(fault) = fault {
                    self.report(path, fault);
                }
            }
            Value::Bool(_) | Value::Null => {}
        }
    }

    fn mapping(&mut self, map: &Map<String, Value>, form: Node<'_>, path: &ConfigPath) {
        for (key, value) in map {
            match form.member(key) {
                // A key without a value counts as missing.
                Some(schema) if !value.is_null() => self.value(value, schema, &path.key(key)),
                None if form.is_closed() => self.report(&path.key(key), unknown_key(key, form)),
                _ => {}
            }
        }
        for key in form.required().filter(|key| map.get(*key).is_none_or(Value::is_null)) {
            self.report(&path.key(key), missing(form, key));
        }
    }

    fn list(&mut self, items: &[Value], form: Node<'_>, path: &ConfigPath) {
        let Some(schema) = form.items() else { return };
        for (index, item) in items.iter().enumerate() {
            self.value(item, schema, &path.index(index));
        }
    }

    fn text(&mut self, text: &str, forms: &[Node<'_>], path: &ConfigPath) {
        let words: Vec<_> = forms.iter().copied().flat_map(Node::words).collect();
        if words.is_empty() {
            for fault in forms
                .iter()
                .filter_map(|form| form.format())
                .flat_map(|name| format_faults(name, text))
            {
                self.report(path, fault);
            }
        } else if !words.contains(&text) {
            self.report(path, unknown_word(text, &words));
        }
    }
}

/// Selects the form of a mapping: by the word of a tag (`mode: pool`), or by its only key
/// (`uniform: ...`).
fn select<'s>(map: &Map<String, Value>, forms: &[Node<'s>]) -> Result<Node<'s>, Fault> {
    if let [form] = forms {
        return Ok(*form);
    }
    let tag = forms
        .iter()
        .find_map(|form| form.members().find(|(_, schema)| Node(schema).words().count() == 1));
    let Some((tag, _)) = tag else { return select_by_key(map, forms) };
    let word_of = |form: &Node<'s>| form.member(tag).and_then(|schema| Node(schema).words().next());
    let words: Vec<_> = forms.iter().filter_map(word_of).collect();
    let Some(Value::String(word)) = map.get(tag) else {
        return Err(Fault::new(
            format!("has no `{tag}`"),
            format!("write `{tag}:` and {}", path::one_of(&words)),
        ));
    };
    forms.iter().copied().find(|form| word_of(form) == Some(word)).ok_or_else(|| {
        let Fault { cause, fix } = unknown_word(word, &words);
        Fault::new(format!("has a `{tag}` that {cause}"), fix)
    })
}

fn select_by_key<'s>(map: &Map<String, Value>, forms: &[Node<'s>]) -> Result<Node<'s>, Fault> {
    let known: Vec<_> = forms.iter().copied().flat_map(Node::required).collect();
    match map.keys().collect::<Vec<_>>().as_slice() {
        [] => Err(Fault::new("is an empty mapping", one_of(&known))),
        [key] => forms
            .iter()
            .copied()
            .find(|form| form.required().any(|known| known == *key))
            .ok_or_else(|| {
                Fault::new(format!("has the unknown key `{key}`"), path::instead(key, &known))
            }),
        _ => Err(Fault::new("has several keys, but only one is allowed", one_of(&known))),
    }
}

fn one_of(known: &[&str]) -> String {
    format!("write {}", path::one_of(known))
}

fn wrong_kind(value: &Value, forms: &[Node<'_>]) -> Fault {
    let cause = match value {
        Value::Bool(value) => format!("is `{value}`"),
        Value::Number(_) if wants_duration(forms) => "is a number without a unit".to_owned(),
        _ => format!("is {}", Kind::from_value(value).name()),
    };
    let wanted = describe(forms);
    let fix = match value {
        Value::Number(_) | Value::Bool(_) => wanted.replace("a text", "a text in quotes"),
        Value::String(text) if text.parse::<f64>().is_ok() => wanted + " without quotes",
        _ => wanted,
    };
    Fault::new(cause, format!("write {fix}"))
}

fn wants_duration(forms: &[Node<'_>]) -> bool {
    forms.iter().any(|form| form.format() == Some("duration"))
}

/// Describes the forms of a value for a message.
fn describe(forms: &[Node<'_>]) -> String {
    let (mappings, others): (Vec<_>, Vec<_>) =
        forms.iter().copied().partition(|form| form.allows(Kind::Mapping));
    let mut words: Vec<_> = others.iter().copied().flat_map(Node::words).collect();
    words.dedup();
    let mut names: Vec<String> = Vec::new();
    if !words.is_empty() {
        names.push(path::one_of(&words));
    }
    names.extend(
        others
            .iter()
            .filter(|form| form.words().next().is_none())
            .map(|form| noun(*form).to_owned()),
    );
    if !mappings.is_empty() {
        let mut keys: Vec<_> = mappings.iter().filter_map(|form| form.required().next()).collect();
        keys.dedup();
        let which =
            if keys.is_empty() { String::new() } else { format!(" with {}", path::one_of(&keys)) };
        names.push(format!("a mapping{which}"));
    }
    names.join(", or ")
}

/// Describes a form other than a mapping for a message.
fn noun(form: Node<'_>) -> &'static str {
    match form.format() {
        Some("duration") => return "a length of time with a unit, like `30s`",
        Some("ip") => return "an IP address, like `127.0.0.2`",
        Some("size") => return "a size with a unit, like `16MiB`, or a number of bytes",
        Some("request bounds") => return "bounds on times, like `ttft<500ms, tpot<50ms`",
        Some("connect to") => return "another place, like `api.example:443:127.0.0.1:8443`",
        Some("proxy") => return "a proxy, like `http://127.0.0.1:3128`",
        Some("statuses") => return "statuses, like `200, 304, 404`, `2xx` or `any`",
        Some("stages") => return "stages, like `10:30s` or `\"@100:30s\"`",
        _ => {}
    }
    let named = [
        (Kind::Text, "a text"),
        (Kind::Fraction, "a number"),
        (Kind::Integer, "a whole number"),
        (Kind::Bool, "`true` or `false`"),
        (Kind::List, "a list"),
    ];
    named.iter().find(|(kind, _)| form.allows(*kind)).map_or("a value", |(_, name)| name)
}

fn unknown_key(key: &str, form: Node<'_>) -> Fault {
    let mut known: Vec<_> = form.members().map(|(name, _)| name).collect();
    known.sort_unstable();
    Fault::new("is not a known key", path::instead(key, &known))
}

fn unknown_word(word: &str, known: &[&str]) -> Fault {
    Fault::new(format!("is `{word}`, which is not known"), path::instead(word, known))
}

fn missing(form: Node<'_>, key: &str) -> Fault {
    let wanted =
        form.member(key).map_or_else(String::new, |schema| describe(&schema::forms(schema)));
    Fault::new("is missing", format!("write `{key}:` and {wanted}"))
}

/// The fault of a number outside its limits, or outside the integer type of its format.
fn out_of_range(number: f64, form: Node<'_>) -> Option<Fault> {
    let type_limit = (form.format() == Some("uint32")).then_some(f64::from(u32::MAX));
    if let Some(least) = form.bound("minimum").filter(|least| number < *least) {
        return Some(Fault::new(format!("is less than {least}"), format!("write {least} or more")));
    }
    let most = form.bound("maximum").or(type_limit).filter(|most| number > *most)?;
    Some(Fault::new(format!("is more than {most}"), format!("write {most} or less")))
}

/// The faults of a text with an invalid format.
fn format_faults(name: &str, text: &str) -> Vec<Fault> {
    match name {
        "duration" => text.parse::<Nanos>().err().iter().map(Fault::from_error).collect(),
        "ip" => match text.parse::<IpAddr>() {
            Ok(_) => Vec::new(),
            Err(_) => vec![Fault::new(
                format!("has `{text}`, which is not an IP address"),
                "write one like `127.0.0.2` or `::1`",
            )],
        },
        "connect to" => text.parse::<ConnectTo>().err().iter().map(Fault::from_error).collect(),
        "proxy" => text.parse::<ProxyUrl>().err().iter().map(Fault::from_error).collect(),
        "statuses" => text.parse::<StatusSet>().err().iter().map(Fault::from_error).collect(),
        "size" => text.parse::<ByteSize>().err().iter().map(Fault::from_error).collect(),
        "request bounds" => {
            text.parse::<RequestBounds>().err().iter().map(Fault::from_error).collect()
        }
        "stages" if text.trim().is_empty() => {
            vec![Fault::new("is empty", "write at least one stage, like `10:30s` or `@100:30s`")]
        }
        "stages" => text
            .parse::<Stages>()
            .err()
            .iter()
            .flat_map(ScheduleError::problems)
            .map(Fault::from_error)
            .collect(),
        _ => Vec::new(),
    }
}
