// Shared parts of the clients made with the TypeScript SDKs: counted requests, sessions with tool servers in both
// lines of the SDK, and agents of one version of A2A.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";

import { Role } from "@a2a-js/sdk";
import { ClientFactory, DefaultAgentCardResolver, JsonRpcTransportFactory } from "@a2a-js/sdk/client";
import * as newer from "@modelcontextprotocol/client";
import { Client as OlderClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OlderTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const older = { Client: OlderClient, StreamableHTTPClientTransport: OlderTransport };

// Each session that a tool server must serve: the line of the SDK, its options, and the version.
export const sessions = [
  [newer, {}, "2025-11-25"],
  [older, {}, "2025-11-25"],
  [newer, { versionNegotiation: { mode: "auto" } }, "2026-07-28"],
];

// `fetch`, and how often it was called. Headers are sent beside those of the SDK.
export function counting(headers = {}) {
  const counted = async (url, init) => {
    counted.requests += 1;
    const all = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) all.set(name, value);
    return fetch(url, { ...init, headers: all });
  };
  counted.requests = 0;
  return counted;
}

// A session with a tool server: `use` gets the client and a function that calls a tool. Returns the number of requests.
export async function session([sdk, options, version], url, headers, use) {
  const counted = counting(headers);
  const client = new sdk.Client({ name: "typescript", version: "1" }, options);
  const transport = new sdk.StreamableHTTPClientTransport(new URL(url), { fetch: counted });
  await client.connect(transport);
  assert.equal(sdk === older ? transport.protocolVersion : client.getNegotiatedProtocolVersion(), version);
  // The lines differ in one place: 1.x has the schema of the result before the options.
  const call = (name, input, given) =>
    client.callTool({ name, arguments: input }, ...(sdk === older ? [undefined, given] : [given]));
  await use(client, call, version);
  if (transport.sessionId) await transport.terminateSession();
  await client.close();
  return counted.requests;
}

// Checks that a call is answered by an error of JSON-RPC.
export async function refused(call, code) {
  await assert.rejects(call, (error) => error.code === code);
}

// A client of an agent in one version, through its card.
export async function agent(base, version, fetchImpl) {
  const legacyCompat = { enabled: true };
  const card = await new DefaultAgentCardResolver({ fetchImpl, legacyCompat }).resolve(`${base}/`);
  const own = card.supportedInterfaces.filter((face) => face.protocolVersion === version);
  assert.equal(own.length, 1, JSON.stringify(card));
  const transports = [new JsonRpcTransportFactory({ fetchImpl, legacyCompat })];
  const client = await new ClientFactory({ transports }).createFromAgentCard({ ...card, supportedInterfaces: own });
  return { client, card };
}

// A message to an agent.
export function message(text, ids = {}) {
  const part = { content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" };
  const whole = { messageId: randomUUID(), contextId: "", taskId: "", role: Role.ROLE_USER, parts: [part] };
  return {
    tenant: "",
    message: { ...whole, metadata: undefined, extensions: [], referenceTaskIds: [], ...ids },
    configuration: undefined,
    metadata: undefined,
  };
}

// The text of a message or an artifact.
export function text(parts) {
  return parts.map((part) => part.content.value).join("");
}

// All of a stream.
export async function all(stream) {
  const events = [];
  for await (const event of stream) events.push(event);
  return events;
}

// Checks that an agent answers with an error of this name.
export async function failed(call, name) {
  await assert.rejects(call, (error) => error.name === name);
}

// Waits until a list has something.
export async function first(list) {
  while (list.length === 0) await new Promise((over) => setTimeout(over, 10));
  return list[0];
}

// Reads a stream into a list beside the caller.
export function reading(stream) {
  const events = [];
  const done = (async () => {
    for await (const event of stream) events.push(event);
  })();
  return { events, done };
}
