//! Gathers canonical requests into sessions.

use std::collections::HashMap;
use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_import::{Line, Request};
use plimsoll_measure::Nanos;
use plimsoll_protocol::{Dialect, HttpContent, RecordedRequest};
use serde_json::{Map, Value};

use super::{Body, Link, Record};
use crate::error::MAX_TOKENS;
use crate::synthetic_text::CACHE_BLOCK;

/// The requests of one user, in order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Session {
    /// Recorded start in nanoseconds, on the file's own axis.
    pub(crate) at: i64,
    pub(crate) records: Vec<Record>,
}

impl Session {
    /// Divides the turns into branches that are played at the same time. A turn continues a branch
    /// if it waits for the last turn of that branch.
    pub(super) fn branches(&self) -> Vec<Vec<u16>> {
        let mut branches: Vec<Vec<u16>> = Vec::new();
        for (turn, record) in (0..).zip(&self.records) {
            let after = record.link.as_ref().map_or(&[][..], |link| &link.after);
            let mut known = branches.iter_mut();
            let before = known.find(|branch| {
                branch.last().is_some_and(|last| after.iter().any(|(turn, _)| turn == last))
            });
            match before {
                Some(branch) => branch.push(turn),
                None => branches.push(vec![turn]),
            }
        }
        branches
    }
}

/// The sessions of a file, as it is read.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) all: Vec<Session>,
    pub(crate) ids: Vec<u64>,
    /// Tokens per block from the profile, which has priority, and from the file.
    block_size: Option<u32>,
    recorded_size: Option<u32>,
    by_name: HashMap<String, usize>,
    /// Requests that later requests of their session may name, with the inherited members.
    named: HashMap<String, Named>,
}

#[derive(Clone, Debug)]
struct Named {
    session: usize,
    turn: u16,
    dialect: Option<Dialect>,
    request: RecordedRequest,
}

impl Sessions {
    pub(crate) fn new(block_size: Option<u32>) -> Self {
        Self { block_size, ..Self::default() }
    }

    /// Adds a line; `Err` contains the problem.
    pub(crate) fn add(&mut self, line: Line) -> Result<(), String> {
        let Line::Request(request) = line else { return Ok(()) };
        let id = request.id.clone();
        self.add_request(*request).map_err(|why| format!("request `{id}` {why}"))
    }

    fn add_request(&mut self, mut request: Request) -> Result<(), String> {
        let known = request.session.as_ref().and_then(|name| self.by_name.get(name)).copied();
        let session = known.unwrap_or_else(|| {
            let at = signed_nanos(request.session_at_ms.unwrap_or(0.0));
            self.all.push(Session { at, ..Session::default() });
            self.all.len() - 1
        });
        let turn = u16::try_from(self.all[session].records.len())
            .map_err(|_| "belongs to a session of more than 65,536 requests".to_owned())?;
        let link = if turn > 0 { Some(Box::new(self.link(&request, session)?)) } else { None };
        let parent = request.continues.as_ref().and_then(|id| self.named.get(id)).cloned();
        let dialect = request.dialect.or_else(|| parent.as_ref()?.dialect);
        let inherited = parent.map(|parent| parent.request).unwrap_or_default();
        let recorded = inherit(inherited, &mut request);
        if let Some(name) = &request.session {
            self.by_name.insert(name.clone(), session);
            let named = Named { session, turn, dialect, request: recorded.clone() };
            self.named.insert(request.id.clone(), named);
        }
        let input = tokens(request.in_tokens.unwrap_or(0))?;
        let output = request.out_tokens.map(tokens).transpose()?;
        let (start, blocks) = (self.ids.len(), request.blocks.take());
        let body = body(request, dialect, recorded)?;
        // Texts need no ids, because equal texts share blocks anyway.
        if let Some(blocks) = blocks.filter(|_| body.is_none()) {
            self.ids.extend(&blocks.ids);
            self.recorded_size = self.recorded_size.or_else(|| u32::try_from(blocks.size).ok());
        }
        let hash_ids = start..self.ids.len();
        let input_tokens = match &body {
            // A token has about four bytes.
            Some(Body::Text(text)) => u32::try_from(text.len().div_ceil(4)).unwrap_or(MAX_TOKENS),
            _ => input,
        };
        let record = Record { input_tokens, output_tokens: output, hash_ids, link, body };
        self.all[session].records.push(record);
        Ok(())
    }

    /// The requests to wait for: the named ones, or else the continued one.
    fn link(&self, request: &Request, session: usize) -> Result<Link, String> {
        let continues =
            request.continues.as_deref().map(|id| self.place(id, session)).transpose()?;
        let own = continues.filter(|_| request.after.is_none());
        let own = own.map(|turn| Ok((turn, request.wait_ms))).into_iter();
        let named = request.after.iter().flatten();
        let named = named.map(|one| Ok((self.place(&one.id, session)?, one.wait_ms)));
        let after: Vec<_> = own.chain(named).collect::<Result<_, String>>()?;
        let has_wait = after.iter().any(|(_, wait)| wait.is_some());
        let at = request.at_ms.filter(|_| !has_wait).map(|at| nanos(Some(at)));
        let after = after.into_iter().map(|(turn, wait)| (turn, nanos(wait))).collect();
        Ok(Link { continues, after, at })
    }

    /// The position of a request in its session.
    fn place(&self, id: &str, session: usize) -> Result<u16, String> {
        match self.named.get(id) {
            Some(named) if named.session == session => Ok(named.turn),
            _ => Err(format!("names `{id}`, which is not a request of its session")),
        }
    }

    /// Completes the ids of every row, and returns the tokens per block.
    pub(crate) fn complete_blocks(&mut self) -> Result<u32, String> {
        let records = self.all.iter().flat_map(|session| &session.records);
        let size = match (self.block_size, self.recorded_size) {
            (Some(size), _) => size,
            (None, Some(recorded)) => size(records, recorded)?,
            (None, None) => return Ok(0),
        };
        let records = self.all.iter_mut().flat_map(|session| &mut session.records);
        Ok(complete(records, &mut self.ids, size))
    }
}

/// Merges the members of a request into the inherited ones; `null` removes a member.
fn inherit(mut recorded: RecordedRequest, request: &mut Request) -> RecordedRequest {
    recorded.model = request.model.take().or(recorded.model);
    if !request.body.is_empty() {
        let mut members = Map::clone(&recorded.members);
        members.extend(std::mem::take(&mut request.body));
        members.retain(|_, value| !value.is_null());
        recorded.members = Arc::new(members);
    }
    for (name, values) in std::mem::take(&mut request.headers) {
        recorded.headers.retain(|(known, _)| *known != name);
        recorded.headers.extend(values.into_iter().map(|value| (name.clone(), value)));
    }
    recorded
}

fn body(
    request: Request,
    dialect: Option<Dialect>,
    recorded: RecordedRequest,
) -> Result<Option<Body>, String> {
    let Some(dialect) = dialect else {
        return if request.messages.is_some() || !recorded.members.is_empty() {
            Err("has a prompt but no `dialect`".to_owned())
        } else {
            Ok(None)
        };
    };
    if dialect == Dialect::Http {
        let body = match (request.body_text, request.body_b64) {
            (Some(text), _) => text.into_bytes(),
            (None, Some(coded)) => BASE64_STANDARD
                .decode(coded)
                .map_err(|_| "has a `body_b64` that is not base64".to_owned())?,
            (None, None) => Vec::new(),
        };
        let method = request.method.unwrap_or_else(|| "GET".to_owned());
        let (path, headers) = (request.path.unwrap_or_default(), recorded.headers);
        return Ok(Some(Body::Http(Box::new(HttpContent { method, path, headers, body }))));
    }
    if !dialect.has_model() {
        return Err(format!("is for `{}`, which cannot be replayed", dialect.name()));
    }
    let messages = request.messages.unwrap_or_default();
    // A later request of the session may continue it.
    let is_alone = request.session.is_none() && request.reply.is_none();
    if let ([message], true, None) = (messages.as_slice(), is_alone, &recorded.model)
        && recorded.members.values().all(|limit| limit.as_u64() == request.out_tokens)
        && recorded.members.keys().all(|name| name == "max_tokens")
        && recorded.headers.is_empty()
        && let Some(text) = plain_text(message)
    {
        return Ok(Some(Body::Text(text.into())));
    }
    let reply = request.reply.filter(|reply| !reply.is_empty());
    let calls_tools = reply.iter().flatten().any(|message| {
        let kinds = ["\"tool_calls\":[{", "\"tool_use\"", "\"function_call\""];
        let text = message.to_string();
        kinds.iter().any(|kind| text.contains(kind))
    });
    Ok(Some(Body::Request {
        dialect,
        request: Box::new(recorded),
        messages: joined(&messages),
        reply: reply.as_deref().map(joined),
        calls_tools,
    }))
}

/// The text of a user message without other members.
fn plain_text(message: &Value) -> Option<&str> {
    let members = message.as_object()?;
    let is_plain = members.len() == 2 && message["role"] == "user";
    message["content"].as_str().filter(|_| is_plain)
}

fn joined(messages: &[Value]) -> Arc<str> {
    let texts: Vec<_> = messages.iter().map(Value::to_string).collect();
    texts.join(",").into()
}

fn nanos(ms: Option<f64>) -> Nanos {
    Nanos::new(signed_nanos(ms.unwrap_or(0.0)).max(0).unsigned_abs())
}

#[expect(clippy::cast_possible_truncation, reason = "saturates")]
fn signed_nanos(ms: f64) -> i64 {
    (ms * 1e6).round() as i64
}

fn tokens(count: u64) -> Result<u32, String> {
    let small = u32::try_from(count).ok().filter(|count| *count <= MAX_TOKENS);
    small.ok_or_else(|| format!("has {count} tokens; at most {MAX_TOKENS} can be sent"))
}

// The blocks of a trace whose prompts share text: their size, and their ids.
//
// Text is made in blocks of at most [`CACHE_BLOCK`] tokens. A larger block of a trace becomes
// several, and the rest of a prompt gets unique ids.

/// Sizes that servers use, the most frequent first.
const USUAL: [u32; 10] = [512, 16, 32, 64, 128, 256, 1_024, 2_048, 4_096, 8];

/// Infers the tokens per block from the rows with ids. `stated` is the size of the format.
///
/// # Errors
/// No size matches the ids of all rows.
pub(super) fn size<'r>(
    records: impl Iterator<Item = &'r Record>,
    stated: u32,
) -> Result<u32, String> {
    let rows = records.filter(|record| !record.hash_ids.is_empty());
    let rows: Vec<_> = rows.map(|row| (row.hash_ids.len(), row.input_tokens)).collect();
    let sizes = [stated].into_iter().chain(USUAL).filter(|size| *size > 0);
    // Either every block has an id, even a partial last one, or only complete blocks do.
    let usual = sizes
        .clone()
        .find(|size| rows.iter().all(|(ids, input)| *ids == input.div_ceil(*size) as usize));
    let usual = usual.or_else(|| {
        sizes.clone().find(|size| rows.iter().all(|(ids, input)| *ids == (input / size) as usize))
    });
    // Rows may have fewer ids. The rest of such a prompt is unique.
    let too_many = rows.iter().find(|(ids, input)| *ids > input.div_ceil(stated.max(1)) as usize);
    match (usual, too_many) {
        (Some(size), _) => Ok(size),
        (None, None) => Ok(stated),
        (None, Some((ids, input))) => Err(format!(
            "no block size fits the hash_ids of all rows (one has {ids} ids for an \
             input_length of {input}): write `block_size` of the trace"
        )),
    }
}

/// Completes the ids of every row, and returns the tokens per block of text.
pub(super) fn complete<'r>(
    records: impl Iterator<Item = &'r mut Record>,
    ids: &mut Vec<u64>,
    size: u32,
) -> u32 {
    let most = u32::try_from(CACHE_BLOCK).unwrap_or(u32::MAX);
    let parts = u64::from(size.div_ceil(most));
    let part = size.div_ceil(u32::try_from(parts).unwrap_or(1)).max(1);
    let known = std::mem::take(ids);
    // A row without ids needs none, because it shares no text.
    let sharing = (0u64..).zip(records).filter(|(_, record)| !record.hash_ids.is_empty());
    for (row, record) in sharing {
        let own = &known[record.hash_ids.clone()];
        let needed = record.input_tokens.div_ceil(part) as usize;
        let start = ids.len();
        let of_blocks = own.iter().flat_map(|id| {
            (0..parts).map(move |index| if parts == 1 { *id } else { spread(*id, index) })
        });
        ids.extend(of_blocks.take(needed));
        // Unique text.
        let missing = (0u64..).take(needed - (ids.len() - start));
        ids.extend(missing.map(|index| spread(!row, index ^ (1 << 63))));
        record.hash_ids = start..ids.len();
    }
    part
}

/// Derives a number that is unlikely to be an id of the trace (`SplitMix64`).
const fn spread(id: u64, index: u64) -> u64 {
    let mut mixed = id.wrapping_add(index.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(of: &[(&[u64], u32)]) -> (Vec<Record>, Vec<u64>) {
        let mut ids = Vec::new();
        let records = of.iter().map(|(own, input_tokens)| {
            let start = ids.len();
            ids.extend_from_slice(own);
            let hash_ids = start..ids.len();
            Record { input_tokens: *input_tokens, hash_ids, ..Record::default() }
        });
        (records.collect(), ids)
    }

    #[test]
    fn a_text_with_a_limit_is_a_text_if_its_length_is_the_limit() {
        let is_text = |out_tokens| {
            let mut sessions = Sessions::new(None);
            let message = serde_json::json!({ "role": "user", "content": "Hi." });
            let body = [("max_tokens".to_owned(), 7.into())].into_iter().collect();
            let (dialect, messages) = (Some(Dialect::OpenaiChat), Some(vec![message]));
            let request = Request { dialect, messages, body, out_tokens, ..Request::default() };
            sessions.add(Line::Request(Box::new(request))).unwrap();
            matches!(sessions.all[0].records[0].body, Some(Body::Text(_)))
        };
        assert!(is_text(Some(7)) && !is_text(None));
    }

    #[test]
    fn the_size_of_a_block_follows_from_the_rows() {
        for (of, expected) in [
            (&[(&[1, 2][..], 1_000), (&[1], 300)][..], Ok(512)),
            (&[(&[1, 2, 3], 48), (&[1], 9)], Ok(16)),
            (&[(&[1, 2], 1_500)], Ok(1_024)),
            // Whole blocks alone.
            (&[(&[1, 2, 3], 1_600), (&[], 300)], Ok(512)),
            // Fewer than the stated size needs.
            (&[(&[1, 2], 600), (&[1, 2, 3], 2_000)], Ok(512)),
            // A size of nobody has to be named.
            (&[(&[1, 2, 3], 900), (&[1], 2_000)], Err("3 ids for an input_length of 900")),
        ] {
            let found = size(rows(of).0.iter(), 512);
            match expected {
                Ok(size) => assert_eq!(found, Ok(size), "{of:?}"),
                Err(part) => assert!(found.unwrap_err().contains(part), "{of:?}"),
            }
        }
    }

    #[test]
    fn every_block_gets_an_id_and_equal_ids_stay_equal() {
        let (mut records, mut ids) = rows(&[(&[7, 8], 2_048), (&[7, 9], 1_500), (&[], 600)]);
        assert_eq!(complete(records.iter_mut(), &mut ids, 1_024), 512);
        let of = |row: usize| ids[records[row].hash_ids.clone()].to_vec();
        let (one, other, alone) = (of(0), of(1), of(2));
        assert_eq!((one.len(), other.len(), alone.len()), (4, 3, 0));
        assert_eq!(one[..2], other[..2]);
        let all: std::collections::BTreeSet<_> = ids.iter().collect();
        assert_eq!(all.len(), 5, "nothing else is shared: {ids:?}");
    }
}
