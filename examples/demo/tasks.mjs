// What a clerk can be asked to do. This is the part to read: everything that holdfast does for the demo is here.
import { setTimeout as sleep } from "node:timers/promises";
import { now } from "./clock.mjs";

/** Between two payments a clerk turns the page, so that others get their chance too. */
const turnThePage = () => sleep(2);

/** The server is there, and new enough. */
export async function arrive({ client }) {
  await client.ready();
}

/** Nobody is asked. Two clerks read the same page, both change it, and the later write wins: an update is lost. */
export async function bookWithoutLock({ book, payments, note }) {
  for (const payment of payments) {
    note("no-lock");
    await book.add(payment);
    note("idle");
    await turnThePage();
  }
}

/** `run` waits for the lock, calls the function, and gives the lock back, whatever happens inside. */
export async function bookWithRun({ lock, book, payments, pause }) {
  let heldToTheEnd = true;
  for (const payment of payments) {
    await lock.run(async (hold) => {
      await book.add(payment, pause);
      heldToTheEnd &&= hold.isHeld;
    });
    await turnThePage();
  }
  return { heldToTheEnd };
}

/** `bookOne` takes the lock for itself. Called by one who holds it already it re-enters, and does not wait for itself. */
export async function bookNested({ lock, book, payments, pause }) {
  const holdCounts = [];
  async function bookOne(payment) {
    await lock.run(async () => {
      holdCounts.push(await lock.getHoldCount());
      await book.add(payment, pause);
    });
  }
  const [first, ...others] = payments;
  return lock.run(async () => {
    await book.add(first, pause);
    for (const payment of others) await bookOne(payment);
    holdCounts.push(await lock.getHoldCount());
    await sleep(pause);
    return { holdCounts, leftAt: now() };
  });
}

/** The idiom of Java's Redisson, unchanged. Inside a scope `lock.unlock()` knows whose hold is meant. */
export async function bookInScope({ client, lock, book, payments: [payment], pause }) {
  let booked = false;
  await client.scope(async () => {
    if (await lock.tryLock(500, 10_000))
      try {
        await book.add(payment, pause);
        booked = true;
      } finally {
        await lock.unlock();
      }
  });
  return { booked };
}

/** Outside a scope it does not know, and says what to do instead. */
export async function unlockOutsideScope({ lock }) {
  const hold = await lock.lock();
  try {
    await lock.unlock();
    return { code: "none", message: "lock.unlock() guessed whose hold was meant" };
  } catch ({ code, message }) {
    return { code, message };
  } finally {
    await hold.unlock();
  }
}

/** Waits half a second at most, then does without. */
export async function giveUp({ lock, note }) {
  const from = now();
  const hold = await lock.tryLock(500, 10_000);
  if (hold === null) note("gave-up");
  else await hold.unlock();
  return { gaveUp: hold === null, from, to: now() };
}

/** Goes on at the speed of people until its process ends: mostly at the account book, else at the archive in the order of arrival. */
export async function workOn({ client, lock }) {
  const archive = client.getFairLock("archive");
  for (;;) {
    const place = Math.random() < 0.6 ? lock : archive;
    await place.run(() => sleep(400 + 2_000 * Math.random()));
    await sleep(1_500 * Math.random());
  }
}

/** Going home: ends the client's connections and timers. */
export async function leave({ client }) {
  await client.close();
}
