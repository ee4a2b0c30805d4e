//! The file of a trace: a user's or a built-in one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use plimsoll_workload::{Trace, TraceSpec, WorkloadError};

/// Prefix of the paths of built-in files.
const BUILTIN: &str = "builtin:";

/// Built-in files, by the name after `builtin:`.
const FILES: [BuiltinFile; 2] = [
    BuiltinFile {
        path: "traces/azure-example.csv",
        text: include_str!("../../../../profiles/traces/azure-example.csv"),
    },
    BuiltinFile {
        path: "traces/mooncake-example.jsonl",
        text: include_str!("../../../../profiles/traces/mooncake-example.jsonl"),
    },
];

struct BuiltinFile {
    path: &'static str,
    text: &'static str,
}

/// Whether a path names a built-in file.
pub fn is_builtin(path: &Path) -> bool {
    builtin_path(path).is_some()
}

/// Reads a trace, from a file or built in.
///
/// # Errors
/// The same as [`Trace::load`].
pub fn read_trace(spec: &TraceSpec) -> Result<Arc<Trace>, WorkloadError> {
    spec.read.get(|| read(spec)).map_err(WorkloadError::Import)
}

fn read(spec: &TraceSpec) -> Result<Trace, WorkloadError> {
    let Some(path) = builtin_path(&spec.file) else { return Trace::load(spec, Path::new("")) };
    let Some(file) = FILES.iter().find(|file| file.path == path) else {
        let source = io::ErrorKind::NotFound.into();
        return Err(WorkloadError::Read { file: spec.file.clone(), source });
    };
    Trace::parse(spec, file.text.as_bytes())
}

fn builtin_path(path: &Path) -> Option<&str> {
    path.to_str()?.strip_prefix(BUILTIN)
}
