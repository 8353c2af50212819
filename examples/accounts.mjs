// Money moves between accounts, by several processes at once. A transfer must have both of its accounts, and clerks name
// them in any order: with one lock after the other, "from A to B" and "from B to A" would wait for each other for ever.
// A MultiLock takes both or none.
//
//   node examples/accounts.mjs
//
// The exit code is 1 if money was made or lost, or if a clerk did not get to the end.
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { LockClient, MultiLock } from "holdfast";
import { Redis } from "ioredis";
import { killAll, own } from "./children.mjs";
import { startServer } from "./server.mjs";

const ACCOUNTS = ["ada", "ben", "cem", "dot"];
const OPENING = 1_000;
const CLERKS = 4;
const TRANSFERS = 100;

const anyOf = (list) => list[Math.floor(Math.random() * list.length)];

/** One clerk, in a process of its own. */
async function clerk(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const account = (name) => client.getLock(`account:${name}`);

  async function transfer(from, to, amount) {
    await new MultiLock(account(from), account(to)).run(async (hold) => {
      const [source, target] = (await redis.mget(`balance:${from}`, `balance:${to}`)).map(Number);
      if (source < amount) return;
      hold.assertHeld();
      // Read, then written: without the locks, transfers of the others between the two would be lost.
      await redis.mset(`balance:${from}`, source - amount, `balance:${to}`, target + amount);
    });
  }

  for (let i = 0; i < TRANSFERS; i++) {
    const from = anyOf(ACCOUNTS);
    const to = anyOf(ACCOUNTS.filter((name) => name !== from));
    await transfer(from, to, 1 + Math.floor(Math.random() * 100));
  }
  await client.close();
  redis.disconnect();
}

/** All clerks, and the audit after them. */
async function office() {
  const directory = mkdtempSync(join(tmpdir(), "holdfast-accounts-"));
  process.on("exit", () => rmSync(directory, { recursive: true, force: true }));
  const { port } = await startServer(directory);
  const redis = new Redis(port);
  await redis.mset(...ACCOUNTS.flatMap((name) => [`balance:${name}`, OPENING]));

  const clerks = Array.from({ length: CLERKS }, () =>
    own(fork(fileURLToPath(import.meta.url), [String(port)])),
  );
  const ends = await Promise.all(clerks.map((child) => once(child, "exit")));
  assert.deepEqual(
    ends.map(([code]) => code),
    Array.from({ length: CLERKS }, () => 0),
    "every clerk got to the end",
  );

  const balances = (await redis.mget(...ACCOUNTS.map((name) => `balance:${name}`))).map(Number);
  console.log(
    `${CLERKS} clerks, ${CLERKS * TRANSFERS} transfers:`,
    Object.fromEntries(ACCOUNTS.map((name, i) => [name, balances[i]])),
  );
  const sum = balances.reduce((total, balance) => total + balance, 0);
  assert.equal(sum, ACCOUNTS.length * OPENING, "no money was made or lost");
  assert.deepEqual(await redis.keys("account:*"), [], "nothing is locked any more");
  console.log("no money was made or lost, and nobody waited for ever.");
  redis.disconnect();
  await killAll();
}

const [port] = process.argv.slice(2);
await (port ? clerk(Number(port)) : office());
