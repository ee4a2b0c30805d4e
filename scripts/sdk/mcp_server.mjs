// A tool server made with the official TypeScript SDKs, at /mcp: with the packages 2.x in both eras, with the package
// of the line 1.x in the one with sessions. It has what the profile `mcp-tools` asks for.
//
// Usage: mcp_server.mjs json|events|json-alone|events-alone 2|1 [LOG]. Answers are single documents, or streams of
// events; with `alone` no session is kept. Prints its port, serves until its standard input ends, and writes a line to
// LOG for each request and for each tool that ran.

import { randomUUID } from "node:crypto";
import { z } from "zod";

import { announce, listen, openLog, read, words } from "./serving.mjs";

const [mode, line, path] = process.argv.slice(2);
const [form, alone] = mode.split("-");
const log = openLog(path);
const sdk = line === "1" ? await older() : await newer();

// Names of the parts in version 1.x.
async function older() {
  const { McpServer } = await import("@modelcontextprotocol/sdk/server/mcp.js");
  const { StreamableHTTPServerTransport } = await import("@modelcontextprotocol/sdk/server/streamableHttp.js");
  const report = async (progress, extra) => {
    const progressToken = extra._meta?.progressToken;
    const params = { progressToken, progress, total: 3 };
    if (progressToken !== undefined) await extra.sendNotification({ method: "notifications/progress", params });
  };
  return { McpServer, Transport: StreamableHTTPServerTransport, report };
}

// Names of the parts in packages 2.x; `modern` serves the version without sessions.
async function newer() {
  const { McpServer, createMcpHandler, isLegacyRequest } = await import("@modelcontextprotocol/server");
  const { NodeStreamableHTTPServerTransport, toNodeHandler, toWebRequest } = await import("@modelcontextprotocol/node");
  const report = async (progress, context) => {
    const progressToken = context.mcpReq._meta?.progressToken;
    const params = { progressToken, progress, total: 3 };
    if (progressToken !== undefined) await context.mcpReq.notify({ method: "notifications/progress", params });
  };
  const responseMode = form === "json" ? "auto" : "sse";
  const modern = toNodeHandler(createMcpHandler(() => tools(), { legacy: "reject", responseMode }));
  const isModern = async (request, body) => !(await isLegacyRequest(await toWebRequest(request, body), body));
  return { McpServer, Transport: NodeStreamableHTTPServerTransport, report, modern, isModern };
}

function text(text, isError = false) {
  return { content: [{ type: "text", text }], isError };
}

// A server with the tools, a resource and a prompt.
function tools() {
  const server = new sdk.McpServer({ name: "official", version: "1" });
  const add = (name, description, fields, run) =>
    server.registerTool(name, { description, inputSchema: z.object(fields) }, (input, context) => {
      log("tool", name);
      return run(input, context);
    });
  add("echo", "Gives its text back.", { text: z.string() }, async (input) => text(input.text));
  add("total", "The sum of two numbers.", { a: z.number(), b: z.number() }, async ({ a, b }) => ({
    ...text(String(a + b)),
    structuredContent: { result: a + b },
  }));
  add("slow", "Takes its time and reports progress.", {}, async (_, context) => {
    for (let done = 0; done < 3; done += 1) {
      await sdk.report(done, context);
      await new Promise((over) => setTimeout(over, 50));
    }
    return text("done");
  });
  add("fail", "Always fails.", {}, async () => {
    throw new Error("it fails");
  });
  server.registerResource("notes", "mock://notes", { description: "Some notes." }, async (uri) => {
    log("resource", uri.href);
    return { contents: [{ uri: uri.href, mimeType: "text/plain", text: "a note\n".repeat(100) }] };
  });
  const argsSchema = sdk.modern ? z.object({ name: z.string() }) : { name: z.string() };
  server.registerPrompt("greeting", { description: "Greets somebody.", argsSchema }, ({ name }) => {
    log("prompt", "greeting");
    return { messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }] };
  });
  return server;
}

const sessions = new Map();

// The transport of a new session, or of one request.
async function open() {
  const transport = new sdk.Transport({
    sessionIdGenerator: alone ? undefined : randomUUID,
    enableJsonResponse: form === "json",
    onsessioninitialized: (id) => sessions.set(id, transport),
    onsessionclosed: (id) => sessions.delete(id),
  });
  await tools().connect(transport);
  return transport;
}

const [, port] = await listen(async (request, response) => {
  const raw = await read(request);
  log("request", ...words(request, raw));
  const body = raw ? JSON.parse(raw) : undefined;
  if (sdk.modern && (await sdk.isModern(request, body))) return sdk.modern(request, response, body);
  const known = request.headers["mcp-session-id"];
  const transport = known ? sessions.get(known) : await open();
  if (!transport) return response.writeHead(404).end();
  return transport.handleRequest(request, response, body);
});
announce(port);
