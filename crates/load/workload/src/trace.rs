//! Recorded traffic: sessions of requests with their times, as bodies, texts or lengths alone.

mod blocks;
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

/// The replies that later prompts of a recorded conversation repeat. A reply that calls tools is
/// always the recorded one, to which the recorded results belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ReplySource {
    /// Those of the target; recorded ones where it gave none.
    #[default]
    Live,
    /// The recorded ones, so that prefixes stay as they were; the target's where none is recorded.
    Recorded,
}

/// A file of traffic as read, or why it cannot be sent. Copies share it: a profile is checked
/// before its load begins, and a search or several rounds send it again and again.
#[derive(Clone, Debug, Default)]
pub struct TrafficFile(Arc<OnceLock<Result<Arc<Trace>, String>>>);

impl TrafficFile {
    /// Reads it, the first time.
    ///
    /// # Errors
    /// Why it cannot be sent.
    pub fn get(
        &self,
        read: impl FnOnce() -> Result<Trace, WorkloadError>,
    ) -> Result<Arc<Trace>, String> {
        self.0.get_or_init(|| read().map(Arc::new).map_err(|error| error.to_string())).clone()
    }

    /// The traffic, once it is read.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        self.0.get()?.as_ref().ok()
    }
}

/// It follows from the file, which is compared.
impl PartialEq for TrafficFile {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

/// Recorded traffic that is played at its times: bodies, texts, or lengths and shared prefixes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TraceSpec {
    /// The file, relative to the profile.
    pub file: PathBuf,
    /// Its format, as `plimsoll import --as` names it. Left out: it is recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// Tokens that one of the `hash_ids` stands for. Left out: it follows from the rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub block_size: Option<u32>,
    /// Playing speed relative to the recording: 10 plays ten minutes in one.
    #[serde(default = "one")]
    pub time_scale: f64,
    /// The replies that later prompts repeat.
    #[serde(default)]
    pub replies: ReplySource,
    /// Whether broken rows are left out. Otherwise they are an error.
    #[serde(default)]
    pub skip_broken: bool,
    /// Start of the window, counted from the first session of the recording and before scaling.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub from: Option<Nanos>,
    /// End of the window (exclusive), counted from the first session of the recording and before
    /// scaling. Left out: the end of the file.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("format" = "duration"))]
    pub to: Option<Nanos>,
    /// What the file has: read once for all copies of the plan.
    #[serde(skip)]
    pub read: TrafficFile,
}

impl TraceSpec {
    /// The whole file, as it was recorded.
    pub fn new(file: PathBuf) -> Self {
        Self {
            file,
            format: None,
            block_size: None,
            time_scale: 1.0,
            replies: ReplySource::default(),
            skip_broken: false,
            from: None,
            to: None,
            read: TrafficFile::default(),
        }
    }
}

pub(crate) const fn one() -> f64 {
    1.0
}

/// A window of a recording, on the time axis on which it is played.
#[derive(Clone, Debug)]
pub struct Trace {
    offsets: Arc<[Nanos]>,
    sessions: Arc<[Session]>,
    /// The ids of all rows, one row after another.
    ids: Arc<[u64]>,
    /// Tokens that an id stands for.
    block_tokens: u32,
    summary: Arc<Summary>,
    scale: f64,
    replies: ReplySource,
}

impl Trace {
    /// Reads a file; a relative path starts at `base`.
    ///
    /// # Errors
    /// The file cannot be read or imported, cannot be played as it was recorded, or no session
    /// starts in the window.
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
    /// played at `(time - from) / time_scale`. They are sorted by time; those of the same time keep
    /// the order of the file.
    ///
    /// # Errors
    /// As [`Trace::load`].
    pub fn parse(spec: &TraceSpec, input: impl Read + 'static) -> Result<Self, WorkloadError> {
        let refuse = |fault| WorkloadError::Window { file: spec.file.clone(), fault };
        Window::check(spec).map_err(refuse)?;
        let options = Options { format: spec.format.clone(), skip_broken: spec.skip_broken };
        let mut sessions = Sessions::new(spec.block_size);
        let summary = plimsoll_import::read(&spec.file, input, &options, &mut |line| {
            sessions.add(line).map_err(std::io::Error::other)
        });
        let summary = summary.map_err(|error| WorkloadError::Import(error.to_string()))?;
        let block_tokens = sessions
            .complete_blocks()
            .map_err(|why| WorkloadError::Import(format!("{}: {why}", spec.file.display())))?;
        let Sessions { mut all, ids, .. } = sessions;
        all.iter_mut().for_each(Session::divide);
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
            scale: spec.time_scale,
            replies: spec.replies,
        })
    }

    /// When each session is played, from the start of the window, in ascending order.
    pub fn offsets(&self) -> Arc<[Nanos]> {
        Arc::clone(&self.offsets)
    }

    /// What was imported, and what was left out.
    pub fn summary(&self) -> &Summary {
        &self.summary
    }

    /// The first request of a session, by its position in [`Trace::offsets`].
    pub fn row(&self, row: u64) -> Option<TraceRow<'_>> {
        self.record(usize::try_from(row).ok()?, 0).map(|record| self.row_of(record))
    }

    /// The number of sessions, and of the requests of one.
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    pub(crate) fn turns(&self, session: usize) -> u16 {
        self.sessions.get(session).map_or(0, |session| count(session.records.len()))
    }

    /// The number of branches of a session that are played at the same time.
    pub(crate) fn branches(&self, session: usize) -> usize {
        self.sessions.get(session).map_or(0, |session| session.branches.len().max(1))
    }

    /// The number of turns of a branch.
    pub(crate) fn branch_turns(&self, session: usize, branch: usize) -> u16 {
        let own = self.sessions.get(session).and_then(|session| session.branches.get(branch));
        own.map_or_else(|| self.turns(session), |turns| count(turns.len()))
    }

    /// The position in the session of a turn of a branch.
    pub(crate) fn branch_turn(&self, session: usize, branch: usize, turn: u16) -> Option<u16> {
        let branches = &self.sessions.get(session)?.branches;
        if branches.is_empty() {
            return Some(turn);
        }
        branches.get(branch)?.get(usize::from(turn)).copied()
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

    /// A recorded time at the speed of the play.
    pub(crate) fn scaled(&self, time: Nanos) -> Nanos {
        scaled(time.as_u64(), self.scale)
    }

    pub(crate) const fn uses_recorded_replies(&self) -> bool {
        matches!(self.replies, ReplySource::Recorded)
    }

    /// The texts, if every session is a text for a protocol of the user's choice and nothing else.
    pub(crate) fn texts(&self) -> Option<Arc<[Arc<str>]>> {
        let texts = self.sessions.iter().map(|session| match session.records.as_slice() {
            [Record { body: Some(Body::Text(text)), .. }] => Some(Arc::clone(text)),
            _ => None,
        });
        texts.collect()
    }

    /// The protocols of its bodies, with the number of their requests.
    pub fn dialects(&self) -> Vec<(Dialect, u64)> {
        let bodies = self.records().filter_map(|record| record.body.as_ref()?.dialect());
        let mut counts: Vec<(Dialect, u64)> = Vec::new();
        for dialect in bodies {
            match counts.iter_mut().find(|(known, _)| *known == dialect) {
                Some((_, count)) => *count += 1,
                None => counts.push((dialect, 1)),
            }
        }
        counts
    }

    /// Whether every request to a model names its model.
    pub fn names_models(&self) -> bool {
        self.records().all(|record| match &record.body {
            Some(Body::Request { request, .. }) => request.model.is_some(),
            Some(Body::Http(_)) => true,
            Some(Body::Text(_)) | None => false,
        })
    }

    /// Whether prompts share text, by ids of their blocks.
    pub fn has_blocks(&self) -> bool {
        !self.ids.is_empty()
    }

    /// Whether requests are bodies or texts of the user, not lengths.
    pub fn has_texts(&self) -> bool {
        self.records().any(|record| record.body.is_some())
    }

    fn records(&self) -> impl Iterator<Item = &Record> {
        self.sessions.iter().flat_map(|session| &session.records)
    }
}

/// A part of the recorded time, in nanoseconds, and the speed at which it is played.
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
        let (from, scale) = (spec.from.unwrap_or_default(), spec.time_scale);
        if !scale.is_finite() || scale <= 0.0 {
            return Err(WindowFault::Scale(scale));
        }
        match spec.to {
            Some(to) if to <= from => Err(WindowFault::EmptyWindow { from, to }),
            _ => Ok(()),
        }
    }

    /// Sessions must be in the order of time.
    fn new(spec: &TraceSpec, sessions: &[Session]) -> Result<Self, WindowFault> {
        let (Some(first), Some(last)) = (sessions.first(), sessions.last()) else {
            return Err(WindowFault::NoRows);
        };
        let length = last.at.abs_diff(first.at) + 1;
        let from = spec.from.unwrap_or_default().as_u64();
        let to = spec.to.map_or_else(|| length.max(from), Nanos::as_u64);
        Ok(Self { origin: first.at, from, to, length, scale: spec.time_scale })
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

/// A number of turns, which was checked.
fn count(turns: usize) -> u16 {
    u16::try_from(turns).unwrap_or(u16::MAX)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturates at 584 years"
)]
fn scaled(nanos: u64, scale: f64) -> Nanos {
    Nanos::new((nanos as f64 / scale).round() as u64)
}

/// A request of a trace. Most have lengths alone: what others have beside them is boxed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record {
    pub(crate) input_tokens: u32,
    pub(crate) output_tokens: Option<u32>,
    /// The positions of its ids in the list of all ids.
    pub(crate) hash_ids: Range<usize>,
    /// Only of requests after the first of a session.
    pub(crate) link: Option<Box<Link>>,
    pub(crate) body: Option<Body>,
}

/// What a request waits for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Link {
    /// The request whose prompt and reply come first.
    pub(crate) continues: Option<u16>,
    /// Requests that must have ended, each with the time to wait then.
    pub(crate) after: Vec<(u16, Nanos)>,
    /// Where no wait was recorded: its time since the start of the session.
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
        /// The recorded reply, likewise.
        reply: Option<Arc<str>>,
        /// Whether the reply calls tools, whose recorded results belong to it.
        calls_tools: bool,
    },
    /// Plain HTTP.
    Http(Box<HttpContent>),
}

impl Body {
    /// The protocol that it is for, if it is for one alone.
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
    /// Tokens of the prompt; of a text about as many.
    pub input_tokens: u32,
    /// Tokens of the model's answer.
    pub output_tokens: u32,
    /// One id for every block of the prompt; equal ids stand for equal text. Empty if the trace
    /// has none.
    pub hash_ids: &'a [u64],
    /// Tokens of such a block, at most 512.
    pub block_tokens: u32,
}
