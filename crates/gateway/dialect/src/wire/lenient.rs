//! Reads members of an upstream's answers that some servers write in other types than the dialect
//! defines: counts as `null` or `10.0`, texts as `null` or as a list of parts. Unreadable values
//! count as absent, so that a usable answer does not fail.

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use serde_json::value::RawValue;

use super::CowStr;

/// The default of a type, if a member has another type.
pub(super) fn other_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    read(<&'de RawValue>::deserialize(deserializer)?).map_err(D::Error::custom)
}

fn read<'a, T: Deserialize<'a> + Default>(raw: &'a RawValue) -> Result<T, serde_json::Error> {
    match serde_json::from_str(raw.get()) {
        Err(error) if error.is_data() => Ok(T::default()),
        read => read,
    }
}

/// The default of a type, if a member is null.
pub(super) fn null_is_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de> + Default,
{
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A count; zero if it is not a number.
pub(super) fn count<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    optional_count(deserializer).map(Option::unwrap_or_default)
}

/// A count, if it is a number or the digits of one.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a count of tokens that is not negative; what is too large becomes the largest"
)]
pub(super) fn optional_count<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<u64>, D::Error> {
    let raw = <&'de RawValue>::deserialize(deserializer)?.get();
    if let Ok(count) = raw.trim_matches('"').parse() {
        return Ok(Some(count));
    }
    Ok(raw.parse::<f64>().ok().filter(|count| *count >= 0.0).map(|count| count as u64))
}

/// The text of a message: a string, or the texts of a list of parts. A part without a text, such as
/// reasoning, adds none.
pub(super) fn content<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CowStr<'a>>, D::Error> {
    #[derive(Default, Deserialize)]
    struct Part<'a> {
        #[serde(borrow, default, deserialize_with = "other_is_default")]
        text: Option<CowStr<'a>>,
    }
    let raw = <&'de RawValue>::deserialize(deserializer)?;
    if !raw.get().starts_with('[') {
        return read(raw).map_err(D::Error::custom);
    }
    let parts: Vec<&RawValue> = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
    let texts = parts.into_iter().filter_map(|part| read::<Part<'_>>(part).ok()?.text);
    let texts: Vec<CowStr<'_>> = texts.collect();
    Ok((!texts.is_empty()).then(|| texts.iter().map(|text| &**text).collect::<String>().into()))
}

/// JSON in a string, or the JSON itself.
pub(super) fn json_text<'de: 'a, 'a, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<CowStr<'a>>, D::Error> {
    let text = <&'de RawValue>::deserialize(deserializer)?.get();
    match text.as_bytes().first() {
        Some(b'"') => serde_json::from_str(text).map(Some).map_err(D::Error::custom),
        Some(b'{' | b'[') => Ok(Some(text.into())),
        _ => Ok(None),
    }
}
