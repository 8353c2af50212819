/**
 * Contract section 2: each call counts once, whatever becomes of its command. Every command of a holder meets every
 * fault at every kind. One invariant has to hold: Redis agrees with what the process believes, and others are excluded
 * for as long as something is held. The next one gets the lock right after that, and nothing is left.
 */
import { expect } from "vitest";
import type { Hold, LockOptions } from "../../src/index.js";
import {
  EXCLUSIVE,
  failure,
  KINDS,
  type Kind,
  row,
  type VirtualPlace,
  watch,
} from "../support/place/index.js";
import { isTrace } from "../support/place/place.js";

const COMMAND_TIMEOUT = 1_000;
const WATCHDOG = 9_000;
const ROUND = WATCHDOG / 3;
const LEASE = 60_000;

/** What the process does, and what it believes to hold. */
interface Act {
  readonly place: VirtualPlace;
  /** The holds that were granted so far; those that are not held any more count no more. */
  readonly holds: Hold[];
  /** Aborts the call under test. */
  readonly controller: AbortController;
}

interface Command {
  readonly does: string;
  readonly kinds?: readonly Kind[];
  arrange(act: Act): Promise<unknown>;
  /** Calls. Without a promise the command is sent as time passes. */
  call(act: Act): Promise<unknown> | undefined;
  /** What the call resolves with: a hold, or the outcome itself. */
  readonly gives: "hold" | boolean | null | undefined;
  /** Only who waits for a grant can be aborted. */
  readonly isAbortable?: boolean;
}

const take = async ({ place, holds }: Act, options: LockOptions = { lease: LEASE }): Promise<Hold> => {
  const owner = holds[0] ? { owner: holds[0] } : {};
  const hold = await place.lock.lock({ ...options, ...owner });
  holds.push(hold);
  return hold;
};

const aborting = ({ controller }: Act): LockOptions => ({ lease: LEASE, signal: controller.signal });

const COMMANDS: readonly Command[] = [
  {
    does: "a lock()",
    arrange: async () => {},
    call: (act) => take(act, aborting(act)),
    gives: "hold",
    isAbortable: true,
  },
  {
    does: "a nested lock()",
    arrange: (act) => take(act),
    call: (act) => take(act, { ...aborting(act), lease: 2 * LEASE }),
    gives: "hold",
    isAbortable: true,
  },
  {
    does: "a tryLock() that is refused",
    arrange: ({ place }) => place.rival.lock({ lease: LEASE }),
    call: ({ place }) => place.lock.tryLock(),
    gives: null,
  },
  {
    does: "a renewal",
    arrange: async (act) => {
      await take(act, {});
      await act.place.pass(ROUND - 1);
    },
    call: () => undefined,
    gives: undefined,
  },
  {
    does: "an extend() to later",
    arrange: (act) => take(act),
    call: ({ holds }) => holds[0]?.extend(2 * LEASE),
    gives: undefined,
  },
  {
    does: "the unlock() of a nested hold",
    arrange: async (act) => {
      await take(act);
      await take(act);
    },
    call: ({ holds }) => holds[1]?.unlock(),
    gives: undefined,
  },
  {
    does: "the last unlock()",
    arrange: (act) => take(act),
    call: ({ holds }) => holds[0]?.unlock(),
    gives: undefined,
  },
  {
    does: "two unlock()s at once",
    arrange: async (act) => {
      await take(act);
      await take(act);
    },
    call: ({ holds }) => Promise.all(holds.map((hold) => hold.unlock())).then(() => undefined),
    gives: undefined,
  },
  {
    does: "an unlock() that hands the lock over",
    kinds: EXCLUSIVE,
    arrange: async (act) => {
      const hold = await take(act);
      const next = act.place.lock.lock({ lease: LEASE });
      void next.then((value) => act.holds.splice(0, 1, value));
      await act.place.settle();
      return hold;
    },
    call: ({ holds }) => holds[0]?.unlock(),
    gives: undefined,
  },
  {
    does: "a forceUnlock()",
    arrange: (act) => take(act),
    call: ({ place }) => place.lock.forceUnlock(),
    gives: true,
  },
];

/** A RedLock without a majority of answers says so. */
const UNANSWERED = ["UNAVAILABLE", "QUORUM"];

type Way = "requests" | "replies";

/** What becomes of the command; afterwards all is answered that will be. */
interface Fault {
  readonly title: string;
  /** How the call ends: as if nothing had happened, or with an error. */
  readonly ends: "well" | "unanswered" | "aborted";
  readonly way: Way;
  strike(act: Act): Promise<unknown>;
  /** A copy of the command reaches the server when all has been given back. */
  readonly isLate?: boolean;
}

/** The connection is made anew, and what was not answered is sent again. */
const sentAgain = ({ place: { a } }: Act) => a.reconnect();

async function lostAgain({ place: { a } }: Act): Promise<void> {
  const again = a.reconnect();
  a.keep("replies");
  await again;
  await a.reconnect();
}

async function copyArrives(act: Act): Promise<void> {
  await sentAgain(act);
  await act.place.a.letGo();
}

async function abort(act: Act): Promise<void> {
  act.controller.abort("enough");
  await act.place.settle();
}

const timeOut = ({ place }: Act) => place.pass(COMMAND_TIMEOUT);

const after = (end: (act: Act) => Promise<void>) => async (act: Act) => {
  await end(act);
  await act.place.a.letGo();
};

const afterThat = (end: (act: Act) => Promise<void>) => async (act: Act) => {
  await end(act);
  await sentAgain(act);
};

const FAULTS: readonly Fault[] = [
  {
    title: "whose reply is lost counts once [F1] [F2] [F4] [F5]",
    ends: "well",
    way: "replies",
    strike: sentAgain,
  },
  {
    title: "whose reply is lost twice counts once [F1] [F2] [F4] [F5]",
    ends: "well",
    way: "replies",
    strike: lostAgain,
  },
  { title: "whose request is lost counts once [F3]", ends: "well", way: "requests", strike: sentAgain },
  {
    title: "that arrives once more before the end counts once",
    ends: "well",
    way: "requests",
    strike: copyArrives,
  },
  {
    title: "that arrives once more after the end changes nothing",
    ends: "well",
    way: "requests",
    strike: sentAgain,
    isLate: true,
  },
  {
    title: "that arrives after its call was aborted leaves nothing [F42]",
    ends: "aborted",
    way: "requests",
    strike: after(abort),
  },
  {
    title: "that is answered after its call was aborted leaves nothing [F42]",
    ends: "aborted",
    way: "replies",
    strike: after(abort),
  },
  {
    title: "that is aborted, sent again and arrives once more after the end leaves nothing",
    ends: "aborted",
    way: "requests",
    strike: afterThat(abort),
    isLate: true,
  },
  {
    title: "that arrives after its call was UNAVAILABLE leaves nothing [F6]",
    ends: "unanswered",
    way: "requests",
    strike: after(timeOut),
  },
  {
    title: "that is answered after its call was UNAVAILABLE leaves nothing [B21]",
    ends: "unanswered",
    way: "replies",
    strike: after(timeOut),
  },
  {
    title: "that is UNAVAILABLE, sent again and arrives once more after the end leaves nothing [F6]",
    ends: "unanswered",
    way: "requests",
    strike: afterThat(timeOut),
    isLate: true,
  },
];

/** What Redis has is what the process believes to have, and others are excluded for exactly as long. */
async function expectAgreement({ place, holds }: Act): Promise<void> {
  const { lock, rival, view, kind, servers } = place;
  for (const server of servers) {
    for (const name of server.names()) {
      const ttl = server.ttl(name);
      expect(ttl).toBeGreaterThan(0);
      if (isTrace(name)) expect(ttl).toBeLessThanOrEqual(60_000);
    }
  }
  const [owner] = holds;
  const held = holds.filter(({ isHeld }) => isHeld);
  if (owner) expect(await lock.getHoldCount({ owner })).toBe(held.length);
  if (held.length === 0) return;
  const fields = Object.keys(await view.hash());
  expect(fields).toEqual(Object.keys(kind.fields((held[0] as Hold).ownerId, 1)));
  expect(await view.ttl()).toBeGreaterThanOrEqual(Math.max(...held.map(({ remaining }) => remaining)));
  expect(await rival.tryLock()).toBeNull();
}

/** All holds are given back, the innermost first. */
async function end({ place, holds }: Act, isKnown: boolean): Promise<void> {
  for (const hold of [...holds].reverse())
    if (hold.isHeld) await (isKnown ? hold.unlock() : failure(hold.unlock()));
  await place.settle();
}

/** The next one gets the lock at once, and nobody disturbs it. */
async function expectFreedom({ place }: Act, meanwhile: () => Promise<void>): Promise<void> {
  const hold = await place.rival.tryLock(0, LEASE);
  expect(hold?.isHeld).toBe(true);
  const state = await place.view.hash();
  await meanwhile();
  expect(await place.view.hash()).toEqual(state);
  await hold?.unlock();
}

async function play(place: VirtualPlace, command: Command, fault: Fault): Promise<void> {
  const act: Act = { place, holds: [], controller: new AbortController() };
  const { a } = place.a.listen("lost") && place;
  const theirs = await command.arrange(act);
  a.keep(fault.way);
  const promise = command.call(act);
  const call = promise && watch(promise);
  await place.pass(promise ? 0 : 1 + WATCHDOG / 12);
  expect(a.onTheirWay).toBeGreaterThan(0);
  await fault.strike(act);
  await place.pass(1_000);
  if (fault.ends === "well") {
    if (call) expect(call.state).toBe("resolved");
    if (call && command.gives !== "hold") expect(call.outcome).toBe(command.gives);
  }
  if (call && fault.ends === "unanswered") expect(UNANSWERED).toContain(call.outcome);
  if (call && fault.ends === "aborted") expect(call.outcome).toBe("enough");
  // What an unanswered force did is not known here yet.
  const isKnown = command.gives !== true || fault.ends === "well";
  if (isKnown) await expectAgreement(act);
  expect(a.heard("lost").map(({ reason }) => reason)).toEqual(a.heard("lost").map(() => "forced"));
  if (command.gives === null) await (theirs as Hold).unlock();
  await end(act, isKnown);
  await expectFreedom(act, () => a.letGo());
}

for (const fault of FAULTS) {
  const commands = COMMANDS.filter(({ isAbortable }) => fault.ends !== "aborted" || isAbortable);
  for (const command of commands) {
    row(
      `${command.does} ${fault.title} [§2 counts-once] [§2 always-ttl]`,
      {
        kinds: command.kinds ?? KINDS,
        client: { commandTimeout: COMMAND_TIMEOUT, watchdogTimeout: WATCHDOG, pollCap: 500 },
      },
      (place) => play(place, command, fault),
    );
  }
}
