//! Arrays in files of counts, whatever their length: `#[serde(with = "crate::fixed_array")]`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S, T, const N: usize>(
    array: &[T; N],
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    S: Serializer,
    T: Serialize,
{
    serializer.collect_seq(array)
}

pub(crate) fn deserialize<'de, D, T, const N: usize>(deserializer: D) -> Result<[T; N], D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    let items = Vec::deserialize(deserializer)?;
    let found = items.len();
    items
        .try_into()
        .map_err(|_| D::Error::custom(format!("a list has {found} items instead of {N}")))
}
