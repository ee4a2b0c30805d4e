//! The profile that plays a file of recorded traffic.

use std::fs;
use std::path::Path;

use anyhow::Result;
use plimsoll_import::Options;
use plimsoll_profile::Profile;
use plimsoll_runner::folder::file;
use plimsoll_workload::{Trace, TraceSpec};
use serde_json::{Map, Value, json};

use super::Flags;
use crate::exit::UsageError;
use crate::flags::{TrafficFlags, command_line_profile, literal};

/// The profile for a file of recorded traffic; `None` for a profile or the folder of a run.
pub(super) fn profile(flags: &Flags) -> Result<Option<Profile>> {
    let named = Path::new(&flags.profile);
    let extension = named.extension().map(|extension| extension.to_string_lossy());
    let is_profile = extension.is_none_or(|extension| match &*extension {
        "yaml" | "yml" => true,
        "json" => is_json_profile(named),
        _ => false,
    });
    if is_profile || named.ends_with(file::PLAN) || !named.is_file() {
        let fix = format!("{} is a profile", flags.profile);
        flags.traffic.reject_without_file(&fix)?;
        return Ok(None);
    }
    let trace = read(named, &flags.traffic)?;
    let mut recording = flags.traffic.keys();
    let path = std::path::absolute(named).unwrap_or_else(|_| named.to_owned());
    recording.insert("file".to_owned(), literal(&path.to_string_lossy()));
    let stem = named.file_name().unwrap_or_default().to_string_lossy();
    let stem = stem.split('.').next().filter(|stem| !stem.is_empty()).unwrap_or("traffic");
    let protocol = protocol(&trace).unwrap_or("openai-chat");
    let mut keys = json!({
        "name": stem.replace(|letter: char| !letter.is_ascii_alphanumeric(), "-"),
        "protocol": protocol,
        // Recorded bodies specify it.
        "stream": trace.dialects().is_empty(),
        "cache_mode": flags.traffic.cache_mode(),
    });
    // A smoke run has a user, too.
    if flags.load.concurrency.is_empty() && flags.load.rate.is_empty() && !flags.smoke {
        keys["trace"] = recording.into();
        keys["stages"] = "trace".into();
        keys["content"] = json!({ "mode": "sized", "approx_input_tokens": 1 });
    } else {
        recording.insert("mode".to_owned(), "file".into());
        recording.insert("order".to_owned(), "file".into());
        keys["content"] = recording.into();
        keys["stages"] = "1:1h".into();
    }
    if protocol == "http" {
        keys["http"] = json!({});
    }
    Ok(Some(command_line_profile(keys.as_object().cloned().unwrap_or_default())))
}

/// Whether a small JSON file has keys of a profile.
fn is_json_profile(file: &Path) -> bool {
    const KEYS: [&str; 4] = ["stages", "target", "targets", "scenarios"];
    let is_small = fs::metadata(file).is_ok_and(|file| file.len() < 1 << 20);
    let text = if is_small { fs::read(file).unwrap_or_default() } else { Vec::new() };
    let keys = serde_json::from_slice::<Map<String, Value>>(&text).unwrap_or_default();
    KEYS.iter().any(|key| keys.contains_key(*key))
}

/// Reads a file of recorded traffic.
pub(in crate::command) fn read(file: &Path, flags: &TrafficFlags) -> Result<Trace, UsageError> {
    let Options { format, skip_broken, .. } = flags.read.options();
    let file = file.to_owned();
    let spec = TraceSpec { file, format, skip_broken, ..TraceSpec::default() };
    Trace::load(&spec, Path::new("")).map_err(|error| UsageError(error.to_string()))
}

/// The protocol of the first recorded body.
pub(in crate::command) fn protocol(trace: &Trace) -> Option<&'static str> {
    trace.dialects().first().map(|dialect| dialect.name())
}
