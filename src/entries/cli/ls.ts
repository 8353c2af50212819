/** `holdfast ls`: the locks that there are. */

import { wallTime } from "../../base/platform.js";
import type { LockInfo } from "../../index.js";
import { numbersOf } from "../inspector/shown.js";
import { type Command, EXIT, type Task } from "./command.js";
import { ago, allLocks, nameOf, placeOf, tellOfPart } from "./locks.js";
import { EVERY, intervalOf, lookAgain } from "./look-again.js";
import { spell, type Terminal } from "./terminal.js";

export const ls: Command = {
  name: "ls",
  usage: "[pattern]",
  summary: "lists what is held: by whom, where, since when, and how many wait",
  details: [
    "It finds the locks of every process, Java's too, by SCAN. The pattern is one of Redis, such as 'order:*'. A process",
    "reports holds and waits that are older than a second, within another second. Only it knows the shorter ones.",
  ],
  options: { watch: { type: "boolean", short: "w", help: "repeats the list until Ctrl-C" }, every: EVERY },
  words: { least: 0, most: 1 },
  act: (task) => again(task, () => list(task)),
};

export const waiters: Command = {
  name: "waiters",
  usage: "[pattern]",
  summary: "lists who waits, for what, since when, and what it holds meanwhile",
  options: { watch: { type: "boolean", short: "w", help: "repeats the list until Ctrl-C" }, every: EVERY },
  words: { least: 0, most: 1 },
  act: (task) => again(task, () => listWaiters(task)),
};

async function again(task: Task, once: () => Promise<void>): Promise<number> {
  const every = intervalOf(task);
  if (task.options.watch === true) return lookAgain(task, every, once);
  await once();
  await tellOfPart(task);
  return EXIT.ok;
}

async function list({ connect, words, terminal, options }: Task): Promise<void> {
  const found = await allLocks(connect().client, words[0]);
  if (options.watch === true) terminal.clear();
  show(terminal, found);
}

function show(terminal: Terminal, found: readonly LockInfo[]): void {
  terminal.json(found);
  if (found.length === 0) return terminal.say("Nothing is held.", "dim");
  const now = wallTime();
  terminal.table(
    ["NAME", "KIND", "HOLDER", "HOST", "PID", "SINCE", "TTL", "WAITING"],
    found.map((info) => rowOf(info, now)),
  );
}

function rowOf(info: LockInfo, now: number): string[] {
  const { name, kind, mode, holders, ttl } = info;
  const [first] = holders;
  const others = holders.length > 1 ? ` +${holders.length - 1}` : "";
  const holder = first ? `${nameOf(first.client, first.ownerId)}${others}` : numbersOf(info);
  const waiting = waitingOf(info);
  return [
    name,
    mode ? `${kind}, ${mode}` : kind,
    holder,
    ...placeOf(first?.client),
    first ? ago(first.since, now) : "",
    ttl >= 0 ? spell(ttl) : "",
    waiting > 0 ? String(waiting) : "",
  ];
}

/** Counts the waiters of the server's queue, where those of Java are, and the waiters that only clients tell of. */
function waitingOf({ waiters: queue, waiting }: LockInfo): number {
  const told = waiting.filter(({ ownerId }) => ownerId === undefined || !queue.includes(ownerId));
  return queue.length + told.length;
}

async function listWaiters({ connect, words, terminal, options }: Task): Promise<void> {
  const found = await allLocks(connect().client, words[0]);
  if (options.watch === true) terminal.clear();
  const now = wallTime();
  const rows = found.flatMap(({ name, kind, waiting, waiters: queue }) => {
    const told = waiting.map((waiter) => ({ name, kind, ...waiter }));
    const ids = new Set(waiting.map(({ ownerId }) => ownerId));
    const silent = queue.filter((ownerId) => !ids.has(ownerId));
    return [
      ...told,
      ...silent.map((ownerId) => ({
        name,
        kind,
        ownerId,
        client: null,
        since: null,
        toldAt: null,
        holds: [],
      })),
    ];
  });
  terminal.json(rows);
  if (rows.length === 0) return terminal.say("Nobody waits.", "dim");
  terminal.table(
    ["NAME", "KIND", "WAITER", "HOST", "PID", "SINCE", "TOLD", "HOLDS"],
    rows.map(({ name, kind, client, ownerId, since, toldAt, holds }) => [
      name,
      kind,
      nameOf(client, ownerId),
      ...placeOf(client),
      ago(since, now),
      toldAt ? `${ago(toldAt, now)} ago` : "",
      holds.join(", "),
    ]),
  );
}
