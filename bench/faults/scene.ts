/**
 * The scene of a fault: servers, sides that use them through proxies of their own, and the timing that tells an
 * outcome.
 */
import { type FaultProxy, startProxy } from "../../test/support/fault-proxy.js";
import type { RespValue } from "../../test/support/index.js";
import type { Matcher } from "../../test/support/proxy-faults.js";
import { type RedisSentinel, startSentinel } from "../../test/support/redis-sentinel.js";
import { type RedisServer, startRedis } from "../../test/support/redis-server.js";
import { until } from "../../test/support/until.js";
import type { Peer } from "./peers.js";
import { LEASE, type Side, startSide } from "./side.js";

/** Milliseconds: whatever happens sooner has not waited for a lease to end. */
const SOON = LEASE / 2;
/** Milliseconds after which nothing more can happen: every lease has ended by then. */
const LATE = 2 * LEASE;
const OFTEN = { timeout: LATE, every: 50 };

export type When = "soon" | "late" | "never";

export interface Member {
  readonly side: Side;
  readonly proxy: FaultProxy;
}

export class Scene implements AsyncDisposable {
  readonly peer: Peer;
  /** Name of the lock of this scene. */
  readonly name: string;
  readonly #stack: AsyncDisposable[] = [];
  readonly #sides: Side[] = [];

  constructor(peer: Peer, name: string) {
    this.peer = peer;
    this.name = name;
  }

  async server(...args: string[]): Promise<RedisServer> {
    return this.#owned(await startRedis({ args }));
  }

  async sentinel(): Promise<RedisSentinel> {
    return this.#owned(await startSentinel());
  }

  /** A side behind a proxy of its own. */
  async join(server: RedisServer): Promise<Member> {
    const proxy = this.#owned(await startProxy(server));
    return { proxy, side: await this.#side({ host: proxy.host, port: proxy.port }) };
  }

  /** A side that asks the sentinels for the master. */
  joinSentinel({ clientOptions: { sentinels, name } }: RedisSentinel, options: object = {}): Promise<Side> {
    return this.#side({ sentinels, name }, options);
  }

  /** Matches the commands and scripts that take, release or ask about the lock of this scene. */
  get aboutLock(): Matcher {
    return ([verb = "", ...words]) =>
      /^(EVAL|EVALSHA|SET)$/.test(verb) && words.some((word) => word.includes(this.name));
  }

  /** The longest TTL of the lock's keys in ms; 0 if there is none. */
  async longestTtl(server: Pick<RedisServer, "call">): Promise<number> {
    const keys = (await server.call("KEYS", `*${this.name}*`)) as RespValue[];
    const ttls = await Promise.all(keys.map((key) => server.call("PTTL", String(key))));
    return Math.max(0, ...ttls.map(Number));
  }

  /** How many rejections nobody handled, over all sides. */
  get unhandled(): number {
    return this.#sides.reduce((sum, { unhandled }) => sum + unhandled.length, 0);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const each of this.#stack.reverse()) await each[Symbol.asyncDispose]();
  }

  async #side(way: Parameters<typeof startSide>[1], options: object = {}): Promise<Side> {
    const side = this.#owned(await startSide(this.peer, way, options));
    this.#sides.push(side);
    const other = `warm-up-${this.#sides.length}`;
    await side.take(other);
    if (this.peer.reentrant) {
      await side.takeAgain(other);
      await side.giveBack(other);
    }
    await side.giveBack(other);
    return side;
  }

  #owned<T extends AsyncDisposable>(it: T): T {
    this.#stack.push(it);
    return it;
  }
}

/** A call under way, and its outcome so far. */
export interface Call {
  /** `performance.now()` of the call, or of the fault. */
  readonly since: number;
  readonly state: "pending" | "resolved" | "rejected";
}

export function begin(promise: Promise<unknown>): Call {
  const call: { since: number; state: Call["state"] } = { since: performance.now(), state: "pending" };
  promise.then(
    () => Object.assign(call, { state: "resolved" }),
    () => Object.assign(call, { state: "rejected" }),
  );
  return call;
}

/** When the call resolves, counted from `since`; "rejects" if it rejects. */
export async function ending(call: Call, since: number = call.since): Promise<When | "rejects"> {
  const when = await whenIs(() => call.state !== "pending", since);
  return call.state === "rejected" ? "rejects" : when;
}

/** When `look` first returns true. */
export async function whenIs(look: () => boolean | Promise<boolean>, since: number): Promise<When> {
  const seen = await until("it is so", look, OFTEN).catch(() => false);
  if (!seen) return "never";
  return performance.now() - since < SOON ? "soon" : "late";
}
