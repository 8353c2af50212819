/** A lock on a server in memory: the commands of its kind, how their replies read, and what is true there. */
import { MemoryServer } from "../../../src/entries/testing/memory-server.js";
import type { Reply } from "../../../src/entries/testing/reply.js";
import * as scripts from "../../../src/scripts/generated.js";
import { type AnyScript, evalArguments } from "../../../src/scripts/script.js";
import { callOf, type Named } from "../../support/named.js";
import { LATEST, POLL, type World } from "./world.js";

export type Kind = "plain" | "fenced" | "fair" | "readwrite";
export type Side = "read" | "write";
/** What a script's text is with a planted mistake. */
export type Edit = (script: string, text: string) => string;

export interface Settings {
  readonly kind: Kind;
  /** Milliseconds that a tombstone lives. */
  readonly tombstoneTtl: number;
  readonly edit: Edit | undefined;
}

type Verb = "TAKE" | "KEEP" | "END" | "PASS" | "DOWNGRADE" | "FORCE";

export interface Command {
  readonly verb: Verb;
  readonly text: string;
  /** The wire id that asks; empty for a forced unlock. */
  readonly w: string;
  /** The ids, or sides, that are over from now on. */
  readonly ends: readonly string[];
  run(): Answer;
  /** It has ended somebody, and remembers that for longer than it can be late. */
  hasForced: boolean;
}

/** What a reply says; each verb fills in what is its own. */
export interface Answer {
  readonly reply: Reply;
  readonly is?: "granted" | "refused" | "over" | undefined;
  readonly token?: bigint | undefined;
  readonly ms?: number;
  readonly holder?: string;
  /** Co-waiters, from 0, that have to try themselves. */
  readonly stirred?: readonly number[];
  /** The sides found: 1 reads, 2 writes; 0 or less: none. */
  readonly found?: number;
  /** Whether the successor has the lock. */
  readonly has?: boolean;
  readonly ids?: readonly string[];
}

/** What is true of a wire id. Sides that were forced do not count, even if somebody brings them back. */
export interface Standing {
  readonly reads: boolean;
  readonly writes: boolean;
  /** Its own END was executed before. */
  readonly isOver: boolean;
  /** Another program deleted the key under it: all is possible then. */
  readonly isDeleted: boolean;
}

const ALIVE = 3 * POLL;
const GRACE = 1_000;
const PLAIN = {
  take: scripts.plainTake,
  keep: scripts.plainKeep,
  end: scripts.plainEnd,
  pass: scripts.plainPass,
  force: scripts.plainForce,
};
const SCRIPTS = {
  plain: PLAIN,
  fenced: { ...PLAIN, take: scripts.fencedTake, pass: scripts.fencedPass },
  fair: { ...PLAIN, take: scripts.fairTake, end: scripts.fairEnd, force: scripts.fairForce },
  readwrite: {
    take: scripts.writeTake,
    keep: scripts.readWriteKeep,
    end: scripts.readWriteEnd,
    pass: scripts.writePass,
    force: scripts.writeForce,
  },
} as const satisfies Readonly<Record<Kind, unknown>>;

export class Lock {
  readonly name: string;
  readonly kind: Kind;
  readonly server: MemoryServer;
  readonly #settings: Settings;
  readonly #world: World;
  /** The sides that are over, and until when their tombstones live; those that a forced unlock ended, or a DEL. */
  readonly #over = new Map<string, number>();
  readonly forced: Set<string> = new Set();
  readonly deleted: Set<string> = new Set();
  /** Who had the lock, in order, and with which token. */
  readonly #tokens: [w: string, token: bigint][] = [];
  #calls = 0;
  executed = 0;
  /** When a command has last ended a side: it has to tell waiters then. */
  freedAt = -1;
  /** The sides, as they were at this time; undefined after a command. */
  #seen: readonly string[] | undefined;
  #seenAt = 0;

  constructor(name: string, settings: Settings, world: World) {
    this.name = name;
    this.kind = settings.kind;
    this.#settings = settings;
    this.#world = world;
    this.server = new MemoryServer(world.clock);
  }

  get tombstoneTtl(): number {
    return this.#settings.tombstoneTtl;
  }

  get channel(): string {
    return `channel:${this.name}`;
  }

  // Commands

  take(w: string, side: Side, lease: number, isWaiting: boolean, coWaiters: readonly string[] = []): Command {
    const script = side === "read" ? scripts.readTake : SCRIPTS[this.kind].take;
    const more = {
      lease,
      aliveFor: isWaiting ? ALIVE : 0,
      coWaiters,
      yields: this.#world.random.below(3) && 1,
    };
    return this.#command("TAKE", side === "read" ? `read ${w}` : w, script, w, more);
  }

  /** Without counts: a renewal. */
  keep(w: string, lease: number, counts?: Readonly<Record<Side, number>>): Command {
    const [reads, writes] = counts ? [[`${counts.read}`], [`${counts.write}`]] : [[""], [""]];
    const what = `${w} ${counts ? `reads ${reads} writes ${writes}` : "as it is"}`;
    return this.#command("KEEP", what, SCRIPTS[this.kind].keep, w, {
      lease,
      owners: [w],
      reads,
      writes,
      counts: writes,
    });
  }

  end(ws: readonly string[], nextWriter = ""): Command {
    const keys = { tombstones: ws.map((w) => `over:${w}`), nextTombstone: `over:${nextWriter}` };
    const more = { ...keys, owners: ws, nextWriter, aliveFor: ALIVE };
    return this.#command("END", ws.join(" "), SCRIPTS[this.kind].end, ws[0] ?? "", more, ws);
  }

  pass(w: string, successor: string, lease: number, nextWriter = ""): Command {
    const [successorTombstone, nextTombstone] = [`over:${successor}`, `over:${nextWriter}`];
    const keys = { successorTombstone, successorSide: `over:${successor}:write`, nextTombstone };
    const args = { successor, successorField: `${successor}:write`, lease, nextWriter, aliveFor: ALIVE };
    return this.#command("PASS", `${w} to ${successor}`, SCRIPTS[this.kind].pass, w, { ...keys, ...args }, [
      w,
    ]);
  }

  downgrade(w: string, reads: number, left: number): Command {
    return this.#command("DOWNGRADE", w, scripts.writeDowngrade, w, { reads, left }, [`${w}:write`]);
  }

  force(side: Side): Command {
    const script = side === "read" ? scripts.readForce : SCRIPTS[this.kind].force;
    const marker = `marker:${++this.#calls}`;
    return this.#command("FORCE", side, script, "", { tombstones: "over:", marker });
  }

  /** A command takes of these keys and arguments what its script names. */
  #command(
    verb: Verb,
    what: string,
    script: AnyScript,
    w: string,
    more: Named,
    ends: readonly string[] = [],
  ): Command {
    const { name: lock, channel } = this;
    const field = `${w}:write`;
    const all = {
      lock,
      locks: [lock],
      channel,
      tombstone: `over:${w}`,
      sideTombstone: `over:${field}`,
      hold: this.#hold(w),
      queue: "queue",
      timeouts: "timeouts",
      alive: "alive",
      writers: "writers",
      counter: "counter",
      owner: w,
      field,
      tombstoneTtl: this.tombstoneTtl,
      publish: "publish",
      grace: GRACE,
      ...more,
    };
    const text = this.#settings.edit?.(script.name, script.text) ?? script.text;
    const words = evalArguments(text, callOf(script, all)).flat().map(String);
    const run = () => this.#read(verb, this.server.execute(["eval", ...words]));
    return { verb, text: `${verb} ${what}`, w, ends, run, hasForced: false };
  }

  #read(verb: Verb, reply: Reply): Answer {
    // A number alone is the answer to a TAKE that is granted, and to an END of what was there.
    const [first, second, third, ...rest] = Array.isArray(reply) ? reply : [reply, 1n];
    if (verb === "FORCE") return { reply, ids: (reply as readonly Reply[]).map(String) };
    if (verb === "TAKE") {
      const is = (["refused", "granted", "over"] as const)[Number(first)];
      const stirred = rest.map((each) => Number(each) - 1);
      const token = typeof second === "string" ? BigInt(second) : undefined;
      return { reply, is, ms: Number(second), holder: String(third), stirred, token };
    }
    // A lock without sides has the write side.
    const sides = Number(verb === "KEEP" ? first : second);
    const found = this.kind !== "readwrite" && sides === 1 ? 2 : sides;
    return {
      reply,
      found,
      has: third === 1n,
      token: typeof rest[0] === "string" ? BigInt(rest[0]) : undefined,
    };
  }

  // What is true

  #hold(w: string): string {
    return `{${this.name}}:${w}:rwlock_timeout:1`;
  }

  /** A side as the lock knows it. */
  sideId(w: string, side: Side): string {
    return this.kind === "readwrite" && side === "write" ? `${w}:write` : w;
  }

  has(w: string, side: Side): boolean {
    if (this.kind !== "readwrite" && side === "read") return false;
    return this.sides().includes(this.sideId(w, side));
  }

  /** The sides that somebody has; a reader whose time is over has none. */
  sides(): readonly string[] {
    const { now } = this.server.keys;
    if (this.#seen !== undefined && this.#seenAt === now) return this.#seen;
    const ids: string[] = [];
    const fields = this.server.keys.get(this.name, "hash");
    const isRead = fields?.get("mode") === "read";
    for (const field of fields?.keys() ?? []) {
      if (field !== "mode" && !(isRead && this.server.keys.typeOf(this.#hold(field)) === undefined))
        ids.push(field);
    }
    [this.#seen, this.#seenAt] = [ids, now];
    return ids;
  }

  isFree(side: Side): boolean {
    if (side === "write" || this.kind !== "readwrite") return this.sides().length === 0;
    if (this.server.keys.get(this.name, "hash")?.get("mode") === "write") return false;
    return this.writers.length === 0;
  }

  get queue(): readonly string[] {
    return this.server.keys.get("queue", "list") ?? [];
  }

  /** The writers that readers make way for. */
  get writers(): readonly string[] {
    const { keys } = this.server;
    const all = this.kind === "readwrite" ? keys.get("writers", "zset") : undefined;
    return all ? [...all.keys()].filter((id) => (all.get(id) ?? 0) > keys.now) : [];
  }

  isOver(id: string): boolean {
    return (this.#over.get(id) ?? 0) > this.server.clock.wall();
  }

  standing(w: string): Standing {
    const [read, write] = [w, this.sideId(w, "write")];
    const ids = this.sides();
    return {
      reads: this.kind === "readwrite" && ids.includes(read) && !this.forced.has(read),
      writes: ids.includes(write) && !this.forced.has(write),
      isOver: this.isOver(w) && !this.forced.has(w),
      isDeleted: this.deleted.has(read) || this.deleted.has(write),
    };
  }

  /** Runs a command, and checks what it left. */
  execute(command: Command): Answer & { readonly seen: Standing } {
    const [before, queue] = [this.sides(), [...this.queue]];
    const seen = this.standing(command.w);
    this.executed++;
    const answer = command.run();
    this.#seen = undefined;
    const until = this.server.clock.wall() + this.tombstoneTtl;
    for (const id of command.ends) if (!this.isOver(id)) this.#over.set(id, until);
    if (command.verb !== "TAKE" && before.some((id) => !this.sides().includes(id)))
      this.freedAt = this.#world.now;
    const taken = before.filter((id) => answer.ids?.includes(id) && !this.sides().includes(id));
    if (taken.length > 0 && command.hasForced) this.#world.fail(`[force] ${command.text} has struck again`);
    command.hasForced ||= taken.length > 0 && this.tombstoneTtl > LATEST;
    for (const id of taken) {
      this.#world.count("forced");
      this.forced.add(id);
      this.#over.set(id, until);
    }
    // A call that still tries when its tombstone has lapsed may be granted again.
    for (const id of this.sides()) if (!before.includes(id)) this.forced.delete(id);
    const wrong = this.#wrong() ?? this.#barged(before, queue);
    if (wrong) this.#world.fail(`${wrong}, after ${command.text}`);
    return { ...answer, seen };
  }

  /** Another program deletes the lock. */
  delete(): void {
    for (const id of this.sides()) this.deleted.add(id);
    this.server.execute(["DEL", this.name, "counter"]);
    this.freedAt = -1;
    this.#seen = undefined;
  }

  #wrong(): string | undefined {
    const { keys } = this.server;
    const ids = this.sides();
    const back = ids.find((id) => this.isOver(id) || (id.endsWith(":write") && this.isOver(id.slice(0, -6))));
    if (back) return `[over] ${back} came back after its end`;
    const ticket = this.queue.find((id) => this.isOver(id));
    if (ticket) return `[over] ${ticket} has a ticket after its end`;
    const left = keys.ttl(this.name);
    if (left === -1n) return "[ttl] the lock has no TTL";
    const fields = keys.get(this.name, "hash");
    for (const id of fields?.get("mode") === "read" ? ids : []) {
      if (keys.ttl(this.#hold(id)) === -1n) return `[ttl] the hold of ${id} has no TTL`;
      if (keys.ttl(this.#hold(id)) > left) return `[ttl] ${id} reads for longer than the lock is there`;
      // A writer takes a reader with no holds for one that has lapsed.
      if (fields?.get(id) === "0") return `[count] ${id} reads, and has no holds`;
    }
    if (this.queue.some((id, i) => this.queue.indexOf(id) !== i))
      return "[fair] somebody stands in the queue twice";
    for (const key of ["writers", "alive"]) if (keys.ttl(key) === -1n) return `[ttl] ${key} has no TTL`;
    return this.kind === "fenced" ? this.#wrongToken(ids[0]) : undefined;
  }

  /** Who came after others that still wait. */
  #barged(before: readonly string[], queue: readonly string[]): string | undefined {
    const [holder] = this.sides();
    const stay = queue.filter((id) => this.queue.includes(id));
    if (this.queue.some((id, i) => (stay[i] ?? id) !== id))
      return "[fair] the order of the queue has changed";
    if (holder === undefined || before.includes(holder)) return undefined;
    const place = queue.indexOf(holder);
    const passed = (place < 0 ? queue : queue.slice(0, place)).find((id) => stay.includes(id));
    return passed && `[fair] ${holder} has passed ${passed}`;
  }

  #wrongToken(holder: string | undefined): string | undefined {
    const [last, most] = this.#tokens.at(-1) ?? ["", 0n];
    if (holder === undefined || holder === last) return undefined;
    const token = BigInt(this.server.keys.get("counter", "string") ?? 0);
    this.#tokens.push([holder, token]);
    return token > most ? undefined : `[token] ${holder} has ${token}, but ${last} had ${most}`;
  }

  /** Whether this holder may have been told this token. */
  isTokenOf(w: string, token: bigint | undefined): boolean {
    const place = this.#tokens.map(([id]) => id).lastIndexOf(w);
    const [least, next] = [this.#tokens[place]?.[1], this.#tokens[place + 1]?.[1]];
    return token !== undefined && token >= (least ?? 0n) && (next === undefined || token < next);
  }

  /** The keys that are left, other than those that may be. */
  leftovers(): string[] {
    return this.server.keys.scan(0, 10_000).keys.filter((key) => key !== "counter");
  }
}
