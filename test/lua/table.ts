/**
 * A table tests a script. It has a row for each set of commands that the script runs, and for what rows of the contract and
 * the kinds do not reach. A row has the keys on the server, the call, and its outcome: the reply, all keys and all
 * messages. Each call is made twice, because a command may reach the server twice. Unless the row says otherwise, the
 * second call has the same reply, changes nothing and sends no message. Each script's rows try what holds for all: a
 * server without memory, users without a right, the text for old servers.
 */
import { describe, expect, test } from "vitest";
import type { AnyScript } from "../../src/scripts/script.js";
import type { Named } from "../support/named.js";
import { type Bench, FORBIDDEN, type Message, type Seen, type States } from "./bench.js";

export interface Outcome {
  /** The reply, or `refusal(…)`. */
  readonly reply: unknown;
  /** All keys after the call. Default: as before. */
  readonly after?: States;
  /** The messages. Default: none. */
  readonly heard?: readonly Message[];
}

export interface Row extends Outcome {
  /** All keys before the call. Default: none. */
  readonly given?: States;
  /** The keys and arguments that differ from those of the table. */
  readonly keys?: Named;
  readonly args?: Named;
  /** The outcome of the second call, as far as it differs. */
  readonly again?: Partial<Outcome>;
  /** Whether it needs no memory; default as the table says. */
  readonly thrifty?: boolean;
  /** The command that the user lacks; `announce`: all channels. */
  readonly mayNot?: string;
}

export interface Table {
  readonly keys: Named;
  readonly args: Named;
  /** The outcome of the second call in rows without `again`, as far as it differs. */
  readonly again?: Partial<Outcome>;
  /** The rows, by what they show. */
  readonly rows: Readonly<Record<string, Row>>;
  /** Keys that have no TTL by nature. */
  readonly endless?: RegExp;
  /** Commands whose refusal the script takes for an answer. */
  readonly tolerates?: string;
  /** The reply begins with how many have heard: one in rows with a message, none when sent again, -1 for whoever may not announce. */
  readonly counts?: true;
  /** The rows need no memory. */
  readonly thrifty?: true;
}

/** Keys that Redisson, too, keeps without TTL: fencing counters, and the queue of a fair lock that has waiters. */
const ENDLESS = /^redisson_lock_(token|queue|timeout):/;

/** The outcome of a call that is refused with such a message. */
export function refusal(message: string | RegExp): unknown {
  return { error: expect.stringMatching(message) };
}

export const WRONGTYPE: unknown = refusal("WRONGTYPE");

/** A row for each case, whose name replaces `%s` in the title. */
export function each<const T, const R>(
  title: string,
  cases: Readonly<Record<string, T>>,
  row: (value: T) => R,
): Record<string, R> {
  return Object.fromEntries(
    Object.entries(cases).map(([name, value]) => [title.replace("%s", name), row(value)]),
  );
}

export function scriptTable(bench: Bench, script: AnyScript, table: Table): void {
  const play = (row: Row) => new Play(bench, script, table, row);
  const rows = Object.values(table.rows) as [Row, ...Row[]];
  const branches = branchesOf(rows.filter((row) => !row.mayNot && !isRefusal(row.reply)).map(play));
  const loud = rows.filter(({ heard = [], mayNot }) => heard.length > 0 && !mayNot);

  describe(script.name, () => {
    for (const [title, row] of Object.entries(table.rows)) test(title, () => play(row).twice());
    test("whoever lacks a command is told so, and no key is left without an end", async () => {
      for (const [branch, commands] of await branches()) await branch.withoutEachOf(commands);
    });
    test("without memory all of it is done, or nothing", async () => {
      for (const [branch] of await branches()) await branch.withoutMemory();
    });
    if (loud.length > 0)
      test("whoever may not announce does everything else", async () => {
        for (const row of loud) await play(muted(row)).twice();
      });
  });
}

function isRefusal(reply: unknown): boolean {
  return typeof reply === "object" && reply !== null && "error" in reply;
}

/** The row for a user who may use no channel. */
function muted(row: Row): Row {
  return { ...row, mayNot: "announce", heard: [], again: { ...row.again, heard: [] } };
}

type Commands = readonly string[];

/** A script that runs more commands than this is not run again without each of them. */
const FEW = 100;

/** Of rows that make a script run the same commands the first, with those that users may lack; and the thrifty ones. */
function branchesOf(plays: readonly Play[]): () => Promise<readonly (readonly [Play, Commands])[]> {
  let found: Promise<readonly (readonly [Play, Commands])[]> | undefined;
  const find = async () => {
    const branches = new Map<string, readonly [Play, Commands]>();
    for (const [i, play] of plays.entries()) {
      const calls = await play.commands();
      const isLong = [...calls.values()].reduce((sum, count) => sum + count, 0) > FEW;
      const commands = isLong ? [] : [...calls.keys()].sort();
      const key = commands.join(" ");
      if (!branches.has(key)) branches.set(key, [play, commands]);
      else if (play.isThrifty) branches.set(`${i}`, [play, []]);
    }
    return [...branches.values()];
  };
  return () => {
    found ??= find();
    return found;
  };
}

interface Way {
  readonly mayNot?: string | undefined;
  readonly outOfMemory?: boolean;
}

/** A row that is played. */
class Play {
  readonly #bench: Bench;
  readonly #script: AnyScript;
  readonly #table: Table;
  readonly #row: Row;

  constructor(bench: Bench, script: AnyScript, table: Table, row: Row) {
    this.#bench = bench;
    this.#script = script;
    this.#table = table;
    this.#row = row;
  }

  get isThrifty(): boolean {
    return (this.#row.thrifty ?? this.#table.thrifty) === true;
  }

  async twice(): Promise<void> {
    await this.once("at first");
    this.#expect(await this.#look(await this.#call()), this.#outcome("again"), "sent again");
  }

  async once(when: string, way: Way = {}): Promise<void> {
    await this.#put();
    this.#expect(await this.#look(await this.#call(way)), this.#outcome(), when);
  }

  /** The reply of this row with another number of those who have heard. */
  #heardBy(count: number, reply: unknown): unknown {
    if (!this.#table.counts) return reply;
    if (reply === 1) return count;
    return Array.isArray(reply) && reply[0] === 1 ? [count, ...reply.slice(1)] : reply;
  }

  /** The commands of the script, and how often it runs each; without those by which it announces. */
  async commands(): Promise<Map<string, number>> {
    await this.#put();
    const commands = await this.#bench.commandsOf(() => this.#call());
    for (const name of ["eval", "evalsha", "info", "publish"]) commands.delete(name);
    return commands;
  }

  async withoutEachOf(commands: Commands): Promise<void> {
    const { endless = ENDLESS, tolerates = "" } = this.#table;
    const { given = {} } = this.#row;
    const mayStay = (key: string) => endless.test(key) || given[key]?.ttl === -1;
    for (const mayNot of commands.filter((command) => !tolerates.split(" ").includes(command))) {
      await this.#put();
      const reply = await this.#call({ mayNot });
      expect(reply, mayNot).toEqual(refusal(FORBIDDEN));
      const left = Object.entries(await this.#bench.look()).filter(([, { ttl }]) => ttl === -1);
      expect(
        left.filter(([key]) => !mayStay(key)),
        mayNot,
      ).toEqual([]);
    }
  }

  async withoutMemory(): Promise<void> {
    await this.#put();
    const reply = await this.#call({ outOfMemory: true });
    const { given = {} } = this.#row;
    const refused = { reply: refusal("OOM"), after: given, heard: [] };
    this.#expect(
      await this.#look(reply),
      !this.isThrifty && isRefusal(reply) ? refused : this.#outcome(),
      "no memory",
    );
  }

  #put(): Promise<void> {
    return this.#bench.put(this.#row.given ?? {});
  }

  async #call({ mayNot = this.#row.mayNot, ...way }: Way = {}): Promise<unknown> {
    const { keys, args } = this.#table;
    const redis = mayNot ? await this.#bench.without(mayNot) : this.#bench.redis;
    const run = this.#bench.runner(this.#script, redis);
    const call = () =>
      run({ ...keys, ...this.#row.keys }, { ...args, ...this.#row.args }).catch((error: Error) => ({
        error: error.message,
      }));
    return way.outOfMemory ? await this.#bench.outOfMemory(call) : await call();
  }

  #outcome(which?: "again"): Required<Outcome> {
    const { given = {}, again } = this.#row;
    const first = { after: given, heard: [], ...this.#row };
    const isMuted = this.#row.mayNot === "announce";
    if (!which) return isMuted ? { ...first, reply: this.#heardBy(-1, first.reply) } : first;
    const reply = this.#heardBy(0, first.reply);
    return { ...first, reply, heard: [], ...this.#table.again, ...again };
  }

  async #look(reply: unknown): Promise<{ reply: unknown; keys: Seen; heard: Message[] }> {
    return { reply, keys: await this.#bench.look(), heard: await this.#bench.heard() };
  }

  /** Compares everything at once, so that a failure shows all differences together. */
  #expect(seen: unknown, { reply, after, heard }: Required<Outcome>, when: string): void {
    const keys = this.#bench.wanted(after);
    expect(seen, when).toEqual({
      reply,
      keys,
      heard,
    });
  }
}
