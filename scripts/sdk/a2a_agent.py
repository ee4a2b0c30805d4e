"""An agent made with the official Python SDK: at /rpc, in both versions. It answers a text in upper case, in three
pieces; works for ever where it is told to wait; and fails where it is told to fail.

Usage: a2a_agent.py [LOG]. Prints its port, serves until its standard input ends, and writes a line to LOG for each
request, each message that the agent got, and each task that was cancelled.
"""

import asyncio
import sys

from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from serving import Log, listen, serve
from starlette.applications import Starlette

log = Log(sys.argv[1] if len(sys.argv) > 1 else None)


class Loud(AgentExecutor):
    async def execute(self, context, event_queue):
        text = context.get_user_input()
        word = (text.split() or [""])[-1]
        log.note("message", word if word in ["wait", "fail"] else "other")
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        while word == "wait":
            await asyncio.sleep(0.05)
        if word == "fail":
            await updater.failed()
            return
        third = (len(text) + 2) // 3
        for at in range(3):
            part = Part(text=text.upper()[at * third : (at + 1) * third])
            await updater.add_artifact([part], artifact_id="loud", append=at > 0, last_chunk=at == 2)
        await updater.complete()

    async def cancel(self, context, event_queue):
        log.note("cancel")
        task = context.current_task
        await TaskUpdater(event_queue, task.id, task.context_id).cancel()


listener, port = listen()
interfaces = [
    AgentInterface(url=f"http://127.0.0.1:{port}/rpc", protocol_binding="JSONRPC", protocol_version=version)
    for version in ["1.0", "0.3"]
]
card = AgentCard(
    name="loud",
    description="says it louder",
    version="1",
    supported_interfaces=interfaces,
    capabilities=AgentCapabilities(streaming=True),
    default_input_modes=["text/plain"],
    default_output_modes=["text/plain"],
    skills=[AgentSkill(id="loud", name="loud", description="says it louder", tags=["text"])],
)
handler = DefaultRequestHandler(Loud(), InMemoryTaskStore(), card)
routes = create_jsonrpc_routes(handler, "/rpc", enable_v0_3_compat=True)
serve(Starlette(routes=routes + create_agent_card_routes(card)), log, listener)
