// The official TypeScript SDKs of OpenAI and Anthropic as clients of the gateway: what a client gets through the gateway,
// in the same dialect and translated, is what it gets from the provider itself.
//
// Usage: gateway_llm.mjs DIRECT,SAME,CROSSED (URLs). Prints the number of conversations, and of the answers compared.

import assert from "node:assert/strict";

import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const [direct, ...gateways] = process.argv[2].split(",");
const conversations = await (await fetch(`${direct}/conversations`)).json();

function openaiRequest({ system, turns, tools }) {
  const messages = system ? [{ role: "system", content: system }] : [];
  for (const turn of turns) {
    if (turn.kind === "calls") {
      const calls = turn.calls.map(([id, name, values]) => {
        return { id, type: "function", function: { name, arguments: JSON.stringify(values) } };
      });
      messages.push({ role: "assistant", content: turn.text, tool_calls: calls });
      for (const [id] of turn.calls) messages.push({ role: "tool", tool_call_id: id, content: turn.result });
    } else if (turn.kind === "image") {
      const parts = [{ type: "text", text: turn.text }, { type: "image_url", image_url: { url: turn.url } }];
      messages.push({ role: "user", content: parts });
    } else {
      messages.push({ role: turn.kind, content: turn.text });
    }
  }
  const functions = tools.map(([name, parameters]) => {
    return { type: "function", function: { name, description: "d", parameters } };
  });
  const request = { model: "m", messages, max_completion_tokens: 50, stop: ["END"], temperature: 0.5 };
  return functions.length ? { ...request, tools: functions } : request;
}

function source(url) {
  if (!url.startsWith("data:")) return { type: "url", url };
  const [kind, data] = url.slice("data:".length).split(";base64,");
  return { type: "base64", media_type: kind, data };
}

function anthropicRequest({ system, turns, tools }) {
  const messages = [];
  for (const turn of turns) {
    if (turn.kind === "calls") {
      const text = turn.text ? [{ type: "text", text: turn.text }] : [];
      const calls = turn.calls.map(([id, name, input]) => ({ type: "tool_use", id, name, input }));
      const results = turn.calls.map(([id]) => ({ type: "tool_result", tool_use_id: id, content: turn.result }));
      messages.push({ role: "assistant", content: [...text, ...calls] }, { role: "user", content: results });
    } else if (turn.kind === "image") {
      const parts = [{ type: "text", text: turn.text }, { type: "image", source: source(turn.url) }];
      messages.push({ role: "user", content: parts });
    } else if (turn.text.trim()) {
      messages.push({ role: turn.kind, content: turn.text });
    }
  }
  const described = tools.map(([name, schema]) => ({ name, description: "d", input_schema: schema }));
  const request = { model: "m", messages, max_tokens: 50, stop_sequences: ["END"], temperature: 0.5 };
  if (system) request.system = system;
  return described.length ? { ...request, tools: described } : request;
}

async function openaiAnswers(url, conversation) {
  const client = new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0 });
  const request = openaiRequest(conversation);
  const whole = await client.chat.completions.create(request);
  const streamed = client.chat.completions.stream({ ...request, stream_options: { include_usage: true } });
  return [whole, await streamed.finalChatCompletion()].map(({ choices: [{ message, finish_reason }], usage }) => {
    const calls = (message.tool_calls ?? []).map(({ id, function: { name, arguments: values } }) => {
      return [id, name, JSON.parse(values)];
    });
    return { text: message.content, calls, end: finish_reason, tokens: [usage.prompt_tokens, usage.completion_tokens] };
  });
}

async function anthropicAnswers(url, conversation) {
  const client = new Anthropic({ apiKey: "k", baseURL: url, maxRetries: 0 });
  const request = anthropicRequest(conversation);
  const whole = await client.messages.create(request);
  const streamed = await client.messages.stream(request).finalMessage();
  return [whole, streamed].map(({ content, stop_reason, usage }) => {
    const text = content.filter(({ type }) => type === "text").map((block) => block.text).join("");
    const calls = content.filter(({ type }) => type === "tool_use").map(({ id, name, input }) => [id, name, input]);
    return { text, calls, end: stop_reason, tokens: [usage.input_tokens, usage.output_tokens] };
  });
}

let compared = 0;
for (const conversation of conversations) {
  const digests = new Set();
  for (const answers of [openaiAnswers, anthropicAnswers]) {
    const expected = await answers(direct, conversation);
    for (const answer of expected) {
      digests.add(answer.text.slice(0, 16));
      assert.equal(answer.calls.length, conversation.calls);
    }
    for (const gateway of gateways) {
      assert.deepEqual(await answers(gateway, conversation), expected, JSON.stringify(conversation));
      compared += expected.length;
    }
  }
  assert.equal(digests.size, 1, "both SDKs ask the same");
}
console.log(conversations.length, compared);
