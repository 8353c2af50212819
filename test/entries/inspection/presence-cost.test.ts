/** The cost of presence: commands a round, and bytes, whatever the number of holds. The test prints the figures. */
import { expect, test } from "vitest";
import { LockClient } from "../../../src/index.js";
import { PATIENCE, startRedis, until } from "../../support/index.js";

/** The watchdog's time-out; a round is a third of it. */
const TIMEOUT = 3_000;
const MOST = 1_000;
const ROUNDS = 3;
/** How many calls are made at the same time. */
const TOGETHER = 1_000;

/** `HOLDFAST_PRESENCE_HOLDS=100000` for more. */
const MANY = Number(process.env.HOLDFAST_PRESENCE_HOLDS ?? 10_000);

/** Takes locks with a lease, so that nothing is renewed. */
async function take(client: LockClient, count: number): Promise<void> {
  for (let i = 0; i < count; i += TOGETHER) {
    const locks = Array.from({ length: Math.min(TOGETHER, count - i) }, (_, k) =>
      client.getLock(`stock:${i + k}`),
    );
    await Promise.all(locks.map((lock) => lock.lock({ lease: 60 * PATIENCE })));
  }
}

test.each([
  [1, "", false],
  [1_000, "", false],
  [MANY, "", false],
  [1_000, ", traced", true],
])(
  "%i holds%s: one command a round, and no more than a thousand are told",
  { timeout: 30 * PATIENCE },
  async (count, which, traceHolds) => {
    await using server = await startRedis();
    const redis = server.connect();
    const client = new LockClient(redis, { watchdogTimeout: TIMEOUT, label: "orders-7f9c", traceHolds });
    await take(client, count);
    const key = `holdfast_client:${client.id}`;
    const told = Math.min(count, MOST);
    const holds = async () => JSON.parse((await redis.hget(key, "holds")) ?? "[]") as unknown[];
    await until("all that can be are told", async () => (await holds()).length === told);
    // Each telling after the first comes one round after the one before.
    const first = client.stats().commands;
    await until("the next telling", () => client.stats().commands > first);
    const [next, began] = [client.stats().commands, performance.now()];
    await until("some rounds later", () => client.stats().commands >= next + ROUNDS);
    const rounds = (performance.now() - began) / (TIMEOUT / 3);
    const commands = client.stats().commands - next;
    expect(commands).toBeLessThanOrEqual(Math.ceil(rounds + 0.5));
    expect(await holds()).toHaveLength(told);
    const fields = await redis.hgetall(key);
    const bytes = Object.entries(fields).reduce((sum, part) => sum + Buffer.byteLength(part.join("")), 0);
    const stored = Number(await redis.call("MEMORY", "USAGE", key, "SAMPLES", "0"));
    const most = 400 + told * (traceHolds ? 400 : 120);
    expect([bytes <= most, stored <= 2 * most]).toEqual([true, true]);
    console.info(
      `presence of ${count} holds${which}: ${commands} commands in ${rounds.toFixed(1)} rounds, ${bytes} bytes told, ${stored} bytes in Redis`,
    );
    await client.close({ timeout: 0 });
  },
);
