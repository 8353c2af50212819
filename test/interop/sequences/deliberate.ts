/**
 * Where this library leaves a different state than Redisson, on purpose; docs/interop.md gives the reason for each
 * number. Each function changes Redisson's result into the expected one, and does nothing where both agree.
 */
import { type Call, type Outcome, WATCHDOG } from "./calls.js";
import type { Expected, Scene } from "./play.js";
import { differences, type Entry, type State } from "./state.js";

export const DELIBERATE: Readonly<Record<string, (scene: Scene, expected: Expected) => void>> = {
  W6: (scene, expected) => {
    const { call, name, before, actor } = scene;
    if (call.side !== "read" || modeOf(before[name]) !== "read") return;
    const end = before[readHold(name, actor)]?.expireAt ?? 0;
    const isLongest = end + 1 >= (before[name]?.expireAt ?? 0);
    // The end of the longest hold alone lowers the TTL.
    if (!isLongest || has(expected.state, name, actor)) keepTtl(scene, expected);
  },
  W7: ({ call, name, before }, expected) => {
    if (call.verb !== "unlock" || expected.outcome !== null || modeOf(before[name]) !== "write") return;
    if (modeOf(expected.state[name]) === "read") expected.messages = [`redisson_rwlock:{${name}}: 1`];
  },
  W8: ({ call, name, before, at }, { outcome, state }) => {
    if (!isGranted(call, outcome) || !before[name] || call.side === "read") return;
    endAt(state, name, Math.max(before[name].expireAt ?? 0, at + (call.lease ?? WATCHDOG)));
  },
  W19: ({ kind, call, name }, expected) => {
    if (kind !== "semaphore" && kind !== "permits") return;
    const free = Number(expected.state[name]?.value ?? 0);
    if (free <= 0 && call.verb !== "setPermits") expected.messages = [];
  },
  W20: ({ kind, call, name, before, ours }, { outcome, state }) => {
    if (kind !== "fenced" || call.verb !== "tryLock" || outcome !== true) return;
    const key = `redisson_lock_token:{${name}}`;
    const [was, is] = [before[key], ours.state[key]].map((entry) => BigInt((entry?.value as string) ?? 0));
    if (before[name]) state[key] = before[key] as Entry;
    else if (is !== undefined && was !== undefined && is > was) state[key] = ours.state[key] as Entry;
  },
  D1: (scene, expected) => {
    if (scene.call.side !== "read" && has(expected.state, scene.name, scene.actor)) keepTtl(scene, expected);
  },
  D2: ({ call, owner, before }, expected) => {
    const live = new Set(owner.holds.filter(({ hold }) => hold.isHeld).map(({ side }) => side));
    if (call.verb !== "tryLock" || call.side !== "write" || !live.has("read") || live.has("write")) return;
    expected.outcome = false;
    expected.state = structuredClone(before);
  },
  D3: ({ call, name, actor, before, forced }, expected) => {
    const owners = ownersOf(before[name]);
    const readers = owners.filter(([owner]) => !owner.endsWith(":write"));
    if (forced && owners.length === 0) expected.messages = [`redisson_rwlock:{${name}}: 0`];
    if (call.verb !== "forceUnlock" || call.side !== "write" || modeOf(before[name]) !== "write") return;
    if (readers.length === 0) return;
    // The client that forces tells its own owner at once.
    if (has(before, name, actor)) {
      expected.messages = [...expected.messages, `redisson_rwlock:{${name}}: 0`];
      return;
    }
    const holds = Object.keys(before).filter(isReadHold);
    const value = { mode: "read", ...Object.fromEntries(readers) };
    expected.state = { ...structuredClone(before), [name]: { ...(before[name] as Entry), value } };
    endAt(expected.state, name, Math.max(...holds.map((key) => before[key]?.expireAt ?? 0)));
  },
  D4: ({ call, name }, { state }) => {
    if (call.verb !== "forceUnlock" || state[name]) return;
    for (const key of Object.keys(state)) if (isReadHold(key) && key.endsWith(":1")) delete state[key];
  },
  D5: ({ kind, call, name, at }, { outcome, state }) => {
    const leases = state[leasesOf(name)];
    if (kind !== "permits" || call.verb !== "tryAcquire" || call.lease !== undefined) return;
    if (!leases || typeof outcome !== "string") return;
    state[leasesOf(name)] = { ...leases, value: { ...(leases.value as object), [outcome]: at + WATCHDOG } };
  },
  D6: ({ kind, call, name, lapsed, before, ours }, expected) => {
    const cleared = withoutLapsedPermits(before);
    const free = Number(cleared[name]?.value ?? 0);
    const told = (count: number) => (count > 0 ? [`redisson_sc:{${name}}: ${count}`] : []);
    const hasLapsed = differences(before, cleared, 0).length > 0;
    if (kind !== "permits" || !(lapsed || hasLapsed)) return;
    if (LOOKS.includes(call.verb)) {
      expected.state = structuredClone(before);
      expected.messages = [];
      return;
    }
    if (call.verb === "release" || call.verb === "tryRelease") {
      const isReleased = expected.outcome === null || expected.outcome === true;
      // This library does not ask the server about an id that it knows to be over.
      const looked = isReleased || ours.messages.length > 0;
      expected.messages = [...(looked ? told(free) : []), ...(isReleased ? told(free + 1) : [])];
    } else if (lapsed || (ours.messages[0] === told(free)[0] && expected.messages[0] !== ours.messages[0])) {
      // Where Redisson looks as well, it also sends the message.
      expected.messages = [...told(free), ...expected.messages];
    }
  },
  D7: ({ kind, call, name, before }, expected) => {
    if (kind === "fair" && call.verb === "unlock" && !before[name]) expected.outcome = "not the owner";
  },
  D8: ({ kind, call, name, before, forced }, expected) => {
    if (kind === "readwrite" && call.verb === "unlock" && !before[name] && !forced) expected.messages = [];
  },
  D9: ({ call, name, before, at }, expected) => {
    const { lease = 0, permitId = "" } = call;
    if (call.verb !== "updateLeaseTime" || expected.outcome !== true) return;
    const end = ((before[leasesOf(name)]?.value ?? {}) as Record<string, number>)[permitId] ?? 0;
    if (at + lease < end) expected.messages = [...expected.messages, `redisson_sc:{${name}}: 1`];
  },
  D10: ({ kind, call, name, actor, before, at }, { outcome, state }) => {
    if (kind !== "readwrite") return;
    const own = readHold(name, actor);
    for (const key of Object.keys(state)) {
      if (isReadHold(key) && key.includes(`:<${actor}>:`) && key !== own) delete state[key];
    }
    if (!state[own]) return;
    if (isGranted(call, outcome) && has(before, name, actor)) {
      const isWriter = modeOf(before[name]) === "write";
      const latest = (isWriter ? state[name] : before[own])?.expireAt ?? 0;
      endAt(state, own, Math.max(latest, at + (call.lease ?? WATCHDOG)));
    }
    const isDowngrade = call.verb === "unlock" && call.side === "write" && modeOf(state[name]) === "read";
    if (isDowngrade && outcome === null) endAt(state, own, state[name]?.expireAt ?? 0);
  },
};

/** These change nothing. */
const LOOKS: readonly string[] = ["availablePermits", "acquiredPermits", "getPermits"];

/** W25 is a difference in the state that a call starts from: see `seenBy`. */
export const NUMBERS: readonly string[] = [...Object.keys(DELIBERATE), "W25"];

/** The state that a call of this library sees: expired entries do not count, even if no call has removed them. */
export function seenBy({ verb }: Call, before: State): State {
  // In this call alone Redisson counts permits whose leases are over.
  if (verb === "setPermits") return withoutLapsedPermits(before);
  // An unlock treats dead readers as Redisson's does.
  return verb === "unlock" ? before : withoutDeadReaders(before);
}

/** A reader keeps the hash that dead readers have left, which may have a longer TTL; a writer makes a new hash. */
export function keepHash(state: State, name: string, before: State): void {
  const [lock, old] = [state[name], before[name]];
  if (lock && old && modeOf(lock) === "read")
    endAt(state, name, Math.max(lock.expireAt ?? 0, old.expireAt ?? 0));
}

/**
 * An owner on both sides of a read-write lock learns, in its call, that its write side was ended by force. It then
 * loses its read side, too: this returns the state after that.
 */
export function withoutForced(before: State, name: string, actor: string): State {
  const [lock, hold] = [before[name] as Entry, readHold(name, actor)];
  const { [`<${actor}>`]: _, ...value } = lock.value as Record<string, string>;
  const { [name]: __, [hold]: own, ...left } = before;
  if (Object.keys(value).length === 1) return left;
  const ends = Object.keys(left).flatMap((key) => (isReadHold(key) ? (left[key]?.expireAt ?? 0) : []));
  const wasLongest = (own?.expireAt ?? 0) + 1 >= (lock.expireAt ?? 0);
  return { ...left, [name]: { ...lock, value, expireAt: wasLongest ? Math.max(...ends) : lock.expireAt } };
}

/** Whether an owner that believes that it writes only reads, as its write side was ended by force. */
export function isForced(before: State, name: string, actor: string): boolean {
  return modeOf(before[name]) === "read" && has(before, name, actor);
}

/** The state after the next call of this library. */
export function clearedUp(state: State): State {
  return withoutLapsedPermits(withoutDeadReaders(state));
}

/** A release changes no TTL. */
function keepTtl({ call, name, before }: Scene, { outcome, state }: Expected): void {
  if (call.verb === "unlock" && outcome === null) endAt(state, name, before[name]?.expireAt ?? 0);
}

function isGranted({ verb }: Call, outcome: Outcome): boolean {
  return outcome === "granted" || (verb === "tryLock" && outcome === true);
}

/** Whether an actor has a lock, on either side. */
function has(state: State, name: string, actor: string): boolean {
  return ownersOf(state[name]).some(([owner]) => owner === `<${actor}>` || owner === `<${actor}>:write`);
}

/** The state without permits whose lease is over: they are free again. */
function withoutLapsedPermits(state: State): State {
  const now = Date.now();
  const left = { ...state };
  for (const [key, { value, ...entry }] of Object.entries(state)) {
    const name = /^\{(.*)\}:timeout$/.exec(key)?.[1];
    if (name === undefined) continue;
    const members = Object.entries(value as Record<string, number>);
    const alive = members.filter(([, end]) => end > now);
    if (alive.length === 0) delete left[key];
    else left[key] = { ...entry, value: Object.fromEntries(alive) };
    const free = Number(state[name]?.value ?? 0) + members.length - alive.length;
    if (alive.length < members.length) left[name] = { type: "string", value: String(free), expireAt: null };
  }
  return left;
}

/** The state without dead readers. A reader is a field of the hash; it lives as long as one of its holds' keys. */
function withoutDeadReaders(state: State): State {
  const living: State = {};
  for (const [key, entry] of Object.entries(state)) {
    const mode = modeOf(entry);
    const alive = ownersOf(entry).filter(([owner]) => owner.endsWith(":write") || hasHold(state, key, owner));
    if (mode === undefined) living[key] = entry;
    else if (alive.length > 0) living[key] = { ...entry, value: { mode, ...Object.fromEntries(alive) } };
  }
  return living;
}

/** The mode of a read-write lock. */
function modeOf(entry: Entry | undefined): string | undefined {
  return entry?.type === "hash" ? (entry.value as Record<string, string>).mode : undefined;
}

function ownersOf(entry: Entry | undefined): [owner: string, count: string][] {
  if (entry?.type !== "hash") return [];
  return Object.entries(entry.value as Record<string, string>).filter(([field]) => field !== "mode");
}

function hasHold(state: State, name: string, reader: string): boolean {
  return Object.keys(state).some((key) => key.startsWith(`{${name}}:${reader}:rwlock_timeout:`));
}

function isReadHold(key: string): boolean {
  return key.includes(":rwlock_timeout:");
}

/** The key that lives as long as a reader of this library. */
function readHold(name: string, actor: string): string {
  return `{${name}}:<${actor}>:rwlock_timeout:1`;
}

function leasesOf(name: string): string {
  return `{${name}}:timeout`;
}

function endAt(state: State, key: string, expireAt: number): void {
  const entry = state[key];
  if (entry) state[key] = { ...entry, expireAt };
}
