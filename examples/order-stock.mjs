// Order stock: three shops, each a process, sell from one stock. Whoever wants to sell reads how much is left, has the
// customer pay, and writes what is left then. Without a lock two of them read the same number and sell the same piece.
//
//   node examples/order-stock.mjs
//
// (If there were nothing between the reading and the writing, Redis' own DECR would do, without any lock.)
// The exit code is 1 if a piece was sold twice, or one that is not there.
import assert from "node:assert/strict";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { LockClient } from "holdfast";
import { Redis } from "ioredis";
import { endOf, killAll, run } from "./children.mjs";
import { startServer } from "./server.mjs";

const STOCK = 60;
const SHOPS = 3;
const CUSTOMERS = 30; // of each shop: more than there is to sell

const pay = () => sleep(1);

/** One shop, in a process of its own. Its customers all come at once. */
async function shop(port) {
  const redis = new Redis(port);
  const client = new LockClient(redis);
  const lock = client.getLock("stock:42");

  const sell = () =>
    lock.run(async (hold) => {
      const left = Number(await redis.get("left:42"));
      if (left === 0) return false;
      await pay();
      // The customer took so long that the lock is gone? Then this throws, and nothing is written.
      hold.assertHeld();
      await redis
        .multi()
        .set("left:42", left - 1)
        .rpush("sold:42", left)
        .exec();
      return true;
    });

  process.send("ready");
  await once(process, "message");
  const sales = await Promise.all(Array.from({ length: CUSTOMERS }, sell));
  process.send(sales.filter((sold) => sold).length);
  await client.close();
  redis.disconnect();
}

/** The shops, and the stock-taking after them. */
async function market() {
  const { port } = await startServer();
  const redis = new Redis(port);
  await redis.set("left:42", STOCK);

  const shops = Array.from({ length: SHOPS }, () => run(import.meta.url, port));
  const ends = Promise.all(shops.map(endOf));
  // All open together: one that had sold its pieces before the others are there would meet nobody.
  await Promise.all(shops.map((shop) => once(shop, "message")));
  for (const shop of shops) shop.send("open");
  const sales = await ends;
  console.log(`${SHOPS} shops had ${SHOPS * CUSTOMERS} customers and sold ${sales.join(" + ")} pieces`);

  const sold = (await redis.lrange("sold:42", 0, -1)).map(Number);
  assert.equal(new Set(sold).size, sold.length, "a piece was sold twice");
  assert.ok(Math.min(...sold) > 0, "a piece was sold that is not there");
  assert.equal(sold.length, STOCK, "all that was there is sold");
  assert.equal(await redis.get("left:42"), "0");
  assert.equal(await redis.exists("stock:42"), 0, "nothing is locked any more");
  console.log(`${STOCK} pieces were there, ${sold.length} were sold, none of them twice.`);
  redis.disconnect();
  await killAll();
}

const [port] = process.argv.slice(2);
await (port ? shop(Number(port)) : market());
