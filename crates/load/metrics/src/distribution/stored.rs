//! A distribution in a file of counts: the buckets that hold values, and the exact figures.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Distribution, ExactFigures, MAX_BUCKET};

#[derive(Serialize, Deserialize)]
struct Stored {
    sum: u128,
    min: u64,
    max: u64,
    /// Index and count of each bucket that holds values, ascending.
    buckets: Vec<(u32, u64)>,
}

impl Serialize for Distribution {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut buckets = Vec::new();
        self.for_each_bucket(&mut |bucket, count| buckets.push((bucket, count)));
        Stored { sum: self.sum, min: self.min, max: self.max, buckets }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Distribution {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Stored { sum, min, max, buckets } = Stored::deserialize(deserializer)?;
        let total = buckets.iter().try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        if total.is_none() || buckets.iter().any(|(bucket, _)| *bucket > MAX_BUCKET) {
            return Err(D::Error::custom("a histogram is damaged"));
        }
        Ok(Self::from_buckets(buckets.into_iter(), &ExactFigures { sum, min, max }))
    }
}
