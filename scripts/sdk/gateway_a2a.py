"""The official Python SDK as a client of agents behind the gateway, in both versions.

Usage: gateway_a2a.py URL. Every call that should work does. Prints the number of HTTP requests that it sent.
"""

import asyncio
import sys
import uuid

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    TaskState,
)
from a2a.utils.errors import A2AError, TaskNotFoundError

TEXT = "hello to whom it may concern\n"


def message(text):
    parts = [Part(text=text)]
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts))


def text(parts):
    return "".join(part.text for part in parts)


async def connect(http, url, version, streaming):
    card = await A2ACardResolver(http, url).get_agent_card()
    own = [face for face in card.supported_interfaces if face.protocol_version == version]
    assert len(own) == 1 and own[0].url.startswith(sys.argv[1]), card
    del card.supported_interfaces[:]
    card.supported_interfaces.append(own[0])
    return ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)


async def talk(http, url, version):
    streaming = await connect(http, url, version, True)
    events = [event async for event in streaming.send_message(message(TEXT))]
    pieces = [event.artifact_update for event in events if event.HasField("artifact_update")]
    assert len(pieces) == 3, events
    assert "".join(text(piece.artifact.parts) for piece in pieces) == TEXT.upper(), pieces
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED, events
    got = await streaming.get_task(GetTaskRequest(id=pieces[0].task_id))
    assert text(got.artifacts[0].parts) == TEXT.upper(), got

    whole = await connect(http, url, version, False)
    task = [event async for event in whole.send_message(message(TEXT))][-1].task
    assert text(task.artifacts[0].parts) == TEXT.upper(), task
    try:
        await whole.get_task(GetTaskRequest(id="none"))
        raise AssertionError("a task that is not there")
    except TaskNotFoundError:
        pass

    waiting = streaming.send_message(message("wait"))
    first = await anext(waiting)
    canceled = await whole.cancel_task(CancelTaskRequest(id=first.task.id))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED, canceled
    rest = [event async for event in waiting]
    assert rest[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, rest


async def refused(http, url):
    http.headers["x-agent-path"] = "loud"
    client = await connect(http, url, "1.0", False)
    try:
        _ = [event async for event in client.send_message(message("x"))]
        raise AssertionError("a loop")
    except A2AError as error:
        assert "before" in str(error), error


async def main():
    count = 0

    async def counted(_):
        nonlocal count
        count += 1

    async with httpx.AsyncClient(event_hooks={"request": [counted]}, timeout=20) as http:
        for url in [sys.argv[1], f"{sys.argv[1]}/a2a/loud"]:
            for version in ["1.0", "0.3"]:
                await talk(http, url, version)
        await refused(http, sys.argv[1])
    print(count)


asyncio.run(main())
