"""The official Python SDKs of OpenAI, Anthropic and Mistral read answers: those of a folder, and of a mock's models.

Usage: read_answers.py FOLDER MOCK MODEL,... LOG. Adds the mock's answers to the folder, whole and streamed, in every
dialect. Writes a line of JSON for each answer and SDK to LOG: what it read, or its error.
"""

import contextlib
import json
import sys
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anthropic
import openai
from mistralai.client import Mistral

FOLDER, MOCK, MODELS, LOG = Path(sys.argv[1]), sys.argv[2], sys.argv[3].split(","), Path(sys.argv[4])
MESSAGES = [{"role": "user", "content": "Which tool, and why?"}]
TOOLS = [{"name": "look", "description": "d", "schema": {"type": "object", "properties": {"text": {"type": "string"}}}}]


class Server(BaseHTTPRequestHandler):
    """Answers `/FILE/...` with the bytes of that file."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        file = FOLDER / self.path.split("/")[1]
        body = file.read_bytes()
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if file.suffix == ".sse" else "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def record(model, stream):
    """Answers of the mock in each dialect."""
    functions = [
        {"type": "function", "function": {"name": tool["name"], "description": "d", "parameters": tool["schema"]}}
        for tool in TOOLS
    ]
    flat = [{"type": "function", "name": tool["name"], "parameters": tool["schema"]} for tool in TOOLS]
    uses = [{"name": tool["name"], "description": "d", "input_schema": tool["schema"]} for tool in TOOLS]
    options = {"stream_options": {"include_usage": True}} if stream else {}
    for dialect, path, rest in [
        ("chat", "/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 20, "tools": functions, **options}),
        ("completions", "/v1/completions", {"prompt": MESSAGES[0]["content"], "max_tokens": 20, **options}),
        ("anthropic", "/v1/messages", {"messages": MESSAGES, "max_tokens": 20, "tools": uses}),
        ("responses", "/v1/responses", {"input": MESSAGES, "max_output_tokens": 20, "tools": flat}),
    ]:
        body = json.dumps({"model": model, "stream": stream, **rest}).encode()
        headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
        request = urllib.request.Request(MOCK + path, body, headers)
        with urllib.request.urlopen(request) as response:
            name = f"mock-{model}-{dialect}.{'sse' if stream else 'json'}"
            (FOLDER / name).write_bytes(response.read())


def text_of(content):
    """The text of a content: a text, or the parts of a list that are no thoughts."""
    if isinstance(content, list):
        parts = [part if isinstance(part, dict) else part.model_dump() for part in content]
        return "".join(part.get("text", "") for part in parts if part.get("type", "text") == "text")
    return content if isinstance(content, str) else ""


def read_chat(parts, pick):
    """Adds up the choices of a chat, of which `pick` gives message or delta."""
    text, tools, finish, usage = "", {}, None, None
    for part in parts:
        if getattr(part, "error", None):
            raise ValueError(f"error: {part.error}")
        if getattr(part, "usage", None):
            usage = (part.usage.prompt_tokens, part.usage.completion_tokens)
        for choice in part.choices or []:
            if choice.index != 0:
                continue
            finish = finish or choice.finish_reason
            said = pick(choice)
            if said is None:
                continue
            text += text_of(said.content) + (getattr(said, "refusal", None) or "")
            for place, call in enumerate(said.tool_calls or []):
                known = tools.setdefault(getattr(call, "index", None) or place, ["", ""])
                known[0] = known[0] or call.function.name or ""
                values = call.function.arguments
                known[1] += values if isinstance(values, str) else json.dumps(values) if values else ""
    return text, ["".join(call) for call in tools.values()], finish, usage


def openai_chat(url, stream):
    client = openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    answer = client.chat.completions.create(model="m", messages=MESSAGES, stream=stream)
    if stream:
        return read_chat(answer, lambda choice: choice.delta)
    return read_chat([answer], lambda choice: choice.message)


def openai_completions(url, stream):
    client = openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    answer = client.completions.create(model="m", prompt="x", stream=stream)
    text, finish, usage = "", None, None
    for part in answer if stream else [answer]:
        if part.usage:
            usage = (part.usage.prompt_tokens, part.usage.completion_tokens)
        for choice in part.choices:
            text += choice.text or ""
            finish = finish or choice.finish_reason
    return text, [], finish, usage


def openai_responses(url, stream):
    client = openai.OpenAI(api_key="k", base_url=f"{url}/v1", max_retries=0)
    answer = client.responses.create(model="m", input="x", stream=stream)
    text = ""
    if stream:
        for event in answer:
            if event.type == "response.output_text.delta":
                text += event.delta
            if event.type in ("response.completed", "response.incomplete", "response.failed"):
                answer = event.response
    else:
        text = answer.output_text
    if answer.error:
        raise ValueError(answer.error.message)
    tools = [item.name + item.arguments for item in answer.output or [] if item.type == "function_call"]
    usage = answer.usage and (answer.usage.input_tokens, answer.usage.output_tokens)
    finish = answer.incomplete_details.reason if answer.incomplete_details else answer.status
    return text, tools, finish, usage


def anthropic_messages(url, stream):
    client = anthropic.Anthropic(api_key="k", base_url=url, max_retries=0)
    request = {"model": "m", "messages": MESSAGES, "max_tokens": 20}
    if stream:
        with client.messages.stream(**request) as events:
            message = events.get_final_message()
    else:
        message = client.messages.create(**request)
    text = "".join(block.text for block in message.content if block.type == "text")
    tools = [block.name + json.dumps(block.input) for block in message.content if block.type == "tool_use"]
    # Tokens read from a cache, or written to one, are counted separately from the rest of the input.
    own = message.usage
    cached = (own.cache_read_input_tokens or 0) + (own.cache_creation_input_tokens or 0) if own else 0
    usage = own and (own.input_tokens + cached, own.output_tokens)
    return text, tools, message.stop_reason, usage


def mistral_chat(url, stream):
    with Mistral(api_key="k", server_url=url) as client:
        if not stream:
            answer = client.chat.complete(model="m", messages=MESSAGES)
            return read_chat([answer], lambda choice: choice.message)
        events = client.chat.stream(model="m", messages=MESSAGES)
        return read_chat((event.data for event in events), lambda choice: choice.delta)


def readers(name):
    """The SDKs that speak the dialect of an answer."""
    if name.startswith("a_") or "-anthropic" in name:
        return {"anthropic": anthropic_messages}
    if name.startswith("t_") or "-completions" in name:
        return {"openai-completions": openai_completions}
    if name.startswith("resp") or "-responses" in name:
        return {"openai-responses": openai_responses}
    return {"openai": openai_chat, "mistral": mistral_chat}


for model in MODELS:
    record(model, False)
    record(model, True)
server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()
with LOG.open("w") as log:
    for file in sorted(FOLDER.iterdir()):
        # Those with a status or a coding in their name are no bodies of a success.
        if file.suffix not in (".sse", ".json") or file.name.count(".") > 1:
            continue
        for sdk, reader in readers(file.name).items():
            line = {"file": file.name, "sdk": sdk}
            try:
                with contextlib.redirect_stdout(sys.stderr):
                    text, tools, finish, usage = reader(
                        f"http://127.0.0.1:{server.server_port}/{file.name}", file.suffix == ".sse"
                    )
                if not isinstance(finish, str | None):
                    raise TypeError("the finish reason is no text: the SDK passed it on unread")
                line |= {"text": text, "tools": tools, "finish": finish, "usage": usage}
            except Exception as error:  # noqa: BLE001: whatever an SDK raises
                line["error"] = f"{type(error).__name__}: {error}"[:200]
            log.write(json.dumps(line) + "\n")
print("done")
