"""A provider of both LLM dialects whose answer says what it was asked: for the official SDKs as clients of the gateway.

Usage: llm_provider.py. Prints its port and serves until its standard input ends. The last text of the user is a JSON
object: `text` and the number of `tools` to call, and the reason of the end. A GET gets the conversations. The answer begins with a digest of the
whole request, read alike in both dialects: what a gateway loses of a conversation changes the answer.
"""

import hashlib
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from llm_conversations import conversations

PIECE = 7
USAGE = (11, 5)


def blocks(content):
    """The blocks of a content, of either dialect."""
    if content is None:
        return []
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def image(block):
    """Where an image comes from."""
    if block["type"] == "image_url":
        return block["image_url"]["url"]
    source = block["source"]
    return source.get("url") or f"data:{source['media_type']};base64,{source['data']}"


def facts(message):
    """Contents of a message: texts that are not blank, images, calls and results of tools."""
    if message["role"] == "tool":
        yield "result", message["tool_call_id"], "".join(block["text"] for block in blocks(message["content"]))
        return
    for block in blocks(message.get("content")):
        if block["type"] == "text" and block["text"].strip():
            yield message["role"], block["text"]
        elif block["type"] in ("image", "image_url"):
            yield "image", image(block)
        elif block["type"] == "tool_use":
            yield "call", block["id"], block["name"], block["input"]
        elif block["type"] == "tool_result":
            yield "result", block["tool_use_id"], "".join(text["text"] for text in blocks(block.get("content")))
    for call in message.get("tool_calls") or []:
        yield "call", call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])


def asked(request):
    """A request, read alike in both dialects."""
    said = [fact for message in request["messages"] for fact in facts(message)]
    system = [("system", block["text"]) for block in blocks(request.get("system")) if block["text"].strip()]
    tools = [tool.get("function", tool) for tool in request.get("tools") or []]
    described = [
        (tool["name"], tool.get("description"), tool.get("parameters", tool.get("input_schema"))) for tool in tools
    ]
    limit = request.get("max_completion_tokens", request.get("max_tokens"))
    stop = request.get("stop", request.get("stop_sequences"))
    stop = [stop] if isinstance(stop, str) else stop
    return [system + said, described, limit, request.get("temperature"), stop]


def answer(request):
    """The text, the calls of tools and the reason of the end."""
    question = asked(request)
    script = json.loads([fact[1] for fact in question[0] if fact[0] == "user"][-1])
    digest = hashlib.sha256(json.dumps(question, sort_keys=True).encode()).hexdigest()[:16]
    calls = [
        (f"call_{at}", f"tool_{at}", {"at": at, "ä\n": [digest]}) if at else (f"call_{at}", "none", {})
        for at in range(script["tools"])
    ]
    return digest + script["text"], calls, script["end"]


def pieces(text):
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def chunk(delta, end=None, **members):
    choices = [{"index": 0, "delta": delta, "finish_reason": end}]
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **members}


def openai_usage():
    return {"prompt_tokens": USAGE[0], "completion_tokens": USAGE[1], "total_tokens": sum(USAGE)}


def openai_end(calls, end):
    return "length" if end == "length" else "tool_calls" if calls else "stop"


def openai_whole(text, calls, end):
    message = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": name, "type": "function", "function": {"name": tool, "arguments": json.dumps(values)}}
            for name, tool, values in calls
        ]
    choices = [{"index": 0, "message": message, "finish_reason": openai_end(calls, end), "logprobs": None}]
    return {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": choices,
        "usage": openai_usage(),
    }


def openai_stream(text, calls, end):
    yield chunk({"role": "assistant", "content": ""})
    for piece in pieces(text):
        yield chunk({"content": piece})
    for at, (name, tool, values) in enumerate(calls):
        function = {"name": tool, "arguments": ""}
        yield chunk({"tool_calls": [{"index": at, "id": name, "type": "function", "function": function}]})
        for piece in pieces(json.dumps(values)):
            yield chunk({"tool_calls": [{"index": at, "function": {"arguments": piece}}]})
    yield chunk({}, openai_end(calls, end))
    yield {**chunk({}), "choices": [], "usage": openai_usage()}


def anthropic_end(calls, end):
    return "max_tokens" if end == "length" else "tool_use" if calls else "end_turn"


def message(content, end, output):
    return {
        "id": "m",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": end,
        "stop_sequence": None,
        "usage": {"input_tokens": USAGE[0], "output_tokens": output},
    }


def anthropic_whole(text, calls, end):
    content = [{"type": "text", "text": text}]
    content += [{"type": "tool_use", "id": name, "name": tool, "input": values} for name, tool, values in calls]
    return message(content, anthropic_end(calls, end), USAGE[1])


def block(at, start, deltas):
    yield {"type": "content_block_start", "index": at, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": at, "delta": delta}
    yield {"type": "content_block_stop", "index": at}


def anthropic_stream(text, calls, end):
    yield {"type": "message_start", "message": message([], None, 1)}
    yield from block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": piece} for piece in pieces(text)])
    for at, (name, tool, values) in enumerate(calls, 1):
        parts = pieces(json.dumps(values)) if values else []
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in parts]
        yield from block(at, {"type": "tool_use", "id": name, "name": tool, "input": {}}, deltas)
    delta = {"stop_reason": anthropic_end(calls, end), "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": USAGE[1]}}
    yield {"type": "message_stop"}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_args):
        pass

    def do_GET(self):
        self.send("application/json", json.dumps(conversations()))

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        is_message = self.path == "/v1/messages"
        said = answer(request)
        if not request.get("stream"):
            whole = anthropic_whole(*said) if is_message else openai_whole(*said)
            return self.send("application/json", json.dumps(whole))
        events = anthropic_stream(*said) if is_message else openai_stream(*said)
        text = "".join(
            (f"event: {event['type']}\n" if is_message else "") + f"data: {json.dumps(event)}\n\n" for event in events
        )
        return self.send("text/event-stream", text + ("" if is_message else "data: [DONE]\n\n"))

    def send(self, kind, text):
        body = text.encode()
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_address[1], flush=True)
sys.stdin.read()
