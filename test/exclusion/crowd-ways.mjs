/** The ways in which a task of the crowd takes and gives back permits, of either kind of semaphore. */
import { isLockError } from "holdfast";
import { now } from "./crowd-journal.mjs";

export function pick(random, list) {
  return list[Math.floor(random() * list.length)];
}

function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Waits as many milliseconds as a task stays inside. */
function stayOf({ random, config }) {
  return pause(random() * config.stay);
}

/** A wait that is long enough for the call to be served, if nothing is wrong. */
function patience({ config }) {
  return config.patience;
}

/** A signal that gives the call up before, during or after its grant. */
function fuse({ random, config }) {
  return AbortSignal.timeout(Math.floor(random() * config.fuse));
}

// Semaphores

function someOf({ random, config }) {
  return 1 + Math.floor(random() ** 2 * config.most);
}

async function acquired(context, { lock, semaphore }) {
  const permits = someOf(context);
  const askedAt = now();
  if (!(await semaphore.tryAcquire(permits, patience(context)))) {
    return context.journal.inVain({ lock, permits, askedAt });
  }
  await insideSemaphore(context, { lock, permits, askedAt });
  await semaphore.release(permits);
}

async function abortedAcquire(context, { lock, semaphore }) {
  const permits = someOf(context);
  const askedAt = now();
  await semaphore.acquire(permits, { signal: fuse(context) });
  await insideSemaphore(context, { lock, permits, askedAt });
  await semaphore.release(permits);
}

async function tried(context, { lock, semaphore }) {
  const permits = someOf(context);
  const askedAt = now();
  if (!(await semaphore.tryAcquire(permits, Math.floor(context.random() * 40)))) {
    return context.count("refused");
  }
  await insideSemaphore(context, { lock, permits, askedAt });
  await semaphore.release(permits);
}

async function ran(context, { lock, semaphore }) {
  const permits = someOf(context);
  const askedAt = now();
  const inside = () => insideSemaphore(context, { lock, permits, askedAt });
  await semaphore.run(inside, { permits, wait: patience(context) }).catch((error) => {
    if (!isLockError(error, "WAIT_TIMEOUT")) throw error;
    return context.journal.inVain({ lock, permits, askedAt });
  });
}

async function drained(context, { lock, semaphore }) {
  const askedAt = now();
  const permits = await semaphore.drainPermits();
  if (permits === 0) return;
  await insideSemaphore(context, { lock, permits, askedAt });
  await semaphore.release(permits);
}

async function insideSemaphore(context, stay) {
  const section = await context.journal.enter(stay);
  await stayOf(context);
  await context.journal.leave(section);
  context.count("stays");
}

// Permits, with a lease or kept by the watchdog

function leaseOf({ random, config }) {
  const [least, most] = config.lease;
  return random() < 0.5 ? undefined : Math.floor(least + random() * (most - least));
}

async function permitTaken(context, { lock, semaphore }) {
  const lease = leaseOf(context);
  const askedAt = now();
  const permitId = await semaphore.tryAcquire(patience(context), lease);
  if (permitId === null) return context.journal.inVain({ lock, permits: 1, askedAt });
  await insidePermit(context, semaphore, { lock, permits: 1, askedAt, lease, permitId });
}

async function permitTried(context, { lock, semaphore }) {
  const lease = leaseOf(context);
  const askedAt = now();
  const permitId = await semaphore.tryAcquire(Math.floor(context.random() * 40), lease);
  if (permitId === null) return context.count("refused");
  await insidePermit(context, semaphore, { lock, permits: 1, askedAt, lease, permitId });
}

async function permitAborted(context, { lock, semaphore }) {
  const lease = leaseOf(context);
  const askedAt = now();
  const signal = fuse(context);
  const permitId = await semaphore.acquire({ lease, signal });
  await insidePermit(context, semaphore, { lock, permits: 1, askedAt, lease, permitId });
}

const SHORT = [80, 180];

/** Stays often longer than the lease. */
async function outlasted(context, { lock, semaphore }) {
  const [least, most] = context.config.short ?? SHORT;
  const lease = Math.floor(least + context.random() * (most - least));
  const askedAt = now();
  const permitId = await semaphore.tryAcquire(40, lease);
  if (permitId === null) return context.count("refused");
  const stay = () => pause(context.random() * 1.5 * lease);
  await insidePermit(context, semaphore, { lock, permits: 1, askedAt, lease, permitId }, stay);
}

async function updated(context, { lock, semaphore }) {
  const [least, most] = context.config.lease;
  const askedAt = now();
  const permitId = await semaphore.tryAcquire(patience(context), least);
  if (permitId === null) return context.journal.inVain({ lock, permits: 1, askedAt });
  const stay = async () => {
    await semaphore.updateLeaseTime(permitId, most);
    await stayOf(context);
  };
  await insidePermit(context, semaphore, { lock, permits: 1, askedAt, lease: least, permitId }, stay);
}

/** Stays longer than the watchdog's lease, without giving the watchdog any help. */
async function lingered(context, { lock, semaphore }) {
  const askedAt = now();
  const permitId = await semaphore.tryAcquire(100);
  if (permitId === null) return context.count("refused");
  const stay = () => pause(1.3 * context.config.options.watchdogTimeout);
  await insidePermit(context, semaphore, { lock, permits: 1, askedAt, permitId }, stay);
}

async function insidePermit(context, semaphore, stay, linger = () => stayOf(context)) {
  const section = await context.journal.enter(stay);
  try {
    await linger();
  } finally {
    await context.journal.leave(section);
  }
  context.count("stays");
  if (await semaphore.tryRelease(stay.permitId)) return;
  context.count("lapsed");
  await context.journal.refused(section);
}

/** The ways of each kind; a way that is listed more often is done more often. */
export const WAYS = {
  semaphore: [acquired, acquired, acquired, abortedAcquire, abortedAcquire, tried, tried, ran, ran, drained],
  permits: [
    permitTaken,
    permitTaken,
    permitTaken,
    permitTaken,
    permitTried,
    permitTried,
    permitAborted,
    permitAborted,
    outlasted,
    updated,
    lingered,
  ],
};
