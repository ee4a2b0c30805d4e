// The official TypeScript SDK as a client of the mock's agents: every call of it that should work does, in both
// versions.
//
// Usage: mock_a2a.mjs URL [N]. Prints one line for each version, or for the Nth alone: its name, and the number of HTTP
// requests that the mock must have logged for it, cards included, as the SDK's own requests were counted.

import assert from "node:assert/strict";

import { Role, TaskState } from "@a2a-js/sdk";

import { agent, all, counting, failed, first, message, reading, text } from "./clients.mjs";

const TEXT = 'héllo\n"世界"';

async function messages(connect) {
  const echo = await connect("echo");
  const events = await all(echo.sendMessageStream(message(TEXT, { contextId: "mine" })));
  assert.equal(events.length, 1);
  for (const reply of [events[0].payload.value, await echo.sendMessage(message(TEXT, { contextId: "mine" }))]) {
    assert.equal(text(reply.parts), TEXT);
    assert.ok(reply.contextId === "mine" && reply.role === Role.ROLE_AGENT);
  }
}

async function tasks(connect) {
  const steps = await connect("steps");
  const events = (await all(steps.sendMessageStream(message("work")))).map((event) => event.payload);
  const kinds = ["task", "statusUpdate", ...Array(4).fill("artifactUpdate"), "statusUpdate"];
  assert.deepEqual(events.map((event) => event.$case), kinds);
  assert.equal(events.at(-1).value.status.state, TaskState.TASK_STATE_COMPLETED);
  const pieces = events.slice(2, -1).map((event) => event.value);
  assert.deepEqual(pieces.map((piece) => Boolean(piece.lastChunk)), [false, false, false, true]);
  assert.deepEqual(pieces.map((piece) => Boolean(piece.append)), [false, true, true, true]);
  const joined = pieces.map((piece) => text(piece.artifact.parts)).join("");
  const { id } = events[0].value;
  const got = await steps.getTask({ tenant: "", id });
  assert.ok(text(got.artifacts[0].parts) === joined && joined.length === 64 && got.status.timestamp);
  await failed(steps.cancelTask({ tenant: "", id, metadata: undefined }), "TaskNotCancelableError");
  await failed(steps.getTask({ tenant: "", id: "none" }), "TaskNotFoundError");
  const whole = await steps.sendMessage(message("work"));
  assert.ok(whole.status.state === TaskState.TASK_STATE_COMPLETED && whole.artifacts.length === 1);
}

async function asks(connect) {
  const asking = await connect("asking");
  const streamed = async (request) => (await all(asking.sendMessageStream(request))).at(-1).payload.value;
  const whole = async (request) => {
    const { id, status } = await asking.sendMessage(request);
    return { taskId: id, status };
  };
  for (const say of [streamed, whole]) {
    const question = await say(message("which"));
    assert.equal(question.status.state, TaskState.TASK_STATE_INPUT_REQUIRED);
    assert.equal(question.status.message.role, Role.ROLE_AGENT);
    const { taskId } = question;
    const last = await say(message("this one", { taskId }));
    assert.equal(last.status.state, TaskState.TASK_STATE_COMPLETED);
    await failed(say(message("more", { taskId })), "UnsupportedOperationError");
  }
}

async function cancels(connect) {
  const long = await connect("long");
  const sent = reading(long.sendMessageStream(message("work")));
  const { id } = (await first(sent.events)).payload.value;
  const canceled = await long.cancelTask({ tenant: "", id, metadata: undefined });
  assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED);
  await sent.done;
  assert.equal(sent.events.at(-1).payload.value.status.state, TaskState.TASK_STATE_CANCELED);
}

async function errors(connect) {
  const failing = await connect("failing");
  const outcomes = { completed: 0, failed: 0, error: 0 };
  for (let count = 0; count < 40; count += 1) {
    const sent = await failing.sendMessage(message("try")).catch(() => undefined);
    const state = sent?.status.state;
    outcomes[!sent ? "error" : state === TaskState.TASK_STATE_FAILED ? "failed" : "completed"] += 1;
  }
  assert.ok(Object.values(outcomes).every((count) => count > 0), JSON.stringify(outcomes));
  const config = { tenant: "", id: "c", taskId: "t", url: "http://localhost/", token: "", authentication: undefined };
  // The client itself looks at the card and would not ask.
  const serviceParameters = { "A2A-Version": failing.protocolVersion };
  const asked = failing.transport.createTaskPushNotificationConfig(config, { serviceParameters });
  await failed(asked, "PushNotificationNotSupportedError");
}

const [url, which] = process.argv.slice(2);
const versions = ["1.0", "0.3"];
for (const version of which ? [versions[which - 1]] : versions) {
  const counted = counting();
  const connect = async (name) => {
    const { client, card } = await agent(`${url}/a2a/${name}`, version, counted);
    assert.ok(card.name === name && card.capabilities.streaming);
    return client;
  };
  for (const part of [messages, tasks, asks, cancels, errors]) {
    await part(connect);
  }
  console.log(version, counted.requests);
}
