/** `holdfast get`, `watch` and `unlock`: one lock. */
import { dateOf, monotonic, wallTime } from "../../base/platform.js";
import type { LockInfo } from "../../index.js";
import { hasOthers } from "../inspector/shown.js";
import { force } from "../shared/kinds.js";
import { type Command, EXIT, type Task, UsageError } from "./command.js";
import { nameOf, show } from "./locks.js";
import { EVERY, intervalOf, lookAgain } from "./look-again.js";
import { spell } from "./terminal.js";

const ONE = { least: 1, most: 1 };

export const get: Command = {
  name: "get",
  usage: "<name>",
  summary: "shows one lock: who holds it (●), and who waits (○)",
  details: ["The exit code is 1 if the lock is free."],
  words: ONE,
  act: async (task) => {
    const { terminal } = task;
    const info = await inspect(task);
    terminal.json(info);
    if (info) show(terminal, info, wallTime());
    else terminal.say(`${task.words[0]} is free.`);
    return info ? EXIT.ok : EXIT.found;
  },
};

export const watch: Command = {
  name: "watch",
  usage: "<name>",
  summary: "prints what happens to one lock, line by line, until Ctrl-C",
  details: [
    "It looks at intervals, and misses what is shorter than the time between two looks. Of a hold that is gone it says",
    "released if its lease cannot be over yet, else lapsed.",
  ],
  options: { every: { ...EVERY, help: "the time between two looks; 200ms by default, 100ms at least" } },
  words: ONE,
  act: async (task) => {
    const { terminal } = task;
    const every = intervalOf({ ...task, options: { every: "200ms", ...task.options } });
    let before: Seen | undefined;
    return lookAgain(task, every, async () => {
      const at = dateOf(wallTime());
      const now = await lookAt(task, before);
      for (const change of changesOf(before, now)) {
        terminal.json({ at, ...change });
        terminal.say(`${at.toISOString()}  ${change.what.padEnd(9)}  ${change.who}`);
      }
      before = now;
    });
  },
};

export const unlock: Command = {
  name: "unlock",
  usage: "<name>",
  summary: "takes a lock from its holder, who gets LOCK_LOST",
  details: [
    "It shows who would lose the lock, and asks. The holder works on until it looks. If what the lock protects cannot bear two,",
    "stop that process first. The exit code is 1 if the lock is free, if others hold it by then, or if you answer no.",
  ],
  options: { yes: { type: "boolean", short: "y", help: "does not ask" } },
  words: ONE,
  act: async (task) => {
    const { terminal, connect, options } = task;
    const info = await inspect(task);
    if (info && info.holders.length === 0) {
      throw new UsageError(
        `${info.name} is a ${info.kind}, not a lock: release its permits, or count it down`,
      );
    }
    const agreed = info !== null && (await agrees(task, info));
    const shown = info?.holders.map(({ ownerId }) => ownerId) ?? [];
    // The question may have stood for long.
    const latest = agreed && options.yes !== true ? await inspect(task) : info;
    const isMeant = agreed && !hasOthers(latest, shown);
    const unlocked = isMeant && (await force(connect().client, info));
    terminal.json({ unlocked });
    if (!info) terminal.say(`${task.words[0]} is free.`);
    else if (agreed && !isMeant) terminal.say("Others hold the lock by now.");
    else if (agreed) terminal.say(unlocked ? unlockedText(latest ?? info) : "The lock was free by then.");
    return unlocked ? EXIT.ok : EXIT.found;
  },
};

/** No message tells a holder. */
function unlockedText({ ttl }: LockInfo): string {
  return `Unlocked. Who had it may work on for ${spell(ttl)}, until its next renewal or its deadline tells.`;
}

function inspect({ connect, words: [name = ""] }: Task): Promise<LockInfo | null> {
  return connect().client.inspect(name, { kinds: "all" });
}

/** Shows who would lose the lock, and asks, unless told not to. */
async function agrees({ options, terminal }: Task, info: LockInfo): Promise<boolean> {
  if (options.yes === true) {
    show(terminal, info, wallTime());
    return true;
  }
  if (!terminal.streams.stdin.isTTY)
    throw new UsageError("unlock asks first: use --yes if nobody can answer");
  // Whoever answers has to see it, also with --json, and while stdout is a file.
  show(terminal.onStderr, info, wallTime());
  return /^y(es)?$/i.test((await terminal.ask("Take it away? [y/N] ")).trim());
}

/** One look at a lock. */
export interface Seen {
  /** Monotonic milliseconds, before and after the answer. */
  readonly begun: number;
  readonly ended: number;
  readonly info: LockInfo | null;
  /** The longest TTL that each holder was seen with, by its owner id. */
  readonly longest: ReadonlyMap<string, number>;
}

async function lookAt(task: Task, before: Seen | undefined): Promise<Seen> {
  const begun = monotonic();
  const info = await inspect(task);
  const holders = info?.holders ?? [];
  const longest = holders.map(
    ({ ownerId: id, ttl }) => [id, Math.max(ttl, before?.longest.get(id) ?? 0)] as const,
  );
  return { begun, ended: monotonic(), info, longest: new Map(longest) };
}

export interface Change {
  readonly what: "free" | "granted" | "released" | "lapsed" | "waits" | "left";
  readonly who: string;
}

/** A holder's own clock ends a lease of `ms` earlier than Redis does, by this and the way of the command. */
const early = (ms: number): number => 0.01 * ms + 50;

/** What has happened between two looks. */
export function changesOf(before: Seen | undefined, now: Seen): Change[] {
  if (!before && !now.info) return [{ what: "free", who: "" }];
  const changes: Change[] = [];
  const [old, present] = [peopleOf(before?.info), peopleOf(now.info)];
  const elapsed = before ? now.ended - before.begun : 0;
  for (const [id, { who, ttl }] of old.holders) {
    if (present.holders.has(id)) continue;
    // If the lease can be over by now, nothing tells whether the hold was given back before, and it counts as lapsed.
    const isOver = ttl >= 0 && ttl <= elapsed + early(before?.longest.get(id) ?? ttl);
    changes.push({ what: isOver ? "lapsed" : "released", who });
  }
  for (const [id, who] of old.waiters)
    if (!present.waiters.has(id) && !present.holders.has(id)) changes.push({ what: "left", who });
  for (const [id, { who }] of present.holders)
    if (!old.holders.has(id)) changes.push({ what: "granted", who });
  for (const [id, who] of present.waiters) if (!old.waiters.has(id)) changes.push({ what: "waits", who });
  if (before?.info && !now.info) changes.push({ what: "free", who: "" });
  return changes;
}

function peopleOf(info: LockInfo | null | undefined): {
  readonly holders: ReadonlyMap<string, { who: string; ttl: number }>;
  readonly waiters: ReadonlyMap<string, string>;
} {
  const holders = (info?.holders ?? []).map(({ ownerId, client, ttl }) => {
    return [ownerId, { who: client ? `${client.label} ${ownerId}` : ownerId, ttl }] as const;
  });
  const told = (info?.waiting ?? []).map(({ ownerId, client, since }) => {
    return [ownerId ?? `${client?.id} ${since?.getTime()}`, nameOf(client, ownerId)] as const;
  });
  const queue = (info?.waiters ?? []).map((id) => [id, id] as const);
  return { holders: new Map(holders), waiters: new Map([...queue, ...told]) };
}
