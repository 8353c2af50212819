/**
 * Undoes in the background what calls that were given up may have left on the server, and limits how much an outage piles up.
 *
 * Few of its commands may be unanswered at a time. So in an outage ioredis keeps only the calls themselves. After the
 * outage new calls find the connection free, as renewals always do. Undos that gather meanwhile go together.
 */
import { RedisUnavailableError } from "../base/errors.js";
import { quietly } from "../base/work.js";
import type { Server, Servers } from "./servers.js";

/** So many calls of one client may be given up and unfinished in the background; with more, new calls are refused. */
export const MOST_UNFINISHED = 10_000;
/** Commands that may be unanswered at a time, for each server. A new call may have to wait for so many. */
const COMMANDS = 32;
/** How many of these may be for one lock. While they are unanswered, undos gather that one command can do together. */
const COMMANDS_PER_LOCK = 4;
/** Calls that one command undoes. A script for many calls takes long, and the server does nothing else meanwhile. */
const BATCH = 500;

/** Undoes calls for one lock. */
export interface Undoer {
  /** The lock's key: it says which server the lock is on. */
  readonly key: string;
  /** Undoers of the same name do the same. */
  readonly name: string;
  /** One command can undo many calls. */
  readonly together: boolean;
  /**
   * Undoes the call of this id (with `together` the calls of these ids) by one command, sent until the server answers.
   */
  undo(ids: readonly string[]): Promise<unknown>;
}

interface Entry {
  readonly id: string;
  readonly done: () => void;
}

/** The calls that one undoer is to undo. */
interface Group {
  readonly undoer: Undoer;
  readonly waiting: Entry[];
  commands: number;
}

/** The undos for one server. The group that has waited longest comes first. */
interface Lane {
  readonly groups: Map<string, Group>;
  commands: number;
}

export class CleanUp {
  /** Commands that were given up but are still with ioredis, which cannot be told to drop them. */
  readonly abandoned: Set<object> = new Set();
  readonly #servers: Servers;
  readonly #lanes = new Map<Server, Lane>();
  #size = 0;
  #closed = false;

  constructor(servers: Servers) {
    this.#servers = servers;
  }

  /** Calls that are not undone yet. */
  get size(): number {
    return this.#size;
  }

  /**
   * The error that refuses one more call; undefined if there is room for it. Asked before the call is sent, since a
   * call that was not sent leaves nothing to undo.
   */
  refusal(lockName: string): RedisUnavailableError | undefined {
    const unfinished = Math.max(this.abandoned.size, this.#size);
    if (unfinished < MOST_UNFINISHED) return undefined;
    const why = `not sent, since ${unfinished} calls that were given up are still unfinished`;
    return new RedisUnavailableError(lockName, new Error(why));
  }

  /** Resolves when the call of this id is undone, or cannot be. */
  add(id: string, undoer: Undoer): Promise<void> {
    if (this.#closed) return quietly(undoer.undo([id]));
    const server = this.#servers.of(undoer.key);
    const lane = this.#lanes.get(server) ?? { groups: new Map<string, Group>(), commands: 0 };
    this.#lanes.set(server, lane);
    const group = lane.groups.get(undoer.name) ?? { undoer, waiting: [], commands: 0 };
    lane.groups.set(undoer.name, group);
    return new Promise((done) => {
      group.waiting.push({ id, done });
      this.#size++;
      this.#fill(lane);
    });
  }

  /** Sends all undos that wait, once: after the close nobody looks after them any more. */
  close(): void {
    this.#closed = true;
    for (const lane of this.#lanes.values()) {
      for (const group of lane.groups.values()) while (group.waiting.length > 0) void this.#send(lane, group);
    }
  }

  /** Sends as many undos as the limits allow. */
  #fill(lane: Lane): void {
    for (const [name, group] of lane.groups) {
      while (group.waiting.length > 0 && group.commands < COMMANDS_PER_LOCK) {
        if (lane.commands === COMMANDS) return;
        void this.#send(lane, group).then(() => this.#fill(lane));
      }
      if (group.commands === 0) lane.groups.delete(name);
    }
  }

  /** Sends one command for calls of a group; resolves when it has been answered. Never rejects. */
  async #send(lane: Lane, group: Group): Promise<void> {
    const { undoer } = group;
    // The last calls go first, because a waiter that leaves a queue moves all waiters behind it.
    const calls = group.waiting.splice(undoer.together ? -BATCH : -1);
    group.commands++;
    lane.commands++;
    await quietly(undoer.undo(calls.map(({ id }) => id)));
    group.commands--;
    lane.commands--;
    this.#size -= calls.length;
    for (const { done } of calls) done();
  }
}
