"""A FastMCP server with tools of its own, before the reference servers `time` and `git`, which speak over stdio.

Usage: mcp_fastmcp.py LOG. Prints its port, serves until its standard input ends, and writes a line to LOG for each
request and for what each tool answered: `tool NAME`, or `error NAME`.
"""

import subprocess
import sys
import tempfile
from enum import Enum
from typing import Annotated

from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.middleware import Middleware
from pydantic import BaseModel, Field
from serving import Log, listen, serve

log = Log(sys.argv[1])


class Unit(Enum):
    METRE = "m"
    MILE = "mi"


class Leg(BaseModel):
    name: str
    length: Annotated[float, Field(gt=0, le=1000)]
    unit: Unit = Unit.METRE


class Noted(Middleware):
    async def on_call_tool(self, context, call_next):
        name = context.message.name
        try:
            result = await call_next(context)
        except Exception:
            log.note("error", name)
            raise
        log.note("error" if getattr(result, "is_error", False) else "tool", name)
        return result


server = FastMCP("legs", middleware=[Noted()])


@server.tool
def route(legs: Annotated[list[Leg], Field(min_length=1, max_length=3)], title: str | None = None) -> dict:
    """Adds up legs."""
    return {"title": title, "legs": len(legs), "length": sum(leg.length for leg in legs)}


@server.tool
async def words(text: Annotated[str, Field(min_length=3)], times: Annotated[int, Field(ge=1, le=5)]) -> str:
    """Repeats a text."""
    return text * times


repository = tempfile.mkdtemp()
subprocess.run(["git", "init", "--quiet", repository], check=True)
for name, arguments in [("time", []), ("git", ["--repository", repository])]:
    program = {"command": sys.executable, "args": ["-m", f"mcp_server_{name}", *arguments]}
    server.mount(create_proxy({"mcpServers": {name: program}}), namespace=name)

listener, _ = listen()
serve(server.http_app(), log, listener)
