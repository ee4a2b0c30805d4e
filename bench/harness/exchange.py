"""One HTTP/1.1 exchange by hand: every byte that came, and when. No library, which would join or repair pieces."""

import json
import socket
import time
from dataclasses import dataclass, field

CHAT = "/v1/chat/completions"
READ = 1 << 16


@dataclass
class Answer:
    """`pieces` are (time, bytes of the body) as they were read. `end` is `complete` or `cut`, `timed out` or `left` by us."""

    status: int = 0
    headers: list = field(default_factory=list)
    pieces: list = field(default_factory=list)
    end: str = "cut"
    left_at: float = 0.0

    @property
    def body(self):
        return b"".join(data for _, data in self.pieces)

    def events(self):
        """(time, event without its blank line): when its last byte was read."""
        found, rest = [], b""
        for at, data in self.pieces:
            *whole, rest = (rest + data).split(b"\n\n")
            found += [(at, event) for event in whole]
        return found


class Counted:
    """A body of known length; of unknown length if None: until the connection closes."""

    def __init__(self, length):
        self.left, self.done = length, length == 0

    def feed(self, data):
        if self.left is not None:
            self.left -= len(data)
            self.done = self.left <= 0
        return data


class Chunked:
    def __init__(self):
        self.raw, self.left, self.done = b"", 0, False

    def feed(self, data):
        """The bytes of the body among these bytes."""
        self.raw += data
        found = b""
        while self.raw and not self.done:
            if self.left:
                part, self.raw = self.raw[: self.left], self.raw[self.left :]
                self.left -= len(part)
                found += part
                continue
            line, ended, rest = self.raw.partition(b"\r\n")
            if not ended:
                break
            self.raw = rest
            if line:  # an empty one ends the chunk before
                self.left = int(line.split(b";")[0], 16)
                self.done = self.left == 0
        return found


def framing(headers, until_close=True):
    """How the body of a message with these headers ends."""
    lower = {name.lower(): value for name, value in headers}
    if "chunked" in lower.get("transfer-encoding", ""):
        return Chunked()
    return Counted(int(lower["content-length"]) if "content-length" in lower else None if until_close else 0)


def parse_head(text):
    """The first line, and the headers in their order."""
    first, *lines = text.decode("latin-1").split("\r\n")
    return first, [tuple(part.strip() for part in line.split(":", 1)) for line in lines if line]


def ask(port, document, headers=(), leave_after=None, timeout=30, path=CHAT):
    """Posts a JSON document; leaves after so many events, if asked to. Failures are in the answer: status 0, `cut`, `timed out`."""
    body = json.dumps(document).encode()
    head = [
        ("host", f"127.0.0.1:{port}"),
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        *headers,
    ]
    answer = Answer()
    with socket.create_connection(("127.0.0.1", port), timeout) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        text = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in head) + "\r\n"
        try:
            connection.sendall(text.encode() + body)
            receive(connection, answer, leave_after)
        except OSError as error:
            answer.end = "timed out" if isinstance(error, TimeoutError) else answer.end
    if answer.end == "left":
        answer.left_at = time.monotonic()
    return answer


def receive(connection, answer, leave_after):
    raw = b""
    while b"\r\n\r\n" not in raw:
        data = connection.recv(READ)
        if not data:
            return
        raw += data
    at = time.monotonic()
    head, _, rest = raw.partition(b"\r\n\r\n")
    first, answer.headers = parse_head(head)
    answer.status = int(first.split()[1])
    if answer.status == 100:
        raise ValueError("an interim answer: not expected")
    reader = framing(answer.headers)
    while True:
        if part := reader.feed(rest):
            answer.pieces.append((at, part))
        if reader.done:
            answer.end = "complete"
            return
        if leave_after is not None and len(answer.events()) >= leave_after:
            answer.end = "left"
            return
        rest = connection.recv(READ)
        at = time.monotonic()
        if not rest:
            answer.end = "complete" if isinstance(reader, Counted) and reader.left is None else "cut"
            return
