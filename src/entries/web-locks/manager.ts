/** The lock manager of one client: it has a queue for each name, and does what concerns all of them. */
import type { LockClient } from "../../index.js";
import { checkSupported, checkTypes } from "./arguments.js";
import { lookAtOthers } from "./others.js";
import { WebLockRequest } from "./request.js";
import { RequestQueue } from "./request-queue.js";
import { StealNotices } from "./steal-notices.js";
import type { LockInfo, LockManager, LockManagerSnapshot } from "./types.js";

export class Manager implements LockManager {
  readonly #client: LockClient;
  readonly #queues = new Map<string, RequestQueue>();
  readonly #notices: StealNotices;

  constructor(client: LockClient) {
    this.#client = client;
    this.#notices = new StealNotices({ client, check: () => this.#check() });
  }

  get [Symbol.toStringTag](): string {
    return "LockManager";
  }

  // biome-ignore lint/suspicious/noExplicitAny: the interface tells what of it is what
  async request(...given: any[]): Promise<any> {
    const checked = checkTypes(given);
    const { name, signal } = checked;
    const queue = this.#queues.get(name) ?? this.#newQueue(name);
    checkSupported(checked);
    if (signal?.aborted) throw signal.reason;
    this.#queues.set(name, queue);
    const request = new WebLockRequest(checked);
    queue.add(request);
    return request.promise;
  }

  async query(): Promise<LockManagerSnapshot> {
    const asked = this.#pending;
    const others = await lookAtOthers(this.#client);
    // One after the other: the answer to one request lets the next one try.
    for (const request of asked) await request.answered;
    const { id: clientId } = this.#client;
    const tell = ({ name, mode }: WebLockRequest): LockInfo => ({ name, mode, clientId });
    const pending = this.#pending.filter(({ ifAvailable }) => !ifAvailable);
    return {
      held: [...this.#held.map(tell), ...others.held],
      pending: [...pending.map(tell), ...others.pending],
    };
  }

  get #held(): WebLockRequest[] {
    const held = [...this.#queues.values()].flatMap((queue) => [...queue.held]);
    return held.sort((a, b) => Number(a.hold?.acquiredAt) - Number(b.hold?.acquiredAt));
  }

  get #pending(): WebLockRequest[] {
    return [...this.#queues.values()].flatMap((queue) => queue.pending);
  }

  #newQueue(name: string): RequestQueue {
    const idle = () => this.#queues.delete(name);
    return new RequestQueue(name, { client: this.#client, notices: this.#notices, idle });
  }

  /** Asks Redis whether the locks of this process are still held; a hold that is not is lost then. */
  #check(): void {
    for (const { hold } of this.#held) {
      hold?.extend(1).catch(() => {
        // The signal of the hold reports it.
      });
    }
  }
}
