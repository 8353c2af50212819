/**
 * Undoes in the background what calls that were given up may have left on the server.
 *
 * Few of its commands may be unanswered at a time. So in an outage ioredis keeps only the calls themselves. After the
 * outage new calls find the connection free, as renewals always do. Undos that gather meanwhile go together.
 */

/** Commands that may be unanswered at a time, for each server. A new call may have to wait for so many. */
const COMMANDS = 32;
/** How many of these may be for one lock. While they are unanswered, undos gather that one command can do together. */
const COMMANDS_PER_LOCK = 4;
/**
 * Calls that all these commands undo. A script for many calls takes long, and the server does nothing else meanwhile.
 */
const CALLS = 500;

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
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

/** The calls that one undoer is to undo. */
interface Group {
  readonly undoer: Undoer;
  waiting: Entry[];
  /** Calls that go before those in `waiting`; the last one goes first. */
  next: Entry[];
  commands: number;
}

/** The undos for one server. The group that has waited longest comes first. */
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
    this.#fill(lane);
    return undone;
  }

  /** Sends all undos that wait, once: after the close nobody looks after them any more. */
  close(): void {
    this.#closed = true;
    for (const lane of this.#lanes.values()) {
      for (const group of lane.groups.values()) while (isWaiting(group)) void this.#send(lane, group);
    }
  }

  /** Sends as many undos as the limits allow. */
  #fill(lane: Lane): void {
    for (const [name, group] of lane.groups) {
      while (isWaiting(group) && group.commands < COMMANDS_PER_LOCK) {
        if (lane.commands === COMMANDS || lane.calls === CALLS) return;
        void this.#send(lane, group).then(() => this.#fill(lane));
      }
      if (!isWaiting(group) && group.commands === 0) lane.groups.delete(name);
    }
  }

  /** Sends one command for the first calls of a group; resolves when it has been answered. Never rejects. */
  async #send(lane: Lane, group: Group): Promise<void> {
    const { undoer } = group;
    const room = this.#closed ? CALLS : CALLS - lane.calls;
    // The last call goes first, because a waiter that leaves a queue moves all waiters behind it. Calls that come later
    // wait until this batch is gone, so no call waits for ever.
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
