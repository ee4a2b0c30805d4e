//! A client of `ServeGen`: windows of time with a rate and a distribution of the gaps, and, in a
//! file beside, the distributions of its lengths. Its requests are drawn as `ServeGen` draws them.

use std::collections::BTreeMap;
use std::io::BufReader;
use std::path::Path;

use plimsoll_measure::{Rng, Seed};
use serde_json::{Map, Value};

use crate::value::{count, number};

/// Length of the last window if it is the only one, in seconds.
const WINDOW: f64 = 600.0;

/// Maximum number of requests of a window.
const MOST: f64 = 1e7;

/// Values with their probabilities.
type Distribution = Vec<(f64, f64)>;

/// The distributions of a client, and its open window.
pub(crate) struct Client {
    /// The distribution of each member, by the start of their period.
    periods: Vec<(f64, BTreeMap<String, Distribution>)>,
    open: Option<Value>,
    length: f64,
}

impl Client {
    /// Reads the file beside a trace.
    pub(crate) fn open(trace: &Path) -> Result<Self, String> {
        let name = trace.file_name().unwrap_or_default().to_string_lossy();
        let path = trace.with_file_name(name.replace("trace.csv", "dataset.json"));
        let why = |error: &str| format!("needs the lengths in {}: {error}", path.display());
        let file = plimsoll_input::open(&path).map_err(|error| why(&error.to_string()))?;
        let periods: BTreeMap<String, BTreeMap<String, String>> =
            serde_json::from_reader(BufReader::new(file))
                .map_err(|error| why(&error.to_string()))?;
        let mut read = Vec::new();
        for (start, members) in periods {
            let start = start.parse().map_err(|_| why("a period is not a time"))?;
            let members =
                members.iter().map(|(name, text)| Some((name.clone(), distribution(text)?)));
            let members = members.collect::<Option<BTreeMap<_, _>>>();
            read.push((start, members.ok_or_else(|| why("a distribution is not {value: share}"))?));
        }
        // ServeGen skips a period with an empty distribution.
        read.retain(|(_, members)| members.values().all(|values| !values.is_empty()));
        read.sort_by(|(one, _), (other, _)| f64::total_cmp(one, other));
        Ok(Self { periods: read, open: None, length: WINDOW })
    }

    /// The requests of the open window, which ends where the next one starts.
    pub(crate) fn rows(
        &mut self,
        next: Option<Value>,
        unused: &mut Vec<String>,
    ) -> Result<Vec<Value>, String> {
        let open = std::mem::replace(&mut self.open, next);
        let start = |window: &Value| number(&window["start"])?.as_f64();
        let Some((window, at)) = open.as_ref().and_then(|one| Some((one, start(one)?))) else {
            return Ok(Vec::new());
        };
        let next = self.open.as_ref().and_then(start).filter(|next| *next > at);
        self.length = next.map_or(self.length, |next| next - at);
        let member = |name: &str| number(&window[name]).and_then(|number| number.as_f64());
        let (Some(rate), Some(shape)) = (member("rate"), member("shape")) else {
            return Ok(Vec::new());
        };
        if window["pattern"] == "" {
            return Ok(Vec::new());
        }
        unused.push("cv (follows from the shape)".to_owned());
        unused.push("scale (follows from the rate)".to_owned());
        let Some((_, members)) = self.periods.iter().rfind(|(period, _)| *period <= at) else {
            unused.push("windows (without lengths)".to_owned());
            return Ok(Vec::new());
        };
        let mut rng = Seed(1).rng("servegen", at.to_bits());
        let requests = count(&(rate * self.length).ceil().min(MOST).into())?;
        let gaps = (0..requests).map(|_| match window["pattern"].as_str() {
            Some("Gamma") => gamma(&mut rng, shape),
            _ => rng.exponential().powf(1.0 / shape),
        });
        let gaps: Vec<_> = gaps.collect();
        // The gaps fill the window, so the last one has no request.
        let scale = self.length / gaps.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        let mut time = at;
        let times = gaps.iter().take(gaps.len().saturating_sub(1));
        let rows = times.map(|gap| {
            time += gap * scale;
            // One quantile of all members, as in ServeGen.
            let quantile = rng.uniform();
            let drawn = members.iter().map(|(name, values)| (name.clone(), draw(values, quantile)));
            let row: Map<_, _> = drawn.chain([("timestamp".to_owned(), time.into())]).collect();
            row.into()
        });
        Ok(rows.collect())
    }
}

/// Parses a dictionary of Python, `{40: 0.5, 41: 0.5}`.
fn distribution(text: &str) -> Option<Distribution> {
    let pairs =
        text.trim_matches(['{', '}', ' ']).split(',').filter(|pair| !pair.trim().is_empty());
    let pairs = pairs.map(|pair| {
        let (value, share) = pair.split_once(':')?;
        Some((value.trim().parse().ok()?, share.trim().parse().ok()?))
    });
    pairs.collect()
}

fn draw(values: &Distribution, quantile: f64) -> Value {
    let mut sum = 0.0;
    let found = values.iter().find(|(_, share)| {
        sum += share;
        sum >= quantile
    });
    found.or_else(|| values.last()).map(|(value, _)| *value).into()
}

/// A gamma variate of scale 1 (Marsaglia and Tsang, 2000); a shape below 1 is raised by 1, and the
/// result corrected by a power.
fn gamma(rng: &mut Rng, shape: f64) -> f64 {
    let is_low = shape < 1.0;
    let raised = if is_low { shape + 1.0 } else { shape };
    let factor = if is_low { (1.0 - rng.uniform()).powf(1.0 / shape) } else { 1.0 };
    let d = raised - 1.0 / 3.0;
    loop {
        let normal = rng.normal();
        let v = (1.0 + normal / (9.0 * d).sqrt()).powi(3);
        let bound = 0.5 * normal * normal + d - d * v + d * v.ln();
        if v > 0.0 && (1.0 - rng.uniform()).ln() < bound {
            return factor * d * v;
        }
    }
}
