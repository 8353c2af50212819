/** A process of a peer with one client: every fault uses it in the same way, be it Node or a JVM. Owns the process. */
import { JavaClient, type JavaLock } from "../../test/interop/java.js";
import { Jvm } from "../../test/interop/jvm.js";
import { startWorker, type Worker } from "../../test/support/worker.js";
import type { Peer } from "./peers.js";

/**
 * Milliseconds that a hold lasts unless it is renewed: the default of most libraries. Far longer than a failover on a
 * busy machine, so that half of it separates "soon" from "when the lease has ended".
 */
export const LEASE = 30_000;

/** How to reach Redis. */
export type Way =
  | { readonly host: string; readonly port: number }
  | { readonly sentinels: { readonly host: string; readonly port: number }[]; readonly name: string };

export interface Side extends AsyncDisposable {
  /** Waits as long as necessary. */
  take(name: string): Promise<unknown>;
  /** Once more, for the owner that holds the lock; only for a reentrant peer. */
  takeAgain(name: string): Promise<unknown>;
  giveBack(name: string): Promise<unknown>;
  /** Tries once, for another owner, and gives back what it took. */
  isFree(name: string): Promise<boolean>;
  /** What the library says of its own hold; undefined if it has no call for that. */
  isHeld(name: string): Promise<boolean | undefined>;
  /** Stops the process while `act` runs; resolves with `isHeld` of the first moment after. */
  isHeldAfterStop(name: string, act: () => Promise<void>): Promise<boolean | undefined>;
  /** Names of the locks of whose loss the library told, without being asked. */
  readonly told: readonly string[];
  /** Rejections that nobody handled: by default each would end the process. */
  readonly unhandled: readonly string[];
}

export function startSide(peer: Peer, way: Way, options: object = {}): Promise<Side> {
  return peer.driver === undefined ? NodeSide.start(peer, way, options) : JavaSide.start(peer.driver, way);
}

class NodeSide implements Side {
  readonly told: string[] = [];
  readonly unhandled: string[] = [];
  readonly #worker: Worker;

  private constructor(worker: Worker) {
    this.#worker = worker;
    worker.on(({ type, payload }) => {
      if (type === "told") this.told.push(String(payload));
      if (type === "unhandled") this.unhandled.push(String(payload));
    });
  }

  static async start({ id }: Peer, redis: Way, options: object): Promise<NodeSide> {
    const worker = await startWorker(new URL("worker.mjs", import.meta.url));
    await worker.request("connect", { adapter: id, redis, lease: LEASE, options });
    return new NodeSide(worker);
  }

  take = (name: string): Promise<unknown> => this.#worker.request("take", name);
  takeAgain = (name: string): Promise<unknown> => this.#worker.request("takeAgain", name);
  giveBack = (name: string): Promise<unknown> => this.#worker.request("giveBack", name);
  isFree = (name: string): Promise<boolean> => this.#worker.request("isFree", name);
  isHeld = (name: string): Promise<boolean | undefined> => this.#worker.request("isHeld", name);

  async isHeldAfterStop(name: string, act: () => Promise<void>): Promise<boolean | undefined> {
    const isReady = this.#worker.next("ready to stop");
    const isHeld = this.#worker.request<boolean | undefined>("isHeldAfterStop", { name, ms: LEASE / 2 });
    await isReady;
    this.#worker.pause();
    await act().finally(() => this.#worker.resume());
    return isHeld;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#worker.kill();
  }
}

/** The owner's calls run on one thread and another owner's on a second one: to Redisson a thread is an owner. */
class JavaSide implements Side {
  /** Empty, because Redisson does not tell of a loss. */
  readonly told: string[] = [];
  readonly unhandled: string[] = [];
  readonly #jvm: Jvm;
  readonly #client: JavaClient;

  private constructor(jvm: Jvm, client: JavaClient) {
    this.#jvm = jvm;
    this.#client = client;
  }

  static async start(driver: { version: string; classpath: string }, way: Way): Promise<JavaSide> {
    const jvm = new Jvm(driver);
    const url = ({ host, port }: { host: string; port: number }): string => `redis://${host}:${port}`;
    const to = "port" in way ? { url: url(way) } : { sentinels: way.sentinels.map(url), master: way.name };
    return new JavaSide(jvm, await JavaClient.connect(jvm, { ...to, asItComes: true, watchdog: LEASE }));
  }

  take = async (name: string): Promise<unknown> => (await this.#lock(name)).lock();
  takeAgain = (name: string): Promise<unknown> => this.take(name);
  giveBack = async (name: string): Promise<unknown> => (await this.#lock(name)).unlock();
  isHeld = async (name: string): Promise<boolean> => (await this.#lock(name)).isHeldByCurrentThread();

  async isFree(name: string): Promise<boolean> {
    const lock = await this.#lock(name, "another");
    if (!(await lock.tryLock())) return false;
    await lock.unlock();
    return true;
  }

  async isHeldAfterStop(name: string, act: () => Promise<void>): Promise<boolean> {
    this.#jvm.pause();
    await act().finally(() => this.#jvm.resume());
    return this.isHeld(name);
  }

  async #lock(name: string, thread = "main"): Promise<JavaLock> {
    return (await this.#client.thread(thread)).lock("lock", name);
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#jvm.kill();
  }
}
