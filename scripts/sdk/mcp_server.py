"""A tool server made with the official Python SDK: at /mcp, in both eras. It has what the profile `mcp-tools` asks for.

Usage: mcp_server.py json|events|json-alone|events-alone [LOG]. Answers are single documents, or streams of events; with
`alone` no session is kept. Prints its port, serves until its standard input ends, and writes a line to LOG for each
request and for each tool that ran.
"""

import asyncio
import sys

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPError
from serving import Log, listen, serve

log = Log(sys.argv[2] if len(sys.argv) > 2 else None)
server = MCPServer("official")


@server.tool()
def echo(text: str) -> str:
    """Gives its text back."""
    log.note("tool", "echo")
    return text


@server.tool()
def total(a: int, b: int) -> int:
    """The sum of two numbers."""
    log.note("tool", "total")
    return a + b


@server.tool()
async def slow(context: Context) -> str:
    """Takes its time and reports progress."""
    log.note("tool", "slow")
    for done in range(3):
        await context.report_progress(done, 3)
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
def fail() -> str:
    """Always fails."""
    log.note("tool", "fail")
    raise ValueError("it fails")


@server.tool()
def refuse() -> str:
    """Always answers with an error of JSON-RPC."""
    log.note("tool", "refuse")
    raise MCPError(code=-32050, message="it refuses")


@server.resource("mock://notes")
def notes() -> str:
    """Some notes."""
    log.note("resource", "mock://notes")
    return "a note\n" * 100


@server.prompt()
def greeting(name: str) -> str:
    """Greets somebody."""
    log.note("prompt", "greeting")
    return f"Say hello to {name}."


form, _, alone = sys.argv[1].partition("-")
app = server.streamable_http_app(json_response=form == "json", stateless_http=bool(alone))
listener, _ = listen()
serve(app, log, listener)
