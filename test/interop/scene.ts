/**
 * One Redis with both sides at it. What is tested is run with each Redisson that was built; where none could be, each
 * test is skipped and says why.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, inject } from "vitest";
import { LockClient, type LockClientOptions } from "../../src/index.js";
import { isAtLeast, type RedisServer, startRedis, UNHURRIED } from "../support/index.js";
import type { Built } from "./build.js";
import { JavaClient, type JavaOptions, type JavaThread } from "./java.js";
import { Jvm } from "./jvm.js";

/** Describes `what` for each Redisson; `define` is called while tests are collected, its scene used inside them. */
export function withRedisson(what: string, define: (scene: Scene) => void): void {
  withScene(what, (built) => new Scene(built), define);
}

/** Likewise, with a scene of another make. */
export function withScene<S extends { open(): Promise<void>; close(): Promise<void> }>(
  what: string,
  make: (built: Built) => S,
  define: (scene: S) => void,
): void {
  for (const built of oneReason(inject("redisson"))) {
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

/** Where there is no Redisson at all, the reason is told once and not for each version. */
function oneReason(built: readonly Built[]): readonly Built[] {
  return built.some((each) => "classpath" in each) ? built : built.slice(0, 1);
}

export class Scene {
  readonly #built: Built;
  readonly #clients = new Set<LockClient>();
  readonly #jvms = new Set<Jvm>();
  #server: RedisServer | undefined;
  #redis: Redis | undefined;
  #jvm: Jvm | undefined;
  #java: JavaClient | undefined;
  #node: LockClient | undefined;
  #lastName = 0;
  #lastThread = 0;

  constructor(built: Built) {
    this.#built = built;
  }

  /** True if there is no Redisson; set-up of a test's own has nothing to do then. */
  get isMissing(): boolean {
    return "missing" in this.#built;
  }

  get version(): string {
    return this.#built.version;
  }

  /** True if this Redisson is that version or later. */
  atLeast(version: string): boolean {
    return isAtLeast(this.version, version);
  }

  get server(): RedisServer {
    return there(this.#server);
  }

  /** To look with, past both sides. */
  get redis(): Redis {
    return there(this.#redis);
  }

  /** The JVM that stays; `newJvm` makes one that may be killed. */
  get jvm(): Jvm {
    return there(this.#jvm);
  }

  get java(): JavaClient {
    return there(this.#java);
  }

  get node(): LockClient {
    return there(this.#node);
  }

  /** A name that nobody has used yet. */
  name(shape: (unique: string) => string = (unique) => unique): string {
    return shape(`n${++this.#lastName}-${this.version}`);
  }

  /** A thread that nobody has used yet. */
  thread(client: JavaClient = this.java): Promise<JavaThread> {
    return client.thread(`thread-${++this.#lastThread}`);
  }

  /** Another client in Node; closed at the end. */
  newNode(options: LockClientOptions = {}): LockClient {
    const client = new LockClient(this.server.connect(), { ...UNHURRIED, ...options });
    this.#clients.add(client);
    return client;
  }

  /** Another client in Java, in the JVM that stays or in one that was made. */
  newJava(options: JavaOptions = {}, jvm: Jvm = this.jvm): Promise<JavaClient> {
    return JavaClient.connect(jvm, { url: this.server.url, ...options });
  }

  /** Killed at the end. */
  newJvm(): Jvm {
    const jvm = new Jvm(this.#built);
    this.#jvms.add(jvm);
    return jvm;
  }

  async open(): Promise<void> {
    if (this.isMissing) return;
    this.#jvm = this.newJvm();
    this.#server = await startRedis();
    this.#redis = this.#server.connect();
    this.#node = this.newNode();
    this.#java = await this.newJava();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.close({ timeout: 0 })));
    await Promise.all([...this.#jvms].map((jvm) => jvm.kill()));
    await this.#server?.stop();
  }
}

export function there<T>(part: T | undefined): T {
  if (part === undefined) throw new Error("the scene is there inside tests only");
  return part;
}
