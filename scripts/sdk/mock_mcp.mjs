// The official TypeScript SDKs as clients of the mock: every call of theirs that should work does; the packages 2.x in
// both eras, the package of the line 1.x in the one with sessions.
//
// Usage: mock_mcp.mjs URL [N]. Prints one line for each session, or for the Nth alone: the version, and the number of
// HTTP requests that the mock must have logged for it, as the SDK's own requests were counted.

import assert from "node:assert/strict";

import { refused, session, sessions } from "./clients.mjs";

async function calls(client, call) {
  assert.equal(client.getServerVersion().name, "plimsoll-mock");
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), ["echo", "failing", "slow"]);
  assert.deepEqual(tools.find((tool) => tool.name === "echo").inputSchema.required, ["text"]);
  const text = 'héllo\n"世界"';
  const echoed = await call("echo", { text });
  assert.ok(!echoed.isError && echoed.content[0].text === text);
  const progress = [];
  const slow = await call("slow", {}, { onprogress: (step) => progress.push([step.progress, step.total]) });
  assert.ok(!slow.isError && slow.content[0].text.length === 64);
  assert.deepEqual(progress, [[1, 4], [2, 4], [3, 4], [4, 4]]);
  const outcomes = { good: 0, tool: 0, rpc: 0 };
  for (let count = 0; count < 40; count += 1) {
    try {
      outcomes[(await call("failing", {})).isError ? "tool" : "good"] += 1;
    } catch (error) {
      assert.equal(error.code, -32603);
      outcomes.rpc += 1;
    }
  }
  assert.ok(Object.values(outcomes).every((count) => count > 0), JSON.stringify(outcomes));
  await refused(call("no such tool", {}), -32602);
  assert.ok((await call("echo", { text: 7 })).isError);
  const { uri } = (await client.listResources()).resources[0];
  assert.equal((await client.readResource({ uri })).contents[0].text.length, 1024);
  assert.deepEqual((await client.listResourceTemplates()).resourceTemplates, []);
  assert.equal((await client.listPrompts()).prompts[0].name, "greeting");
  const prompt = await client.getPrompt({ name: "greeting", arguments: { name: "Ada" } });
  assert.equal(prompt.messages[0].content.text, "Say hello to Ada.");
  await assert.rejects(call("slow", {}, { timeout: 500 }));
  // In a session the mock answers a cancelled call, too.
  await new Promise((over) => setTimeout(over, 500));
}

const [url, which] = process.argv.slice(2);
for (const kind of which ? [sessions[which - 1]] : sessions) {
  console.log(kind[2], await session(kind, url, {}, calls));
}
