/**
 * A process whose tasks call fenced mutexes, read-write locks and semaphores. It writes down each call before it is
 * made, and each answer when it arrives: into a file, which survives SIGKILL, by the clock that all processes of a
 * machine share.
 */
import { openSync, writeSync } from "node:fs";
import { register } from "node:module";
import { Redis } from "ioredis";
import { randomFrom } from "../../exclusion/random.mjs";
import { serve } from "../../support/worker-child.mjs";

/** Error codes after which the outcome of a call is unknown. */
const OPEN = ["UNAVAILABLE", "LOCK_LOST", "WAIT_TIMEOUT"];
const OPTIONS = { watchdogTimeout: 1_500, pollCap: 300, commandTimeout: 1_000 };
/** Milliseconds. */
const WAIT = 400;
const RETRY = 50;

let library;
let client;
let redis;
let random;
let file;
let prefix;
let isPlanted;
let calls = 0;
let owners = 0;

serve({
  async start({ port, name, seed, path, edits }) {
    isPlanted = edits !== undefined;
    if (isPlanted) register("../../exclusion/planted/mutation.mjs", import.meta.url, { data: edits });
    library = await import("holdfast");
    file = openSync(path, "a");
    prefix = name;
    random = randomFrom(seed);
    redis = new Redis({ port, retryStrategy: () => RETRY });
    redis.on("error", () => {}); // faults are expected
    client = new library.LockClient(redis, OPTIONS);
    await untilReady();
  },

  /** Resolves when all tasks have made their calls of a round. */
  async play({ names, tasks, ways }) {
    await Promise.all(Array.from({ length: tasks }, () => task(names, ways)));
  },

  async stop() {
    await client.close({ timeout: 0 });
    redis.disconnect();
  },
});

const WAYS = {
  mutex: [plainly, plainly, nesting, lapsing, looking],
  readwrite: [plainly, plainly, downgrading, upgrading, lapsing],
  semaphore: [permits],
};

async function task(names, ways) {
  for (let i = 0; i < ways; i++) {
    const name = pick(names);
    const way = pick(WAYS[name.slice(0, name.indexOf("-"))]);
    await way(subjectOf(name));
    await pause(random() * 10);
  }
}

/** Repeats ready(), because on a busy machine a call may get no answer in time. */
async function untilReady() {
  for (let isReady = false; !isReady; ) {
    isReady = await client.ready().then(
      () => true,
      (error) => {
        if (!library.isLockError(error, "UNAVAILABLE")) throw error;
        return false;
      },
    );
  }
}

// Ways

async function plainly(subject) {
  const hold = await take(subject, { wait: pick([0, WAIT, WAIT]), lease: pick([undefined, 2_000]) });
  if (!hold) return;
  await pause(random() * 15);
  await give(hold);
}

async function nesting(subject) {
  const hold = await take(subject, { wait: WAIT });
  if (!hold) return;
  const nested = await take(subject, { wait: WAIT, within: hold });
  const call = invoked(subject.name, hold.caller, { do: "count" });
  const count = await subject.lock.getHoldCount({ owner: hold.hold }).catch(tolerated);
  // The client does not ask the server about an owner that has lost its hold, so then the answer does not count.
  if (count !== undefined && hold.hold.isHeld && nested?.hold.isHeld) answered(call, { count });
  if (nested) await give(nested);
  await give(hold);
}

/** Stays now and then longer than its lease, which is not renewed. */
async function lapsing(subject) {
  const lease = 40 + Math.floor(random() * 40);
  const hold = await take(subject, { wait: WAIT, lease });
  if (!hold) return;
  await pause(random() * 2 * lease);
  await give(hold);
}

async function looking({ name, lock }) {
  const call = invoked(name, newCaller(), { do: "look" });
  const held = await lock.isLocked().catch(tolerated);
  if (held !== undefined) answered(call, { held });
}

async function downgrading({ writing, reading }) {
  const hold = await take(writing, { wait: WAIT });
  if (!hold) return;
  const read = await take(reading, { wait: WAIT, within: hold });
  await give(hold);
  if (!read) return;
  await pause(random() * 15);
  await give(read);
}

async function upgrading({ writing, reading }) {
  const hold = await take(reading, { wait: WAIT });
  if (!hold) return;
  const written = await take(writing, { wait: WAIT, within: hold });
  if (written) await give(written);
  await give(hold);
}

async function permits({ name }) {
  const semaphore = client.getSemaphore(name);
  const count = pick([1, 1, 2]);
  const caller = newCaller();
  if (random() < 0.2) {
    const look = invoked(name, caller, { do: "available" });
    const free = await semaphore.availablePermits().catch(tolerated);
    if (free !== undefined) answered(look, { permits: free });
  }
  const wait = pick([0, WAIT]);
  const call = invoked(name, caller, { do: "acquire", permits: count });
  const granted = await semaphore.tryAcquire(count, wait).catch(tolerated);
  // When a wait ends, the last try may still be on its way, so the outcome is unknown then.
  if (granted || (granted === false && wait === 0)) answered(call, { granted });
  if (!granted) return;
  await pause(random() * 15);
  const giving = invoked(name, caller, { do: "release", permits: count });
  const given = await semaphore.release(count).then(() => true, tolerated);
  if (given) answered(giving, { done: true });
}

// What the ways are made of

async function take({ name, lock, side }, { wait, lease, within }) {
  const caller = within?.caller ?? newCaller();
  const call = invoked(name, caller, { do: "acquire", side });
  try {
    const hold = await lock.tryLock(wait, lease, { owner: within?.hold });
    if (hold) {
      // In this order, so that a pause between the two makes `until` earlier.
      const at = now();
      const until = at + Math.floor(Math.max(0, hold.remaining - 1) * 1e6);
      answered(call, { granted: true, token: hold.token }, { until });
      return { name, side, caller, hold };
    }
    // A reader may be refused because a writer waits; and when a wait ends, the last try may still be on its way.
    const isHeld = wait === 0 && side === "write" && !within;
    if (isHeld) answered(call, { granted: false, because: "held" });
  } catch (error) {
    if (library.isLockError(error, "UPGRADE_REFUSED")) answered(call, { granted: false, because: "upgrade" });
    else tolerated(error);
  }
  return undefined;
}

async function give({ name, side, caller, hold }) {
  const { isHeld: held } = hold;
  const call = invoked(name, caller, { do: "release", side }, { held });
  try {
    await hold.unlock();
    answered(call, { released: true });
  } catch (error) {
    if (library.isLockError(error, "LOCK_LOST")) answered(call, { released: false, because: "lost" });
    else tolerated(error);
  }
}

function subjectOf(name) {
  if (name.startsWith("semaphore")) return { name };
  if (name.startsWith("mutex")) return { name, lock: client.getFencedLock(name), side: "write" };
  const lock = client.getReadWriteLock(name);
  const reading = { name, lock: lock.readLock(), side: "read" };
  const writing = { name, lock: lock.writeLock(), side: "write" };
  return { ...pick([reading, reading, writing]), reading, writing };
}

/** The call's outcome stays unknown. A planted mistake may break the data, too. */
function tolerated(error) {
  const codes = isPlanted ? [...OPEN, "WRONG_DATA"] : OPEN;
  if (!codes.some((code) => library.isLockError(error, code))) throw error;
  return undefined;
}

function invoked(name, caller, call, more) {
  const id = ++calls;
  write({ id, name, caller, call, ...more, at: now() });
  return id;
}

function answered(id, answer, more) {
  write({ id, answer, ...more, at: now() });
}

function write(line) {
  const plain = (_, value) => (typeof value === "bigint" ? String(value) : value);
  writeSync(file, `${JSON.stringify(line, plain)}\n`);
}

/** The time in nanoseconds. */
function now() {
  return Number(process.hrtime.bigint());
}

function newCaller() {
  return `${prefix}:${++owners}`;
}

function pick(list) {
  return list[Math.floor(random() * list.length)];
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
