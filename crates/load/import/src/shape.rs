//! The load of k6's options, as stages of a profile.

use plimsoll_measure::Nanos;
use serde_json::Value;

use crate::format::Choice;
use crate::summary::Summary;

/// Members of options and scenarios that the stages contain.
const USED: [&str; 10] = [
    "executor",
    "startTime",
    "stages",
    "startVUs",
    "startRate",
    "rate",
    "timeUnit",
    "vus",
    "duration",
    "scenarios",
];

/// The stages of the scenarios that run one after another. Everything else is unused.
pub(crate) fn read(options: &Value, choice: Choice) -> Result<Summary, String> {
    let mut unused = Vec::new();
    let mut scenarios: Vec<_> = options["scenarios"].as_object().into_iter().flatten().collect();
    scenarios.sort_by_key(|(_, scenario)| time(&scenario["startTime"]).unwrap_or_default());
    if !scenarios.is_empty() && options["stages"].is_array() {
        unused.push("stages (the scenarios have their own)".to_owned());
    }
    let own = "options".to_owned();
    let is_alone = scenarios.is_empty();
    scenarios.extend(is_alone.then_some((&own, options)));
    let (mut end, mut all) = (Nanos::ZERO, Vec::new());
    for (name, scenario) in &scenarios {
        let stages = stages_of(scenario)?;
        if stages.is_empty() || time(&scenario["startTime"])? < end {
            unused.push(format!("scenario {name} (a number of iterations, or at the same time)"));
        } else {
            end = stages.iter().fold(time(&scenario["startTime"])?, |end, (_, time)| end + *time);
            all.extend(stages.into_iter().map(|(load, time)| format!("{load}:{time}")));
        }
    }
    if all.is_empty() {
        return Err("has no stages, and no duration with users or a rate".to_owned());
    }
    let outer = [options].into_iter().filter(|_| !is_alone);
    for members in outer.chain(scenarios.iter().map(|(_, scenario)| *scenario)) {
        let members = members.as_object().into_iter().flatten();
        let others = members.filter(|(name, value)| {
            !USED.contains(&&***name)
                && !value
                    .as_object()
                    .map_or_else(|| value.is_null(), |all| all.values().all(Value::is_null))
        });
        unused.extend(others.map(|(name, _)| name.clone()));
    }
    let format = format!("{} ({})", choice.format.name, choice.format.title);
    let mut summary = Summary { format, why: choice.why, ..Summary::default() };
    summary.stages = Some(all.join(","));
    for name in unused {
        *summary.unused.entry(name).or_default() += 1;
    }
    Ok(summary)
}

/// The stages of a scenario, each a load and its length. None for a number of iterations.
fn stages_of(scenario: &Value) -> Result<Vec<(String, Nanos)>, String> {
    let unit = Some(time(&scenario["timeUnit"])?.as_secs_f64()).filter(|unit| *unit > 0.0);
    let (mark, unit, names) = match scenario["executor"].as_str() {
        Some("ramping-arrival-rate" | "constant-arrival-rate") => {
            ("@", unit.unwrap_or(1.0), [("startRate", 0.0), ("rate", 0.0)])
        }
        None | Some("ramping-vus" | "constant-vus") => ("", 1.0, [("startVUs", 1.0), ("vus", 1.0)]),
        Some(_) => return Ok(Vec::new()),
    };
    let [(first, default), (second, _)] = names;
    let mut from =
        scenario[first].as_f64().or_else(|| scenario[second].as_f64()).unwrap_or(default);
    let constant = [scenario.clone()];
    let ramps = scenario["stages"].as_array().map_or(&constant[..], Vec::as_slice);
    let mut stages = Vec::new();
    for stage in ramps {
        let (time, to) = (time(&stage["duration"])?, stage["target"].as_f64().unwrap_or(from));
        // A stage without users is not a stage of a profile.
        if time > Nanos::ZERO && from.max(to) > 0.0 {
            stages.push((format!("{mark}{}..{}", from / unit, to / unit), time));
        }
        from = to;
    }
    Ok(stages)
}

/// A duration as text, or a number of milliseconds. Zero if there is none.
fn time(value: &Value) -> Result<Nanos, String> {
    let text = value
        .as_str()
        .map_or_else(|| format!("{}ms", value.as_f64().unwrap_or(0.0)), str::to_owned);
    text.parse().map_err(|_| format!("has the unknown duration `{text}`"))
}
