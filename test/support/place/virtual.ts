/**
 * The real client and the real Lua run on servers in memory, in virtual time. A row keeps back what it likes on their
 * network. Only the row lets time pass, so it reaches each moment of a race, in milliseconds of real time.
 */
import { expect } from "vitest";
import { INTERNALS } from "../../../src/client-options.js";
import { type Connection, Link, type Wire } from "../../../src/entries/testing/link.js";
import { MemoryConnection } from "../../../src/entries/testing/memory-connection.js";
import { MemoryServer } from "../../../src/entries/testing/memory-server.js";
import type { Reply } from "../../../src/entries/testing/reply.js";
import {
  type CloseOptions,
  type Lock,
  LockClient,
  type LockClientOptions,
  type LockEventName,
  type LockEvents,
  type LossReason,
  type RedisConnection,
} from "../../../src/index.js";
import * as scripts from "../../../src/scripts/generated.js";
import type { AnyScript } from "../../../src/scripts/script.js";
import { EVENTS } from "../event-names.js";
import { VirtualClock } from "../virtual-clock.js";
import { type Clients, type Kind, PLAIN } from "./kinds.js";
import { countIn, isTrace, type Place, STRANGER, type View } from "./place.js";

/** The name of the lock of a place. */
export const NAME = "job";

/** The name of each script, by its text for EVAL and its hash for EVALSHA. */
const SCRIPTS = new Map(
  Object.values(scripts as unknown as Record<string, AnyScript>).flatMap(({ name, text, sha1 }) => [
    [text, name] as const,
    [sha1, name] as const,
  ]),
);

/** One command that a server has run. */
export interface Ran {
  /** The name of a script, or the command in capitals. */
  readonly name: string;
  readonly args: readonly string[];
}

/** A server that records the commands it has run. A row can replace its answers. */
export class VirtualServer extends MemoryServer {
  declare readonly clock: VirtualClock;
  readonly ran: Ran[] = [];
  /** Answers instead of the server, or throws; undefined lets the server answer. */
  instead: (ran: Ran) => Reply | undefined = () => undefined;

  constructor(clock: VirtualClock = new VirtualClock()) {
    super(clock);
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

/** One client of one server, and the path of its commands to it. */
class Path {
  readonly client: LockClient;
  loseAll: (reason: LossReason) => void = () => {};
  readonly link: Link;
  /** The connection that the user has made. */
  readonly given: MemoryConnection;
  readonly onTheirWay: (() => void)[] = [];
  kept: { readonly direction: Direction; readonly on: Connection } | undefined;
  readonly #server: VirtualServer;

  constructor(server: VirtualServer, options: LockClientOptions, traits: object) {
    this.#server = server;
    this.link = new Link(server, (connection) => this.#wire(connection));
    this.given = Object.assign(new MemoryConnection(this.link, {}, true), traits);
    const { duplicate } = this.given;
    const { options: _, ...kept } = traits as { readonly options?: object };
    // Of a cluster the options of nodes come second.
    this.given.duplicate = (first?: object, second?: { redisOptions: object }) =>
      Object.assign(duplicate.call(this.given, second?.redisOptions ?? first), kept);
    const onMade = (lose: (reason: LossReason) => void) => {
      this.loseAll = lose;
    };
    // Options may give a client a clock of its own, which goes wrong.
    const { [INTERNALS]: given } = options as { readonly [INTERNALS]?: object };
    const internals = { clock: server.clock, random: () => 0.5, onMade, ...given };
    const all = { presence: false, ...options, [INTERNALS]: internals } as LockClientOptions;
    this.client = new LockClient(this.given as unknown as RedisConnection, all);
  }

  /** The connection over which the client sends its scripts: the first that it has made. */
  get commands(): MemoryConnection {
    return [...this.link.connections][1] as MemoryConnection;
  }

  #wire(connection: Connection): Wire {
    const isKept = (direction: Direction) =>
      this.kept?.direction === direction && this.kept.on === connection;
    return {
      toServer: (arrive) => void (isKept("requests") ? this.onTheirWay.push(arrive) : arrive()),
      toClient: (arrive) =>
        void (isKept("replies") ? this.onTheirWay.push(arrive) : this.#server.later(arrive)),
      close: () => {},
    };
  }
}

/** The paths of some clients of one process to their servers, and what can happen to their messages. */
class Paths {
  protected readonly servers: readonly VirtualServer[];
  protected readonly paths: readonly Path[];

  constructor(servers: readonly VirtualServer[], paths: readonly Path[]) {
    this.servers = servers;
    this.paths = paths;
  }

  /** From now on the clients' requests, or the replies to them, are kept back until {@link letGo}. */
  keep(direction: Direction, on?: Connection): void {
    for (const path of this.paths) path.kept = { direction, on: on ?? path.commands };
  }

  /** All messages that are kept back arrive. */
  async letGo(): Promise<void> {
    for (const path of this.paths) {
      path.kept = undefined;
      for (const arrive of path.onTheirWay.splice(0)) arrive();
    }
    await this.#settle();
  }

  /** The first message that is kept back arrives. */
  async letOneGo(): Promise<void> {
    for (const path of this.paths) path.onTheirWay.shift()?.();
    await this.#settle();
  }

  /** The messages that are kept back arrive, and will arrive once more: they were sent again. */
  async sendTwice(): Promise<void> {
    for (const path of this.paths) {
      path.kept = undefined;
      for (const arrive of path.onTheirWay) arrive();
    }
    await this.#settle();
  }

  /** The number of messages that are kept back. */
  get onTheirWay(): number {
    return this.paths.reduce((sum, path) => sum + path.onTheirWay.length, 0);
  }

  /** Breaks the connections and opens them at once: unanswered commands are sent again, and kept messages arrive late. */
  async reconnect(): Promise<void> {
    for (const path of this.paths) {
      path.kept = undefined;
      path.commands.lose();
      path.commands.open();
    }
    await this.#settle();
  }

  /** Breaks all connections of the clients: Redis is away, until {@link mend}. */
  async cut(): Promise<void> {
    for (const { link } of this.paths) link.cut();
    await this.#settle();
  }

  async mend(): Promise<void> {
    for (const { link } of this.paths) link.mend();
    await this.#settle();
  }

  async #settle(): Promise<void> {
    for (const server of this.servers) await server.settle();
  }
}

/** One process: a client for each server of the place, and the paths of their commands. */
export class Party extends Paths {
  readonly told: Told[] = [];

  /** `traits`: properties that the connection pretends to have, such as being a cluster. */
  constructor(servers: readonly VirtualServer[], options: LockClientOptions = {}, traits: object = {}) {
    super(
      servers,
      servers.map(
        (server, i) => new Path(server, options, { options: { host: "memory", port: i }, ...traits }),
      ),
    );
  }

  get #first(): Path {
    return this.paths[0] as Path;
  }

  /** The paths to these servers alone. */
  at(...indices: readonly number[]): Paths {
    return new Paths(
      this.servers,
      indices.map((i) => this.paths[i] as Path),
    );
  }

  get client(): LockClient {
    return this.#first.client;
  }

  get clients(): Clients {
    return this.paths.map(({ client }) => client) as unknown as Clients;
  }

  /** The connection over which the client sends its scripts. */
  get connection(): MemoryConnection {
    return this.#first.commands;
  }

  /** The connections of this client: the user's, that for commands, and what it has made since. */
  get connections(): MemoryConnection[] {
    return [...this.#first.link.connections] as MemoryConnection[];
  }

  /** Closes the client of each server. */
  async close(options?: CloseOptions): Promise<void> {
    await Promise.all(this.clients.map((client) => client.close(options)));
  }

  /** Ends all holds of the client, for a reason. */
  loseAll(reason: LossReason): void {
    for (const path of this.paths) path.loseAll(reason);
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
}

/** A place in virtual time. */
export interface VirtualPlace extends Place {
  /** The party of `client`, and that of `rivals`. */
  readonly a: Party;
  readonly b: Party;
  /** The first server, and all of them: a RedLock has three. */
  readonly server: VirtualServer;
  readonly servers: readonly VirtualServer[];
  /** A further process. */
  party(options?: LockClientOptions, traits?: object): Party;
  /** All work is done that waits for no timer. */
  settle(): Promise<void>;
}

/** `options` are those of both clients. */
export function openVirtual(kind: Kind = PLAIN, options: LockClientOptions = {}): VirtualPlace {
  const clock = new VirtualClock();
  const servers = Array.from({ length: kind.servers }, () => new VirtualServer(clock));
  const [server] = servers as [VirtualServer];
  const party = (more: LockClientOptions = {}, traits: object = {}) =>
    new Party(servers, { ...options, ...more }, traits);
  const [a, b] = [party(), party()];
  const settle = async () => {
    for (const each of servers) await each.settle();
  };
  return {
    kind,
    a,
    b,
    server,
    servers,
    party,
    client: a.client,
    rivals: b.client,
    lock: kind.make(a.clients, NAME),
    other: kind.make(a.clients, "other"),
    excluded: kind.rival.make(a.clients, NAME),
    rival: kind.rival.make(b.clients, NAME),
    twin: kind.make(b.clients, NAME),
    view: viewOf(kind, servers),
    with(more) {
      const further = party(more);
      return { client: further.client, lock: kind.make(further.clients, NAME) as Lock };
    },
    settle,
    async pass(ms) {
      await server.advance(ms);
      await settle();
    },
    async eventually(look) {
      await settle();
      const seen = await look();
      if (!seen) throw new Error(`nothing is on its way any more, and it is ${String(seen)}`);
      return seen;
    },
  };
}

function viewOf(kind: Kind, servers: readonly VirtualServer[]): View {
  const [server] = servers as [VirtualServer];
  return {
    name: NAME,
    call: async (...command) => server.execute(command),
    hash: async () => server.hash(),
    ttl: async () => server.ttl(),
    keys: async () =>
      server
        .names()
        .filter((key) => !isTrace(key))
        .sort(),
    count: async () => countIn(server.hash()),
    async wipe() {
      for (const each of servers) for (const name of each.names()) if (!isTrace(name)) each.delete(name);
    },
    async seize(ms) {
      const theirs = kind.rival.fields(STRANGER, 1);
      for (const each of servers) each.give(theirs, ms);
      return theirs;
    },
  };
}

/** Milliseconds, longer than the life of any marker. */
const MARKERS = 61_000;

/** No lock is held, and a minute later no key is left on any server. */
export async function expectNothingLeft({ servers, settle, pass }: VirtualPlace): Promise<void> {
  await settle();
  for (const server of servers) expect(server.hash()).toEqual({});
  await pass(MARKERS);
  for (const server of servers) expect(server.names()).toEqual([]);
}
