/**
 * A Next application that takes a lock in a route and mounts the inspector; its standalone build runs without its
 * packages.
 */
import * as programs from "../programs.js";
import type { Row } from "./table.js";

const ROUTE = `${programs.IMPORT}
export const dynamic = "force-dynamic";
export async function GET() {
  const client = LockClient.connect(process.env.REDIS_URL);
  const hold = await client.getLock("a").lock({ lease: 5000 });
  const held = hold.isHeld;
  await hold.unlock();
  await client.close();
  return new Response(held + " " + hold.isHeld);
}
`;

const LOCKS_ROUTE = `${programs.IMPORT}
import { createInspector } from "holdfast/inspector";
export const dynamic = "force-dynamic";
const client = LockClient.connect(process.env.REDIS_URL);
const inspector = createInspector(client, { path: "/locks", authorize: () => true });
export { inspector as GET, inspector as POST };
`;

/** Starts the application, calls the route until it answers, and then asks the inspector. */
const ASK = `import { spawn } from "node:child_process";
import { createServer } from "node:net";
const port = await new Promise((resolve) => {
  const server = createServer().listen(0, () => {
    const { port } = server.address();
    server.close(() => resolve(port));
  });
});
const env = { ...process.env, PORT: String(port), HOSTNAME: "127.0.0.1" };
const server = spawn(process.execPath, ["alone/server.js"], { env, stdio: ["ignore", "ignore", "inherit"] });
const ended = new Promise((resolve) => server.once("exit", resolve));
let answer;
while (answer === undefined && server.exitCode === null) {
  answer = await fetch("http://127.0.0.1:" + port + "/take").then((response) => response.text(), () => undefined);
}
console.log(answer);
const root = "http://127.0.0.1:" + port + "/locks";
const page = await fetch(root);
console.log(page.status, page.url === root + "/", (await page.text()).includes("holdfast-csrf"));
const locks = await fetch(root + "/api/locks");
console.log(locks.status, JSON.stringify(await locks.json()));
server.kill("SIGKILL");
await ended;
`;

const CONFIG = `export default {
  output: "standalone",
  outputFileTracingRoot: import.meta.dirname,
  skipTrailingSlashRedirect: true,
};
`;

const MOVE = `import { renameSync } from "node:fs";
renameSync(".next/standalone", "alone");
`;

export const next = (ioredis: Readonly<Record<string, string>>): Row[] =>
  ["turbopack", "webpack"].map((bundler) => ({
    name: `Next 16, ${bundler}: connect in a route, and the inspector`,
    packages: { ...ioredis, next: "16.4.6", react: "19.3.1", "react-dom": "19.3.1" },
    files: {
      "next.config.mjs": CONFIG,
      "app/layout.js": "export default function Layout({ children }) {\n  return children;\n}\n",
      "app/take/route.js": ROUTE,
      "app/locks/[[...path]]/route.js": LOCKS_ROUTE,
      "move.mjs": MOVE,
      "ask.mjs": ASK,
    },
    commands: [
      ["node", "node_modules/next/dist/bin/next", "build", `--${bundler}`],
      ["node", "move.mjs"],
      ["node", "ask.mjs"],
    ],
    remove: ["node_modules", "app", ".next"],
    prints: /\ntrue false\n200 true true\n200 {"locks":\[\]}\n$/,
  }));
