"""The official Python SDK as a client of the mock's agents: every call of it that should work does, in both versions.

Usage: mock_a2a.py URL [N]. Prints one line for each version, or for the Nth alone: its name, and the number of HTTP
requests that the mock must have logged for it, cards included, as the SDK's own HTTP client counted them.
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
    TaskPushNotificationConfig,
    TaskState,
)
from a2a.utils.errors import (
    A2AError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

TEXT = 'héllo\n"世界"'


def message(text, **ids):
    parts = [Part(text=text)]
    return SendMessageRequest(message=Message(message_id=str(uuid.uuid4()), role=Role.ROLE_USER, parts=parts, **ids))


def text(parts):
    return "".join(part.text for part in parts)


class Agents:
    """Clients of one version, which share an HTTP client that counts."""

    def __init__(self, url, version, http):
        self.url, self.version, self.http = url, version, http

    async def client(self, name, streaming):
        card = await A2ACardResolver(self.http, f"{self.url}/a2a/{name}").get_agent_card()
        assert card.name == name and card.capabilities.streaming, card
        own = [face for face in card.supported_interfaces if face.protocol_version == self.version]
        assert len(own) == 1, card
        del card.supported_interfaces[:]
        card.supported_interfaces.append(own[0])
        config = ClientConfig(streaming=streaming, httpx_client=self.http)
        return ClientFactory(config).create(card)

    async def events(self, client, request):
        return [event async for event in client.send_message(request)]

    async def refused(self, error, call):
        try:
            await call
        except error:
            return
        raise AssertionError(f"no {error}")


async def messages(agents):
    for streaming in [True, False]:
        echo = await agents.client("echo", streaming)
        events = await agents.events(echo, message(TEXT, context_id="mine"))
        assert len(events) == 1 and text(events[0].message.parts) == TEXT, events
        assert events[0].message.context_id == "mine" and events[0].message.role == Role.ROLE_AGENT


async def tasks(agents):
    steps = await agents.client("steps", True)
    events = await agents.events(steps, message("work"))
    kinds = [event.WhichOneof("payload") for event in events]
    expected = ["task", "status_update"] + 4 * ["artifact_update"] + ["status_update"]
    assert kinds == expected, kinds
    assert events[-1].status_update.status.state == TaskState.TASK_STATE_COMPLETED
    pieces = [event.artifact_update for event in events[2:-1]]
    assert [piece.last_chunk for piece in pieces] == [False, False, False, True]
    assert [piece.append for piece in pieces] == [False, True, True, True]
    joined = "".join(text(piece.artifact.parts) for piece in pieces)
    got = await steps.get_task(GetTaskRequest(id=events[0].task.id))
    assert text(got.artifacts[0].parts) == joined and len(joined) == 64
    assert got.status.HasField("timestamp")
    cancel = steps.cancel_task(CancelTaskRequest(id=got.id))
    await agents.refused(TaskNotCancelableError, cancel)
    await agents.refused(TaskNotFoundError, steps.get_task(GetTaskRequest(id="none")))
    polling = await agents.client("steps", False)
    whole = (await agents.events(polling, message("work")))[0].task
    assert whole.status.state == TaskState.TASK_STATE_COMPLETED and len(whole.artifacts) == 1


async def asks(agents):
    for streaming in [True, False]:
        asking = await agents.client("asking", streaming)
        first = (await agents.events(asking, message("which")))[-1]
        told = first.status_update if streaming else first.task
        assert told.status.state == TaskState.TASK_STATE_INPUT_REQUIRED, told
        assert told.status.message.role == Role.ROLE_AGENT
        task = first.status_update.task_id if streaming else first.task.id
        last = (await agents.events(asking, message("this one", task_id=task)))[-1]
        told = last.status_update if streaming else last.task
        assert told.status.state == TaskState.TASK_STATE_COMPLETED, told
        again = agents.events(asking, message("more", task_id=task))
        await agents.refused(UnsupportedOperationError, again)


async def cancels(agents):
    long = await agents.client("long", True)
    seen = []

    async def read():
        async for event in long.send_message(message("work")):
            seen.append(event)

    reading = asyncio.create_task(read())
    while not seen:
        await asyncio.sleep(0.01)
    task = seen[0].task.id
    canceled = await long.cancel_task(CancelTaskRequest(id=task))
    assert canceled.status.state == TaskState.TASK_STATE_CANCELED
    await asyncio.wait_for(reading, 5)
    assert seen[-1].status_update.status.state == TaskState.TASK_STATE_CANCELED, seen


async def errors(agents):
    failing = await agents.client("failing", False)
    outcomes = {"completed": 0, "failed": 0, "error": 0}
    for _ in range(40):
        try:
            state = (await agents.events(failing, message("try")))[0].task.status.state
            failed = state == TaskState.TASK_STATE_FAILED
            outcomes["failed" if failed else "completed"] += 1
        except A2AError:
            outcomes["error"] += 1
    assert all(outcomes.values()), outcomes
    config = TaskPushNotificationConfig(task_id="t", url="http://localhost/")
    push = failing.create_task_push_notification_config(config)
    await agents.refused(PushNotificationNotSupportedError, push)


async def session(url, version):
    requests = 0

    async def count(_request):
        nonlocal requests
        requests += 1

    async with httpx.AsyncClient(event_hooks={"request": [count]}, timeout=30) as http:
        agents = Agents(url, version, http)
        for part in [messages, tasks, asks, cancels, errors]:
            await part(agents)
    print(version, requests, flush=True)


async def main(url, which=None):
    for number, version in enumerate(["1.0", "0.3"], 1):
        if which in [None, str(number)]:
            await session(url, version)


asyncio.run(main(*sys.argv[1:]))
