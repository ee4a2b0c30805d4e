"""A proxy that holds every request against its provider's rules of messages, and passes it on.

Usage: message_rules.py TARGET LOG. Prints its port and serves until its standard input ends. Writes to LOG a line for
each request: `openai ok`, `anthropic ok`, with `tools` behind it where the dialogue has calls; or a violation.

The forms are those of the official SDKs' own types; what types cannot say is from the providers' documentation: which
message may follow which, and that each call has its result.
"""

import json
import sys
import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import get_type_hints
from urllib.parse import urlsplit

from anthropic.types.message_create_params import MessageCreateParamsNonStreaming, MessageCreateParamsStreaming
from openai.types.chat.completion_create_params import (
    CompletionCreateParamsNonStreaming,
    CompletionCreateParamsStreaming,
)
from pydantic import TypeAdapter

TARGET, LOG = urlsplit(sys.argv[1]), open(sys.argv[2], "a", buffering=1)
LOCK = threading.Lock()
FORMS = {
    form: (TypeAdapter(form), set(get_type_hints(form)))
    for form in (
        CompletionCreateParamsNonStreaming,
        CompletionCreateParamsStreaming,
        MessageCreateParamsNonStreaming,
        MessageCreateParamsStreaming,
    )
}


def rule(holds, text):
    if not holds:
        raise ValueError(text)


def consume(value):
    """Reads all of a validated value: what can be iterated is validated only then."""
    if isinstance(value, dict):
        for inner in value.values():
            consume(inner)
    elif not isinstance(value, (str, bytes, int, float, bool, type(None))):
        for inner in value:
            consume(inner)


def check_form(form, request):
    adapter, members = FORMS[form]
    consume(adapter.validate_python(request))
    unknown = set(request) - members
    rule(not unknown, f"unknown members {sorted(unknown)}")


def check_openai(request):
    form = CompletionCreateParamsStreaming if request.get("stream") else CompletionCreateParamsNonStreaming
    check_form(form, request)
    messages, called, seen = request["messages"], [], set()
    rule(messages and messages[-1]["role"] in ("user", "tool"), "the last message is the user's or a tool's")
    for place, message in enumerate(messages):
        role = message["role"]
        if role == "tool":
            rule(message["tool_call_id"] in called, f"message {place} answers a call that is not open")
            called.remove(message["tool_call_id"])
            continue
        rule(not called, f"message {place} follows calls without results: {called}")
        rule(role != "system" or place == 0, "the system message is the first")
        calls = message.get("tool_calls")
        rule(calls is None or (role == "assistant" and calls), "only an assistant calls, and at least once")
        rule(role != "assistant" or message.get("content") or calls, f"message {place} says nothing")
        rule(role != "user" or message["content"], f"message {place} is empty")
        for call in calls or []:
            rule(isinstance(json.loads(call["function"]["arguments"]), dict), "arguments are an object")
            rule(call["id"] and call["id"] not in seen, f"the id {call['id']!r} is unique")
            seen.add(call["id"])
            called.append(call["id"])
    rule(not called, f"calls without results at the end: {called}")
    return bool(seen)


def check_anthropic(request):
    form = MessageCreateParamsStreaming if request.get("stream") else MessageCreateParamsNonStreaming
    check_form(form, request)
    messages, called, seen = request["messages"], [], set()
    rule(messages and messages[-1]["role"] == "user", "the last message is the user's")
    for place, message in enumerate(messages):
        role, content = message["role"], message["content"]
        rule(role == ("user", "assistant")[place % 2], f"message {place}: roles take turns")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        rule(blocks, f"message {place} is empty")
        kinds = [block["type"] for block in blocks]
        results = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        rule(kinds[: len(results)] == ["tool_result"] * len(results), f"message {place}: results come first")
        rule(sorted(results) == sorted(called), f"message {place} has results {results} for calls {called}")
        called = [block["id"] for block in blocks if block["type"] == "tool_use"]
        rule(role == "assistant" or not called, "only an assistant calls")
        rule(role == "user" or not results, "only a user has results")
        for block in blocks:
            rule(block["type"] != "text" or block["text"].strip(), f"message {place} has a blank text")
            rule(block["type"] != "tool_use" or isinstance(block["input"], dict), "an input is an object")
        for name in called:
            rule(name and name not in seen, f"the id {name!r} is unique")
            seen.add(name)
    rule(not called, f"calls without results at the end: {called}")
    return bool(seen)


class Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        provider, check = ("anthropic", check_anthropic) if "messages" in self.path else ("openai", check_openai)
        try:
            has_tools = check(json.loads(body))
            line = f"{provider} ok{' tools' if has_tools else ''}"
        except Exception as error:  # noqa: BLE001: whatever it is, it is a violation
            line = f"{provider} violation {str(error).splitlines()[0]} in {body[:2000]!r}"
        with LOCK:
            LOG.write(line + "\n")
        upstream = HTTPConnection(TARGET.hostname, TARGET.port)
        upstream.request("POST", self.path, body, {"content-type": "application/json"})
        answer = upstream.getresponse()
        self.send_response(answer.status)
        self.send_header("content-type", answer.headers["content-type"])
        whole = answer.read()
        self.send_header("content-length", str(len(whole)))
        self.end_headers()
        self.wfile.write(whole)
        upstream.close()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
print(server.server_port, flush=True)
threading.Thread(target=server.serve_forever, daemon=True).start()
sys.stdin.read()
