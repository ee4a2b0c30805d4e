"""The bytes the server answers with, and the body that clients post."""

import json

TOKENS = 128
# The role, a chunk for each token, the finish reason and the usage.
EVENTS = TOKENS + 3


def words(count):
    return "and " * count


def request():
    """A fixed chat of 128 tokens, for clients that cannot write their own."""
    message = {"role": "user", "content": words(TOKENS)}
    return json.dumps({"model": "m", "messages": [message], "max_tokens": TOKENS})


def usage():
    return {"prompt_tokens": TOKENS, "completion_tokens": TOKENS, "total_tokens": 2 * TOKENS}


def chat():
    message = {"role": "assistant", "content": words(TOKENS)}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    answer = {"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    return json.dumps({**answer, "usage": usage()})


def chunk(delta, finish=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def stream():
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": "and "})] * TOKENS
    events += [chunk({}, "stop"), {**chunk({}), "choices": [], "usage": usage()}]
    return "".join(f"data: {json.dumps(event)}\n\n" for event in events) + "data: [DONE]\n\n"


def models():
    return json.dumps({"object": "list", "data": [{"id": "m", "object": "model", "created": 1, "owned_by": "x"}]})
