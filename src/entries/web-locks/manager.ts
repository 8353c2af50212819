/** The lock manager of one client: it has a queue for each name, and does what concerns all of them. */
import type { LockClient } from "../../index.js";
import { checkSupported, checkTypes } from "./arguments.js";
import { OpenTries } from "./open-tries.js";
import { lookAtOthers } from "./others.js";
import { WebLockRequest } from "./request.js";
import { RequestQueue } from "./request-queue.js";
import { StealNotices } from "./steal-notices.js";
import type { LockInfo, LockManager, LockManagerSnapshot } from "./types.js";

export class Manager implements LockManager {
  readonly #client: LockClient;
  readonly #queues = new Map<string, RequestQueue>();
  readonly #notices: StealNotices;
  readonly #tries = new OpenTries();
  #last = 0;
  #rehearsed: Promise<void> | undefined;

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
    const request = new WebLockRequest(checked, ++this.#last);
    queue.add(request);
    return request.promise;
  }

  async query(): Promise<LockManagerSnapshot> {
    const last = this.#last;
    const others = await lookAtOthers(this.#client);
    await this.#tries.settled(last);
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
    const rehearsed = () => this.#rehearse();
    return new RequestQueue(name, {
      client: this.#client,
      notices: this.#notices,
      tries: this.#tries,
      rehearsed,
      idle,
    });
  }

  /**
   * Releases by force a lock that nobody has, once. From then on Redis knows the scripts: otherwise waiters elsewhere
   * could overtake a request that steals, while a script is loaded.
   */
  #rehearse(): Promise<void> {
    const lock = this.#client.getReadWriteLock("-web-locks");
    const forced = () => Promise.all([lock.writeLock().forceUnlock(), lock.readLock().forceUnlock()]);
    this.#rehearsed ??= forced().then(
      () => {},
      () => {
        // A failure does no harm: the rehearsal only makes that less likely.
      },
    );
    return this.#rehearsed;
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
