//! Parses JSON or YAML bytes, detected by content, into untyped values.

use std::cell::RefCell;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use serde_saphyr::options::NonFiniteFloatPolicy;
use serde_saphyr::{Spanned, UserMessageFormatter};

use crate::error::{Fault, Lines};
use crate::path::ConfigPath;

/// Maximum size of a profile: a memory limit far above any sensible profile.
const MAX_BYTES: usize = 16 << 20;

/// Maximum number of values that the aliases of one YAML document may expand to.
const MAX_ALIASED: usize = 20_000;

/// Maximum nesting of a profile; the schema needs six levels, and `parameters` may need more.
const MAX_DEPTH: usize = 64;

/// Parses a profile's text: JSON if its first character is `{`, otherwise YAML.
///
/// # Errors
/// The text is neither, has a duplicate key, or exceeds the limits above; with line and column. The
/// message never quotes the text, which may include a credential.
pub(crate) fn parse_values(bytes: &[u8]) -> Result<(Value, Lines), Fault> {
    if bytes.len() > MAX_BYTES {
        return Err(Fault::new("is larger than 16 MiB", "give a profile, not its data"));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Fault::new("is not UTF-8 text", "save it as UTF-8"))?
        .trim_start_matches('\u{feff}');
    let lines = RefCell::default();
    let is_json = text.trim_start().starts_with('{');
    let root = if is_json { json(text, &lines)? } else { yaml(text, &lines)? };
    let lines = lines.into_inner();
    match root {
        Value::Object(_) => Ok((root, lines)),
        Value::Null => Ok((Value::Object(Map::new()), lines)),
        _ => Err(Fault::new(
            "is not a mapping of keys to values",
            "write lines like `target: http://127.0.0.1:9000`",
        )),
    }
}

/// Parses a YAML value from an environment variable or after `--set path=`.
pub(crate) fn parse_scalar(text: &str) -> Option<Value> {
    yaml(text, &RefCell::default()).ok()
}

fn json(text: &str, lines: &RefCell<Lines>) -> Result<Value, Fault> {
    let mut reader = serde_json::Deserializer::from_str(text);
    ValueVisitor { path: ConfigPath::root(), lines }
        .deserialize(&mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|error| {
            Fault::new(format!("is not JSON that can be used: {error}"), "correct it there")
        })
}

fn yaml(text: &str, lines: &RefCell<Lines>) -> Result<Value, Fault> {
    let options = serde_saphyr::options! {
        strict_booleans: true,
        // A snippet would quote the text.
        with_snippet: false,
        // The visitor below rejects them.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: MAX_ALIASED },
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_documents: 1,
            max_total_scalar_bytes: MAX_BYTES,
        },
    };
    serde_saphyr::with_deserializer_from_str_with_options(text, options, |reader| {
        ValueVisitor { path: ConfigPath::root(), lines }.deserialize(reader)
    })
    .map_err(|error| yaml_fault(&error))
}

fn yaml_fault(error: &serde_saphyr::Error) -> Fault {
    if let serde_saphyr::Error::DuplicateMappingKey { key, location } = error {
        let key = key.as_deref().map_or_else(String::new, |key| format!(" `{key}`"));
        let (line, column) = (location.line(), location.column());
        let cause = format!(
            "is not YAML that can be used: the key{key} is given twice at line {line}, column {column}"
        );
        return Fault::new(cause, "leave one out");
    }
    let message = error.render_with_formatter(&UserMessageFormatter);
    Fault::new(
        format!("is not YAML that can be used: {message}"),
        "correct it there (quotes are needed around texts with `: ` or ` #` in them, or a sign like `@` at their start)",
    )
}

/// Builds a [`Value`], and rejects input that `Value` itself would silently accept: duplicate keys
/// and non-finite numbers.
struct ValueVisitor<'l> {
    path: ConfigPath,
    /// Lines of the keys so far.
    lines: &'l RefCell<Lines>,
}

impl ValueVisitor<'_> {
    fn check_depth<E: Error>(&self) -> Result<(), E> {
        if self.path.steps().len() < MAX_DEPTH {
            Ok(())
        } else {
            Err(E::custom(format_args!("nested deeper than {MAX_DEPTH} levels")))
        }
    }

    fn inside(&self, path: ConfigPath) -> Self {
        Self { path, lines: self.lines }
    }
}

impl<'de> DeserializeSeed<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueVisitor<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, a number, true, false, a list or a mapping")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let number = serde_json::Number::from_f64(value);
        number.map(Value::Number).ok_or_else(|| E::custom("a number that is not finite"))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: Error>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self.inside(self.path.index(list.len())))? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        self.check_depth()?;
        let mut map = Map::new();
        while let Some(Spanned { value: key, referenced, .. }) =
            members.next_key::<Spanned<String>>()?
        {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("the key `{key}` is given twice")));
            }
            let path = self.path.key(&key);
            // 0 means unknown.
            if referenced.line() > 0 {
                self.lines.borrow_mut().note(path.clone(), referenced.line());
            }
            map.insert(key, members.next_value_seed(self.inside(path))?);
        }
        Ok(Value::Object(map))
    }
}
