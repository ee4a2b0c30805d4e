//! Durations that are fixed or drawn from a distribution.

use std::fmt;

use plimsoll_measure::{Nanos, Rng};
use schemars::{JsonSchema, Schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::schema::add_alternative;

/// The standard normal distribution's 95th percentile.
const Z95: f64 = 1.644_853_626_951_472_2;

/// A duration, fixed or drawn from a distribution each time.
///
/// In files a fixed duration is a text (`2s`); a distribution is a mapping like
/// `{exponential: {mean: 2s}}`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(remote = "Self", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(transform = or_text)]
pub enum DurationSpec {
    /// Always the same.
    Fixed(#[schemars(with = "String", extend("format" = "duration"))] Nanos),
    /// Uniform between two durations.
    Uniform {
        /// The shortest.
        #[schemars(with = "String", extend("format" = "duration"))]
        min: Nanos,
        /// The longest.
        #[schemars(with = "String", extend("format" = "duration"))]
        max: Nanos,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        #[schemars(with = "String", extend("format" = "duration"))]
        mean: Nanos,
    },
    /// Normal, cut off at zero.
    Normal {
        /// Mean.
        #[schemars(with = "String", extend("format" = "duration"))]
        mean: Nanos,
        /// Standard deviation.
        #[schemars(with = "String", extend("format" = "duration"))]
        std: Nanos,
    },
    /// Lognormal, given by two of its quantiles.
    Lognormal {
        /// Median: half of all values are shorter.
        #[schemars(with = "String", extend("format" = "duration"))]
        median: Nanos,
        /// 95th percentile: 95 % of all values are shorter.
        #[schemars(with = "String", extend("format" = "duration"))]
        p95: Nanos,
    },
}

impl DurationSpec {
    /// Draws a duration.
    ///
    /// The lognormal is `median * exp(sigma z)` with a standard normal `z`; since 95 % of all `z`
    /// are below 1.645, `sigma = ln(p95 / median) / 1.645`.
    pub fn sample(&self, rng: &mut Rng) -> Nanos {
        match *self {
            Self::Fixed(length) => length,
            Self::Uniform { min, max } => min + max.saturating_sub(min).scale(rng.uniform()),
            Self::Exponential { mean } => mean.scale(rng.exponential()),
            Self::Normal { mean, std } => {
                Nanos::from_secs_f64(std.as_secs_f64().mul_add(rng.normal(), mean.as_secs_f64()))
            }
            Self::Lognormal { median, p95 } => {
                let sigma = (p95.as_secs_f64() / median.as_secs_f64()).ln() / Z95;
                median.scale((sigma * rng.normal()).exp())
            }
        }
    }

    /// Whether durations can be drawn. False for a range whose ends are swapped, or a lognormal
    /// without a spread.
    pub(crate) fn is_valid(&self) -> bool {
        match *self {
            Self::Uniform { min, max } => min <= max,
            Self::Lognormal { median, p95 } => median > Nanos::ZERO && median <= p95,
            Self::Fixed(_) | Self::Exponential { .. } | Self::Normal { .. } => true,
        }
    }
}

/// Lets the schema accept a plain text as well.
fn or_text(schema: &mut Schema) {
    let text = serde_json::json!({
        "type": "string",
        "format": "duration",
        "description": "Always the same, like `2s`.",
    });
    add_alternative(schema, text);
}

impl Serialize for DurationSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Fixed(length) => length.serialize(serializer),
            other => Self::serialize(other, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for DurationSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrMapping)
    }
}

struct TextOrMapping;

impl<'de> Visitor<'de> for TextOrMapping {
    type Value = DurationSpec;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "a length of time like `2s`, or a distribution like `{exponential: {mean: 2s}}`",
        )
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<DurationSpec, E> {
        text.parse().map(DurationSpec::Fixed).map_err(E::custom)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<DurationSpec, A::Error> {
        DurationSpec::deserialize(MapAccessDeserializer::new(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_measure::Seed;

    fn read(json: &str) -> Result<DurationSpec, serde_json::Error> {
        serde_json::from_str(json)
    }

    const SECOND: Nanos = Nanos::from_secs(1);

    #[test]
    fn a_plain_text_is_a_fixed_duration_and_is_written_as_one() {
        let fixed = DurationSpec::Fixed(Nanos::from_secs(2));
        assert_eq!(read("\"2s\"").unwrap(), fixed);
        assert_eq!(read("{\"fixed\": \"2s\"}").unwrap(), fixed);
        assert_eq!(serde_json::to_string(&fixed).unwrap(), "\"2s\"");
    }

    #[test]
    fn distributions_are_objects() {
        let mean = DurationSpec::Exponential { mean: SECOND };
        assert_eq!(read("{\"exponential\": {\"mean\": \"1s\"}}").unwrap(), mean);
        assert_eq!(serde_json::to_string(&mean).unwrap(), "{\"exponential\":{\"mean\":\"1s\"}}");
    }

    #[test]
    fn anything_else_is_refused_with_what_was_expected() {
        for (json, part) in [
            ("2", "expected a length of time like `2s`"),
            ("\"2\"", "`2` is not a length of time"),
            ("{\"gamma\": {}}", "unknown variant `gamma`"),
            ("{\"normal\": {\"mean\": \"1s\", \"sd\": \"1s\"}}", "unknown field `sd`"),
        ] {
            let message = read(json).unwrap_err().to_string();
            assert!(message.contains(part), "{json}: {message}");
        }
    }

    #[test]
    fn durations_have_the_moments_and_quantiles_of_their_distribution() {
        let sample = |spec: DurationSpec| {
            let mut lengths: Vec<_> = (0..40_000)
                .map(|i| spec.sample(&mut Seed(3).rng("think", i)).as_secs_f64())
                .collect();
            lengths.sort_by(f64::total_cmp);
            let mean = lengths.iter().sum::<f64>() / 40_000.0;
            [mean, lengths[0], lengths[20_000], lengths[38_000], lengths[39_999]]
        };
        let [mean, least, .., most] =
            sample(DurationSpec::Uniform { min: SECOND, max: Nanos::from_secs(3) });
        assert!((mean - 2.0).abs() < 0.02 && (1.0..3.0).contains(&least) && most <= 3.0);
        let [mean, _, median, ..] = sample(DurationSpec::Exponential { mean: SECOND });
        assert!((mean - 1.0).abs() < 0.02 && (median - 2f64.ln()).abs() < 0.02);
        let [mean, least, ..] = sample(DurationSpec::Normal { mean: SECOND, std: SECOND });
        assert!(least == 0.0 && (mean - 1.083).abs() < 0.02, "cut off at zero: {mean}");
        let [_, _, median, p95, _] =
            sample(DurationSpec::Lognormal { median: SECOND, p95: Nanos::from_secs(4) });
        assert!((median - 1.0).abs() < 0.03 && (p95 - 4.0).abs() < 0.15, "{median} {p95}");
    }
}
