// The official TypeScript SDKs as clients of the gateway: every call of theirs that should work does; the packages 2.x
// in both eras, the package of the line 1.x in the one with sessions.
//
// Usage: gateway_mcp.mjs URL. Prints the version of each session that worked.

import assert from "node:assert/strict";

import { refused, session, sessions } from "./clients.mjs";

const TOOLS = ["add", "echo", "failing", "json_get", "sad", "say", "time"];

async function calls(client, call, version) {
  assert.equal(client.getServerVersion().name, "front");
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
  assert.deepEqual(tools.find((tool) => tool.name === "say").inputSchema.required, ["text"]);
  for (const text of ['héllo\n"世界"', "", "x".repeat(100_000)]) {
    for (const name of ["say", "echo"]) {
      const result = await call(name, { text });
      assert.ok(!result.isError && result.content[0].text === text);
    }
  }
  assert.ok((await call("say", { text: 7 })).isError);
  assert.ok((await call("sad", {})).isError);
  assert.deepEqual((await call("add", { a: 2, b: 40 })).structuredContent, { sum: 42 });
  assert.ok((await call("time", {})).structuredContent.unix_ms > 1_700_000_000_000);
  await refused(call("failing", {}), -32603);
  await refused(call("no such tool", {}), -32602);
  await refused(call("secret", {}), -32050);
  if (version < "2026") await client.ping();
}

for (const kind of sessions) {
  await session(kind, process.argv[2], { "x-tenant-id": "retail" }, calls);
  console.log(kind[2]);
}
