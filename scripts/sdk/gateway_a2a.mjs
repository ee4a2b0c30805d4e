// The official TypeScript SDK as a client of agents behind the gateway, in both versions.
//
// Usage: gateway_a2a.mjs URL. Every call that should work does. Prints the number of HTTP requests that it sent.

import assert from "node:assert/strict";

import { TaskState } from "@a2a-js/sdk";

import { agent, all, counting, failed, first, message, reading, text } from "./clients.mjs";

const TEXT = "hello to whom it may concern\n";
const LOUD = TEXT.toUpperCase();
const url = process.argv[2];

async function talk(client) {
  const events = (await all(client.sendMessageStream(message(TEXT)))).map((event) => event.payload);
  const pieces = events.filter((event) => event.$case === "artifactUpdate").map((event) => event.value);
  assert.equal(pieces.length, 3, JSON.stringify(events));
  assert.equal(pieces.map((piece) => text(piece.artifact.parts)).join(""), LOUD);
  assert.equal(events.at(-1).value.status.state, TaskState.TASK_STATE_COMPLETED);
  const got = await client.getTask({ tenant: "", id: pieces[0].taskId });
  assert.equal(text(got.artifacts[0].parts), LOUD);
  const whole = await client.sendMessage(message(TEXT));
  assert.equal(text(whole.artifacts[0].parts), LOUD);
  await failed(client.getTask({ tenant: "", id: "none" }), "TaskNotFoundError");
  const waiting = reading(client.sendMessageStream(message("wait")));
  const { id } = (await first(waiting.events)).payload.value;
  const canceled = await client.cancelTask({ tenant: "", id, metadata: undefined });
  assert.equal(canceled.status.state, TaskState.TASK_STATE_CANCELED);
  await waiting.done;
  assert.equal(waiting.events.at(-1).payload.value.status.state, TaskState.TASK_STATE_CANCELED);
}

const counted = counting();
for (const base of [url, `${url}/a2a/loud`]) {
  for (const version of ["1.0", "0.3"]) {
    const { client, card } = await agent(base, version, counted);
    assert.ok(card.supportedInterfaces.every((face) => face.url.startsWith(url)), JSON.stringify(card));
    await talk(client);
  }
}
const looping = counting({ "x-agent-path": "loud" });
const { client } = await agent(url, "1.0", looping);
await assert.rejects(client.sendMessage(message("x")), (error) => error.message.includes("before"));
console.log(counted.requests + looping.requests);
