"""The official Python SDK as a client of the gateway: every call of it that should work does, in both eras.

Usage: gateway_mcp.py URL. Prints the version of each era that worked.
"""

import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

LOCAL = ["add", "echo", "json_get", "time"]


async def session(url, mode, version):
    http = httpx2.AsyncClient(headers={"x-tenant-id": "retail"}, timeout=30)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        assert client.server_info.name == "front"
        await calls(client)
    print(version, flush=True)


async def calls(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == sorted([*LOCAL, "failing", "sad", "say"]), tools
    assert tools["say"].input_schema["required"] == ["text"]
    for text in ['héllo\n"世界"', "", "x" * 100_000]:
        for name in ["say", "echo"]:
            result = await client.call_tool(name, {"text": text})
            assert not result.is_error and result.content[0].text == text
    assert (await client.call_tool("say", {"text": 7})).is_error
    assert (await client.call_tool("sad", {})).is_error
    total = await client.call_tool("add", {"a": 2, "b": 40})
    assert total.structured_content == {"sum": 42}, total
    assert (await client.call_tool("time", {})).structured_content["unix_ms"] > 1_700_000_000_000
    for name, code in [("failing", -32603), ("no such tool", -32602), ("secret", -32050)]:
        try:
            await client.call_tool(name, {})
            raise AssertionError(name)
        except MCPError as error:
            assert error.code == code, (name, error.code)
    if client.protocol_version < "2026":
        await client.send_ping()


async def main(url):
    await session(url, "legacy", "2025-11-25")
    await session(url, "auto", "2026-07-28")


asyncio.run(main(sys.argv[1]))
