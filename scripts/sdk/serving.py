"""Shared parts of the servers made with the Python SDKs: a port of their own, a log, and an end."""

import asyncio
import json
import logging
import socket
import sys
import threading

import uvicorn


class Log:
    """Writes one line for each fact to a file; does nothing without a path."""

    def __init__(self, path):
        self.file = open(path, "a", buffering=1, encoding="utf-8") if path else None

    def note(self, *words):
        if self.file:
            print(*words, file=self.file)


class Noted:
    """An application whose requests are noted before the SDK sees them: the method of JSON-RPC and the tool that it
    calls, or the method of HTTP and the path.
    """

    def __init__(self, app, log):
        self.app, self.log = app, log

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body, more = body + message.get("body", b""), message.get("more_body", False)
        self.log.note("request", *words(scope, body))
        replayed = False

        async def replay():
            nonlocal replayed
            if replayed:
                return await receive()
            replayed = True
            return {"type": "http.request", "body": body, "more_body": False}

        return await self.app(scope, replay, send)


def words(scope, body):
    if not body:
        return [scope["method"], scope["path"]]
    message = json.loads(body)
    calls = message["method"] == "tools/call"
    return [message["method"], message["params"]["name"]] if calls else [message["method"]]


def listen():
    """A listening socket of 127.0.0.1, and its port."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(256)
    return listener, listener.getsockname()[1]


def serve(app, log, listener):
    """Prints the port, and serves until standard input ends. Errors are in the answers, and not printed."""
    server = uvicorn.Server(uvicorn.Config(Noted(app, log), log_config=None))
    logging.disable(logging.CRITICAL)

    def until_the_input_ends():
        sys.stdin.read()
        server.should_exit = server.force_exit = True

    threading.Thread(target=until_the_input_ends, daemon=True).start()
    print(listener.getsockname()[1], flush=True)
    asyncio.run(server.serve(sockets=[listener]))
