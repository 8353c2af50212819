/**
 * One Redis with clients of both sides. The tests run with each Redisson that was built; if none could be built, each
 * test is skipped with the reason.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, inject } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { isAtLeast, type RedisServer, startRedis, UNHURRIED } from "../support/index.js";
import { JavaClient, type JavaOptions, type JavaThread } from "./java.js";
import { type Driver, Jvm, SharedJvm } from "./jvm.js";
import type { Running } from "./shared.js";

/** Describes `what` for each Redisson; `define` is called while tests are collected, and uses its scene inside them. */
export function withRedisson(what: string, define: (scene: Scene) => void): void {
  withScene(what, (built) => new Scene(built), define);
}

/** The same with a scene of another class. */
export function withScene<S extends { open(): Promise<void>; close(): Promise<void> }>(
  what: string,
  make: (built: Running) => S,
  define: (scene: S) => void,
): void {
  for (const built of oneReason(inject("sharedRedisson"))) {
    const title = "missing" in built ? what : `${what}, Redisson ${built.version}`;
    describe(title, () => {
      const scene = make(built);
      beforeAll(() => scene.open());
      afterAll(() => scene.close());
      beforeEach((context) => {
        if ("missing" in built) context.skip(built.missing);
      });
      define(scene);
    });
  }
}

/** If there is no Redisson at all, the reason is given once instead of for each version. */
function oneReason(built: readonly Running[]): readonly Running[] {
  return built.some((each) => "classpath" in each) ? built : built.slice(0, 1);
}

export class Scene {
  readonly #built: Running;
  readonly #clients = new Set<LockClient>();
  readonly #jvms = new Set<Jvm>();
  #server: RedisServer | undefined;
  #redis: Redis | undefined;
  #shared: SharedJvm | undefined;
  #java: JavaClient | undefined;
  #node: LockClient | undefined;
  #lastName = 0;
  #lastThread = 0;

  constructor(built: Running) {
    this.#built = built;
  }

  /** True if there is no Redisson; then a test's own set-up must do nothing. */
  get isMissing(): boolean {
    return "missing" in this.#built;
  }

  get version(): string {
    return this.#built.version;
  }

  /** True if this Redisson has that version or a later one. */
  atLeast(version: string): boolean {
    return isAtLeast(this.version, version);
  }

  get server(): RedisServer {
    return there(this.#server);
  }

  /** A connection to look at the server, past both sides. */
  get redis(): Redis {
    return there(this.#redis);
  }

  get java(): JavaClient {
    return there(this.#java);
  }

  get node(): LockClient {
    return there(this.#node);
  }

  /** A name that was not used before. */
  name(shape: (unique: string) => string = (unique) => unique): string {
    return shape(`n${++this.#lastName}-${this.version}`);
  }

  /** A thread that was not used before. */
  thread(client: JavaClient = this.java): Promise<JavaThread> {
    return client.thread(`thread-${++this.#lastThread}`);
  }

  /** Another client in Node; closed at the end. */
  newNode(options: LockClientOptions = {}): LockClient {
    const client = new LockClient(this.server.connect(), { ...UNHURRIED, ...options });
    this.#clients.add(client);
    return client;
  }

  /** Another client in Java, in the JVM that all files share or in a given one. */
  newJava(options: JavaOptions = {}, jvm: Driver = there(this.#shared)): Promise<JavaClient> {
    return JavaClient.connect(jvm, { url: this.server.url, ...options });
  }

  /** A JVM that a test may pause and kill; killed at the end. */
  newJvm(): Jvm {
    const jvm = new Jvm(this.#built);
    this.#jvms.add(jvm);
    return jvm;
  }

  async open(): Promise<void> {
    if ("missing" in this.#built) return;
    this.#shared = new SharedJvm(this.#built.port);
    this.#server = await startRedis();
    this.#redis = this.#server.connect();
    this.#node = this.newNode();
    this.#java = await this.newJava();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.close({ timeout: 0 })));
    await Promise.all([this.#shared?.close(), ...[...this.#jvms].map((jvm) => jvm.kill())]);
    await this.#server?.stop();
  }
}

export function there<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the scene is there inside tests only");
  return part;
}
