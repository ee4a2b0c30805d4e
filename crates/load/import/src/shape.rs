//! The load of k6's options, as stages of a profile.

use plimsoll_measure::Nanos;
use serde_json::{Value, json};

/// Members of a scenario that the stages contain.
const USED: [&str; 9] = [
    "executor",
    "startTime",
    "stages",
    "startVUs",
    "startRate",
    "rate",
    "timeUnit",
    "vus",
    "duration",
];

/// The stages of the scenarios that run one after another. Everything else is added to `unused`.
pub(crate) fn stages(options: &Value, unused: &mut Vec<String>) -> Result<String, String> {
    let executor = if options["stages"].is_array() { "ramping-vus" } else { "constant-vus" };
    let own = json!({ "default": {
        "executor": if options["duration"].is_null() && executor == "constant-vus" { "iterations" } else { executor },
        "stages": options["stages"], "startVUs": options["vus"],
        "vus": options["vus"], "duration": options["duration"],
    } });
    let scenarios = options.get("scenarios").filter(|all| all.is_object());
    if scenarios.is_some() && executor == "ramping-vus" {
        unused.push("stages (the scenarios have their own)".to_owned());
    }
    let mut parts = Vec::new();
    for (name, scenario) in scenarios.unwrap_or(&own).as_object().into_iter().flatten() {
        let stages = part(scenario, unused).map_err(|why| format!("scenario `{name}` {why}"))?;
        if stages.is_empty() {
            let executor = &scenario["executor"];
            unused.push(format!("scenario {name} ({executor} is not a load over time)"));
            continue;
        }
        parts.push((time(&scenario["startTime"], Nanos::ZERO)?, name, stages));
        let members = scenario.as_object().into_iter().flatten();
        let others = members.filter(|(name, value)| !USED.contains(&&***name) && !value.is_null());
        unused.extend(others.map(|(name, _)| format!("scenarios.{name}")));
    }
    parts.sort_by_key(|(start, ..)| *start);
    let (mut end, mut all) = (Nanos::ZERO, Vec::new());
    for (start, name, stages) in parts {
        if start < end {
            unused.push(format!("scenario {name} (at the same time as another one)"));
            continue;
        }
        if start > end {
            unused.push(format!("the pause before scenario {name}"));
        }
        end = stages.iter().fold(start, |end, (_, length)| end + *length);
        all.extend(stages.into_iter().map(|(load, length)| format!("{load}:{length}")));
    }
    if all.is_empty() {
        return Err("has no load over time (stages, or a duration with users or a rate)".to_owned());
    }
    Ok(all.join(","))
}

/// The stages of a scenario, each a load and its length. None for a number of iterations.
fn part(scenario: &Value, unused: &mut Vec<String>) -> Result<Vec<(String, Nanos)>, String> {
    let number = |name: &str, default: f64| scenario[name].as_f64().unwrap_or(default);
    let unit = time(&scenario["timeUnit"], Nanos::from_secs(1))?.as_secs_f64();
    let (mark, unit, mut from) = match scenario["executor"].as_str() {
        Some("constant-vus") => ("", 1.0, number("vus", 1.0)),
        Some("ramping-vus") => ("", 1.0, number("startVUs", 1.0)),
        Some("constant-arrival-rate") => ("@", unit, number("rate", 0.0)),
        Some("ramping-arrival-rate") => ("@", unit, number("startRate", 0.0)),
        _ => return Ok(Vec::new()),
    };
    let constant = [json!({ "duration": scenario["duration"], "target": from })];
    let ramps = scenario["stages"].as_array().map_or(&constant[..], Vec::as_slice);
    let mut stages = Vec::new();
    for stage in ramps {
        let length = time(&stage["duration"], Nanos::ZERO)?;
        let to = stage["target"].as_f64().unwrap_or(0.0);
        if from.max(to) == 0.0 {
            unused.push("stages (without users or a rate)".to_owned());
        } else if length > Nanos::ZERO {
            let (from, to) = (from / unit, to / unit);
            let ramp = if from == to { format!("{to}") } else { format!("{from}..{to}") };
            stages.push((format!("{mark}{ramp}"), length));
        }
        from = to;
    }
    Ok(stages)
}

/// A duration as text, or a number of milliseconds.
fn time(value: &Value, default: Nanos) -> Result<Nanos, String> {
    let number = value.as_f64().map(|ms| Ok(Nanos::from_secs_f64(ms / 1e3)));
    let text = value.as_str().map(|text| text.parse::<Nanos>().map_err(|error| error.to_string()));
    number.or(text).unwrap_or(Ok(default))
}
