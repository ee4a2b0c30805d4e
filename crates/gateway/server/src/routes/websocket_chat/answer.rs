//! The answer to a chat, as messages: read event by event.

use plimsoll_gateway_dialect::{DialectError, EventSplitter, event_data};
use serde_json::{Value, json};

/// The answer so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    splitter: EventSplitter,
    /// The assistant's text.
    pub(super) text: String,
    usage: Option<Value>,
    /// Whether `done` or an error is among the messages.
    pub(super) is_over: bool,
}

impl Answer {
    /// The bytes that it holds.
    pub(super) fn held(&self) -> usize {
        self.text.capacity() + self.splitter.incomplete().len()
    }

    /// Reads a part of an event stream. Gives the messages for the client.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Value> {
        let mut messages = Vec::new();
        let mut splitter = std::mem::take(&mut self.splitter);
        let fed = splitter.feed(bytes, |event| {
            self.event(event, &mut messages);
            Ok::<(), DialectError>(())
        });
        self.splitter = splitter;
        if fed.is_err() {
            messages.extend(self.error("upstream_error", "an event of the upstream is too long"));
        }
        messages
    }

    /// Reads an answer that is not streamed.
    pub(super) fn whole(&mut self, body: &[u8]) -> Vec<Value> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = body.pointer("/choices/0/message/content").and_then(Value::as_str);
        let Some(text) = text else {
            return self.error("upstream_error", "the upstream's answer is no chat");
        };
        self.usage = body.get("usage").filter(|usage| usage.is_object()).cloned();
        let mut messages = self.delta("delta", text);
        messages.extend(self.done());
        messages
    }

    /// The message for an error, if the answer has no end yet.
    pub(super) fn error(&mut self, kind: &str, message: &str) -> Vec<Value> {
        self.fail(&json!({"type": kind, "message": message}))
    }

    /// The same for the body of an error response.
    pub(super) fn refused(&mut self, status: u16, body: &[u8]) -> Vec<Value> {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        match body.get("error") {
            Some(error) => self.fail(error),
            None => self.error("upstream_error", &format!("the upstream answered {status}")),
        }
    }

    fn fail(&mut self, error: &Value) -> Vec<Value> {
        if std::mem::replace(&mut self.is_over, true) {
            return Vec::new();
        }
        vec![json!({"type": "error", "error": error})]
    }

    fn event(&mut self, event: &[u8], messages: &mut Vec<Value>) {
        let Some(data) = event_data(event).filter(|_| !self.is_over) else { return };
        messages.extend(match data.trim_ascii() {
            b"[DONE]" => self.done(),
            data => self.data(data),
        });
    }

    fn data(&mut self, data: &[u8]) -> Vec<Value> {
        let Ok(chunk) = serde_json::from_slice::<Value>(data) else {
            return self.error("upstream_error", "an event of the upstream is not JSON");
        };
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return self.fail(error);
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage.clone());
        }
        let delta = chunk.pointer("/choices/0/delta").unwrap_or(&Value::Null);
        let reasoning = delta["reasoning_content"].as_str().unwrap_or_default();
        let mut messages = self.delta("reasoning", reasoning);
        messages.extend(self.delta("delta", delta["content"].as_str().unwrap_or_default()));
        messages
    }

    fn delta(&mut self, kind: &str, text: &str) -> Vec<Value> {
        if text.is_empty() {
            return Vec::new();
        }
        if kind == "delta" {
            self.text.push_str(text);
        }
        vec![json!({"type": kind, "text": text})]
    }

    fn done(&mut self) -> Vec<Value> {
        self.is_over = true;
        let mut done = json!({"type": "done"});
        if let Some(usage) = self.usage.take() {
            done["usage"] = usage;
        }
        vec![done]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(answer: &mut Answer, text: &str, size: usize) -> Vec<String> {
        let pieces = text.as_bytes().chunks(size);
        pieces.flat_map(|piece| answer.feed(piece)).map(|message| message.to_string()).collect()
    }

    #[test]
    fn events_become_messages_in_any_split_up_to_the_end() {
        let stream = concat!(
            ": hello\n\n",
            r#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#,
            "\n\n",
            r#"data: {"choices":[{"delta":{"reasoning_content":"Hm"}}]}"#,
            "\r\n\r\n",
            // Several lines of data are one, and an event may have none.
            "id: 7\n\ndata\n\n",
            r#"data: {"choices":[{"delta":"#,
            "\ndata:",
            r#"{"content":"Ah\u00e4"}}],"usage":null}"#,
            "\n\n",
            r#"data: {"choices":[],"usage":{"prompt_tokens":3}}"#,
            "\n\ndata: [DONE]\n\ndata: {}\n\n",
        );
        for size in [1, 7, 1_000] {
            let mut answer = Answer::default();
            let messages = feed(&mut answer, stream, size);
            assert_eq!(
                messages,
                [
                    r#"{"text":"Hm","type":"reasoning"}"#,
                    "{\"text\":\"Ah\u{e4}\",\"type\":\"delta\"}",
                    r#"{"type":"done","usage":{"prompt_tokens":3}}"#,
                ]
            );
            assert_eq!((&*answer.text, answer.is_over), ("Ah\u{e4}", true));
        }
    }

    #[test]
    fn errors_are_told_once() {
        let mut answer = Answer::default();
        let stream = "data: {\"error\":{\"message\":\"no\"}}\n\ndata: nonsense\n\n";
        assert_eq!(
            feed(&mut answer, stream, 1_000),
            [r#"{"error":{"message":"no"},"type":"error"}"#]
        );
        assert!(answer.error("x", "y").is_empty());
        let refused = Answer::default().refused(429, br#"{"error":{"type":"rate_limited"}}"#);
        assert_eq!(refused[0]["error"]["type"], "rate_limited");
        assert_eq!(Answer::default().refused(502, b"bad")[0]["type"], "error");
        assert_eq!(Answer::default().whole(b"{}")[0]["type"], "error");
    }
}
