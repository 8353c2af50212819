/** `holdfast ls` and `holdfast waiters`: the locks that there are, and who waits for them. */
import { wallTime } from "../../base/platform.js";
import type { LockInfo, WaiterInfo } from "../../index.js";
import { numbersOf } from "../inspector/shown.js";
import { type Command, EXIT } from "./command.js";
import { ago, allLocks, nameOf, placeOf, tellOfPart } from "./locks.js";
import { EVERY, intervalOf, lookAgain } from "./look-again.js";
import { spell } from "./terminal.js";

/** A command that lists something of all locks, once or again and again. */
interface Listing<T> extends Pick<Command, "name" | "summary" | "details"> {
  readonly none: string;
  /** The head of each column, and what stands below it. */
  readonly columns: Readonly<Record<string, (one: T, now: number) => string>>;
  readonly listed: (found: readonly LockInfo[]) => readonly T[];
}

function listing<T>({ none, columns, listed, ...about }: Listing<T>): Command {
  return {
    ...about,
    usage: "[pattern]",
    options: { watch: { type: "boolean", short: "w", help: "repeats the list until Ctrl-C" }, every: EVERY },
    words: { least: 0, most: 1 },
    act: async (task) => {
      const { connect, words, terminal, options } = task;
      const every = intervalOf(task);
      const look = async () => {
        const all = listed(await allLocks(connect().client, words[0]));
        if (options.watch === true) terminal.clear();
        terminal.json(all);
        if (all.length === 0) return terminal.say(none, "dim");
        const now = wallTime();
        const rows = all.map((one) => Object.values(columns).map((cell) => cell(one, now)));
        terminal.table(Object.keys(columns), rows);
      };
      if (options.watch === true) return lookAgain(task, every, look);
      await look();
      await tellOfPart(task);
      return EXIT.ok;
    },
  };
}

export const ls: Command = listing<LockInfo>({
  name: "ls",
  summary: "lists what is held: by whom, where, since when, and how many wait",
  details: [
    "It finds the locks of every process, Java's too, by SCAN. The pattern is one of Redis, such as 'order:*'. A process",
    "reports holds and waits that are older than a second, within another second. Only it knows the shorter ones.",
  ],
  none: "Nothing is held.",
  listed: (found) => found,
  columns: {
    NAME: ({ name }) => name,
    KIND: ({ kind, mode }) => (mode ? `${kind}, ${mode}` : kind),
    HOLDER: (info) => {
      const [first, ...others] = info.holders;
      if (!first) return numbersOf(info);
      return `${nameOf(first.client, first.ownerId)}${others.length > 0 ? ` +${others.length}` : ""}`;
    },
    HOST: ({ holders: [first] }) => placeOf(first?.client)[0],
    PID: ({ holders: [first] }) => placeOf(first?.client)[1],
    SINCE: ({ holders: [first] }, now) => ago(first?.since ?? null, now),
    TTL: ({ ttl }) => (ttl >= 0 ? spell(ttl) : ""),
    WAITING: (info) => String(waitersOf(info).length || ""),
  },
});

export const waiters: Command = listing<Waiting>({
  name: "waiters",
  summary: "lists who waits, for what, since when, and what it holds meanwhile",
  none: "Nobody waits.",
  listed: (found) => found.flatMap(waitersOf),
  columns: {
    NAME: ({ name }) => name,
    KIND: ({ kind }) => kind,
    WAITER: ({ client, ownerId }) => nameOf(client, ownerId),
    HOST: ({ client }) => placeOf(client)[0],
    PID: ({ client }) => placeOf(client)[1],
    SINCE: ({ since }, now) => ago(since, now),
    HOLDS: ({ holds }) => holds.join(", "),
  },
});

type Waiting = Pick<LockInfo, "name" | "kind"> & WaiterInfo;

/** The waiters that clients tell of, and those of the server's queue that none tells of, such as Java's. */
function waitersOf({ name, kind, waiting, waiters: queue }: LockInfo): Waiting[] {
  const told = new Set(waiting.map(({ ownerId }) => ownerId));
  const silent = queue.filter((ownerId) => !told.has(ownerId));
  return [
    ...waiting.map((waiter) => ({ name, kind, ...waiter })),
    ...silent.map((ownerId) => ({ name, kind, ownerId, client: null, since: null, holds: [] })),
  ];
}
