// Shared parts of the servers made with the TypeScript SDKs: a port of their own, a log, and an end.

import { openSync, writeSync } from "node:fs";
import { createServer } from "node:http";

// Writes one line for each fact to a file; does nothing without a path.
export function openLog(path) {
  const file = path && openSync(path, "a");
  return (...words) => file && writeSync(file, `${words.join(" ")}\n`);
}

// The whole body of a request.
export async function read(request) {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

// The log line of a request: the method of JSON-RPC and the tool that it calls, or the method of HTTP and the path.
export function words(request, body) {
  if (!body) return [request.method, request.url];
  const message = JSON.parse(body);
  return message.method === "tools/call" ? [message.method, message.params.name] : [message.method];
}

// A listening server, and its port.
export async function listen(handler) {
  const server = createServer(handler);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return [server, server.address().port];
}

// Prints the port; the process ends with its standard input.
export function announce(port) {
  console.log(port);
  process.stdin.on("end", () => process.exit(0)).resume();
}
