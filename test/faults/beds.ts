/** Several clients, each behind a proxy of its own. */
import type { Redis } from "ioredis";
import type { LockClient } from "../../src/index.js";
import { isPresence, type Matcher, until } from "../support/index.js";
import { type Bed, type Watched, watch } from "./harness.js";

/** Clients that all use the names of the first one's bed; also shows the server's keys of that name, and its waiters. */
export class NamedBeds implements AsyncDisposable {
  readonly beds: readonly Bed[];
  readonly name: string;

  constructor(beds: readonly Bed[]) {
    this.beds = beds;
    this.name = this.bed(0).name;
  }

  bed(i: number): Bed {
    const bed = this.beds[i];
    if (bed === undefined) throw new Error(`there is no client ${i}`);
    return bed;
  }

  client(i: number): LockClient {
    return this.bed(i).client;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.beds.map((bed) => bed.dispose()));
  }

  /** A connection past all proxies; for a cluster, a client that finds the nodes by itself. */
  get redis(): Redis {
    return this.bed(0).observer as Redis;
  }

  /** Matches the scripts whose keys or arguments contain the name. */
  get own(): Matcher {
    return (command) => {
      const [verb = "", , ...rest] = command;
      return (
        /^EVAL(SHA)?$/.test(verb) && rest.some((word) => word.includes(this.name)) && !isPresence(command)
      );
    };
  }

  /** How often client `i` has sent such a script. */
  asked(i = 0): number {
    return this.bed(i).proxy.count(this.own);
  }

  /** The number of listeners of the channels with this name, over all clients. Not for clusters. */
  async listeners(): Promise<number> {
    const channels = (await this.redis.pubsub("CHANNELS", `*${this.name}*`)) as string[];
    if (channels.length === 0) return 0;
    const pairs = (await this.redis.pubsub("NUMSUB", ...channels)) as unknown[];
    return pairs.reduce((sum: number, value, i) => (i % 2 === 1 ? sum + Number(value) : sum), 0);
  }

  /**
   * Makes a call of client `i`, as its first waiter, and resolves when the call waits. By then the server has refused
   * it, it listens to its channel, and it has tried once more. From then on only a message or a poll can help it.
   */
  async parked<T>(i: number, call: () => Promise<T>): Promise<Watched<T>> {
    const [listening, asked] = [await this.listeners(), this.asked(i)];
    const watched = watch(call());
    await until("it has asked, listened and asked again", async () => {
      if (watched.state !== "pending") return true;
      return this.asked(i) >= asked + 2 && (await this.listeners()) > listening;
    });
    if (watched.state !== "pending") throw new Error("it did not wait", { cause: watched.error });
    await this.bed(i).own.ping(); // then the second try is answered
    return watched;
  }
}
