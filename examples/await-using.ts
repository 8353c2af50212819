// `await using`: a hold that gives itself back at the end of its block, however the block ends: by its last line, by return,
// by break, or by an error. The client closes itself likewise.
//
//   node examples/await-using.ts
//
// Node 24 and later know the syntax; for earlier ones TypeScript (5.2 and later), esbuild or swc translate it. The
// library itself needs nothing for it from Node 20.5 on.
//
// What differs from `run`: calls inside the block do not re-enter (give them `{ owner: hold }`), and a loss is reported by
// the release at the end of the block: if the block itself had thrown, both errors come as one SuppressedError.
// The exit code is 1 if something was not given back.
import assert from "node:assert/strict";
import { type Hold, isLockError, LockClient } from "holdfast";
import { Redis } from "ioredis";
import { killAll } from "./children.mjs";
import { startServer } from "./server.mjs";

const { port } = await startServer();
const redis = new Redis(port);
const held = () => redis.keys("*:till");

const closed = await shop();
await assert.rejects(closed.getLock("till").lock(), (error) => isLockError(error, "CLIENT_CLOSED"));
console.log("at the end of the block all was given back, and the client closed.");
redis.disconnect();
await killAll();

async function shop(): Promise<LockClient> {
  await using client = new LockClient(redis);
  const till = (name: string) => client.getLock(`${name}:till`);

  {
    await using hold = await till("ada").lock();
    assert.deepEqual(await held(), ["ada:till"]);
    hold.assertHeld();
  }
  assert.deepEqual(await held(), [], "given back by the end of the block");

  // Several of them are given back in reverse. An error is passed on when that is done.
  const order: string[] = [];
  client.on("released", ({ lockName }) => order.push(lockName));
  const close = async () => {
    await using _ada = await till("ada").lock();
    await using _ben = await till("ben").lock();
    throw new Error("the drawer is stuck");
  };
  await assert.rejects(close(), /the drawer is stuck/);
  assert.deepEqual(await held(), [], "given back by the error");
  assert.deepEqual(order, ["ben:till", "ada:till"]);

  // tryLock gives null if the lock stays with others; `await using` takes that, and there is nothing to give back.
  const count = async () => {
    await using hold: Hold | null = await till("ada").tryLock();
    return hold !== null;
  };
  assert.equal(await count(), true);
  {
    await using _hold = await till("ada").lock();
    assert.equal(await count(), false, "it is somebody else's now");
  }

  // A hold that was lost says so at the end of the block.
  const late = async () => {
    await using _hold = await till("ada").lock();
    await till("ada").forceUnlock();
  };
  await assert.rejects(late(), (error) => isLockError(error, "LOCK_LOST"));
  console.log("by the last line, by return, by an error: each block gave back what it took");
  return client;
}
