/**
 * Tests of a script by a table. A row has the keys on the server, the call, and its outcome: the reply, all keys and
 * all messages. Each call is made twice, because a command may reach the server twice: unless the row says otherwise,
 * the second call has the same reply, changes nothing and sends no message.
 */
import { describe, expect, test } from "vitest";
import type { AnyScript, ArgumentValues, KeyValues, Script } from "../../src/scripts/script.js";
import {
  type Announcement,
  type Bench,
  FORBIDDEN,
  type Form,
  forms,
  type Message,
  publishers,
  type States,
} from "./bench.js";

export interface Outcome {
  /** The reply, or `refusal(…)`. */
  readonly reply: unknown;
  /** All keys after the call. Default: as before. */
  readonly after?: States;
  /** The messages, for each way to publish if `publish` is an argument. Default: none. */
  readonly heard?: readonly Announcement[];
}

interface Call<K, A> {
  /** All keys before the call. Default: none. */
  readonly given?: States;
  /** The keys and arguments that differ from those of the table. */
  readonly keys?: Partial<K>;
  readonly args?: Partial<A>;
}

export interface Row<K, A> extends Call<K, A>, Outcome {
  /** The outcome of the second call, as far as it differs. */
  readonly again?: Partial<Outcome>;
  /** The outcome is the same without memory; and, except for messages, for a user who may use no channel. */
  readonly even?: readonly ("out of memory" | "mute")[];
  /** The server has no memory left. */
  readonly outOfMemory?: true;
  /** The command that the user lacks; `announce`: all channels. */
  readonly mayNot?: string;
}

/** A call whose user lacks a command: it is refused, and leaves no key without a TTL. */
export interface Right<K, A> extends Call<K, A> {
  /** The commands that are tested, one at a time. */
  readonly commands: string;
  /** All keys after the call, if they are known. */
  readonly after?: States;
  readonly heard?: readonly Announcement[];
}

export interface Table<K, A> {
  readonly keys: K;
  readonly args: A;
  /** The outcome of the second call in rows without `again`, as far as it differs. */
  readonly again?: Partial<Outcome>;
  /** The rows, by what they show. */
  readonly rows: Readonly<Record<string, Row<K, A>>>;
  /** The situations in which a user lacks a command. */
  readonly rights?: Readonly<Record<string, Right<K, A>>>;
  /** Keys that have no TTL by nature. */
  readonly endless?: RegExp;
}

/** Keys that Redisson, too, keeps without TTL: fencing counters, and the queue of a fair lock that has waiters. */
const ENDLESS = /^redisson_lock_(token|queue|timeout):/;

/** The outcome of a call that is refused with such a message. */
export function refusal(message: string | RegExp): unknown {
  return { error: expect.stringMatching(message) };
}

export const WRONGTYPE: unknown = refusal("WRONGTYPE");
export const OUT_OF_MEMORY: unknown = refusal("OOM");

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

export function scriptTable<K extends KeyValues, A extends ArgumentValues>(
  bench: Bench,
  script: Script<K, A>,
  table: NoInfer<Table<K, A>>,
): void {
  describe.each(forms(script))(`${script.name}, %s`, (form) => {
    for (const [title, row] of Object.entries(table.rows).flatMap(withHardships)) {
      for (const publish of publishersOf(script, row)) {
        const name = publish === "PUBLISH" ? title : `${title}, by ${publish}`;
        test(name, () => play(bench, { script, form, table, row, publish }));
      }
    }
    for (const [situation, right] of Object.entries(table.rights ?? {})) {
      for (const command of right.commands.split(" ")) {
        test(`who may not ${command} is told so: ${situation}`, () =>
          playWithout(command, bench, { script, form, table, row: right, publish: "PUBLISH" }));
      }
    }
  });
}

function withHardships<K, A>([title, row]: [string, Row<K, A>]): [string, Row<K, A>][] {
  const { even = [] } = row;
  const rows: [string, Row<K, A>][] = [[title, row]];
  if (even.includes("out of memory"))
    rows.push([`${title}, even out of memory`, { ...row, outOfMemory: true }]);
  if (even.includes("mute")) {
    const again = { ...row.again, heard: [] };
    rows.push([`${title}, even mute`, { ...row, mayNot: "announce", heard: [], again }]);
  }
  return rows;
}

function publishersOf(script: AnyScript, { heard = [], again }: Row<unknown, unknown>): Message["command"][] {
  const announces = heard.length > 0 || (again?.heard ?? []).length > 0;
  return announces && "publish" in script.args ? publishers : ["PUBLISH"];
}

interface Play<K, A, R extends Call<K, A>> {
  readonly script: Script<K & KeyValues, A & ArgumentValues>;
  readonly form: Form;
  readonly table: Table<K, A>;
  readonly row: R;
  readonly publish: Message["command"];
}

async function play<K, A>(bench: Bench, playing: Play<K, A, Row<K, A>>): Promise<void> {
  const { row, table, publish } = playing;
  await bench.put(row.given ?? {});
  const first = { after: row.given ?? {}, heard: [], ...row };
  await expectOutcome(bench, await callOnce(bench, playing), first, publish);
  const second = { ...first, heard: [], ...table.again, ...row.again };
  await expectOutcome(bench, await callOnce(bench, playing), second, publish, "sent again");
}

async function playWithout<K, A>(
  command: string,
  bench: Bench,
  playing: Play<K, A, Right<K, A>>,
): Promise<void> {
  const { row, table, publish } = playing;
  await bench.put(row.given ?? {});
  const reply = await callOnce(bench, { ...playing, row: { ...row, reply: undefined, mayNot: command } });
  const keys = await bench.look();
  expect({ reply, heard: await bench.heard() }).toEqual({
    reply: refusal(FORBIDDEN),
    heard: announcedBy(publish, row.heard),
  });
  if (row.after) return expect(keys).toEqual(bench.wanted(row.after));
  const endless = Object.entries(keys).filter(([, { ttl }]) => ttl === -1);
  const usual = table.endless ?? ENDLESS;
  expect(endless.filter(([key]) => !usual.test(key))).toEqual([]);
}

async function callOnce<K, A>(bench: Bench, playing: Play<K, A, Row<K, A>>): Promise<unknown> {
  const { script, form, table, row, publish } = playing;
  const run = bench.runner(script, form, row.mayNot ? await bench.without(row.mayNot) : bench.redis);
  const keys = { ...table.keys, ...row.keys } as K & KeyValues;
  const sharded = publish === "PUBLISH" ? {} : { publish };
  const args = { ...table.args, ...row.args, ...sharded } as A & ArgumentValues;
  const call = () => run(keys, args).catch((error: Error) => ({ error: error.message }));
  return row.outOfMemory ? await bench.outOfMemory(call) : await call();
}

/** Compares everything at once, so that a failure shows all differences together. */
async function expectOutcome(
  bench: Bench,
  reply: unknown,
  wanted: Outcome & { after: States },
  publish: Message["command"],
  when?: string,
): Promise<void> {
  const seen = { reply, keys: await bench.look(), heard: await bench.heard() };
  expect(seen, when).toEqual({
    reply: wanted.reply,
    keys: bench.wanted(wanted.after),
    heard: announcedBy(publish, wanted.heard),
  });
}

function announcedBy(command: Message["command"], heard: readonly Announcement[] = []): Message[] {
  return heard.map((announcement) => ({ command, ...announcement }));
}
