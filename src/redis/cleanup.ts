/**
 * Undoes in the background what calls that were given up may have left on the server.
 *
 * Few of its commands are unanswered at a time. So an outage piles up nothing in ioredis but the calls themselves; after it
 * calls that are new find the connection free, as renewals always do; and what gathers meanwhile leaves together.
 */

/** Commands that may be unanswered at a time, for each server: what a new call may have to wait for. */
const COMMANDS = 32;
/** Of these, commands for one lock: while they are out, undos gather that one command can do together. */
const COMMANDS_PER_LOCK = 4;
/** Calls that all these commands undo: a script for many takes long, and the server does nothing else meanwhile. */
const CALLS = 500;

/** Undoes calls for one lock. */
export interface Undoer {
  /** The lock's key: it says which server the lock is on. */
  readonly key: string;
  /** Undoers of one name do the same. */
  readonly name: string;
  /** One command can undo many calls. */
  readonly together: boolean;
  /** Undoes the call of this id, or the calls of these if `together`, by one command that is sent until it is answered. */
  undo(ids: readonly string[]): Promise<unknown>;
}

interface Entry {
  readonly id: string;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** What waits for one undoer. */
interface Group {
  readonly undoer: Undoer;
  waiting: Entry[];
  /** Those that go before them; the next one is the last. */
  next: Entry[];
  commands: number;
}

/** What goes to one server, those who waited longest first. */
interface Lane {
  readonly groups: Map<string, Group>;
  commands: number;
  calls: number;
}

const isWaiting = ({ waiting, next }: Group): boolean => waiting.length + next.length > 0;

export class CleanUp {
  readonly #serverOf: (key: string) => string;
  readonly #lanes = new Map<string, Lane>();
  #size = 0;
  #closed = false;

  /** `serverOf` names the server that has a key. */
  constructor(serverOf: (key: string) => string) {
    this.#serverOf = serverOf;
  }

  /** Calls that are not undone yet. */
  get size(): number {
    return this.#size;
  }

  /** Settles when the call of this id is undone. */
  add(id: string, undoer: Undoer): Promise<unknown> {
    if (this.#closed) return undoer.undo([id]);
    const server = this.#serverOf(undoer.key);
    let lane = this.#lanes.get(server);
    if (!lane) {
      lane = { groups: new Map(), commands: 0, calls: 0 };
      this.#lanes.set(server, lane);
    }
    let group = lane.groups.get(undoer.name);
    if (!group) {
      group = { undoer, waiting: [], next: [], commands: 0 };
      lane.groups.set(undoer.name, group);
    }
    const { waiting } = group;
    const undone = new Promise<void>((resolve, reject) => waiting.push({ id, resolve, reject }));
    this.#size++;
    this.#fill(server, lane);
    return undone;
  }

  /** Sends all that waits, once: nobody looks after it any more. */
  close(): void {
    this.#closed = true;
    for (const lane of this.#lanes.values()) {
      for (const group of lane.groups.values()) while (isWaiting(group)) void this.#send(lane, group);
    }
  }

  /** Sends what may be sent now. */
  #fill(server: string, lane: Lane): void {
    for (const [name, group] of lane.groups) {
      while (isWaiting(group) && group.commands < COMMANDS_PER_LOCK) {
        if (lane.commands === COMMANDS || lane.calls === CALLS) return;
        void this.#send(lane, group).then(() => this.#fill(server, lane));
      }
      if (!isWaiting(group) && group.commands === 0) lane.groups.delete(name);
    }
    if (lane.groups.size === 0 && this.#lanes.get(server) === lane) this.#lanes.delete(server);
  }

  /** Settles as the command for the first of a group has been answered; never rejects. */
  async #send(lane: Lane, group: Group): Promise<void> {
    const { undoer } = group;
    const room = this.#closed ? CALLS : CALLS - lane.calls;
    // Who came last goes first: a waiter that leaves a queue moves all behind it. But nobody for whom newer ones have waited.
    if (group.next.length === 0) [group.next, group.waiting] = [group.waiting, []];
    const calls = group.next.splice(undoer.together ? -room : -1);
    group.commands++;
    lane.commands++;
    lane.calls += calls.length;
    try {
      await undoer.undo(calls.map(({ id }) => id));
      for (const { resolve } of calls) resolve();
    } catch (error) {
      for (const { reject } of calls) reject(error);
    } finally {
      group.commands--;
      lane.commands--;
      lane.calls -= calls.length;
      this.#size -= calls.length;
    }
  }
}
