/**
 * The ways a process can end while it holds a lock and waits for another: its keys expire, or close() gives them back.
 */
import { describe, expect, test } from "vitest";
import { LockClient } from "../../src/index.js";
import { forFile, PATIENCE, startRedis, startWorker, UNHURRIED, type Worker } from "../support/index.js";
import { bundledWorker } from "./build-worker.js";
import { freshName } from "./harness.js";

const bundle = bundledWorker("./process-ends-worker.ts");
const server = await forFile(startRedis());

interface Way {
  readonly way: string;
  /** Whether the held lock is free at once, and not only when its lease is over. */
  readonly givesBack: boolean;
  end(worker: Worker): Promise<unknown>;
}

/** A request to a worker that ends before it can answer. */
const lastWord = (worker: Worker, word: string) => worker.request(word).catch(() => worker.exited);

const WAYS: readonly Way[] = [
  {
    way: "SIGTERM whose handler calls close()",
    givesBack: true,
    end: async (worker) => {
      await worker.request("closeOnTerm");
      expect(await worker.kill("SIGTERM")).toEqual({ code: 0, signal: null });
    },
  },
  { way: "SIGTERM without a handler", givesBack: false, end: (worker) => worker.kill("SIGTERM") },
  { way: "process.exit()", givesBack: false, end: (worker) => lastWord(worker, "exit") },
  { way: "an uncaught exception", givesBack: false, end: (worker) => lastWord(worker, "crash") },
  { way: "SIGKILL", givesBack: false, end: (worker) => worker.kill() },
];

describe.concurrent.each(WAYS)("a process that ends by $way [F43]", ({ givesBack, end }) => {
  test("leaves its lock to others, and its place in a queue", async () => {
    await using client = new LockClient(server.connect(), { ...UNHURRIED, pollCap: 500 });
    const [held, waited] = [freshName(), freshName()];
    const blocking = await client.getFairLock(waited).lock();
    await using worker = await startWorker(bundle());
    await worker.request("begin", { port: server.port, held, waited });
    expect(await server.call("LLEN", `redisson_lock_queue:{${waited}}`)).toBe(1);
    await end(worker);
    await worker.exited;
    if (givesBack) {
      expect(await server.call("EXISTS", held)).toBe(0);
      expect(await server.call("LLEN", `redisson_lock_queue:{${waited}}`)).toBe(0);
    }
    await (await client.getLock(held).lock({ wait: PATIENCE })).unlock();
    const behind = client.getFairLock(waited).lock({ wait: PATIENCE });
    await blocking.unlock();
    await (await behind).unlock();
  });
});
