//! The profile that plays recorded traffic, made of its file.

use std::path::Path;

use anyhow::Result;
use plimsoll_import::is_traffic;
use plimsoll_profile::Profile;

use plimsoll_runner::folder::file;
use plimsoll_workload::{Trace, TraceSpec};
use serde_json::{Map, Value, json};

use super::Flags;
use crate::exit::UsageError;
use crate::flags::{TrafficFlags, command_line_profile, literal};

/// The profile for a file of recorded traffic; `None` for the name of a profile.
pub(super) fn profile(flags: &Flags) -> Result<Option<Profile>> {
    let named = Path::new(&flags.profile);
    let extension = named.extension().and_then(|extension| extension.to_str());
    let is_profile = matches!(extension, Some("yaml" | "yml"))
        || named.file_name().is_some_and(|name| name == file::PLAN)
        || !named.is_file();
    if is_profile || !flags.traffic.has_format() && !is_traffic(named) {
        if flags.traffic.is_empty() {
            return Ok(None);
        }
        let why = "--as, --speed, --replies, --skip-broken and --bust are for recorded traffic";
        return Err(UsageError(format!("{why}: {} is a profile", flags.profile)).into());
    }
    let trace = read(named, &flags.traffic)?;
    let mut recording = flags.traffic.keys();
    let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
    recording.insert("file".to_owned(), literal(&path.to_string_lossy()));
    let stem = named.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().unwrap_or_default();
    let name = stem.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let protocol = protocol(&trace).unwrap_or("openai-chat");
    let mut keys = json!({
        "name": if name.is_empty() { "traffic" } else { &name },
        "protocol": protocol,
        // Bodies say it themselves.
        "stream": trace.dialects().is_empty(),
        "cache_mode": flags.traffic.cache_mode(),
    });
    let load = if flags.load.concurrency.is_empty() && flags.load.rate.is_empty() {
        recording.remove("order");
        json!({ "trace": recording, "stages": "trace", "content": prompts(Map::new()) })
    } else {
        recording.insert("order".to_owned(), "file".into());
        json!({ "content": prompts(recording), "stages": "1:1h" })
    };
    for (key, value) in load.as_object().into_iter().flatten() {
        keys[key] = value.clone();
    }
    if protocol == "http" {
        keys["http"] = json!({});
    }
    Ok(Some(command_line_profile(keys.as_object().cloned().unwrap_or_default())))
}

/// The content of a scenario that sends a file, or that needs none.
fn prompts(mut file: Map<String, Value>) -> Value {
    if file.is_empty() {
        return json!({ "mode": "sized", "approx_input_tokens": 1 });
    }
    file.insert("mode".to_owned(), "file".into());
    Value::Object(file)
}

/// Reads a file of recorded traffic.
pub(in crate::command) fn read(file: &Path, flags: &TrafficFlags) -> Result<Trace, UsageError> {
    let mut spec = TraceSpec::new(file.to_owned());
    (spec.format, spec.skip_broken) = flags.reading();
    Trace::load(&spec, Path::new("")).map_err(|error| UsageError(error.to_string()))
}

/// The protocol of the first recorded body.
pub(in crate::command) fn protocol(trace: &Trace) -> Option<&'static str> {
    trace.dialects().first().map(|(dialect, _)| dialect.name())
}
