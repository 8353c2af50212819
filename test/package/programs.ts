/** What the consumers of the package run. Each prints what the test compares. */

export const IMPORT = `import { LockClient } from "holdfast";`;
export const REQUIRE = `const { LockClient } = require("holdfast");`;

/** Takes a lock and gives it back, on the server named by the first argument; prints "true" and "false". */
export function takeAndGiveBack(load: string, connect = "LockClient.connect(process.argv[2])"): string {
  return `${load}
async function main() {
  const client = ${connect};
  const hold = await client.getLock("a").lock({ lease: 5000 });
  console.log(hold.isHeld);
  await hold.unlock();
  console.log(hold.isHeld);
  await client.close();
}
main();
`;
}

export const SAME_CLASS = `import { createRequire } from "node:module";
const imported = await import("holdfast");
const required = createRequire(import.meta.url)("holdfast");
console.log(imported.LockClient === required.LockClient);
`;

/** The error is made by one copy of the package and recognised by the other. */
export const TWO_COPIES = `import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import * as esm from "holdfast";
const require = createRequire(import.meta.url);
const cjs = require(join(dirname(require.resolve("holdfast/package.json")), "dist/index.cjs"));
const client = cjs.LockClient.connect(process.argv[2]);
await client.close();
const error = await client.getLock("a").lock().catch((error) => error);
console.log(error instanceof cjs.LockError, error instanceof esm.LockError);
console.log(esm.isLockError(error), esm.isLockError(error, "CLIENT_CLOSED"), esm.isLockError(error, "LOCK_LOST"));
`;

/** Prints that the package loaded, then why it cannot connect. */
export function connectWithoutIoredis(load: string): string {
  return `${load}
console.log(typeof LockClient);
try {
  LockClient.connect("redis://127.0.0.1:1");
} catch (error) {
  console.log(error.message);
}
`;
}

/** Compiled only. `ioredis` and `ioredis5` are the two majors. */
export const TYPED = `import { Cluster, Redis } from "ioredis";
import { Cluster as Cluster5, Redis as Redis5 } from "ioredis5";
import { isLockError, LockClient, type Hold, type Lock } from "holdfast";

export const clients: LockClient[] = [
  new LockClient(new Redis("redis://127.0.0.1:1")),
  new LockClient(new Redis({ replyMapping: "resp3" })),
  new LockClient(new Cluster([])),
  new LockClient(new Redis5("redis://127.0.0.1:1")),
  new LockClient(new Cluster5([]), { watchdogTimeout: 1000, prefix: "p" }),
  LockClient.connect("redis://127.0.0.1:1"),
  LockClient.connect({ host: "127.0.0.1" }),
];

export async function work(client: LockClient): Promise<number> {
  const lock: Lock = client.getLock("a");
  await using hold: Hold = await lock.lock({ wait: 100, lease: 5000, signal: AbortSignal.timeout(50) });
  const second: Hold | null = await lock.tryLock(500, 10_000);
  await second?.unlock();
  const aborted: boolean = hold.signal.aborted;
  return await lock.run(async (inner) => (aborted ? 0 : inner.remaining));
}

export function codeOf(error: unknown): string | undefined {
  return isLockError(error) ? error.code : undefined;
}

// @ts-expect-error: no connection
new LockClient({});
// @ts-expect-error: not an option
clients[0]?.getLock("a").lock({ timeout: 5 });
// @ts-expect-error: a name is text
clients[0]?.getLock(1);
`;

export function typedProject(module: "node16" | "nodenext"): string {
  return JSON.stringify({
    compilerOptions: {
      module,
      target: "es2022",
      lib: ["es2022", "esnext.disposable"],
      types: ["node"],
      strict: true,
      skipLibCheck: false,
      noEmit: true,
    },
    files: ["esm.mts", "cjs.cts"],
  });
}
