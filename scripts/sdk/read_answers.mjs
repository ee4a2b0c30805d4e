// The official TypeScript SDKs of OpenAI, Anthropic and Mistral read the answers in a folder.
//
// Usage: read_answers.mjs FOLDER LOG. Writes a line of JSON for each answer and SDK to LOG: what it read, or its error.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

import Anthropic from "@anthropic-ai/sdk";
import { Mistral } from "@mistralai/mistralai";
import OpenAI from "openai";

const [folder, log] = process.argv.slice(2);
const messages = [{ role: "user", content: "Which tool, and why?" }];

// Answers `/FILE/...` with the bytes of that file.
const server = createServer((request, response) => {
  request.resume().on("end", () => {
    const file = request.url.split("/")[1];
    const type = extname(file) === ".sse" ? "text/event-stream" : "application/json";
    const body = readFileSync(join(folder, file));
    response.writeHead(200, { "content-type": type, "content-length": body.length }).end(body);
  });
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const { port } = server.address();

// The text of a content: a text, or the parts of a list that are no thoughts.
function textOf(content) {
  if (!Array.isArray(content)) return typeof content === "string" ? content : "";
  return content.map((part) => ((part.type ?? "text") === "text" ? (part.text ?? "") : "")).join("");
}

// A count, which the SDK of OpenAI passes on as it came.
function count(value) {
  return value === null || value === undefined ? null : Number(value);
}

// Adds up the choices of a chat, of which `pick` gives message or delta; `names` are the SDK's.
async function readChat(parts, pick, names) {
  const read = { text: "", tools: [], finish: null, usage: null };
  const tools = new Map();
  for await (const part of parts) {
    if (part.error) throw new Error(`error: ${JSON.stringify(part.error)}`);
    if (part.usage) read.usage = [names.input, names.output].map((name) => count(part.usage[name]));
    for (const choice of part.choices ?? []) {
      if (choice.index !== 0) continue;
      read.finish ||= choice[names.finish] ?? null;
      const said = pick(choice);
      if (!said) continue;
      read.text += textOf(said.content) + (said.refusal ?? "");
      for (const [place, call] of (said[names.calls] ?? []).entries()) {
        const index = call.index || place;
        const known = tools.get(index) ?? ["", ""];
        tools.set(index, known);
        known[0] ||= call.function.name ?? "";
        const values = call.function.arguments;
        known[1] += typeof values === "string" ? values : values ? JSON.stringify(values) : "";
      }
    }
  }
  read.tools = [...tools.values()].map((call) => call.join(""));
  return read;
}

async function openaiChat(url, stream) {
  const client = new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0 });
  const answer = await client.chat.completions.create({ model: "m", messages, stream });
  const names = { input: "prompt_tokens", output: "completion_tokens", finish: "finish_reason", calls: "tool_calls" };
  return readChat(stream ? answer : [answer], (choice) => (stream ? choice.delta : choice.message), names);
}

async function mistralChat(url, stream) {
  const client = new Mistral({ apiKey: "k", serverURL: url });
  const request = { model: "m", messages };
  const names = { input: "promptTokens", output: "completionTokens", finish: "finishReason", calls: "toolCalls" };
  if (!stream) return readChat([await client.chat.complete(request)], (choice) => choice.message, names);
  const events = await client.chat.stream(request);
  const data = (async function* () {
    for await (const event of events) yield event.data;
  })();
  return readChat(data, (choice) => choice.delta, names);
}

async function openaiCompletions(url, stream) {
  const client = new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0 });
  const answer = await client.completions.create({ model: "m", prompt: "x", stream });
  const read = { text: "", tools: [], finish: null, usage: null };
  for await (const part of stream ? answer : [answer]) {
    if (part.usage) read.usage = [part.usage.prompt_tokens, part.usage.completion_tokens];
    for (const choice of part.choices) {
      read.text += choice.text ?? "";
      read.finish ||= choice.finish_reason;
    }
  }
  return read;
}

async function openaiResponses(url, stream) {
  const client = new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0 });
  let answer = await client.responses.create({ model: "m", input: "x", stream });
  let text = answer.output_text;
  if (stream) {
    const events = answer;
    text = "";
    for await (const event of events) {
      if (event.type === "response.output_text.delta") text += event.delta;
      if (/^response\.(completed|incomplete|failed)$/.test(event.type)) answer = event.response;
    }
  }
  if (answer.error) throw new Error(answer.error.message);
  const calls = (answer.output ?? []).filter((item) => item.type === "function_call");
  return {
    text,
    tools: calls.map((item) => item.name + item.arguments),
    finish: answer.incomplete_details?.reason ?? answer.status ?? null,
    usage: answer.usage ? [answer.usage.input_tokens, answer.usage.output_tokens] : null,
  };
}

async function anthropicMessages(url, stream) {
  const client = new Anthropic({ apiKey: "k", baseURL: url, maxRetries: 0 });
  const request = { model: "m", messages, max_tokens: 20 };
  const answer = stream ? client.messages.stream(request).finalMessage() : client.messages.create(request);
  const { content, stop_reason: finish, usage } = await answer;
  const of = (type) => content.filter((block) => block.type === type);
  return {
    text: of("text").map((block) => block.text).join(""),
    tools: of("tool_use").map((block) => block.name + JSON.stringify(block.input)),
    finish: finish ?? null,
    // Tokens read from a cache, or written to one, are counted separately from the rest of the input.
    usage: usage ? [usage.input_tokens + cached(usage), usage.output_tokens] : null,
  };
}

function cached(usage) {
  return (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0);
}

// The SDKs that speak the dialect of an answer.
function readers(name) {
  if (name.startsWith("a_") || name.includes("-anthropic")) return { anthropic: anthropicMessages };
  if (name.startsWith("t_") || name.includes("-completions")) return { "openai-completions": openaiCompletions };
  if (name.startsWith("resp") || name.includes("-responses")) return { "openai-responses": openaiResponses };
  return { openai: openaiChat, mistral: mistralChat };
}

const lines = [];
for (const file of readdirSync(folder).sort()) {
  if (!/^[^.]+\.(sse|json)$/.test(file)) continue;
  for (const [sdk, reader] of Object.entries(readers(file))) {
    const line = { file, sdk: `${sdk}-js` };
    try {
      const read = await reader(`http://127.0.0.1:${port}/${file}`, extname(file) === ".sse");
      const isText = read.finish === null || read.finish === undefined || typeof read.finish === "string";
      if (!isText) throw new TypeError("the finish reason is no text: the SDK passed it on unread");
      Object.assign(line, read);
    } catch (error) {
      line.error = `${error.constructor.name}: ${error.message}`.slice(0, 200);
    }
    lines.push(JSON.stringify(line));
  }
}
writeFileSync(log, lines.map((line) => `${line}\n`).join(""));
server.close();
console.log("done");
process.exit(0);
