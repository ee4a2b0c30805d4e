"""A provider that behaves as the prompt asks (`case=NAME`), and keeps what it received and when it sent.

The prompt is what every gateway passes on; headers are replaced by some. Each event is a write of its own.
"""

import json
import re
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field

from .exchange import framing, parse_head

EVENTS, GAP = 10, 0.030
LONG, LONG_GAP = 100, 0.050
CUT_AFTER = 4
UNKNOWN = {"kept": True}
WORDS = [f"word{number} " for number in range(EVENTS)]
# Headers of every answer, besides the content type.
HEADERS = [("x-ratelimit-remaining-requests", "99"), ("openai-processing-ms", "7"), ("x-custom-answer", "kept")]
USAGE = {"prompt_tokens": 9, "completion_tokens": EVENTS, "total_tokens": 9 + EVENTS}
COMMENT = ": a comment"


@dataclass
class Call:
    """What came, and what was done: `began` is when the role was sent, `sends` are the times of the content events,
    `gone` is when the other side had left."""

    case: str
    connection: int
    first: bool
    headers: list
    body: bytes
    began: float = 0.0
    sends: list = field(default_factory=list)
    gone: float = 0.0
    to_the_end: bool = False


def document(kind, choice, **more):
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "mock", "choices": [choice], **more}


def chunk(delta, finish=None, **more):
    return document("chat.completion.chunk", {"index": 0, "delta": delta, "finish_reason": finish}, **more)


def compact(value):
    return json.dumps(value, separators=(",", ":"))


def chat():
    choice = {"index": 0, "message": {"role": "assistant", "content": "".join(WORDS)}, "finish_reason": "stop"}
    return compact(document("chat.completion", choice, usage=USAGE, x_unknown=UNKNOWN)).encode()


def opening():
    return [COMMENT, f"data: {compact(chunk({'role': 'assistant', 'content': ''}))}"]


def content(word):
    return f"data: {compact(chunk({'content': word}, x_unknown=UNKNOWN))}"


def closing():
    usage = {**chunk({}), "choices": [], "usage": USAGE}
    return [f"data: {compact(chunk({}, 'stop'))}", f"data: {compact(usage)}", "data: [DONE]"]


def stream():
    """The bytes of a whole stream."""
    return "".join(event + "\n\n" for event in [*opening(), *map(content, WORDS), *closing()]).encode()


class Handler(socketserver.BaseRequestHandler):
    """One connection. A method that returns True has closed it on purpose."""

    def setup(self):
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number, self.calls, self.raw = self.server.next_connection(), 0, b""

    def handle(self):
        try:
            while call := self.read():
                self.server.calls.append(call)
                if self.answer(call):
                    return
        except OSError:
            return

    def read(self):
        while b"\r\n\r\n" not in self.raw:
            data = self.request.recv(1 << 16)
            if not data:
                return None
            self.raw += data
        head, _, self.raw = self.raw.partition(b"\r\n\r\n")
        _, headers = parse_head(head)
        reader = framing(headers, until_close=False)
        body, self.raw = reader.feed(self.raw), b""
        while not reader.done:
            data = self.request.recv(1 << 16)
            if not data:
                return None
            body += reader.feed(data)
        self.calls += 1
        named = re.search(rb"case=(\w+)", body)
        return Call(named[1].decode() if named else "chat", self.number, self.calls == 1, headers, body)

    def answer(self, call):
        kind, _, number = call.case.partition("_")
        if kind == "status":
            error = {"error": {"message": "asked for", "type": "server_error", "code": None}}
            return self.whole(compact(error).encode(), f"{number} Asked For")
        return {
            "chat": self.chat,
            "stream": self.stream,
            "long": self.long,
            "cut": self.cut,
            "reset": self.reset,
            "stale": self.stale,
        }[kind](call)

    def head(self, status, *headers):
        lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in [*headers, *HEADERS])]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def whole(self, body, status="200 OK"):
        head = self.head(status, ("content-type", "application/json"), ("content-length", len(body)))
        self.request.sendall(head + body)

    def chat(self, _):
        self.whole(chat())

    def begin(self, call):
        call.began = time.monotonic()
        head = self.head("200 OK", ("content-type", "text/event-stream"), ("transfer-encoding", "chunked"))
        self.request.sendall(head + b"".join(map(as_chunk, opening())))

    def words(self, call, words, gap):
        for word in words:
            time.sleep(gap)
            if self.is_gone(call):
                return
            call.sends.append(time.monotonic())
            self.request.sendall(as_chunk(content(word)))

    def is_gone(self, call):
        """Has the other side closed the connection?"""
        try:
            gone = self.request.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT) == b""
        except BlockingIOError:
            gone = False
        except OSError:
            gone = True
        if gone and not call.gone:
            call.gone = time.monotonic()
        return gone

    def end(self, call):
        if call.gone:
            return True
        self.request.sendall(b"".join(map(as_chunk, closing())) + b"0\r\n\r\n")
        call.to_the_end = True
        return None

    def stream(self, call):
        self.begin(call)
        self.words(call, WORDS, GAP)
        return self.end(call)

    def long(self, call):
        self.begin(call)
        self.words(call, [f"word{number} " for number in range(LONG)], LONG_GAP)
        return self.end(call)

    def cut(self, call):
        self.begin(call)
        self.words(call, WORDS[:CUT_AFTER], GAP)
        return True

    def reset(self, _):
        return True

    def stale(self, call):
        """A connection that was used before is closed without an answer, as if it had been idle for too long."""
        return True if not call.first else self.whole(chat())


def as_chunk(event):
    data = f"{event}\n\n".encode()
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


class Upstream(socketserver.ThreadingTCPServer):
    """Use it in a `with` statement."""

    allow_reuse_address = daemon_threads = True
    request_queue_size = 64

    def __init__(self, handler=Handler):
        super().__init__(("127.0.0.1", 0), handler)
        self.calls, self.connections, self.lock = [], 0, threading.Lock()

    @property
    def port(self):
        return self.server_address[1]

    def next_connection(self):
        with self.lock:
            self.connections += 1
            return self.connections

    def __enter__(self):
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()
