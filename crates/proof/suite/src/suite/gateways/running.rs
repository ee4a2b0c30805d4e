//! Starts and stops gateways of other projects.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use plimsoll_engine::{Control, ProcessStat, listener, ports_of, process_family};
use plimsoll_measure::{Clock as _, Moment, MonotonicClock, Nanos};
use plimsoll_runner::ChildProcess;
use plimsoll_runner::time::poll;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::spec::Entry;
use crate::child::{command, free_port, last_lines};
use crate::http_get::{HttpResponse, request};
use crate::target::SuiteTarget;

/// Time between two attempts to reach a gateway: the resolution of a cold start.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Time limit of one attempt, which may wait for a model to load.
const ATTEMPT: Duration = Duration::from_secs(10);
/// Time limit for a program to print its version or size.
const ANSWER: Duration = Duration::from_mins(1);
/// Time limit for the supervisor to end everything.
const STOP: Duration = Duration::from_secs(25);

/// Where gateways are started.
pub(super) struct Place<'a> {
    /// The `plimsoll` binary.
    pub(super) exe: &'a Path,
    /// Folder of the configurations and logs.
    pub(super) folder: PathBuf,
    /// `HOST:PORT` of the upstream.
    pub(super) upstream: &'a str,
    pub(super) workers: u32,
    pub(super) core: Option<usize>,
    pub(super) control: &'a Control,
}

/// How requests reach a gateway.
#[derive(Clone, Debug)]
pub(crate) struct Access {
    /// Host and port.
    pub(crate) address: String,
    /// The path of chats.
    pub(crate) path: String,
    /// `NAME: VALUE`, sent with every request.
    pub(crate) headers: Vec<String>,
    /// The model to ask for.
    pub(crate) model: String,
    /// The dialects that it offers: `openai`, `anthropic`.
    pub(crate) dialects: Vec<String>,
}

/// A gateway that answers chats. Dropping it ends all of its processes.
pub(super) struct Running {
    process: ChildProcess,
    log: PathBuf,
    pub(super) access: Access,
    pub(super) pid: u32,
    /// From its start to the answer to its first chat.
    pub(super) ready_after: Nanos,
}

impl Running {
    /// Starts a gateway, and waits until it answers a chat.
    ///
    /// # Errors
    /// Why it does not, with its last words.
    pub(super) fn start(entry: &Entry, place: &Place<'_>) -> Result<Self, String> {
        let port = entry.port.map_or_else(free_port, Ok)?;
        let name = &entry.name;
        let folder = place.folder.join(name);
        let placeholders = Placeholders::of(entry, place, port, &folder);
        let files = placeholders.write_files(entry, &folder);
        files.map_err(|error| format!("its files cannot be written: {error}"))?;
        let log = folder.join("log");
        let wanted = placeholders.filled(&entry.start);
        let mut command = command(place.exe, place.core, &["--supervise"], &[wanted]);
        command.current_dir(&entry.folder).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.envs(entry.env.iter().map(|(name, value)| (name, placeholders.filled(value))));
        let output = File::create(&log).map_err(|error| error.to_string())?;
        let clock = MonotonicClock::start();
        let process = ChildProcess::spawn(command.stderr(output));
        let mut process = process.map_err(|error| error.to_string())?;
        let lines = process.lines();
        let mut running = Self {
            process,
            log,
            access: Access {
                address: format!("127.0.0.1:{port}"),
                path: entry.path.clone(),
                headers: entry
                    .headers
                    .iter()
                    .map(|(name, value)| format!("{name}: {}", placeholders.filled(value)))
                    .collect(),
                model: entry.model.clone(),
                dialects: entry.dialects.clone(),
            },
            pid: 0,
            ready_after: Nanos::ZERO,
        };
        let pid = lines.and_then(|lines| lines.recv_timeout(ATTEMPT).ok());
        running.pid = pid.and_then(|pid| pid.parse().ok()).unwrap_or_default();
        running
            .wait(entry, place.control)
            .map_err(|why| format!("{why}{}", running.last_words()))?;
        running.ready_after = clock.now().since(Moment::EPOCH);
        let watched =
            entry.watch.or_else(|| ProcessStat::read(running.pid).is_none().then_some(port));
        if let Some(port) = watched {
            running.pid = listener(port).map_err(|error| error.to_string())?;
        }
        Ok(running)
    }

    fn wait(&mut self, entry: &Entry, control: &Control) -> Result<(), String> {
        let limit = Duration::from_secs(entry.ready_seconds);
        let mut last = String::new();
        let ready = poll(limit, POLL_INTERVAL, || {
            if self.process.has_ended() || control.is_interrupted() {
                "it ended".clone_into(&mut last);
                return Some(false);
            }
            match self.ask() {
                Ok(HttpResponse { status: 200, .. }) => return Some(true),
                Ok(HttpResponse { status, body, .. }) => {
                    let body: String = body.chars().take(200).collect();
                    last = format!("it answers {status} to a chat: {}", body.trim());
                    // A key stays wrong.
                    return [401, 403].contains(&status).then_some(false);
                }
                Err(error) => last = format!("no answer at {}: {error}", self.access.address),
            }
            None
        });
        match ready {
            Some(true) => Ok(()),
            Some(false) => Err(last),
            None => {
                let ports = ports_of(process_family(self.pid).into_keys());
                let ports: Vec<_> = ports.iter().map(u16::to_string).collect();
                let elsewhere = if last.starts_with("no answer") && !ports.is_empty() {
                    format!("; it listens on port {}", ports.join(", "))
                } else {
                    String::new()
                };
                Err(format!("not ready after {} s: {last}{elsewhere}", entry.ready_seconds))
            }
        }
    }

    fn ask(&self) -> io::Result<HttpResponse> {
        let body = json!({
            "model": self.access.model,
            "messages": [{"role": "user", "content": "ready?"}],
            "max_tokens": 1,
            "stream": false,
        });
        let Access { address, path, headers, .. } = &self.access;
        request(address, path, headers, Some(&body.to_string()), ATTEMPT)
    }

    /// The last lines that it wrote.
    pub(super) fn last_words(&self) -> String {
        last_lines(&self.log)
    }

    /// Resident memory of its processes, in bytes; `None` if it has died.
    pub(super) fn memory(&self) -> Option<f64> {
        let family = process_family(self.pid);
        (!family.is_empty()).then(|| family.values().map(|stat| stat.rss_bytes as f64).sum())
    }

    /// The gateway as the target of a load.
    pub(super) fn target(&self, entry: &Entry) -> SuiteTarget {
        SuiteTarget {
            base: format!("http://{}{}", self.access.address, entry.prefix()),
            headers: self.access.headers.clone(),
            model: entry.model.clone(),
            gateway_pid: Some(self.pid),
            ..SuiteTarget::default()
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The supervisor ends everything when its input is closed.
        drop(self.process.stdin());
        poll(STOP, POLL_INTERVAL, || self.process.has_ended().then_some(()));
    }
}

/// Values of `{port}` and the like.
pub(super) struct Placeholders(Vec<(&'static str, String)>);

impl Placeholders {
    pub(super) fn of(entry: &Entry, place: &Place<'_>, port: u16, run: &Path) -> Self {
        let (host, upstream_port) =
            place.upstream.rsplit_once(':').unwrap_or((place.upstream, "80"));
        Self(vec![
            ("{port}", port.to_string()),
            ("{upstream}", place.upstream.to_owned()),
            ("{upstream_host}", host.to_owned()),
            ("{upstream_port}", upstream_port.to_owned()),
            ("{workers}", place.workers.to_string()),
            ("{run}", run.display().to_string()),
            ("{dir}", entry.folder.display().to_string()),
            ("{plimsoll}", place.exe.display().to_string()),
        ])
    }

    pub(super) fn filled(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }

    fn write_files(&self, entry: &Entry, folder: &Path) -> io::Result<()> {
        fs::create_dir_all(folder)?;
        for file in &entry.files {
            let text = plimsoll_input::read_text(&entry.folder.join(file))
                .map_err(|error| io::Error::other(format!("{}: {error}", file.display())))?;
            let name = file.file_name().unwrap_or(file.as_os_str());
            fs::write(folder.join(name), self.filled(&text))?;
        }
        Ok(())
    }
}

/// SHA-256 of each configuration file, with its placeholders not filled in.
pub(super) fn digests(entry: &Entry) -> BTreeMap<String, String> {
    let files = entry.files.iter().filter_map(|file| {
        let bytes = plimsoll_input::read(&entry.folder.join(file)).ok()?;
        let digest = Sha256::digest(&bytes);
        let hex = digest.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        Some((file.display().to_string(), hex))
    });
    files.collect()
}

/// The last line that a command of an entry prints; `None` if it fails.
pub(super) fn printed(shell_command: &str, entry: &Entry, place: &Place<'_>) -> Option<String> {
    let placeholders = Placeholders::of(entry, place, 0, &place.folder.join(&entry.name));
    let mut command = Command::new("sh");
    command.arg("-c").arg(placeholders.filled(shell_command)).current_dir(&entry.folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = ChildProcess::spawn(&mut command).ok()?;
    let lines = process.lines()?;
    let status = poll(ANSWER, POLL_INTERVAL, || process.ended())?;
    let last = lines.iter().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty());
    last.last().filter(|_| status.success())
}
