"""The official Python SDK as a client of the mock: every call of it that should work does, in both eras.

Usage: mock_mcp.py URL [N]. Prints one line for each era, or for the Nth alone: the version, and the number of HTTP
requests that the mock must have logged for it, as the SDK's own HTTP client counted them.
"""

import asyncio
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError


async def session(url, mode, version):
    requests = 0

    async def count(_request):
        nonlocal requests
        requests += 1

    http = httpx2.AsyncClient(event_hooks={"request": [count]}, timeout=30)
    async with http, Client(streamable_http_client(url, http_client=http), mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        assert client.server_info.name == "plimsoll-mock"
        await calls(client)
    print(version, requests, flush=True)


async def calls(client):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert sorted(tools) == ["echo", "failing", "slow"], tools
    assert tools["echo"].input_schema["required"] == ["text"]
    text = 'héllo\n"世界"'
    result = await client.call_tool("echo", {"text": text})
    assert not result.is_error and result.content[0].text == text
    progress = []

    async def on_progress(done, total, _message):
        progress.append((done, total))

    result = await client.call_tool("slow", {}, progress_callback=on_progress)
    assert not result.is_error and len(result.content[0].text) == 64
    assert progress == [(1, 4), (2, 4), (3, 4), (4, 4)], progress
    outcomes = {"good": 0, "tool": 0, "rpc": 0}
    for _ in range(40):
        try:
            failing = await client.call_tool("failing", {})
            outcomes["tool" if failing.is_error else "good"] += 1
        except MCPError as error:
            assert error.code == -32603, error.code
            outcomes["rpc"] += 1
    assert all(outcomes.values()), outcomes
    for name, arguments, code in [("no such tool", {}, -32602)]:
        try:
            await client.call_tool(name, arguments)
            raise AssertionError(name)
        except MCPError as error:
            assert error.code == code, error.code
    assert (await client.call_tool("echo", {"text": 7})).is_error
    uri = (await client.list_resources()).resources[0].uri
    contents = (await client.read_resource(uri)).contents
    assert len(contents[0].text) == 1024
    assert (await client.list_resource_templates()).resource_templates == []
    assert (await client.list_prompts()).prompts[0].name == "greeting"
    prompt = await client.get_prompt("greeting", {"name": "Ada"})
    assert prompt.messages[0].content.text == "Say hello to Ada."
    try:
        await client.call_tool("slow", {}, read_timeout_seconds=0.5)
        raise AssertionError("the call was not given up")
    except MCPError:
        pass
    # In a session the mock answers a cancelled call, too. The SDK fails if it is closed before that comes.
    await asyncio.sleep(0.5)


async def main(url, which=None):
    for number, era in enumerate([("legacy", "2025-11-25"), ("auto", "2026-07-28")], 1):
        if which in [None, str(number)]:
            await session(url, *era)


asyncio.run(main(*sys.argv[1:]))
