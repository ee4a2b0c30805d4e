// An agent made with the official TypeScript SDK: at /rpc, in both versions. It answers a text in upper case, in three
// pieces; works for ever where it is told to wait; and fails where it is told to fail.
//
// Usage: a2a_agent.mjs [LOG]. Prints its port, serves until its standard input ends, and writes a line to LOG for each
// request, each message that the agent got, and each task that was cancelled.

import { AGENT_CARD_PATH, TaskState } from "@a2a-js/sdk";
import { AgentEvent, DefaultRequestHandler, InMemoryTaskStore } from "@a2a-js/sdk/server";
import { UserBuilder, agentCardHandler, jsonRpcHandler } from "@a2a-js/sdk/server/express";
import express from "express";

import { announce, listen, openLog, words } from "./serving.mjs";

const log = openLog(process.argv[2]);
const waiting = new Map();

function status(taskId, contextId, state) {
  const status = { state, message: undefined, timestamp: new Date().toISOString() };
  return AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined });
}

function piece(taskId, contextId, text, append, lastChunk) {
  const parts = [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "text/plain" }];
  const artifact = { artifactId: "loud", name: "", description: "", parts, metadata: undefined, extensions: [] };
  return AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined });
}

class Loud {
  async execute(context, bus) {
    const { taskId, contextId, userMessage } = context;
    const text = userMessage.parts.map((part) => part.content?.value ?? "").join("");
    const word = text.split(/\s+/).filter(Boolean).at(-1) ?? "";
    log("message", ["wait", "fail"].includes(word) ? word : "other");
    const submitted = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() };
    const task = { id: taskId, contextId, status: submitted, artifacts: [], history: [userMessage], metadata: undefined };
    bus.publish(AgentEvent.task(context.task ?? task));
    bus.publish(status(taskId, contextId, TaskState.TASK_STATE_WORKING));
    if (word === "wait") {
      await new Promise((over) => waiting.set(taskId, over));
      bus.publish(status(taskId, contextId, TaskState.TASK_STATE_CANCELED));
    } else if (word === "fail") {
      bus.publish(status(taskId, contextId, TaskState.TASK_STATE_FAILED));
    } else {
      const third = Math.ceil(text.length / 3);
      for (let at = 0; at < 3; at += 1) {
        const part = text.toUpperCase().slice(at * third, (at + 1) * third);
        bus.publish(piece(taskId, contextId, part, at > 0, at === 2));
      }
      bus.publish(status(taskId, contextId, TaskState.TASK_STATE_COMPLETED));
    }
    bus.finished();
  }

  async cancelTask(taskId) {
    log("cancel");
    waiting.get(taskId)?.();
    waiting.delete(taskId);
  }
}

const app = express();
const [, port] = await listen(app);
const url = `http://127.0.0.1:${port}/rpc`;
const card = {
  name: "loud",
  description: "says it louder",
  version: "1",
  supportedInterfaces: ["1.0", "0.3"].map((protocolVersion) => ({
    url,
    protocolBinding: "JSONRPC",
    tenant: "",
    protocolVersion,
  })),
  provider: undefined,
  capabilities: { streaming: true, pushNotifications: false, extensions: [] },
  securitySchemes: {},
  securityRequirements: [],
  defaultInputModes: ["text/plain"],
  defaultOutputModes: ["text/plain"],
  skills: [
    {
      id: "loud",
      name: "loud",
      description: "says it louder",
      tags: ["text"],
      examples: [],
      inputModes: [],
      outputModes: [],
      securityRequirements: [],
    },
  ],
  signatures: [],
};
const requestHandler = new DefaultRequestHandler(card, new InMemoryTaskStore(), new Loud());
const legacyCompat = { enabled: true };
app.use(express.json({ limit: "8mb" }), (request, _, next) => {
  log("request", ...words(request, request.method === "POST" && JSON.stringify(request.body)));
  next();
});
app.use(`/${AGENT_CARD_PATH}`, agentCardHandler({ agentCardProvider: requestHandler, legacyCompat }));
app.use("/rpc", jsonRpcHandler({ requestHandler, userBuilder: UserBuilder.noAuthentication, legacyCompat }));
announce(port);
