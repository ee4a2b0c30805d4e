//! Tests of the stream rewriter.

use super::*;

/// Masks digits, and holds back the last word until a space or the end of the text follows. Keeps
/// the held-back text by index.
#[derive(Default)]
struct DigitMask(Vec<(u64, String)>);

impl DigitMask {
    fn rewrite<'t>(&mut self, event: TextEvent<'t>) -> Cow<'t, str> {
        let index = event.index();
        if !self.0.iter().any(|(own, _)| *own == index) {
            self.0.push((index, String::new()));
        }
        let held = &mut self.0.iter_mut().find(|(own, _)| *own == index).unwrap().1;
        let ready = match event {
            TextEvent::End { .. } => std::mem::take(held),
            TextEvent::Delta { text, .. } => {
                held.push_str(text);
                let at = held.rfind(' ').map_or(0, |at| at + 1);
                let rest = held.split_off(at);
                std::mem::replace(held, rest)
            }
        };
        Cow::Owned(ready.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect())
    }
}

fn masked(dialect: Dialect, stream: &str, chunk: usize) -> String {
    let mut mask = DigitMask::default();
    let mut rewriter = StreamRewriter::new(dialect);
    let mut out = Vec::new();
    for bytes in stream.as_bytes().chunks(chunk) {
        rewriter.feed(bytes, &mut out, |event| mask.rewrite(event)).unwrap();
    }
    rewriter.finish(&mut out, |event| mask.rewrite(event)).unwrap();
    String::from_utf8(out).unwrap()
}

fn chat(texts: &[&str]) -> String {
    let event = |text: &&str| {
        format!(
            "data: {{ \"id\":\"c\",\"choices\":[{{\"index\":0,\"delta\":{{\"content\":{text}}},\"finish_reason\":null}}]}}\n\n"
        )
    };
    texts.iter().map(event).collect()
}

const CHAT_END: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";

#[test]
fn held_back_text_comes_before_the_end_in_an_event_of_the_same_shape() {
    let source = chat(&["\"\"", "\"call 5\"", "\"55 \\\"no\\\"w\""]) + CHAT_END;
    let expected = chat(&["\"\"", "\"call \"", "\"### \"", "\"\\\"no\\\"w\""]) + CHAT_END;
    for chunk in [usize::MAX, 1, 11] {
        assert_eq!(masked(Dialect::OpenAi, &source, chunk), expected);
    }
}

#[test]
fn the_last_text_and_the_end_may_share_an_event() {
    let event = |text: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
        )
    };
    let source = chat(&["\"a 1\""]) + &event("2");
    assert_eq!(masked(Dialect::OpenAi, &source, 5), chat(&["\"a \""]) + &event("##"));
}

#[test]
fn choices_are_rewritten_independently() {
    let event = |first: &str, second: &str| {
        format!(
            "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{first}\"}}}},{{\"index\":1,\"delta\":{{\"content\":\"{second}\"}}}}]}}\n\n"
        )
    };
    let source = event("1", "x 2") + "data: [DONE]\n\n";
    let expected = event("", "x ") + &event("#", "") + &event("", "#") + "data: [DONE]\n\n";
    assert_eq!(masked(Dialect::OpenAi, &source, 3), expected);
}

fn message(texts: &[&str]) -> String {
    let event = |text: &&str| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":1,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"
        )
    };
    texts.iter().map(event).collect()
}

const MESSAGE_END: &str = "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":1}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";

#[test]
fn a_stream_of_messages_is_rewritten() {
    let start = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
    let source = start.to_owned() + &message(&["card 4", "2, yes"]) + MESSAGE_END;
    let expected = start.to_owned() + &message(&["card ", "##, ", "yes"]) + MESSAGE_END;
    for chunk in [usize::MAX, 1, 11] {
        assert_eq!(masked(Dialect::Anthropic, &source, chunk), expected);
    }
}

fn keep(event: TextEvent<'_>) -> Cow<'_, str> {
    match event {
        TextEvent::Delta { text, .. } => Cow::Borrowed(text),
        TextEvent::End { .. } => Cow::Borrowed(""),
    }
}

#[test]
fn unchanged_events_pass_byte_for_byte() {
    let odd = "data:  {\"choices\" : [ {\"delta\":{\"content\":\"\\u0061/\\/\"}} ] , \"x\":1e3}\r\n\r\n: c\n\ndata: nonsense\n\nid: 4\n\n";
    let tools = "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"555 1\"}}]}}]}\n\n";
    let source = format!("{odd}{tools}{CHAT_END}");
    let mut out = Vec::new();
    let mut rewriter = StreamRewriter::new(Dialect::OpenAi);
    rewriter.feed(source.as_bytes(), &mut out, keep).unwrap();
    assert_eq!(String::from_utf8(out).unwrap(), source);
}

#[test]
fn a_truncated_stream_releases_the_text_that_was_held_back() {
    let mut mask = DigitMask::default();
    let mut rewriter = StreamRewriter::new(Dialect::OpenAi);
    let mut out = Vec::new();
    let source = chat(&["\"a 12\""]) + "data: {\"choices\":[{\"delta\":{\"content\":\"34";
    rewriter.feed(source.as_bytes(), &mut out, |event| mask.rewrite(event)).unwrap();
    let finished = rewriter.finish(&mut out, |event| mask.rewrite(event));
    assert_eq!(finished, Err(DialectError::Truncated));
    assert_eq!(String::from_utf8(out).unwrap(), chat(&["\"a \"", "\"##\""]));
}
