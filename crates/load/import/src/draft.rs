//! A row on its way to a request: each target of the table puts a value where it belongs.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

use crate::messages::{from_parts, has_secret_name, image, reply, texts};
use crate::record::{Blocks, Dialect, Recorded, Request};
use crate::value::{is_empty, text, unpacked};

/// A request, and what decides about it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) request: Request,
    /// The session that the row names, or the trace that it belongs to.
    pub(crate) session: Option<String>,
    pub(crate) trace: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) start: Option<f64>,
    pub(crate) end: Option<f64>,
    first: Option<f64>,
    texts: Vec<String>,
    images: Vec<Value>,
    pub(crate) role: String,
    system: Option<Value>,
    pub(crate) turns: Option<Vec<Value>>,
    pub(crate) each: Option<Vec<Value>>,
    call: String,
    pub(crate) host: Option<String>,
    /// Members of the row's values that are not sent.
    pub(crate) dropped: Vec<String>,
}

impl Draft {
    /// Puts a value where the target says; `Err` has what is wrong with it.
    pub(crate) fn put(&mut self, target: &str, argument: &str, value: Value) -> Result<(), String> {
        let request = &mut self.request;
        match target {
            "id" => request.id = text(&value),
            "session" => self.session = Some(text(&value)),
            "trace" => self.trace = Some(text(&value)),
            "parent" => self.parent = Some(text(&value)).filter(|id| id != "-1"),
            "at" => self.start = Some(time(&value, argument)?),
            "end" => self.end = Some(time(&value, argument)?),
            "end_else" => self.end = Some(self.end.map_or_else(|| time(&value, argument), Ok)?),
            "first" => self.first = Some(time(&value, argument)?),
            "wait" => request.wait_ms = Some(time(&value, argument)?),
            "duration" => recorded(request).duration_ms = Some(time(&value, argument)?),
            "ttft" => recorded(request).ttft_ms = Some(time(&value, argument)?),
            "status" => recorded(request).status = Some(count(&value)?),
            "in" => request.in_tokens = Some(count(&value)?),
            "out" if value == -1 => {}
            "out" => request.out_tokens = Some(count(&value)?),
            "cached" => request.cached_tokens = Some(count(&value)?),
            "blocks" => {
                let ids = serde_json::from_value(value).map_err(|_| "is not a list of ids")?;
                let size = argument.parse().map_err(|_| "has no size of blocks")?;
                request.blocks = Some(Blocks { size, ids });
            }
            "model" => request.model = Some(text(&value)),
            "role" => self.role = text(&value),
            "call" => self.call = text(&value),
            "text" => self.texts.extend(texts(&value)?),
            "image" => self.images.extend(list(value).into_iter().map(|value| image(&value))),
            "system" => self.system = Some(value),
            "turns" => self.turns = Some(rows(value)?),
            "each" | "bodies" => self.each = Some(rows(value)?),
            _ => return self.put_body(target, argument, value),
        }
        Ok(())
    }

    fn put_body(&mut self, target: &str, argument: &str, value: Value) -> Result<(), String> {
        let request = &mut self.request;
        match target {
            "param" => {
                let number = value.as_str().and_then(|text| serde_json::from_str(text).ok());
                let number = number.filter(Value::is_number);
                request.body.insert(argument.to_owned(), number.unwrap_or(value));
            }
            "params" => request.body.extend(object(value)?),
            "tools" => _ = request.body.insert("tools".to_owned(), chat_tools(unpacked(value))),
            "body" => self.put_request(object(value)?),
            "prompt" => self.put_prompt(unpacked(value)),
            "reply" => {
                request.reply = reply(unpacked(value));
                if request.reply.is_none() {
                    self.dropped.push("replies of an unknown form".to_owned());
                }
            }
            "parts" => {
                let messages = from_parts(unpacked(value), &mut self.dropped);
                match argument {
                    "reply" => request.reply = Some(messages).filter(|all| !all.is_empty()),
                    "system" => self.system = messages.first().map(|one| one["content"].clone()),
                    _ => request.messages = Some(messages).filter(|all| !all.is_empty()),
                }
            }
            "method" => request.method = Some(text(&value)),
            "url" => self.put_url(&text(&value)),
            "body_text" => request.body_text = Some(text(&value)),
            "body_b64" => {
                let bytes = BASE64_STANDARD.decode(text(&value)).map_err(|_| "is not base64")?;
                match String::from_utf8(bytes) {
                    Ok(text) => request.body_text = Some(text),
                    Err(_) => request.body_b64 = Some(text(&value)),
                }
            }
            "header" => self.put_header(argument, &value),
            "headers" => self.put_headers(value),
            _ => return Err(format!("has the target {target}, which is unknown")),
        }
        Ok(())
    }

    /// A whole request body.
    pub(crate) fn put_request(&mut self, body: Map<String, Value>) {
        for (name, value) in body {
            if has_secret_name(&name) {
                self.dropped.push(format!("{name} (secret)"));
                continue;
            }
            match (name.as_str(), value) {
                ("messages" | "contents" | "input", Value::Array(list)) if is_messages(&list) => {
                    self.request.messages = Some(list);
                    self.request.dialect = match name.as_str() {
                        "contents" => Some(Dialect::Gemini),
                        "input" => Some(Dialect::OpenaiResponses),
                        _ => self.request.dialect,
                    };
                }
                ("model", Value::String(model)) => self.put_model(&model),
                (_, value) => _ = self.request.body.insert(name, value),
            }
        }
    }

    /// The model of a body, unless the row names the one that was asked for.
    fn put_model(&mut self, model: &str) {
        let known = self.request.model.get_or_insert_with(|| model.to_owned());
        if *known != model {
            self.dropped.push("model of the body (asked for by another name)".to_owned());
        }
    }

    /// A prompt in any of the forms that logs keep: messages, a body or text.
    fn put_prompt(&mut self, value: Value) {
        match value {
            Value::Array(list) if !list.is_empty() => self.request.messages = Some(list),
            Value::Object(body) if body.contains_key("messages") => self.put_request(body),
            Value::String(text) => self.texts.push(text),
            Value::Null => {}
            other if is_empty(&other) => {}
            other => self.texts.push(other.to_string()),
        }
    }

    fn put_url(&mut self, url: &str) {
        let path = match url.split_once("://") {
            Some((_, rest)) => {
                let start = rest.find(['/', '?']).unwrap_or(rest.len());
                let host = rest[..start].rsplit('@').next().unwrap_or_default();
                self.host = Some(host.to_owned());
                &rest[start..]
            }
            None => url,
        };
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let (mut kept, mut joint) = (path.to_owned(), '?');
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap_or_default();
            if has_secret_name(name) {
                self.dropped.push(format!("?{name} (secret)"));
            } else {
                kept.extend([joint]);
                kept.push_str(pair);
                joint = '&';
            }
        }
        self.request.path = Some(if kept.starts_with('/') { kept } else { format!("/{kept}") });
    }

    /// `{name: value or list}` or a list of `{name, value}`.
    fn put_headers(&mut self, value: Value) {
        match value {
            Value::Array(list) => {
                for one in &list {
                    self.put_header(&text(&one["name"]), &one["value"]);
                }
            }
            Value::Object(map) => {
                for (name, value) in &map {
                    self.put_header(name, value);
                }
            }
            _ => {}
        }
    }

    fn put_header(&mut self, name: &str, value: &Value) {
        const OWN: [&str; 6] =
            ["host", "content-length", "connection", "transfer-encoding", "keep-alive", "upgrade"];
        let name = name.to_ascii_lowercase();
        if has_secret_name(&name) {
            self.dropped.push(format!("header {name} (secret)"));
        } else if name.starts_with(':') || OWN.contains(&name.as_str()) {
            self.dropped.push(format!("header {name} (written anew for each request)"));
        } else {
            let values = list(value.clone()).iter().map(text).collect::<Vec<_>>();
            let known = self.request.headers.entry(name).or_default();
            if *known != values {
                known.extend(values);
            }
        }
    }

    /// Derives the rest: messages from texts, the dialect from path and body, and times.
    pub(crate) fn complete(&mut self, given: &str) -> Result<(), String> {
        self.complete_times();
        self.parse_body_text();
        self.complete_messages();
        let request = &mut self.request;
        if request.dialect.is_none() {
            let path = request.path.as_deref().unwrap_or_default();
            let path = path.split('?').next().unwrap_or_default();
            let from_path = path_dialect(path).filter(|_| request.body_text.is_none());
            let bare = request.messages.is_none() && request.body.is_empty();
            request.dialect = match (given, from_path) {
                ("anthropic-messages", _) => Some(Dialect::AnthropicMessages),
                (_, Some(dialect)) if !bare => Some(dialect),
                _ if !path.is_empty() => Some(Dialect::Http),
                _ if bare => None,
                _ => Some(body_dialect(request, &self.call)),
            };
        }
        if request.dialect == Some(Dialect::Http) {
            let method = request.method.get_or_insert_with(|| "GET".to_owned());
            let sends = matches!(method.as_str(), "POST" | "PUT" | "PATCH");
            if sends && request.body_text.is_none() && request.body_b64.is_none() {
                return Err(format!("a {method} without a recorded body"));
            }
        } else {
            (request.method, request.path) = (None, None);
        }
        Ok(())
    }

    fn complete_times(&mut self) {
        let duration = self.request.recorded.as_ref().and_then(|recorded| recorded.duration_ms);
        match (self.start, self.end, duration) {
            (None, Some(end), duration) => self.start = Some(end - duration.unwrap_or(0.0)),
            (Some(start), None, Some(duration)) => self.end = Some(start + duration),
            (Some(start), Some(end), None) => {
                recorded(&mut self.request).duration_ms = Some((end - start).max(0.0));
            }
            _ => {}
        }
        if let (Some(start), Some(first)) = (self.start, self.first)
            && first > start
        {
            recorded(&mut self.request).ttft_ms = Some(first - start);
        }
    }

    /// The JSON body of a request to an LLM API becomes members.
    fn parse_body_text(&mut self) {
        let path = self.request.path.as_deref().unwrap_or_default();
        let known = path_dialect(path.split('?').next().unwrap_or_default()).is_some();
        let body = self.request.body_text.as_deref().filter(|_| known);
        if let Some(Value::Object(body)) = body.and_then(|text| serde_json::from_str(text).ok()) {
            self.request.body_text = None;
            self.put_request(body);
        }
    }

    fn complete_messages(&mut self) {
        if !self.texts.is_empty() || !self.images.is_empty() {
            let role = if self.role.is_empty() { "user" } else { &self.role };
            let texts = std::mem::take(&mut self.texts);
            let content = match texts.as_slice() {
                [text] if self.images.is_empty() => json!(text),
                _ => {
                    let texts = texts.iter().map(|text| json!({ "type": "text", "text": text }));
                    texts.chain(self.images.drain(..)).collect()
                }
            };
            self.request.messages = Some(vec![json!({ "role": role, "content": content })]);
        }
        if let Some(system) = self.system.take() {
            let message = json!({ "role": "system", "content": system });
            match (&mut self.turns, &mut self.request.messages) {
                (Some(turns), _) => turns.insert(0, message),
                (_, Some(messages)) => messages.insert(0, message),
                _ => {}
            }
        }
    }

    /// The images beside a dialogue.
    pub(crate) fn take_images(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.images)
    }
}

fn recorded(request: &mut Request) -> &mut Recorded {
    request.recorded.get_or_insert_default()
}

/// Flat definitions of tools, as spans have them, in the form of OpenAI's chat.
fn chat_tools(mut tools: Value) -> Value {
    for tool in tools.as_array_mut().into_iter().flatten() {
        if let Some(function) = tool.as_object_mut().filter(|tool| !tool.contains_key("function")) {
            function.remove("type");
            *tool = json!({ "type": "function", "function": function });
        }
    }
    tools
}

/// Lists of texts or tokens are inputs of embeddings.
fn is_messages(list: &[Value]) -> bool {
    list.iter().all(Value::is_object) && !list.is_empty()
}

fn path_dialect(path: &str) -> Option<Dialect> {
    const ENDS: [(&str, Dialect); 7] = [
        ("/chat/completions", Dialect::OpenaiChat),
        ("/completions", Dialect::OpenaiCompletions),
        ("/responses", Dialect::OpenaiResponses),
        ("/embeddings", Dialect::OpenaiEmbeddings),
        ("/v1/messages", Dialect::AnthropicMessages),
        (":generateContent", Dialect::Gemini),
        (":streamGenerateContent", Dialect::Gemini),
    ];
    ENDS.iter().find(|(end, _)| path.ends_with(end)).map(|(_, dialect)| *dialect)
}

fn body_dialect(request: &Request, call: &str) -> Dialect {
    let body = &request.body;
    let tools = request.body.get("tools").map(Value::to_string).unwrap_or_default();
    let parts = request.messages.iter().flatten().filter_map(|one| one["content"].as_array());
    let kinds = ["tool_result", "tool_use", "image", "thinking"];
    let mut kinds_used = parts.flatten().map(|part| text(&part["type"]));
    if call.contains("embedding") {
        Dialect::OpenaiEmbeddings
    } else if call.contains("responses")
        || body.contains_key("input") && body.contains_key("instructions")
    {
        Dialect::OpenaiResponses
    } else if body.contains_key("input") {
        Dialect::OpenaiEmbeddings
    } else if body.contains_key("prompt") && request.messages.is_none() {
        Dialect::OpenaiCompletions
    } else if body.contains_key("system")
        || call.contains("anthropic")
        || tools.contains("\"input_schema\"")
        || kinds_used.any(|kind| kinds.contains(&kind.as_str()))
    {
        Dialect::AnthropicMessages
    } else {
        Dialect::OpenaiChat
    }
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::Array(list) => list,
        other => vec![other],
    }
}

fn rows(value: Value) -> Result<Vec<Value>, String> {
    match unpacked(value) {
        Value::Array(rows) => Ok(rows),
        _ => Err("is not a list".to_owned()),
    }
}

fn object(value: Value) -> Result<Map<String, Value>, String> {
    match unpacked(value) {
        Value::Object(map) => Ok(map),
        _ => Err("is not an object".to_owned()),
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()).filter(|n| n.is_finite())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
fn count(value: &Value) -> Result<u64, String> {
    let number = number(value).filter(|number| *number >= 0.0 && number.fract() == 0.0);
    number.map(|number| number as u64).ok_or_else(|| format!("is {value}, not a count"))
}

/// Milliseconds.
fn time(value: &Value, unit: &str) -> Result<f64, String> {
    let scale = match unit {
        "s" => 1e3,
        "ns" => 1e-6,
        _ => 1.0,
    };
    match number(value) {
        Some(number) if unit != "log" => Ok(number * scale),
        _ => parse_time(&text(value)).ok_or_else(|| format!("is {value}, not a time ({unit})")),
    }
}

/// RFC 3339 with any zone or none (UTC), or the form of access logs.
fn parse_time(text: &str) -> Option<f64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let mut text = text.trim().to_owned();
    if text.get(2..3) == Some("/") {
        let month = MONTHS.find(text.get(3..6)?)? / 3 + 1;
        text = format!(
            "{}-{month:02}-{} {}",
            text.get(7..11)?,
            text.get(..2)?,
            text.get(12..)?.replace(' ', "")
        );
    }
    let zone = text.get(19..)?.find(['+', '-']).map(|at| text.split_off(19 + at));
    let minutes = match zone {
        None => 0,
        Some(zone) => {
            let digits: String = zone.chars().filter(char::is_ascii_digit).collect();
            let hours: i32 = digits.get(..2)?.parse().ok()?;
            let minutes = hours * 60 + digits.get(2..).map_or(0, |rest| rest.parse().unwrap_or(0));
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    let time = humantime::parse_rfc3339_weak(text.trim_end_matches('Z')).ok()?;
    let since = time.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(since.as_secs_f64() * 1e3 - f64::from(minutes) * 6e4)
}
