//! A client of `ServeGen`: windows of ten minutes, each with a rate and a distribution of its gaps,
//! and, in a file beside, distributions of lengths. Requests are drawn as `ServeGen` draws them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use plimsoll_measure::{Rng, Seed};
use serde_json::Value;

use crate::value::{count, number};

/// Length of a window, in seconds.
const WINDOW: f64 = 600.0;
/// Maximum number of requests of a window.
const MOST: f64 = 1e6;

/// Values with their probabilities.
type Distribution = Vec<(f64, f64)>;

/// The distribution of each member of a request, by the start of their period in seconds.
pub(crate) struct Client(BTreeMap<u64, BTreeMap<String, Distribution>>);

impl Client {
    /// Reads the file beside a trace.
    pub(crate) fn open(trace: &Path) -> Result<Self, String> {
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        let path = trace.with_file_name(name.replace("trace.csv", "dataset.json"));
        let text = fs::read_to_string(&path).map_err(serde_json::Error::io);
        let periods = text.and_then(|text| serde_json::from_str(&text));
        let periods: BTreeMap<String, BTreeMap<String, String>> =
            periods.map_err(|error| format!("needs {}: {error}", path.display()))?;
        let periods = periods.into_iter().filter_map(|(start, members)| {
            let members = members.into_iter().map(|(name, text)| (name, distribution(&text)));
            Some((start.parse().ok()?, members.collect::<BTreeMap<_, _>>()))
        });
        // ServeGen skips a period with an empty distribution.
        let known = periods.filter(|(_, members)| members.values().all(|all| !all.is_empty()));
        Ok(Self(known.collect()))
    }

    /// The requests of a window of the trace.
    pub(crate) fn draw(&self, mut row: Value) -> Result<Vec<Value>, String> {
        let [at, rate, shape] = ["start", "rate", "shape"]
            .map(|name| number(&row[name]).and_then(|number| number.as_f64()).unwrap_or(0.0));
        let (is_gamma, is_empty) = (row["pattern"] == "Gamma", row["pattern"] == "");
        let start = count(&row["start"])?;
        let period = self.0.range(..=start).next_back().filter(|_| !is_empty);
        let Some((_, members)) = period else { return Ok(Vec::new()) };
        let mut rng = Seed(1).rng("servegen", start);
        let mut gaps = Vec::new();
        while (gaps.len() as f64) < (rate * WINDOW).min(MOST) {
            let gap =
                if is_gamma { gamma(&mut rng, shape) } else { rng.exponential().powf(1.0 / shape) };
            gaps.push(gap);
        }
        // The gaps fill the window, so the last one has no request.
        let scale = WINDOW / gaps.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        gaps.pop();
        let mut time = at;
        let rows = gaps.into_iter().map(|gap| {
            time += gap * scale;
            row["timestamp"] = time.into();
            // One quantile of all members, as in ServeGen.
            let quantile = rng.uniform();
            for (name, values) in members {
                row[name] = reached(values, quantile).into();
            }
            row.clone()
        });
        Ok(rows.collect())
    }
}

fn reached(values: &Distribution, quantile: f64) -> Option<f64> {
    let mut sum = 0.0;
    let mut rest = values.iter().skip_while(|(_, share)| {
        sum += share;
        sum < quantile
    });
    rest.next().or_else(|| values.last()).map(|(value, _)| *value)
}

/// Parses a dictionary of Python, `{40: 0.5, 41: 0.5}`.
fn distribution(text: &str) -> Distribution {
    let pairs = text.trim_matches(['{', '}', ' ']).split(',').filter_map(|pair| {
        let (value, share) = pair.split_once(':')?;
        Some((value.trim().parse().ok()?, share.trim().parse().ok()?))
    });
    pairs.collect()
}

/// A gamma variate of scale 1 (Marsaglia and Tsang, 2000). A shape is raised by 1, and the result
/// corrected by a power, because shapes below 1 need it.
fn gamma(rng: &mut Rng, shape: f64) -> f64 {
    let d = shape + 2.0 / 3.0;
    loop {
        let normal = rng.normal();
        let v = (1.0 + normal / (9.0 * d).sqrt()).powi(3);
        let bound = 0.5 * normal * normal + d - d * v + d * v.ln();
        if v > 0.0 && -rng.exponential() < bound {
            return d * v * (-rng.exponential() / shape).exp();
        }
    }
}
