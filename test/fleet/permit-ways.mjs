/** The ways in which a task of the fleet takes and gives back permits. */
import { isLockError } from "holdfast";
import { now } from "./journal.mjs";
import { leaseOf, pause, pick, unanswered } from "./ways.mjs";

/** A wait that is long enough for the call to be served, if nothing is wrong; milliseconds. */
const LONG = 30_000;

/** @param {(options: object) => Promise<unknown>} ask resolves with what was granted: nothing if that is falsy */
async function take(context, subject, { call: what = "acquire", permits = 1, wait, lease }, ask) {
  const { journal, count } = context;
  const { name, kind, semaphore } = subject;
  const call = journal.call(what, { names: [name], permits });
  try {
    const answer = await ask();
    if (!answer) {
      count("refused");
      return journal.answer(call, {
        granted: false,
        because: wait === undefined || wait === 0 ? "held" : "timeout",
      });
    }
    const permitId = kind === "permits" ? answer : undefined;
    const number = what === "drain" ? answer : permits;
    const term = kind === "permits" ? { lease: lease ?? context.config.options.watchdogTimeout } : {};
    journal.answer(call, { granted: true, permits: number, renewed: lease === undefined, ...term });
    if (permitId) context.permits.set(permitId, call);
    return { call, name, semaphore, permits: number, permitId };
  } catch (error) {
    return unanswered(context, call, error);
  }
}

async function visit({ config, count, journal, random, witness }, held, stay = random() * config.stay) {
  const { call: of, name, permits } = held;
  const id = journal.call("visit", { of, names: [name] });
  const { met, ...entered } = await witness.enter(name, { id, mode: String(permits) });
  journal.answer(id, { met });
  await pause(stay);
  await witness.leave(entered, { id, mode: String(permits) }, false);
  count("visits");
  count(name.slice(0, name.indexOf("-")));
}

async function give({ journal, count, permits: all }, { call: of, name, semaphore, permits, permitId }) {
  const call = journal.call("release", { at: now(), of, names: [name], permits });
  try {
    const done = await (permitId
      ? semaphore.tryRelease(permitId)
      : semaphore.release(permits).then(() => true));
    journal.answer(call, { done });
    if (!done) count("lapsed");
  } catch (error) {
    if (!isLockError(error, "UNAVAILABLE")) throw error;
    count("silence");
  }
  all.delete(permitId);
}

async function stayed(context, subject, options, ask, stay) {
  const held = await take(context, subject, options, ask);
  if (!held) return;
  await visit(context, held, stay);
  await give(context, held);
}

function someOf({ random, config }) {
  return 1 + Math.floor(random() ** 2 * config.most);
}

function fuse({ random }) {
  return { signal: AbortSignal.timeout(Math.floor(random() * 30)) };
}

const acquired = (wait) => (context, subject) => {
  const permits = someOf(context);
  return stayed(context, subject, { permits, wait }, () => subject.semaphore.tryAcquire(permits, wait));
};

async function acquiredAborted(context, subject) {
  const permits = someOf(context);
  await stayed(context, subject, { permits }, async () => {
    await subject.semaphore.acquire(permits, fuse(context));
    return true;
  });
}

async function ran(context, subject) {
  const permits = someOf(context);
  const { journal } = context;
  const names = [subject.name];
  const call = journal.call("acquire", { names, permits });
  let held;
  const inside = async () => {
    journal.answer(call, { granted: true, permits });
    held = { ...subject, call, permits };
    await visit(context, held);
    journal.call("release", { at: now(), of: call, names, permits });
  };
  await subject.semaphore.run(inside, { permits, wait: LONG }).catch((error) => {
    if (held) throw error;
    unanswered(context, call, error);
  });
}

async function drained(context, subject) {
  await stayed(context, subject, { call: "drain" }, () => subject.semaphore.drainPermits());
}

const permitTaken = (wait) => (context, subject) => {
  const lease = leaseOf(context);
  return stayed(context, subject, { wait, lease }, () => subject.semaphore.tryAcquire(wait, lease));
};

async function permitAborted(context, subject) {
  const lease = leaseOf(context);
  await stayed(context, subject, { lease }, () => subject.semaphore.acquire({ lease, ...fuse(context) }));
}

/** Stays often longer than the lease. */
async function permitOutlasted(context, subject) {
  const [lease] = context.config.short;
  const stay = context.random() * 1.5 * lease;
  await stayed(context, subject, { wait: 40, lease }, () => subject.semaphore.tryAcquire(40, lease), stay);
}

async function permitUpdated(context, subject) {
  const [lease, most] = context.config.lease;
  const held = await take(context, subject, { wait: LONG, lease }, () =>
    subject.semaphore.tryAcquire(LONG, lease),
  );
  if (!held) return;
  await subject.semaphore.updateLeaseTime(held.permitId, most).catch((error) => {
    if (!isLockError(error, "UNAVAILABLE") && !isLockError(error, "NOT_OWNER")) throw error;
  });
  await visit(context, held);
  await give(context, held);
}

/** A way that is listed more often is done more often. */
const PERMIT_WAYS = {
  semaphore: [acquired(LONG), acquired(LONG), acquired(0), acquired(40), acquiredAborted, ran, drained],
  permits: [
    permitTaken(LONG),
    permitTaken(LONG),
    permitTaken(40),
    permitAborted,
    permitOutlasted,
    permitUpdated,
  ],
};

export function permitWay({ random }, kind) {
  return pick(random, PERMIT_WAYS[kind]);
}
