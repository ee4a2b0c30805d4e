//! Translates between OpenAI's `finish_reason` and Anthropic's `stop_reason`.

/// OpenAI's `finish_reason` for Anthropic's `stop_reason`. Some servers report a normal end for an
/// answer with tool calls; clients would then not run them.
pub(super) fn to_openai(stop_reason: &str, has_calls: bool) -> &'static str {
    match stop_reason {
        "max_tokens" | "model_context_window_exceeded" => "length",
        "tool_use" => "tool_calls",
        "refusal" => "content_filter",
        // end_turn, stop_sequence, pause_turn, and future reasons
        _ if has_calls => "tool_calls",
        _ => "stop",
    }
}

/// Anthropic's `stop_reason` for OpenAI's `finish_reason`, likewise.
pub(super) fn to_anthropic(finish_reason: &str, has_calls: bool) -> &'static str {
    match finish_reason {
        "length" => "max_tokens",
        "tool_calls" | "function_call" => "tool_use",
        "content_filter" => "refusal",
        _ if has_calls => "tool_use",
        _ => "end_turn",
    }
}
