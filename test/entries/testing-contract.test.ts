/** The core of the contract, for every kind of lock, on the server in memory; its clock follows the machine's here. */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll } from "vitest";
import { INTERNALS } from "../../src/client-options.js";
import { Link } from "../../src/entries/testing/link.js";
import { MemoryConnection } from "../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../src/entries/testing/memory-server.js";
import type { LockClientOptions, RedisConnection } from "../../src/index.js";
import { coreOfTheContract } from "../topology/core.js";

const memory = new MemoryServer();
let isOver = false;

async function follow(): Promise<void> {
  for (let last = performance.now(); !isOver; ) {
    const now = performance.now();
    await memory.advance(now - last);
    last = now;
    await sleep(1);
  }
}
const following = follow();
afterAll(() => {
  isOver = true;
  return following;
});

coreOfTheContract("in memory", {
  connect: () => new MemoryConnection(new Link(memory), {}, true) as unknown as RedisConnection,
  options: { [INTERNALS]: { clock: memory.clock } } as LockClientOptions,
});
