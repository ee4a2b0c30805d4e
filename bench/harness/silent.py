"""Clients that ask and read nothing, and what they cost a gateway."""

import contextlib
import resource
import socket
import struct
import threading
import time

from .measure import kilobytes

REQUEST = b"GET /file HTTP/1.1\r\nhost: gateway\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STREAMS = 100


def frame(kind, flags, stream, payload):
    """A frame of HTTP/2 (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def http2_requests():
    """STREAMS requests for /file whose windows are zero. The path is a literal of HPACK (RFC 7541, 6.2.2)."""
    block = b"\x82\x86\x04\x05/file\x41\x01x"
    settings = frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00")
    return PREFACE + settings + b"".join(frame(1, 5, 2 * number + 1, block) for number in range(STREAMS))


@contextlib.contextmanager
def clients(port, count, http2):
    """Opens connections that send requests and read nothing, until the block ends."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    request, connections = (http2_requests(), count // STREAMS) if http2 else (REQUEST, count)
    sockets = []
    try:
        for _ in range(connections):
            one = socket.create_connection(("127.0.0.1", port), timeout=20)
            one.sendall(request)
            sockets.append(one)
        yield sockets
    finally:
        for one in sockets:
            one.close()


class Watch:
    """Asks for the gateway's health all the time, and looks at its memory."""

    def __init__(self, process, port):
        self.process, self.port = process, port
        self.slowest, self.failed, self.asked, self.most = 0.0, 0, 0, 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def memory(self):
        return kilobytes(f"/proc/{self.process.pid}/status", "VmRSS:")

    def run(self):
        while not self.over.wait(0.05):
            start = time.monotonic()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as one:
                    one.sendall(b"GET /health/live HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n")
                    self.failed += b" 200 " not in one.recv(1024)
            except OSError:
                self.failed += 1
            self.slowest = max(self.slowest, time.monotonic() - start)
            self.asked += 1
            self.most = max(self.most, self.memory())
