//! OpenAI's and Anthropic's wire formats, and the way from one to the other; no I/O.
