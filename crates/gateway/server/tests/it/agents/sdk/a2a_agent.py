"""An agent made with the official Python SDK, in both versions: it answers a text in upper case, in three pieces, and
works for ever where it is told to wait. Prints its port, and ends with its standard input.
"""

import asyncio
import socket
import sys
import threading

import uvicorn
from a2a.helpers.proto_helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette


class Loud(AgentExecutor):
    async def execute(self, context, event_queue):
        task = context.current_task or new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.start_work()
        text = context.get_user_input()
        while text == "wait":
            await asyncio.sleep(0.05)
        third = (len(text) + 2) // 3
        for at in range(3):
            part = Part(text=text.upper()[at * third : (at + 1) * third])
            await updater.add_artifact(
                [part], artifact_id="loud", append=at > 0, last_chunk=at == 2
            )
        await updater.complete()

    async def cancel(self, context, event_queue):
        task = context.current_task
        await TaskUpdater(event_queue, task.id, task.context_id).cancel()


listener = socket.socket()
listener.bind(("127.0.0.1", 0))
address = f"http://127.0.0.1:{listener.getsockname()[1]}"
interfaces = [
    AgentInterface(url=f"{address}/rpc", protocol_binding="JSONRPC", protocol_version=version)
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
server = uvicorn.Server(
    uvicorn.Config(Starlette(routes=routes + create_agent_card_routes(card)), log_level="error")
)


def until_the_input_ends():
    sys.stdin.read()
    server.should_exit = server.force_exit = True


threading.Thread(target=until_the_input_ends, daemon=True).start()
print(listener.getsockname()[1], flush=True)
asyncio.run(server.serve(sockets=[listener]))
