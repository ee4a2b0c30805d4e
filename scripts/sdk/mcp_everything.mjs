// The reference server of MCP, server-everything, over HTTP.
//
// Usage: mcp_everything.mjs LOG. Prints its port once it listens, and ends with its standard input.

import { spawn } from "node:child_process";
import { openSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer, connect } from "node:net";
import { dirname, join } from "node:path";

const listener = createServer();
await new Promise((done) => listener.listen(0, "127.0.0.1", done));
const { port } = listener.address();
await new Promise((done) => listener.close(done));

const require = createRequire(import.meta.url);
const main = join(dirname(require.resolve("@modelcontextprotocol/server-everything/package.json")), "dist/index.js");
const log = openSync(process.argv[2], "a");
const server = spawn(process.execPath, [main, "streamableHttp"], {
  env: { ...process.env, PORT: String(port) },
  stdio: ["ignore", log, log],
});
const listens = () =>
  new Promise((done) => {
    const socket = connect(port, "127.0.0.1", () => done(socket.end() && true));
    socket.on("error", () => done(false));
  });
while (server.exitCode === null && !(await listens())) await new Promise((done) => setTimeout(done, 100));
console.log(port);
process.stdin.resume();
process.stdin.on("end", () => server.kill());
server.on("exit", () => process.exit(0));
