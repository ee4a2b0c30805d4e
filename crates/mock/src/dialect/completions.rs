//! Writes `OpenAI`'s text completions: streams and full responses.

use super::chat::{finish_reason, put_error, put_stream_end, put_usage};
use super::{CREATED, Delta, StreamEncoder, WriteExt as _, put_escaped};
use crate::model_output::{ContentKind, ModelOutput};

/// Writes a stream.
#[derive(Debug, Default)]
pub(super) struct CompletionsEncoder {
    before_text: Vec<u8>,
}

fn put_head(output: &ModelOutput, out: &mut Vec<u8>) {
    out.put(r#"{"id":"cmpl-"#).hex(output.rng.id()).put(r#"","object":"text_completion"#);
    out.put(r#"","created":"#).put(CREATED).put(r#","model":"#).put(&output.model);
}

const NOT_FINISHED: &str = "\",\"logprobs\":null,\"finish_reason\":null}]}\n\n";

impl StreamEncoder for CompletionsEncoder {
    fn start_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        self.before_text.put("data: ");
        put_head(output, &mut self.before_text);
        self.before_text.put(r#","choices":[{"index":0,"text":""#);
        out.put(&self.before_text).put(NOT_FINISHED);
    }

    fn delta(&mut self, _: &ModelOutput, delta: Delta<'_>, out: &mut Vec<u8>) {
        out.put(&self.before_text).put(delta.text).put(NOT_FINISHED);
    }

    fn end_stream(&mut self, output: &ModelOutput, out: &mut Vec<u8>) {
        out.put(&self.before_text).put(r#"","logprobs":null,"finish_reason":""#);
        out.put(finish_reason(output)).put("\"}]}\n\n");
        put_stream_end(output, out, |out| put_head(output, out));
    }

    fn error(&mut self, out: &mut Vec<u8>) {
        put_error(out);
    }
}

/// The body of an unstreamed response.
pub(super) fn full_response(output: &ModelOutput) -> Vec<u8> {
    let mut out = Vec::with_capacity(512 + 4 * output.tokens() as usize);
    put_head(output, &mut out);
    out.put(r#","choices":[{"index":0,"text":""#);
    for (section, text) in output.texts() {
        if section.kind != ContentKind::ToolCall {
            put_escaped(&text, &mut out);
        }
    }
    out.put(r#"","logprobs":null,"finish_reason":""#).put(finish_reason(output)).put(r#""}]"#);
    if output.usage {
        out.put(r#","usage":"#);
        put_usage(output, &mut out);
    }
    out.put("}");
    out
}
