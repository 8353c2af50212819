// `npm run test:matrix`: the suites that say what users are promised, on other servers and Nodes than those of
// `npm test`. A line for each row; the last one is `N passed, N failed, N skipped`, of rows.
//
//   npm run test:matrix -- --only "Node 24" --only "Redis 6.2"   these rows
//   npm run test:matrix -- test/contract                          these suites
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { fetchNode, newestNode } from "./fetch-node.mjs";
import { fetchServer } from "./fetch-server.mjs";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const VITEST = fileURLToPath(new URL("../node_modules/vitest/vitest.mjs", import.meta.url));
const SUITES = ["test/contract", "test/kinds"];

/** By name: how to get the Node and the server, where they are not those of `npm test`. */
const ROWS = {
  "Redis 6.2": { server: () => fetchServer("redis-6.2") },
  "Valkey 8": { server: () => fetchServer("valkey-8") },
  "Node 22": { node: () => fetchNode(newestNode(22)) },
  "Node 24": { node: () => fetchNode(newestNode(24)) },
  "Node 26": { node: () => fetchNode(newestNode(26)) },
};

/** All that it prints, and its exit code. */
function vitest({ node, server }, suites) {
  const env = {
    ...process.env,
    ...(server && { HOLDFAST_REDIS_SERVER: server }),
  };
  // Crowds run in a project of their own, which is not part of this.
  const args = [VITEST, "run", "--project", "promises*", ...suites];
  const child = spawn(node, args, { cwd: ROOT, env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text) => {
      output += text;
    });
  return new Promise((resolve) => child.once("close", (code) => resolve({ code, output })));
}

async function runRow(name, chosen) {
  const { node, server } = ROWS[name];
  let parts;
  try {
    parts = { node: node?.() ?? process.execPath, server: server?.() };
  } catch (error) {
    console.log(`skipped ${name}: ${error.message}`);
    return "skipped";
  }
  const start = performance.now();
  const { code, output } = await vitest(parts, chosen.length > 0 ? chosen : SUITES);
  const seconds = ((performance.now() - start) / 1_000).toFixed(0);
  const [counts = "no result"] = output.match(/^\d+ passed, \d+ failed.*$/m) ?? [];
  console.log(`${code === 0 ? "ok     " : "failed "} ${name}: ${counts} (${seconds} s)`);
  if (code !== 0) console.log(output.replaceAll(/^/gm, "        "));
  return code === 0 ? "passed" : "failed";
}

const { values, positionals } = parseArgs({
  options: { only: { type: "string", multiple: true } },
  allowPositionals: true,
});
const names = values.only ?? Object.keys(ROWS);
const unknown = names.find((name) => !(name in ROWS));
if (unknown !== undefined) throw new Error(`${unknown} is none of ${Object.keys(ROWS).join(", ")}`);
const ends = [];
for (const name of names) ends.push(await runRow(name, positionals));
const count = (end) => ends.filter((other) => other === end).length;
console.log(`${count("passed")} passed, ${count("failed")} failed, ${count("skipped")} skipped`);
process.exitCode = count("failed") > 0 ? 1 : 0;
