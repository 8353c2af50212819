/** Semaphores and latches with one interface for both sides, so that a case is written once for both directions. */
import type { LockClient, PermitExpirableSemaphore } from "../../../src/index.js";
import { latchChannel, NEVER } from "../../synchronizers/helpers.js";
import type { JavaThread } from "../java.js";
import { Parking } from "../parking.js";
import type { Scene } from "../scene.js";

export type Side = "Java" | "Node";

/** The side that acts, and the side that sees it. */
export const DIRECTIONS: [from: Side, to: Side][] = [
  ["Java", "Node"],
  ["Node", "Java"],
];

/** Names that are more than a word. */
export const NAMES: [what: string, shape: (unique: string) => string][] = [
  ["braces", (unique) => `{${unique}}:desk`],
  ["braces in the middle", (unique) => `floor{${unique}}desk`],
  ["colons", (unique) => `room:${unique}:desk`],
  ["spaces", (unique) => `room ${unique} desk`],
  ["letters beyond ASCII", (unique) => `größe-部屋-🔒-${unique}`],
];

export interface AnySemaphore {
  trySetPermits(permits: number): Promise<boolean>;
  acquire(permits?: number): Promise<unknown>;
  tryAcquire(permits?: number, wait?: number): Promise<boolean>;
  release(permits?: number): Promise<unknown>;
  addPermits(permits: number): Promise<unknown>;
  availablePermits(): Promise<number>;
  drainPermits(): Promise<number>;
}

export interface AnyPermits {
  trySetPermits(permits: number): Promise<boolean>;
  setPermits(permits: number): Promise<unknown>;
  addPermits(permits: number): Promise<unknown>;
  acquire(lease?: number): Promise<string>;
  tryAcquire(wait?: number, lease?: number): Promise<string | null>;
  release(permitId: string): Promise<unknown>;
  tryRelease(permitId: string): Promise<boolean>;
  updateLeaseTime(permitId: string, lease: number): Promise<boolean>;
  availablePermits(): Promise<number>;
  acquiredPermits(): Promise<number>;
  getPermits(): Promise<number>;
}

export interface AnyLatch {
  trySetCount(count: number): Promise<boolean>;
  countDown(): Promise<unknown>;
  await(wait?: number): Promise<boolean>;
  getCount(): Promise<number>;
}

interface Faces<T> {
  readonly channelOf: (name: string) => string;
  readonly java: (thread: JavaThread, name: string) => T;
  readonly node: (client: LockClient, name: string) => T;
}

/** The channel of permits of either kind. */
const semaphoreChannel = (name: string) => `redisson_sc:${name.includes("{") ? name : `{${name}}`}`;

export const SEMAPHORE: Faces<AnySemaphore> = {
  channelOf: semaphoreChannel,
  java: (thread, name) => thread.semaphore(name),
  node: (client, name) => client.getSemaphore(name),
};

export const PERMITS: Faces<AnyPermits> = {
  channelOf: semaphoreChannel,
  java: (thread, name) => thread.permits(name),
  node: (client, name) => asJavaHasIt(client.getPermitExpirableSemaphore(name)),
};

export const LATCH: Faces<AnyLatch> = {
  channelOf: latchChannel,
  java: (thread, name) => thread.latch(name),
  node: (client, name) => client.getCountDownLatch(name),
};

/** Node's permits with Java's arguments: the lease is a separate one. */
function asJavaHasIt(permits: PermitExpirableSemaphore): AnyPermits {
  return {
    trySetPermits: (count) => permits.trySetPermits(count),
    setPermits: (count) => permits.setPermits(count),
    addPermits: (count) => permits.addPermits(count),
    acquire: (lease) => permits.acquire({ lease }),
    tryAcquire: (wait, lease) => permits.tryAcquire(wait, lease),
    release: (id) => permits.release(id),
    tryRelease: (id) => permits.tryRelease(id),
    updateLeaseTime: (id, lease) => permits.updateLeaseTime(id, lease),
    availablePermits: () => permits.availablePermits(),
    acquiredPermits: () => permits.acquiredPermits(),
    getPermits: () => permits.getPermits(),
  };
}

/** A semaphore or latch of one name, as several clients see it. */
export class Shared<T> implements Readonly<Record<Side, T>> {
  readonly name: string;
  readonly channel: string;
  readonly Java: T;
  readonly Node: T;
  readonly waiters: Parking;
  readonly #scene: Scene;
  readonly #faces: Faces<T>;

  private constructor(scene: Scene, faces: Faces<T>, name: string, java: T) {
    this.#scene = scene;
    this.#faces = faces;
    this.name = name;
    this.channel = faces.channelOf(name);
    this.Java = java;
    this.Node = faces.node(scene.node, name);
    const listeners = async () => {
      const [, count] = (await scene.redis.pubsub("NUMSUB", this.channel)) as [string, number];
      return count;
    };
    this.waiters = new Parking(listeners, () => this.#settle());
  }

  static async of<T>(scene: Scene, faces: Faces<T>, name: string = scene.name()): Promise<Shared<T>> {
    return new Shared(scene, faces, name, faces.java(await scene.thread(), name));
  }

  /** A party for a call that waits: a Java thread of its own, or a Node client that hardly polls. */
  async other(side: Side): Promise<T> {
    if (side === "Java") return this.#faces.java(await this.#scene.thread(), this.name);
    return this.#faces.node(this.#scene.newNode({ pollCap: NEVER }), this.name);
  }

  /** The same by another Redisson client; if that has a new JVM, the test may kill it. */
  async ofJava(...client: Parameters<Scene["thread"]>): Promise<T> {
    return this.#faces.java(await this.#scene.thread(...client), this.name);
  }

  /** The value of the key with the name. */
  value(): Promise<string | null> {
    return this.#scene.redis.get(this.name);
  }

  /** Goes to Redis and back, twice on each side. */
  async #settle(): Promise<void> {
    const java = (await this.#scene.java.thread("settle")).semaphore("settle");
    const node = this.#scene.node.getSemaphore("settle");
    for (let i = 0; i < 2; i++) await Promise.all([java.availablePermits(), node.availablePermits()]);
  }
}
