//! The text of a profile, from a file or built in.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use plimsoll_plan::is_builtin;

use crate::error::{Fault, Problem, Problems, ValueSource};
use crate::path::{self, ConfigPath};

/// The text of a profile, with its source.
#[derive(Clone)]
pub struct Profile {
    pub(crate) source: ValueSource,
    name: String,
    text: Cow<'static, [u8]>,
    folder: PathBuf,
}

impl Profile {
    /// Opens the built-in profile with that name, or else the file. Use `./NAME` for a file with
    /// the name of a built-in profile.
    ///
    /// # Errors
    /// Neither exists, or the file cannot be read.
    pub fn open(name_or_path: &str) -> Result<Self, Problems> {
        if let Some(text) = profile(name_or_path) {
            return Ok(Self {
                source: ValueSource::File(name_or_path.to_owned()),
                name: name_or_path.to_owned(),
                text: Cow::Borrowed(text.as_bytes()),
                folder: PathBuf::new(),
            });
        }
        let text = plimsoll_input::read(Path::new(name_or_path))
            .map_err(|error| unreadable(name_or_path, &error))?;
        Ok(Self::new(Path::new(name_or_path), text))
    }

    /// Creates a profile with this text, as if read from `path`.
    pub fn new(path: &Path, text: Vec<u8>) -> Self {
        Self {
            source: ValueSource::File(path.display().to_string()),
            name: path
                .file_stem()
                .map(|stem| plain_name(&stem.to_string_lossy()))
                .unwrap_or_default(),
            text: Cow::Owned(text),
            folder: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        }
    }

    /// The source of the text for problem reports.
    pub const fn source(&self) -> &ValueSource {
        &self.source
    }

    /// Default name of a run: the file name without its extension.
    pub(crate) fn name(&self) -> &str {
        if self.name.is_empty() { "run" } else { &self.name }
    }

    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// Resolves the path of a file named in the profile.
    pub(crate) fn resolve(&self, path: &Path) -> PathBuf {
        if is_builtin(path) { path.to_path_buf() } else { self.folder.join(path) }
    }
}

/// Opens a file to check whether it can be read.
pub(crate) fn try_open(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    plimsoll_input::open(path).map(drop)
}

/// Replaces characters that are not allowed in the name of a run.
fn plain_name(text: &str) -> String {
    text.chars().map(|c| if is_plain(c) { c } else { '-' }).collect()
}

/// Whether a character is allowed in the name of a run, which becomes part of a folder's name.
pub(crate) const fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')
}

fn unreadable(path: &str, error: &io::Error) -> Problems {
    let names: Vec<_> = names().collect();
    let fix = if path.contains(['/', '.']) {
        "give the path of a profile, or the name of a built-in one".to_owned()
    } else {
        format!("no built-in profile has this name either: {}", path::instead(path, &names))
    };
    let fault = Fault::new(format!("cannot be read ({})", plain_error(error)), fix);
    Problem::new(ValueSource::File(path.to_owned()), ConfigPath::root(), fault).into()
}

/// The system's message without the error number.
pub(crate) fn plain_error(error: &io::Error) -> String {
    let message = error.to_string();
    message.split(" (os error").next().unwrap_or_default().to_lowercase()
}

// The built-in profiles, to run unchanged or as a starting point.

/// Name and text of a built-in profile.
type Builtin = (&'static str, &'static str);

macro_rules! shipped {
    ($($name:literal: $path:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("../../../../profiles/", $path)))),+]
    };
}

const PROFILES: &[Builtin] = shipped![
    "realistic": "realistic.yaml",
    "minimal": "minimal.yaml",
    "cross-ingress": "cross-ingress.yaml",
    "perf-128-nonstream": "perf-128-nonstream.yaml",
    "perf-128-stream": "perf-128-stream.yaml",
    "perf-550-nonstream": "perf-550-nonstream.yaml",
    "perf-550-stream": "perf-550-stream.yaml",
    "perf-hotpath-nonstream": "perf-hotpath-nonstream.yaml",
    "perf-hotpath-stream": "perf-hotpath-stream.yaml",
    "policy": "policy.yaml",
    "policy-llm": "policy-llm.yaml",
    "mcp-tools": "mcp-tools.yaml",
    "a2a": "a2a.yaml",
    "agent-loop": "agent-loop.yaml",
    "azure-trace": "azure-trace.yaml",
    "mooncake-trace": "mooncake-trace.yaml",
];

/// The text of the built-in profile `name`.
pub fn profile(name: &str) -> Option<&'static str> {
    PROFILES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Names of the built-in profiles, the most general one first.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROFILES.iter().map(|(name, _)| *name)
}
