//! Writes the answers of a WebSocket chat: one text frame per event.

use super::chat::{finish_reason, put_usage};
use super::{Delta, StreamEncoder, WriteExt as _};
use crate::model_output::{ContentKind, ModelOutput};
use crate::websocket::put_text;

/// Writes an answer.
#[derive(Debug, Default)]
pub(super) struct WebSocketEncoder {
    /// The message before framing.
    message: Vec<u8>,
}

impl WebSocketEncoder {
    fn frame(&mut self, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        self.message.clear();
        write(&mut self.message);
        put_text(&self.message, out);
    }
}

impl StreamEncoder for WebSocketEncoder {
    fn delta(&mut self, _: &ModelOutput, delta: Delta<'_>, out: &mut Vec<u8>) {
        let kind = if delta.section.kind == ContentKind::Reasoning { "reasoning" } else { "delta" };
        self.frame(out, |out| {
            out.put(r#"{"type":""#).put(kind).put(r#"","text":""#).put(delta.text).put("\"}");
        });
    }

    fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.frame(out, |out| {
            out.put(r#"{"type":"done","finish_reason":""#).put(finish_reason(output)).put("\"");
            if output.usage {
                out.put(r#","usage":"#);
                put_usage(output, out);
            }
            out.put("}");
        });
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        self.frame(out, |out| {
            out.put(r#"{"type":"error","error":{"message":"The mock broke off this answer on "#);
            out.put(r#"purpose","type":"server_error","param":null,"code":"mock_fault"}}"#);
        });
    }
}
