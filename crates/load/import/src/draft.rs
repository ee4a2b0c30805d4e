//! A row on its way to a request: each conversion of the table puts a value where it belongs.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use plimsoll_protocol::names_credential;
use serde_json::{Map, Value, json};

use crate::format::{Format, dialect};
use crate::messages::{from_parts, image, part, reply, texts};
use crate::record::Request;
use crate::value::{count, is_empty, list, number, object, parsed, text, time, unpacked};

/// The members of a request, and some that [`Draft::finish`] replaces: times, texts and images.
#[derive(Clone, Debug, Default)]
pub(crate) struct Draft {
    pub(crate) row: Value,
    /// Members of the row's values that are not sent.
    pub(crate) dropped: Vec<String>,
}

impl Draft {
    /// Converts a value and puts it at a path of names.
    ///
    /// # Errors
    /// The value does not suit the conversion.
    pub(crate) fn put(&mut self, conversion: &str, path: &str, value: Value) -> Result<(), String> {
        if is_empty(&value) && conversion != "turns" || value.is_null() {
            return Ok(());
        }
        let value = match conversion {
            "used" => return Ok(()),
            "count" | "limit" if value == -1 && path == "out_tokens" => return Ok(()),
            "count" => count(&value)?.into(),
            // A limit of the response, and so its expected length.
            "limit" => {
                self.row["body"]["max_tokens"] = count(&value)?.into();
                count(&value)?.into()
            }
            "text" => text(&value).into(),
            "value" => number(&value).unwrap_or(value),
            "turns" => list(unpacked(value)).into(),
            "keep" => value,
            "iso" | "s" | "ms" | "ns" => time(&value, conversion)?.into(),
            _ => return self.put_part(conversion, path, value),
        };
        let place = path.split('.').fold(&mut self.row, |place, name| &mut place[name]);
        *place = value;
        Ok(())
    }

    fn put_part(&mut self, conversion: &str, name: &str, value: Value) -> Result<(), String> {
        match conversion {
            // Parts of a sum, added to each of these.
            "add" => {
                for total in name.split(' ') {
                    let sum = time(&value, "ms")? + self.row[total].as_f64().unwrap_or(0.0);
                    self.row[total] = count(&sum.into()).map_or_else(|_| sum.into(), Value::from);
                }
            }
            "after" => self.row["after"] = list(value).iter().map(after).collect(),
            "texts" => self.append("texts", texts(value)?),
            "content" => {
                let parts = list(value).into_iter().map(part);
                self.row["messages"] =
                    json!([{ "role": "user", "content": parts.collect::<Value>() }]);
            }
            "results" => self.append("results", tool_results(value)?),
            "images" => self.append("images", list(value).iter().map(image)),
            "blocks" => {
                self.row["blocks"] = json!({ "size": name.parse::<u64>().ok(), "ids": value });
            }
            "params" => {
                let (unlimited, members): (Vec<_>, Vec<_>) =
                    object(value)?.into_iter().partition(|(_, value)| value == "Infinity");
                let unlimited = unlimited.iter().map(|(name, _)| format!("{name} (no limit)"));
                self.dropped.extend(unlimited);
                for (name, value) in members {
                    self.row["body"][name] = value;
                }
            }
            "system" => self.row["system"] = json!([{ "role": "system", "content": value }]),
            "tools" => self.row["body"]["tools"] = chat_tools(unpacked(value)),
            "body" => self.put_body(object(value)?),
            "whole" => self.put_body([(name.to_owned(), value)].into_iter().collect()),
            "prompt" => match unpacked(value) {
                Value::Object(body)
                    if ["messages", "model"].iter().any(|name| body.contains_key(*name)) =>
                {
                    self.put_body(body);
                }
                Value::Array(messages) => self.row["messages"] = messages.into(),
                empty if is_empty(&empty) => {}
                other => self.append("texts", [text(&other).into()]),
            },
            "reply" => match reply(unpacked(value)) {
                Some(reply) => self.row["reply"] = reply,
                None => self.dropped.push("replies of an unknown form".to_owned()),
            },
            "parts" => self.row[name] = from_parts(unpacked(value), &mut self.dropped).into(),
            "base64" => {
                let bytes = BASE64_STANDARD.decode(text(&value)).map_err(|_| "is not base64")?;
                match String::from_utf8(bytes) {
                    Ok(text) => self.row["body_text"] = text.into(),
                    Err(_) => self.row["body_b64"] = value,
                }
            }
            "url" => self.put_url(&text(&value)),
            "header" => self.put_header(name, value),
            "headers" => self.put_headers(value),
            _ => return Err(format!("has the unknown conversion `{conversion}`")),
        }
        Ok(())
    }

    fn append(&mut self, name: &str, values: impl IntoIterator<Item = Value>) {
        let known = self.take(name).map(list).unwrap_or_default();
        self.row[name] = known.into_iter().chain(values).collect();
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.row.as_object_mut()?.remove(name)
    }

    /// Adds the members of another row; its own have priority.
    pub(crate) fn extend(&mut self, other: Self) {
        let Self { row, mut dropped } = other;
        self.dropped.append(&mut dropped);
        for (name, value) in row.as_object().into_iter().flatten() {
            self.row[name] = value.clone();
        }
    }

    pub(crate) fn take_list(&mut self, name: &str) -> Option<Vec<Value>> {
        self.take(name).map(list)
    }

    pub(crate) fn take_text(&mut self, name: &str) -> Option<String> {
        self.take(name).map(|value| text(&value))
    }

    /// The messages of a row: one, several results of tools, or none.
    pub(crate) fn take_messages(&mut self) -> Vec<Value> {
        let message = self.take("message").unwrap_or_default();
        if let Some(results) = self.take_list("results") {
            return results;
        }
        let kind = message["type"].as_str().unwrap_or_default();
        let ends = ["_call", "_output", "reasoning"];
        if message.get("role").is_some() || ends.iter().any(|end| kind.ends_with(end)) {
            return vec![message];
        }
        if let Some(id) = message.get("id").filter(|_| kind.is_empty()) {
            self.row["session"] = id.clone();
        }
        Vec::new()
    }

    /// Puts the members of a request body.
    fn put_body(&mut self, body: Map<String, Value>) {
        for (name, value) in body {
            let is_dialogue =
                value.as_array().is_some_and(|list| list.iter().any(Value::is_object));
            match name.as_str() {
                secret if has_secret_name(secret) => self.dropped.push(format!("{name} (secret)")),
                "messages" if is_dialogue => self.row["messages"] = value,
                "input" if is_dialogue => {
                    self.row["messages"] = value;
                    self.row["dialect"] = "openai-responses".into();
                }
                // The row names the model that the client asked for.
                "model" if self.row["model"] == value => {}
                "model" if self.row["model"].is_string() => {
                    self.dropped.push("model of the body (differs from the row's)".to_owned());
                }
                "model" => self.row["model"] = value,
                _ => self.row["body"][name] = value,
            }
        }
    }

    /// Keeps the path, and the query without credentials.
    fn put_url(&mut self, url: &str) {
        let (host, path) = match url.split_once("://") {
            Some((_, rest)) => rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len())),
            None => ("", url),
        };
        let host = host.rsplit('@').next().filter(|host| !host.is_empty());
        self.dropped.extend(host.map(|host| format!("host {host} (the target is another)")));
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let route = format!("/{}", path.trim_start_matches('/'));
        let mut kept = route.clone();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let name = pair.split('=').next().unwrap_or_default();
            if has_secret_name(name) {
                self.dropped.push(format!("?{name} (secret)"));
            } else {
                kept = format!("{kept}{}{pair}", if kept.contains('?') { '&' } else { '?' });
            }
        }
        (self.row["path"], self.row["route"]) = (kept.into(), route.into());
    }

    /// Headers as `{name: value or list}`, a list of `{name, value}`, or lines of text.
    fn put_headers(&mut self, value: Value) {
        match value {
            Value::Array(list) => list.into_iter().for_each(|mut one| {
                let value = one.get_mut("value").map(Value::take).unwrap_or_default();
                self.put_header(&text(&one["name"]), value);
            }),
            Value::Object(map) => {
                map.into_iter().for_each(|(name, value)| self.put_header(&name, value));
            }
            lines => {
                for (name, value) in text(&lines).lines().filter_map(|line| line.split_once(':')) {
                    self.put_header(name.trim(), value.trim().into());
                }
            }
        }
    }

    fn put_header(&mut self, name: &str, value: Value) {
        const OWN: &str = include_str!("own_headers.txt");
        let name = name.to_ascii_lowercase();
        if names_credential(&name) || has_secret_name(&name) {
            self.dropped.push(format!("header {name} (secret)"));
        } else if name.starts_with(':') || OWN.split_whitespace().any(|own| own == name) {
            self.dropped.push(format!("header {name} (written anew for each request)"));
        } else {
            let mut values = list(self.row["headers"][&name].take());
            values.extend(list(value).iter().map(|value| text(value).into()));
            values.retain(|value| !value.is_null());
            values.dedup();
            self.row["headers"][name] = values.into();
        }
    }

    /// In the turns of `AIPerf`, only tools apply to later turns, too.
    pub(crate) fn end_inheritance(&mut self, before: &mut Vec<String>, is_turn: bool) {
        let own = self.row["body"].as_object().into_iter().flatten().map(|(name, _)| name.clone());
        let own: Vec<_> = own.filter(|name| is_turn && name != "tools").collect();
        for name in before.iter().filter(|name| !own.contains(name)) {
            self.row["body"][name] = Value::Null;
        }
        *before = own;
    }

    /// Start and end in milliseconds, as far as they are recorded.
    pub(crate) fn take_times(&mut self) -> (Option<f64>, Option<f64>) {
        let names = ["at", "end", "end_else", "duration"];
        let [start, end, other, duration] = names.map(|name| self.take(name)?.as_f64());
        let end = end.or(other);
        let start = start.or_else(|| Some(end? - duration.unwrap_or(0.0)));
        (start, end.or_else(|| Some(start? + duration?)))
    }

    /// The request; `None` if it cannot be sent, which `dropped` explains. A request that continues
    /// another one inherits its API.
    ///
    /// # Errors
    /// The row has nothing to send, or a member of the wrong type.
    pub(crate) fn finish(&mut self, format: &Format) -> Result<Option<Request>, String> {
        self.parse_body_text();
        self.join_texts();
        self.remove_truncated(format);
        self.dropped.extend(format.missing_in(&self.row));
        // Of a request without text, only the lengths are kept.
        let limits =
            self.row["body"].as_object().is_some_and(|body| body.keys().eq(["max_tokens"]));
        if limits && !self.has_any(&["messages", "continues"]) {
            self.take("body");
        }
        if self.row["continues"].is_null() && self.row["dialect"].is_null() {
            let dialect = format.dialect.as_deref().or_else(|| dialect(&self.row));
            self.row["dialect"] = dialect.into();
        }
        let is_embedding = self
            .take_text("call")
            .is_some_and(|call| call.ends_with("embedding") || call.ends_with("embeddings"));
        self.take("route");
        if is_embedding && !self.has_any(&["messages", "body"]) {
            self.dropped.push("embeddings (without a recorded input)".to_owned());
            return Ok(None);
        }
        if is_embedding && let Some(texts) = self.take_list("messages") {
            // LiteLLM logs the texts as messages.
            let texts = texts.into_iter().map(|text| text.get("content").cloned().unwrap_or(text));
            self.row["body"]["input"] = texts.collect();
        }
        if let Some(served) = self.take("model_else") {
            if self.row["model"].is_null() {
                self.row["model"] = served;
            } else if self.row["model"] != served {
                self.dropped.push("model (the one that served; another was asked for)".to_owned());
            }
        }
        let method = self.take_text("method").unwrap_or_else(|| "GET".to_owned());
        if self.row["dialect"] != "http" {
            self.take("path");
        } else if matches!(&*method, "POST" | "PUT" | "PATCH")
            && !self.has_any(&["body_text", "body_b64"])
        {
            self.dropped.push(format!("requests (a {method} without a recorded body)"));
            return Ok(None);
        } else {
            self.row["method"] = method.into();
        }
        if !self.has_any(&["messages", "body", "in_tokens", "path"]) {
            return Err("has neither messages, a body, a URL nor a length".to_owned());
        }
        if !self.has_any(&["messages", "body", "path"]) && !self.row["model"].is_null() {
            self.dropped.push("model (of a request without text; the run names one)".to_owned());
        }
        serde_json::from_value(self.row.take()).map(Some).map_err(|error| error.to_string())
    }

    fn has_any(&self, names: &[&str]) -> bool {
        names.iter().any(|name| !self.row[*name].is_null())
    }

    /// Reads the JSON body of a request to an LLM API.
    fn parse_body_text(&mut self) {
        const ENDS: [&str; 4] = ["/completions", "/responses", "/embeddings", "/v1/messages"];
        let route = self.row["route"].as_str().unwrap_or_default();
        let body = self.row["body_text"].as_str().map(parsed);
        if let Some(Value::Object(body)) = body
            && ENDS.iter().any(|end| route.ends_with(end))
        {
            self.take("body_text");
            self.put_body(body);
        }
    }

    /// Makes a message of the texts and images, with the system prompt in front.
    pub(crate) fn join_texts(&mut self) {
        let names = ["system", "texts", "images", "messages"];
        let lists = names.map(|name| self.take_list(name).unwrap_or_default());
        let [mut all, texts, images, messages] = lists;
        let role = self.take_text("role").unwrap_or_else(|| "user".to_owned());
        let parts = texts.iter().map(|text| json!({ "type": "text", "text": text }));
        let content: Value = match (&*texts, &*images) {
            ([text], []) => text.clone(),
            _ => parts.chain(images).collect(),
        };
        let own = Some(json!({ "role": role, "content": content }));
        all.extend(own.filter(|_| !is_empty(&content)).into_iter().chain(messages));
        if !all.is_empty() {
            self.row["messages"] = all.into();
        }
    }

    /// Keeps only the lengths of a prompt that the log truncated.
    fn remove_truncated(&mut self, format: &Format) {
        if format.cut.is_empty() {
            return;
        }
        let text = format!("{}{}", self.row["messages"], self.row["body"]);
        if format.cut.iter().any(|mark| text.contains(mark)) {
            let _ = ["messages", "body"].map(|name| self.take(name));
            let why = "prompts (truncated by the log: only their lengths are kept)";
            self.dropped.push(why.to_owned());
        }
    }
}

/// The results of tools as messages of OpenAI's chat API.
fn tool_results(value: Value) -> Result<Vec<Value>, String> {
    let mut results = list(value).into_iter().map(object).collect::<Result<Vec<_>, _>>()?;
    for result in &mut results {
        result.insert("role".to_owned(), "tool".into());
    }
    Ok(results.into_iter().map(Value::Object).collect())
}

/// An earlier request to wait for: its id, or an object with the id and the wait.
fn after(value: &Value) -> Value {
    let id = value.get("request_id").unwrap_or(value);
    json!({ "id": text(id), "wait_ms": value.get("delay_ms") })
}

/// Whether a header, parameter or member of this name is a credential.
fn has_secret_name(name: &str) -> bool {
    const WHOLE: &str = include_str!("secret_names.txt");
    const PARTS: &str = include_str!("secret_parts.txt");
    let name = name.to_ascii_lowercase().replace('_', "-");
    WHOLE.split_whitespace().any(|secret| secret == name)
        || PARTS.split_whitespace().any(|secret| name.contains(secret))
}

/// Converts tool definitions of spans, which are flat, to the form of OpenAI's chat API.
fn chat_tools(mut tools: Value) -> Value {
    for tool in tools.as_array_mut().into_iter().flatten() {
        if let Some(function) = tool.as_object_mut().filter(|tool| !tool.contains_key("function")) {
            function.remove("type");
            *tool = json!({ "type": "function", "function": function });
        }
    }
    tools
}
