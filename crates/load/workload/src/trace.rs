//! Recorded traffic: sessions of requests with their times, as bodies, texts or lengths.

mod sessions;

use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use plimsoll_import::{Options, Summary};
use plimsoll_measure::Nanos;
use plimsoll_protocol::{Dialect, HttpContent, RecordedRequest};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sessions::{Session, Sessions};

use crate::error::{WindowFault, WorkloadError};

/// Replies that later prompts of a recorded conversation repeat. A reply with tool calls is always
/// the recorded one, because the recorded results belong to its calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplySource {
    /// The target's replies, or the recorded ones if the target sent none.
    #[default]
    Live,
    /// The recorded replies, to keep the recorded prefixes, or the target's if none is recorded.
    Recorded,
}

/// The content of a file of recorded traffic, or its problem. All copies share it, because checks,
/// searches and rounds need the same file.
#[derive(Clone, Debug, Default)]
pub struct TrafficFile(Arc<OnceLock<Result<Arc<Trace>, String>>>);

impl TrafficFile {
    /// Reads the file, the first time.
    ///
    /// # Errors
    /// The file cannot be replayed.
    pub fn get(
        &self,
        read: impl FnOnce() -> Result<Trace, WorkloadError>,
    ) -> Result<Arc<Trace>, String> {
        self.0.get_or_init(|| read().map(Arc::new).map_err(|error| error.to_string())).clone()
    }

    /// The content, if it has been read.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        self.0.get()?.as_ref().ok()
    }
}

/// The content depends on the name of the file, which is compared.
impl PartialEq for TrafficFile {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// Recorded traffic to replay at its recorded times: bodies, texts, or lengths and shared prefixes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The file, relative to the profile.
    pub file: PathBuf,
    /// Format, one of `plimsoll import --as`. Omitted: recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Tokens per block of `hash_ids`. Omitted: inferred from the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub block_size: Option<u32>,
    /// Playing speed relative to the recording: 10 plays ten minutes in one.
    pub time_scale: Option<f64>,
    /// Replies that later prompts repeat.
    #[serde(default)]
    pub replies: ReplySource,
    /// Skip broken rows instead of rejecting the file.
    #[serde(default)]
    pub skip_broken: bool,
    /// Start of the window, counted from the first session of the recording and before scaling.
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub from: Option<Nanos>,
    /// End of the window (exclusive), counted from the first session of the recording and before
    /// scaling. Omitted: the end of the file.
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub to: Option<Nanos>,
    /// The file's content, read once for all copies of the plan.
    #[serde(skip)]
    pub read: TrafficFile,
}

impl TraceSpec {
    fn speed(&self) -> f64 {
        self.time_scale.unwrap_or(1.0)
    }
}

/// A window of a recording, on the time axis on which it is played.
#[derive(Clone, Debug)]
pub struct Trace {
    offsets: Arc<[Nanos]>,
    sessions: Arc<[Session]>,
    /// The ids of all rows, one row after another.
    ids: Arc<[u64]>,
    /// Tokens per block.
    block_tokens: u32,
    summary: Arc<Summary>,
    scale: f64,
    replies: ReplySource,
}

impl Trace {
    /// Reads a file; a relative path starts at `base`.
    ///
    /// # Errors
    /// The file cannot be read, imported or replayed, or no session starts in the window.
    pub fn load(spec: &TraceSpec, base: &Path) -> Result<Self, WorkloadError> {
        let file = base.join(&spec.file);
        let spec = TraceSpec { file, ..spec.clone() };
        let input = plimsoll_input::open(&spec.file)
            .map_err(|source| WorkloadError::Read { file: spec.file.clone(), source })?;
        Self::parse(&spec, input)
    }

    /// Reads a recording; `spec.file` is only used in errors.
    ///
    /// Times are relative to the earliest session. Sessions that start in `from..to` are kept, and
    /// played at `(time - from) / time_scale`. They are sorted by time, and by their order in the
    /// file.
    ///
    /// # Errors
    /// The same as [`Trace::load`].
    pub fn parse(spec: &TraceSpec, input: impl Read + 'static) -> Result<Self, WorkloadError> {
        let refuse = |fault| WorkloadError::Window { file: spec.file.clone(), fault };
        Window::check(spec).map_err(refuse)?;
        let (format, skip_broken) = (spec.format.clone(), spec.skip_broken);
        let options = Options { format, skip_broken, ..Options::default() };
        let mut sessions = Sessions::new(spec.block_size);
        let summary =
            plimsoll_import::read(&spec.file, input, &options, &mut |line| Ok(sessions.add(line)?));
        let summary = summary.map_err(|error| WorkloadError::Import(error.to_string()))?;
        if summary.stages.is_some() {
            let why = "contains a load without requests: pass it to `plimsoll run`";
            return Err(WorkloadError::Import(format!("{}: {why}", spec.file.display())));
        }
        let block_tokens = sessions
            .complete_blocks()
            .map_err(|why| WorkloadError::Import(format!("{}: {why}", spec.file.display())))?;
        let Sessions { mut all, ids, .. } = sessions;
        all.sort_by_key(|session| session.at);
        let window = Window::new(spec, &all).map_err(refuse)?;
        all.retain(|session| window.contains(session));
        if all.is_empty() {
            return Err(refuse(window.outside()));
        }
        Ok(Self {
            offsets: all.iter().map(|session| window.offset(session.at)).collect(),
            sessions: all.into(),
            ids: ids.into(),
            block_tokens,
            summary: Arc::new(summary),
            scale: spec.speed(),
            replies: spec.replies,
        })
    }

    /// When each session is played, from the start of the window, in ascending order.
    pub fn offsets(&self) -> Arc<[Nanos]> {
        Arc::clone(&self.offsets)
    }

    /// The counts of the import.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The first request of a session, by its position in [`Trace::offsets`].
    pub fn row(&self, row: u64) -> Option<TraceRow<'_>> {
        self.record(usize::try_from(row).ok()?, 0).map(|record| self.row_of(record))
    }

    /// The number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn turns(&self, session: usize) -> u16 {
        self.sessions.get(session).map_or(0, |session| count(session.records.len()))
    }

    /// The number of requests of these sessions.
    pub(crate) fn requests(&self, sessions: impl IntoIterator<Item = u64>) -> u64 {
        let sessions = sessions.into_iter().filter_map(|session| usize::try_from(session).ok());
        sessions.map(|session| u64::from(self.turns(session))).sum()
    }

    /// The turns of a session, divided into branches that run at the same time.
    pub(crate) fn branches(&self, session: usize) -> Vec<Vec<u16>> {
        self.sessions.get(session).map_or_else(Vec::new, Session::branches)
    }

    pub(crate) fn record(&self, session: usize, turn: u16) -> Option<&Record> {
        self.sessions.get(session)?.records.get(usize::from(turn))
    }

    pub(crate) fn row_of(&self, record: &Record) -> TraceRow<'_> {
        TraceRow {
            input_tokens: record.input_tokens,
            output_tokens: record.output_tokens.unwrap_or(0),
            hash_ids: &self.ids[record.hash_ids.clone()],
            block_tokens: self.block_tokens,
        }
    }

    /// Scales a recorded time to the replay speed.
    pub(crate) fn scaled(&self, time: Nanos) -> Nanos {
        scaled(time.as_u64(), self.scale)
    }

    pub(crate) const fn uses_recorded_replies(&self) -> bool {
        matches!(self.replies, ReplySource::Recorded)
    }

    /// The texts, if every session is a bare text.
    pub(crate) fn texts(&self) -> Option<Arc<[Arc<str>]>> {
        let texts = self.sessions.iter().map(|session| match session.records.as_slice() {
            [Record { body: Some(Body::Text(text)), .. }] => Some(Arc::clone(text)),
            _ => None,
        });
        texts.collect()
    }

    /// The protocols of the recorded bodies.
    pub fn dialects(&self) -> Vec<Dialect> {
        let mut found = Vec::new();
        for dialect in self.records().filter_map(|record| record.body.as_ref()?.dialect()) {
            if !found.contains(&dialect) {
                found.push(dialect);
            }
        }
        found
    }

    /// Whether every request to a model names its model.
    pub fn names_models(&self) -> bool {
        self.records().all(|record| match &record.body {
            Some(Body::Request { request, .. }) => request.model.is_some(),
            Some(Body::Http(_)) => true,
            Some(Body::Text(_)) | None => false,
        })
    }

    /// Whether prompts share blocks.
    pub fn has_blocks(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Whether requests have recorded bodies or texts, not only lengths.
    pub fn has_texts(&self) -> bool {
        self.records().any(|record| record.body.is_some())
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.sessions.iter().flat_map(|session| &session.records)
    }
}

/// A part of the recorded time, in nanoseconds, and the replay speed.
struct Window {
    /// Recorded time of the first session.
    origin: i64,
    from: u64,
    to: u64,
    /// From the first session to just after the last.
    length: u64,
    scale: f64,
}

impl Window {
    fn check(spec: &TraceSpec) -> Result<(), WindowFault> {
        let (from, scale) = (spec.from.unwrap_or_default(), spec.speed());
        if !scale.is_finite() || scale <= 0.0 {
            return Err(WindowFault::Scale(scale));
        }
        match spec.to {
            Some(to) if to <= from => Err(WindowFault::EmptyWindow { from, to }),
            _ => Ok(()),
        }
    }

    /// Sessions must be sorted by time.
    fn new(spec: &TraceSpec, sessions: &[Session]) -> Result<Self, WindowFault> {
        let (Some(first), Some(last)) = (sessions.first(), sessions.last()) else {
            return Err(WindowFault::NoRows);
        };
        let length = last.at.abs_diff(first.at) + 1;
        let from = spec.from.unwrap_or_default().as_u64();
        let to = spec.to.map_or_else(|| length.max(from), Nanos::as_u64);
        Ok(Self { origin: first.at, from, to, length, scale: spec.speed() })
    }

    const fn contains(&self, session: &Session) -> bool {
        let time = session.at.abs_diff(self.origin);
        self.from <= time && time < self.to
    }

    fn offset(&self, at: i64) -> Nanos {
        scaled(at.abs_diff(self.origin) - self.from, self.scale)
    }

    const fn outside(&self) -> WindowFault {
        WindowFault::Outside { from: Nanos::new(self.from), length: Nanos::new(self.length - 1) }
    }
}

/// Converts a number of turns that was checked before.
fn count(turns: usize) -> u16 {
    u16::try_from(turns).unwrap_or(u16::MAX)
}

#[expect(clippy::cast_possible_truncation, reason = "saturates at 584 years")]
fn scaled(nanos: u64, scale: f64) -> Nanos {
    Nanos::new((nanos as f64 / scale).round() as u64)
}

/// A recorded request. Most have only lengths; further members are boxed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: Option<u32>,
    /// The positions of its ids in the list of all ids.
    pub(crate) hash_ids: Range<usize>,
    /// The order in the session; `None` for its first request.
    pub(crate) link: Option<Box<Link>>,
    pub(crate) body: Option<Body>,
}

/// The requests and waits before a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    /// The request whose prompt and reply come first.
    pub(crate) continues: Option<u16>,
    /// Requests that must have ended, each with the time to wait then.
    pub(crate) after: Vec<(u16, Nanos)>,
    /// Time since the start of the session, if no wait was recorded.
    pub(crate) at: Option<Nanos>,
}

/// The content of a request.
#[derive(Clone, Debug)]
pub(crate) enum Body {
    /// A text, for any protocol.
    Text(Arc<str>),
    /// A request to a model.
    Request {
        dialect: Dialect,
        request: Box<RecordedRequest>,
        /// New messages, as JSON with commas between them; empty if the prompt is another member.
        messages: Arc<str>,
        /// The recorded reply, in the same form.
        reply: Option<Arc<str>>,
        /// Whether the reply calls tools.
        calls_tools: bool,
    },
    /// Plain HTTP.
    Http(Box<HttpContent>),
}

impl Body {
    /// The protocol; `None` for a text, which suits any protocol.
    pub(crate) const fn dialect(&self) -> Option<Dialect> {
        match self {
            Self::Text(_) => None,
            Self::Request { dialect, .. } => Some(*dialect),
            Self::Http(_) => Some(Dialect::Http),
        }
    }
}

/// Lengths of a request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRow<'a> {
    /// Tokens of the prompt, estimated for a text.
    pub input_tokens: u32,
    /// Tokens of the model's response.
    pub output_tokens: u32,
    /// An id for every block of the prompt, or empty. Equal ids mean equal text.
    pub hash_ids: &'a [u64],
    /// Tokens of such a block, at most 512.
    pub block_tokens: u32,
}
