/**
 * The ways in which a task of the workload takes a lock. Each way gets a context (that of the process) and a subject
 * (the lock, or one side of it, and what is known of it).
 */
import { isLockError } from "holdfast";
import { now } from "./journal.mjs";

export function pick(random, list) {
  return list[Math.floor(random() * list.length)];
}

async function plainly(context, subject) {
  const askedAt = now();
  const hold = await subject.lock.lock();
  await inside(context, subject, hold, askedAt, undefined);
  await hold.unlock();
}

/** Half of all calls have a lease of their own; the others leave it to the watchdog. */
function leaseOf({ config, random }) {
  const [least, most] = config.lease;
  return random() < 0.5 ? undefined : Math.floor(least + random() * (most - least));
}

async function leased(context, subject) {
  const askedAt = now();
  const lease = leaseOf(context);
  const hold = await subject.lock.lock({ lease });
  await insideUntilUnlock(context, subject, hold, askedAt, lease);
}

async function tried(context, subject) {
  const askedAt = now();
  const lease = leaseOf(context);
  const hold = await subject.lock.tryLock(Math.floor(context.random() * 60), lease);
  if (!hold) return context.count("refused");
  await insideUntilUnlock(context, subject, hold, askedAt, lease);
}

/** Redisson's idiom, re-entered once. */
async function triedInScope(context, subject) {
  const { lock } = subject;
  await context.client.scope(async () => {
    const askedAt = now();
    const lease = leaseOf(context);
    const hold = await lock.tryLock(100, lease);
    if (!hold) return context.count("refused");
    try {
      if (await lock.tryLock()) {
        try {
          context.count("nested");
          await inside(context, subject, hold, askedAt, lease);
        } finally {
          await lock.unlock();
        }
      }
    } finally {
      await lock.unlock();
    }
  });
}

async function ran(context, subject) {
  const askedAt = now();
  const lease = leaseOf(context);
  await subject.lock.run((hold) => inside(context, subject, hold, askedAt, lease), { lease });
}

/** Three sibling runs inside one run take turns, and each is a stay of its own; readers share. */
async function ranNested(context, subject) {
  const { lock } = subject;
  const lease = leaseOf(context);
  const askedAt = now();
  await lock.run(
    (outer) =>
      Promise.all(
        [1, 2, 3].map(() =>
          lock.run(() => {
            context.count("nested");
            return inside(context, subject, outer, askedAt, lease);
          }),
        ),
      ),
    { lease },
  );
}

/** The signal may fire before, during or after the grant. */
async function aborted(context, subject) {
  const askedAt = now();
  const signal = AbortSignal.timeout(Math.floor(context.random() * 30));
  const hold = await subject.lock.lock({ signal });
  await insideUntilUnlock(context, subject, hold, askedAt, undefined);
}

async function limited(context, subject) {
  const askedAt = now();
  const lease = leaseOf(context);
  const options = { lease, wait: 20 };
  await subject.lock.run((hold) => inside(context, subject, hold, askedAt, lease), options);
}

/** The hold is extended after the grant. */
async function extended(context, subject) {
  const [least, most] = context.config.lease;
  const askedAt = now();
  const hold = await subject.lock.lock({ lease: least });
  try {
    await hold.extend(most);
    await inside(context, subject, hold, askedAt, most);
  } finally {
    await hold.unlock();
  }
}

const SHORT = [30, 130];

/** Stays often longer than the lease, which is not renewed: what others do after its end does not matter. */
async function outlasted(context, subject) {
  const { config, count, journal, random } = context;
  const [least, most] = config.short ?? SHORT;
  const askedAt = now();
  const lease = Math.floor(least + random() * (most - least));
  const hold = await subject.lock.lock({ lease });
  const section = await enter(context, subject, hold, askedAt, lease);
  await pause(random() * 1.5 * lease);
  await leaveAll(journal, section, hold, false);
  count("sections");
  await hold.unlock();
}

for (const way of [tried, triedInScope, limited]) way.isShort = true;

/** The ways for any lock, and either side of a read-write lock; a way that is listed more often is done more often. */
export const WAYS = {
  calm: new Array(9).fill(plainly),
  wild: [plainly, leased, tried, triedInScope, ran, ranNested, aborted, limited, extended, outlasted],
};

/** The purpose of both sides of a read-write lock: a writer goes on as a reader, with no gap for another writer. */
async function downgraded(context, subject) {
  const { client, count } = context;
  const { writing, reading } = sidesOf(subject);
  await client.scope(async () => {
    const askedAt = now();
    const lease = leaseOf(context);
    const hold = await writing.lock.lock();
    let kept = hold;
    try {
      await inside(context, writing, hold, askedAt, undefined);
      kept = await reading.lock.lock({ lease });
      const section = await enter(context, reading, kept, askedAt, lease);
      try {
        await hold.unlock();
        count("downgraded");
      } finally {
        await leave(context, reading, kept, section);
      }
    } finally {
      await kept.unlock();
    }
  });
}

/** The writer reads for a while with a short lease, which must not shorten its write hold. */
async function readingInside(context, subject) {
  const { client, config, count } = context;
  const { writing, reading } = sidesOf(subject);
  await client.scope(async () => {
    const askedAt = now();
    const hold = await writing.lock.lock({ lease: config.lease[1] });
    try {
      const nested = await reading.lock.lock({ lease: Math.ceil(config.lease[0] / 4) });
      count("nested");
      await nested.unlock();
      await inside(context, writing, hold, askedAt, config.lease[1]);
    } finally {
      await hold.unlock();
    }
  });
}

/** A reader must not become a writer, whether it reads alone or not. */
async function upgrading(context, subject) {
  const { client, count } = context;
  const { writing, reading } = sidesOf(subject);
  await client.scope(async () => {
    const lease = leaseOf(context);
    const hold = await reading.lock.lock({ lease });
    try {
      const written = await writing.lock.lock({ wait: 1_000 }).catch((error) => {
        // If the process stood still too long, its read hold is over, and this is no upgrade.
        if (isLockError(error, "UPGRADE_REFUSED")) count("upgrades refused");
        else if (hold.isHeld) throw error;
      });
      if (!written) return;
      if (hold.isHeld) throw new Error("an owner that only reads came to write");
      await written.unlock();
    } finally {
      await hold.unlock();
    }
  });
}

/** The ways for a read-write lock. */
export const SHARING = [downgraded, readingInside, upgrading];

/** A subject's two sides, each as a subject. */
function sidesOf({ lock, other, shared, ...rest }) {
  const [read, write] = shared ? [lock, other] : [other, lock];
  return {
    writing: { ...rest, lock: write, other: read, shared: false },
    reading: { ...rest, lock: read, other: write, shared: true },
  };
}

/** Writes after the end of its lease; now and then it frees the lock by force. Only the tokens protect the counter. */
async function overstayed(context, subject) {
  const { count, journal, random } = context;
  const askedAt = now();
  const lease = Math.floor(40 + random() * 120);
  const hold = await subject.lock.tryLock(300, lease);
  if (!hold) return count("refused");
  const section = await enter(context, subject, hold, askedAt, lease);
  await pause(random() * 160);
  await leaveAll(journal, section, hold, true);
  count("sections");
  if (random() < 0.05 && (await subject.lock.forceUnlock())) count("forced");
  await hold.unlock();
}

export const CARELESS = [overstayed];

async function insideUntilUnlock(context, subject, hold, askedAt, lease) {
  try {
    await inside(context, subject, hold, askedAt, lease);
  } finally {
    await hold.unlock();
  }
}

/** Work that only one owner may do at a time, or that no writer may do at the same time. */
async function inside(context, subject, hold, askedAt, lease) {
  const section = await enter(context, subject, hold, askedAt, lease);
  await leave(context, subject, hold, section);
}

/** Begins a section for each lock of the subject. */
function enter({ config, journal, placeOf }, subject, hold, askedAt, lease) {
  const enteredAt = now();
  const stay = {
    owner: hold.ownerId,
    shared: subject.shared,
    askedAt,
    place: placeOf(subject, hold),
    enteredAt,
    lease: lease ?? config.options.watchdogTimeout,
    renewed: lease === undefined,
    remaining: hold.remaining,
    token: hold.token,
  };
  return Promise.all(subject.names.map((lock) => journal.enter({ ...stay, lock })));
}

function leaveAll(journal, sections, hold, sure) {
  return Promise.all(sections.map((section) => journal.leave(section, hold, sure)));
}

async function leave({ config, count, journal, random }, { kind, shared }, hold, section) {
  if (config.manner === "wild" || shared) await pause(random() * 4);
  const sure = hold.remaining > config.safe;
  if (!sure) count("unsure");
  else if (!shared) count("written");
  await leaveAll(journal, section, hold, sure);
  count("sections");
  count(kind);
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
