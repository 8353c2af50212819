/**
 * Clients on a server in memory, in virtual time: only the test lets time pass, and it can keep a client's requests or
 * replies back. For tests that must be fast, because they run once for each of many mutants (`npm run mutate`).
 */
import { expect } from "vitest";
import { INTERNALS } from "../../../src/client-options.js";
import { type Connection, Link, type Wire } from "../../../src/entries/testing/link.js";
import { MemoryConnection } from "../../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../../src/entries/testing/memory-server.js";
import type { Reply } from "../../../src/entries/testing/reply.js";
import {
  LockClient,
  type LockClientOptions,
  type LockEventName,
  type LockEvents,
  type LossReason,
  type RedisConnection,
} from "../../../src/index.js";
import * as scripts from "../../../src/scripts/generated.js";
import type { AnyScript } from "../../../src/scripts/script.js";
import { EVENTS } from "../../support/event-names.js";
import { type Around, type TestIn, testIn as testInPlace } from "../../support/test-in.js";
import { VirtualClock } from "../../support/virtual-clock.js";

export { watch } from "../../support/outcome.js";

const NAME = "job";

/** The name of each script, by its text for EVAL and its hash for EVALSHA. */
const SCRIPTS = new Map(
  Object.values(scripts as unknown as Record<string, AnyScript>).flatMap(({ name, modern, legacy }) =>
    [modern, legacy].flatMap(
      ({ text, sha1 }) =>
        [
          [text, name],
          [sha1, name],
        ] as const,
    ),
  ),
);

/** One command that the server has run. */
export interface Ran {
  /** The name of a script, or the command in capitals. */
  readonly name: string;
  readonly args: readonly string[];
}

/** A server that records the commands it has run. A test can replace its answers. */
export class Server extends MemoryServer {
  declare readonly clock: VirtualClock;
  readonly ran: Ran[] = [];
  /** Answers instead of the server, or throws; undefined lets the server answer. */
  instead: (ran: Ran) => Reply | undefined = () => undefined;

  constructor() {
    super(new VirtualClock());
  }

  override execute(command: readonly string[]): Reply {
    const [verb = "", text = "", ...rest] = command;
    const script = /^eval/i.test(verb) ? SCRIPTS.get(text) : undefined;
    const ran = script ? { name: script, args: rest } : { name: verb.toUpperCase(), args: [text, ...rest] };
    const reply = this.instead(ran) ?? super.execute(command);
    this.ran.push(ran);
    return reply;
  }

  /** The scripts that have run since the last call of this. */
  took(): string[] {
    const names = this.ran.splice(0).map(({ name }) => name);
    return names.filter((name) => name.includes("/"));
  }

  hash(key: string = NAME): Record<string, string> {
    return Object.fromEntries(this.keys.get(key, "hash") ?? []);
  }

  ttl(key: string = NAME): number {
    return Number(super.execute(["PTTL", key]));
  }

  delete(key: string = NAME): void {
    super.execute(["DEL", key]);
  }

  /** Gives the lock to another owner, whoever has it now. */
  give(fields: Readonly<Record<string, string>>, ms = 60_000): void {
    for (const name of this.names()) this.delete(name);
    super.execute(["HSET", NAME, ...Object.entries(fields).flat()]);
    super.execute(["PEXPIRE", NAME, String(ms)]);
  }

  /** The keys on the server, except token counters, which never go. */
  names(): string[] {
    const [, names] = super.execute(["SCAN", "0", "COUNT", "1000"]) as [string, string[]];
    return names.filter((name) => !name.startsWith("redisson_lock_token:"));
  }
}

type Direction = "requests" | "replies";

export interface Told {
  readonly name: LockEventName;
  readonly event: LockEvents[LockEventName];
}

/** A client, and the path of its commands to the server. */
export class Party {
  readonly client: LockClient;
  /** Ends all holds of the client, for a reason. */
  loseAll: (reason: LossReason) => void = () => {};
  readonly told: Told[] = [];
  readonly #server: Server;
  readonly #link: Link;
  /** The connection that the user has made. */
  readonly connection: MemoryConnection;
  #kept: { readonly direction: Direction; readonly on: Connection } | undefined;
  readonly #onTheirWay: (() => void)[] = [];

  /** `traits`: properties that the connection pretends to have, such as being a cluster. */
  constructor(server: Server, options: LockClientOptions = {}, traits: object = {}) {
    this.#server = server;
    this.#link = new Link(server, (connection) => this.#wire(connection));
    this.connection = Object.assign(new MemoryConnection(this.#link, {}, true), traits);
    const onMade = (lose: (reason: LossReason) => void) => {
      this.loseAll = lose;
    };
    const internals = { [INTERNALS]: { clock: server.clock, random: () => 0.5, onMade } };
    this.client = new LockClient(
      this.connection as unknown as RedisConnection,
      {
        presence: false,
        ...options,
        ...internals,
      } as LockClientOptions,
    );
  }

  /** From now on the client's requests, or the replies to them, are kept back until {@link letGo}. */
  keep(direction: Direction, on: Connection = this.connection): void {
    this.#kept = { direction, on };
  }

  /** The messages that are kept back arrive, and will arrive once more: they were sent again. */
  async sendTwice(): Promise<void> {
    this.#kept = undefined;
    for (const arrive of this.#onTheirWay) arrive();
    await this.#server.settle();
  }

  /** The first message that is kept back arrives. */
  async letOneGo(): Promise<void> {
    this.#onTheirWay.shift()?.();
    await this.#server.settle();
  }

  /** All messages that are kept back arrive. */
  async letGo(): Promise<void> {
    this.#kept = undefined;
    for (const arrive of this.#onTheirWay.splice(0)) arrive();
    await this.#server.settle();
  }

  /** The connections of this client, the user's first. */
  get connections(): MemoryConnection[] {
    return [...this.#link.connections] as MemoryConnection[];
  }

  /** The number of messages that are kept back. */
  get onTheirWay(): number {
    return this.#onTheirWay.length;
  }

  /** Breaks the connection and opens it at once: unanswered commands are sent again, and kept messages arrive late. */
  async reconnect(): Promise<void> {
    this.#kept = undefined;
    this.connection.lose();
    this.connection.open();
    await this.#server.settle();
  }

  /** Breaks all connections of the client. */
  async cut(): Promise<void> {
    this.#link.cut();
    await this.#server.settle();
  }

  async mend(): Promise<void> {
    this.#link.mend();
    await this.#server.settle();
  }

  /** From now on the client's events are added to {@link told}. */
  listen(...names: readonly LockEventName[]): this {
    for (const name of names.length > 0 ? names : EVENTS)
      this.client.on(name, (event: LockEvents[LockEventName]) => void this.told.push({ name, event }));
    return this;
  }

  /** The events of that name. */
  heard<E extends LockEventName>(name: E): LockEvents[E][] {
    return this.told.filter((told) => told.name === name).map(({ event }) => event as LockEvents[E]);
  }

  #wire(connection: Connection): Wire {
    const isKept = (direction: Direction) =>
      this.#kept?.direction === direction && this.#kept.on === connection;
    return {
      toServer: (arrive) => void (isKept("requests") ? this.#onTheirWay.push(arrive) : arrive()),
      toClient: (arrive) =>
        void (isKept("replies") ? this.#onTheirWay.push(arrive) : this.#server.later(arrive)),
      close: () => {},
    };
  }
}

export interface Scene {
  readonly server: Server;
  readonly a: Party;
  /** Another client. */
  readonly b: Party;
  advance(ms: number): Promise<void>;
  settle(): Promise<void>;
}

/** Two clients of one server. */
export function scene(options: LockClientOptions = {}): Scene {
  const server = new Server();
  return {
    server,
    a: new Party(server, options),
    b: new Party(server, options),
    advance: (ms) => server.advance(ms),
    settle: () => server.settle(),
  };
}

/** Milliseconds, longer than the life of any tombstone. */
const MARKERS = 61_000;

/** No lock is held, and a minute later no key is left on the server. */
async function expectNothingLeft({ server }: Scene): Promise<void> {
  await server.settle();
  expect(server.hash()).toEqual({});
  await server.advance(MARKERS);
  expect(server.names()).toEqual([]);
}

/** Each test gets a place that is opened for it, and must leave nothing there. */
export function testIn<P extends Scene, O extends object = LockClientOptions>(
  open: (options?: O) => P | Promise<P>,
  around: Around<P> = (_, body) => body(),
): TestIn<P, O> {
  return testInPlace(open, async (place, body) => {
    await around(place, body);
    await expectNothingLeft(place);
  });
}
