/** One process of a peer with one client: what every fault asks of it, whether it is Node or a JVM. Owns the process. */
import { JavaClient, type JavaLock } from "../interop/java.js";
import { Jvm } from "../interop/jvm.js";
import { startWorker, type Worker } from "../support/index.js";
import type { Peer } from "./peers.js";

/**
 * Milliseconds for which a hold lasts unless it is renewed: the default of most. Far longer than what a busy machine needs for a
 * failover, so that half of it tells "soon" from "when it has ended".
 */
export const LEASE = 30_000;

/** The way to Redis. */
export type Way =
  | { readonly host: string; readonly port: number }
  | { readonly sentinels: { readonly host: string; readonly port: number }[]; readonly name: string };

export interface Side extends AsyncDisposable {
  /** Waits for as long as it takes. */
  take(name: string): Promise<unknown>;
  /** Once more, for the owner that has it; only of a peer that is reentrant. */
  takeAgain(name: string): Promise<unknown>;
  giveBack(name: string): Promise<unknown>;
  /** Tries once, for another owner, and gives back what it got. */
  isFree(name: string): Promise<boolean>;
  /** What it says of its own hold; undefined if it has no word for that. */
  isHeld(name: string): Promise<boolean | undefined>;
  /** Stops the process while `act` runs; resolves with `isHeld` of the first moment after. */
  isHeldAfterStop(name: string, act: () => Promise<void>): Promise<boolean | undefined>;
  /** The names of locks that it was told to have lost, without asking. */
  readonly told: readonly string[];
  /** Rejections that nobody hears: they end a process, unless it says otherwise. */
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

/** Each call on a thread of its own kind: to Redisson a thread is an owner. */
class JavaSide implements Side {
  /** Redisson has no call for it. */
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
