//! The notation of stages as text, in files and in the JSON Schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Load, StageSpec, Stages};

/// Formats the canonical form, which parses as the same load.
impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Closed { from, to } if from == to => write!(f, "{from}"),
            Self::Closed { from, to } => write!(f, "{from}..{to}"),
            Self::Open { from, to } if same(from, to) => write!(f, "@{from}"),
            Self::Open { from, to } => write!(f, "@{from}..{to}"),
            Self::Trace => f.write_str("trace"),
        }
    }
}

/// Whether two ends of a load are written as one number.
fn same(from: f64, to: f64) -> bool {
    from.to_bits() == to.to_bits()
}

/// Formats the canonical form, which parses as the same stage.
impl fmt::Display for StageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let warmup = if self.warmup { "w" } else { "" };
        write!(f, "{warmup}{}", self.load)?;
        self.duration.map_or(Ok(()), |duration| write!(f, ":{duration}"))
    }
}

/// Formats the canonical form, which parses as the same stages.
impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(position, stage)| {
            let separator = if position == 0 { "" } else { "," };
            write!(f, "{separator}{stage}")
        })
    }
}

/// Serializes as the text of [`fmt::Display`].
impl Serialize for Stages {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Stages {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Stages {
    fn schema_name() -> Cow<'static, str> {
        "Stages".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "Stages `[w]LOAD:DURATION`, separated by commas. LOAD is a number of \
                virtual users (`100`), arrivals per second (`@500`), a ramp of either \
                (`1..100`, `@100..5000`) or `trace`, whose duration may be left out; `w` marks a \
                warm-up stage.",
            "pattern": pattern(),
            "examples": ["1:10s,100:60s", "w@50:10s,@100..5000:60s", "trace"],
        })
    }
}

fn pattern() -> String {
    const RATE: &str = r"[0-9.]+([eE][+-]?[0-9]+)?";
    const DURATION: &str = r"\s*:\s*([0-9.]+(h|m|s|ms|us|ns))+";
    let ramp = format!(r"([0-9]+(\.\.[0-9]+)?|@{RATE}(\.\.{RATE})?){DURATION}");
    let stage = format!(r"\s*w?({ramp}|trace({DURATION})?)\s*");
    format!("^{stage}(,{stage})*$")
}
