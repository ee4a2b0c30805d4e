"""Clients that ask and read nothing, and what they cost a gateway."""

import contextlib
import resource
import socket
import struct
import subprocess
import sys
import threading
import time

REQUEST = b"GET /file HTTP/1.1\r\nhost: gateway\r\n\r\n"
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
STREAMS = 100
INTERVAL_S = 0.05


def frame(kind, flags, stream, payload):
    """A frame of HTTP/2 (RFC 9113, 4.1)."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def http2_requests():
    """STREAMS requests for /file whose windows are zero. The path is a literal of HPACK (RFC 7541, 6.2.2)."""
    block = b"\x82\x86\x04\x05/file\x41\x01x"
    settings = frame(4, 0, 0, b"\x00\x04\x00\x00\x00\x00")
    return PREFACE + settings + b"".join(frame(1, 5, 2 * number + 1, block) for number in range(STREAMS))


def open_all(port, count, http2):
    """Opens connections that send requests and read nothing."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    request, connections = (http2_requests(), count // STREAMS) if http2 else (REQUEST, count)
    sockets = []
    for _ in range(connections):
        one = socket.create_connection(("127.0.0.1", port), timeout=20)
        one.sendall(request)
        sockets.append(one)
    return sockets


@contextlib.contextmanager
def clients(core, port, count, http2):
    """Such connections of a process of their own, so that whoever measures has its own time."""
    command = ["taskset", "-c", core, sys.executable, __file__, str(port), str(count), str(int(http2))]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        process.stdout.readline()
        yield process
    finally:
        process.stdin.close()
        process.wait()


class Watch:
    """Asks for the gateway's health all the time, and looks at its memory."""

    def __init__(self, process, port, memory_of):
        self.process, self.port, self.memory_of = process, port, memory_of
        self.times, self.failed, self.most, self.begin = [], 0, 0, time.monotonic()
        self.woke_late = 0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def memory(self):
        return self.memory_of(self.process)

    def run(self):
        due = time.monotonic() + INTERVAL_S
        while not self.over.wait(INTERVAL_S):
            start = time.monotonic()
            self.woke_late = max(self.woke_late, start - due)
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=5) as one:
                    one.sendall(b"GET /health/live HTTP/1.1\r\nhost: gateway\r\nconnection: close\r\n\r\n")
                    self.failed += b" 200 " not in one.recv(1024)
            except OSError:
                self.failed += 1
            self.times.append((time.monotonic() - start, start - self.begin))
            self.most = max(self.most, self.memory())
            due = time.monotonic() + INTERVAL_S

    def slowest(self):
        """The slowest answer in ms, and when it was asked for in s."""
        took, at = max(self.times)
        return f"{took * 1e3:.0f} ms at {at:.0f} s of {len(self.times)}"

    def above(self, bound_s):
        """How many answers took longer, and how late this thread itself woke up at most: the host's part."""
        late = sum(took > bound_s for took, _ in self.times)
        return f"{late}; the watcher woke up {self.woke_late * 1e3:.0f} ms late at most"


if __name__ == "__main__":
    held = open_all(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
    print("open", flush=True)
    sys.stdin.read()
