/**
 * The ways in which a task of the fleet takes a lock. Each way gets the context of the process and a subject: a lock,
 * or one side of it, and what is known of it. What is expected to go wrong under faults is written into the journal.
 */
import { isLockError } from "holdfast";
import { now } from "./journal.mjs";

export function pick(random, list) {
  return list[Math.floor(random() * list.length)];
}

export function pause(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Half of all calls have a lease of their own; the others leave it to the watchdog. */
export function leaseOf({ config, random }) {
  return random() < 0.5 ? undefined : between(random, config.lease);
}

function between(random, [least, most]) {
  return Math.floor(least + random() * (most - least));
}

/** Why a call has no answer, or what it was answered; what nobody expects is thrown again. */
export function unanswered({ journal, count }, call, error) {
  const because = isLockError(error, "UPGRADE_REFUSED")
    ? "upgrade"
    : isLockError(error, "WAIT_TIMEOUT") || error?.name === "TimeoutError"
      ? "timeout"
      : isLockError(error, "UNAVAILABLE") || isLockError(error, "QUORUM")
        ? "silence"
        : isLockError(error, "LOCK_LOST") && "lost";
  if (!because) throw error;
  count(because);
  journal.answer(call, { granted: false, because });
}

/** Takes the lock, and resolves with what is held; undefined if the call got nothing. */
async function take(context, subject, { wait, lease, signal, within } = {}) {
  const { journal, count } = context;
  const { lock, names, side } = subject;
  const call = journal.call("acquire", { names, side, by: within?.owner });
  try {
    const hold = await (wait === undefined
      ? lock.lock({ lease, signal })
      : lock.tryLock(wait, lease, { signal }));
    if (hold) return granted(context, subject, { call, hold, lease, within });
    count("refused");
    journal.answer(call, { granted: false, because: wait === 0 ? "held" : "timeout" });
  } catch (error) {
    unanswered(context, call, error);
  }
  return undefined;
}

/** @param how `within`: the outer hold of a nested call. That of a RedLock may have the owner id of another master. */
function granted({ config, count, journal, placeOf }, subject, { call, hold, lease, within }) {
  // In this order, so that a pause between the two makes `until` earlier.
  const at = now();
  const owner = within?.owner ?? hold.ownerId;
  if (within) count("nested");
  const left = hold.remaining;
  // After a pause before `at` nobody knows how long the hold has been over: then its lease, from the call on, says when.
  const until = left > 0 ? at + Math.floor(Math.max(0, left - 1) * 1e6) : undefined;
  journal.answer(call, {
    at,
    granted: true,
    owner,
    token: hold.token,
    lease: lease ?? config.options.watchdogTimeout,
    renewed: lease === undefined,
    until,
    place: placeOf(hold),
  });
  return { ...subject, hold, call, owner };
}

/** The instant is taken before the hold is asked, so that a pause between the two makes the stay shorter. */
function beginRelease({ journal }, { call, hold, names, side }) {
  const at = now();
  return journal.call("release", { at, of: call, names, side, held: hold.isHeld });
}

async function give(context, held, how = () => held.hold.unlock()) {
  const { journal, count } = context;
  const call = beginRelease(context, held);
  try {
    await how();
    journal.answer(call, { done: true });
  } catch (error) {
    const isLost = isLockError(error, "LOCK_LOST");
    if (!isLost && !isLockError(error, "UNAVAILABLE") && !isLockError(error, "QUORUM")) throw error;
    count(isLost ? "lost" : "silence");
    if (isLost) journal.answer(call, { done: false });
  }
}

/** Takes the lock by `run`. That its release got no answer shows nowhere, so the journal has none. */
async function run(context, subject, options, fn, within) {
  const { journal, count } = context;
  const { lock, names, side } = subject;
  const call = journal.call("acquire", { names, side, by: within?.owner });
  let held;
  try {
    await lock.run(async (hold) => {
      held = granted(context, subject, { call, hold, lease: options.lease, within });
      await fn(held);
      beginRelease(context, held);
    }, options);
  } catch (error) {
    if (!held) return unanswered(context, call, error);
    if (!isLockError(error, "LOCK_LOST")) throw error;
    count("lost");
  }
}

/** Work that only one owner may do at a time, or that no writer may do at the same time. */
async function visit(
  context,
  held,
  { stay = context.random() * context.config.stay, heedless = false } = {},
) {
  const { config, count, journal, witness } = context;
  const { call: of, kind, names, hold, side } = held;
  const id = journal.call("visit", { of, names });
  const pass = { id, mode: side, token: hold.token };
  const entered = await Promise.all(names.map((lock) => witness.enter(lock, pass)));
  journal.answer(id, { met: entered.flatMap(({ met }) => met) });
  await pause(stay);
  const sure = heedless || hold.remaining > config.safe;
  const torn = await Promise.all(entered.map((lock) => witness.leave(lock, pass, sure)));
  // A write that may have arrived after the end of the hold proves nothing.
  journal.answer(id, { torn: torn.includes(true), late: sure && !heedless && !hold.isHeld });
  count("visits");
  count(kind);
}

const plainly = (context, subject) => leased(context, subject, {});

async function leased(context, subject, options) {
  const held = await take(context, subject, { lease: leaseOf(context), ...options });
  if (!held) return;
  await visit(context, held);
  await give(context, held);
}

const tried = (context, subject) => leased(context, subject, { wait: Math.floor(context.random() * 60) });
const triedOnce = (context, subject) => leased(context, subject, { wait: 0 });

/** The signal may fire before, during or after the grant. */
const aborted = (context, subject) =>
  leased(context, subject, { signal: AbortSignal.timeout(Math.floor(context.random() * 30)) });

/** Redisson's idiom, re-entered once. */
async function inScope(context, subject) {
  await context.client.scope(async () => {
    const outer = await take(context, subject, { wait: 100, lease: leaseOf(context) });
    if (!outer) return;
    const inner = await take(context, subject, { wait: 0, within: outer });
    await visit(context, outer);
    if (inner) await give(context, inner, () => subject.lock.unlock());
    await give(context, outer, () => subject.lock.unlock());
  });
}

async function ran(context, subject) {
  await run(context, subject, { lease: leaseOf(context) }, (held) => visit(context, held));
}

async function ranInTime(context, subject) {
  await run(context, subject, { lease: leaseOf(context), wait: 20 }, (held) => visit(context, held));
}

/** Three sibling runs inside one run take turns, and readers share. */
async function ranSiblings(context, subject) {
  await run(context, subject, { lease: leaseOf(context) }, (outer) =>
    Promise.all([1, 2, 3].map(() => run(context, subject, {}, (held) => visit(context, held), outer))),
  );
}

async function extended(context, subject) {
  const [least, most] = context.config.lease;
  const held = await take(context, subject, { lease: least });
  if (!held) return;
  await held.hold.extend(most).catch((error) => {
    if (!isLockError(error, "LOCK_LOST") && !isLockError(error, "UNAVAILABLE")) throw error;
  });
  await visit(context, held);
  await give(context, held);
}

/** Stays often longer than its lease, which is not renewed. As others wait for that, it is rare. */
async function outlasted(context, subject) {
  if (context.random() < 0.7) return plainly(context, subject);
  const lease = between(context.random, context.config.short);
  const held = await take(context, subject, { lease });
  if (!held) return;
  await visit(context, held, { stay: context.random() * 1.5 * lease });
  await give(context, held);
}

/** The ways for any lock, and for either side of a read-write lock. */
const WAYS = [plainly, tried, triedOnce, inScope, ran, ranInTime, ranSiblings, aborted, extended, outlasted];

/** A writer goes on as a reader, with no gap for another writer. */
async function downgraded(context, subject) {
  const { writing, reading } = sidesOf(subject);
  await context.client.scope(async () => {
    const written = await take(context, writing);
    if (!written) return;
    await visit(context, written);
    const read = await take(context, reading, { lease: leaseOf(context), within: written });
    await give(context, written);
    if (!read) return;
    context.count("downgraded");
    await visit(context, read);
    await give(context, read);
  });
}

/** The writer reads for a while with a short lease, which must not shorten its write hold. */
async function readInside(context, subject) {
  const { writing, reading } = sidesOf(subject);
  const [least, most] = context.config.lease;
  await context.client.scope(async () => {
    const written = await take(context, writing, { lease: most });
    if (!written) return;
    const read = await take(context, reading, { lease: Math.ceil(least / 4), within: written });
    if (read) await give(context, read);
    await visit(context, written);
    await give(context, written);
  });
}

/** A reader must not become a writer, whether it reads alone or not. */
async function upgraded(context, subject) {
  const { writing, reading } = sidesOf(subject);
  await context.client.scope(async () => {
    const read = await take(context, reading, { lease: leaseOf(context) });
    if (!read) return;
    const written = await take(context, writing, { wait: 1_000, within: read });
    if (written && read.hold.isHeld) throw new Error("an owner that only reads came to write");
    if (written) await give(context, written);
    await give(context, read);
  });
}

function sidesOf({ lock, other, side, ...rest }) {
  const [read, write] = side === "read" ? [lock, other] : [other, lock];
  return { writing: { ...rest, lock: write, side: "write" }, reading: { ...rest, lock: read, side: "read" } };
}

/** Writes after the end of its lease; now and then it frees the lock by force. Only the tokens protect the counter. */
async function overstayed(context, subject) {
  const { count, random } = context;
  const held = await take(context, subject, { wait: 300, lease: Math.floor(40 + random() * 120) });
  if (!held) return;
  await visit(context, held, { stay: random() * 160, heedless: true });
  if (random() < 0.05)
    await subject.lock.forceUnlock().then(
      (was) => was && count("forced"),
      () => {},
    );
  await give(context, held);
}

export function waysOf({ kind, other }) {
  if (kind === "forced") return [overstayed];
  return other ? [...WAYS, downgraded, readInside, upgraded] : WAYS;
}
