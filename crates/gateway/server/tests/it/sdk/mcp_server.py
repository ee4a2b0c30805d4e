"""The official Python SDK as a server behind the gateway.

Usage: mcp_server.py json|events. Prints its port, and serves MCP at /mcp until it is killed.
"""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("official")


@server.tool()
def say(text: str) -> str:
    """Gives its text back."""
    return text


@server.tool()
def total(a: int, b: int) -> int:
    """The sum of two numbers."""
    return a + b


@server.tool()
async def slow(context: Context) -> str:
    """Takes its time and reports progress."""
    for done in range(3):
        await context.report_progress(done, 3)
        await asyncio.sleep(0.05)
    return "done"


@server.tool()
def fail() -> str:
    """Always fails."""
    raise ValueError("it fails")


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
listener.listen()
print(listener.getsockname()[1], flush=True)
app = server.streamable_http_app(json_response=sys.argv[1] == "json")
uvicorn.Server(uvicorn.Config(app, log_level="error")).run(sockets=[listener])
