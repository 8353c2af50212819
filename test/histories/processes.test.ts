/**
 * Real processes record their calls on a real server, while connections fail and processes are killed. Some order of
 * the calls must explain all answers: of mutexes that are reentrant and fenced, of read-write locks, and of semaphores.
 * HOLDFAST_HISTORIES_ROUNDS plays more rounds.
 */
import { randomInt } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { PATIENCE } from "../support/index.js";
import { type AnyHistory, Crew, type Edit, judge, type Kind, says } from "./processes/crew.js";

const ROUNDS = Number(process.env.HOLDFAST_HISTORIES_ROUNDS ?? 20);
const SEED = Number(process.env.HOLDFAST_HISTORIES_SEED ?? randomInt(2 ** 31));
/** The number of rounds within which a mistake must show; most show in the first. */
const MOST = 30;
/** Milliseconds of a round on a busy machine. */
const ROUND = 10_000;

const KINDS: readonly Kind[] = ["mutex", "readwrite", "semaphore"];

async function keep(history: AnyHistory): Promise<string> {
  const file = join(tmpdir(), `holdfast-history-${process.pid}-${Date.now()}.json`);
  const plain = (_: string, value: unknown) => (typeof value === "bigint" ? String(value) : value);
  await writeFile(file, JSON.stringify(history, plain));
  return file;
}

test(
  `${ROUNDS} rounds of faults: what the processes were told can be put in one order`,
  async () => {
    const crew = await Crew.gather({ seed: SEED, kinds: KINDS });
    try {
      for (let i = 0; i < ROUNDS; i++) await crew.play();
      const history = crew.history();
      const verdicts = judge(history);
      const open = history.filter(({ outcome }) => outcome.kind === "unknown").length;
      const names = new Set(history.map(({ name }) => name)).size;
      const states = KINDS.reduce((sum, kind) => sum + verdicts[kind].states, 0);
      console.log(
        `histories: seed ${SEED}, ${names} histories of ${history.length} operations (${open} open) by processes of which ${crew.killed} were ` +
          `killed, put in order by ${states} steps`,
      );
      const wrong = KINDS.filter((kind) => verdicts[kind].linearizable !== true);
      if (wrong.length > 0) console.log(`it is in ${await keep(history)}`);
      expect(wrong.map((kind) => verdicts[kind])).toEqual([]);
      expect(count(history, "granted", true)).toBeGreaterThan(10 * ROUNDS);
      expect(count(history, "granted", false)).toBeGreaterThan(ROUNDS);
      expect(count(history, "because", "lost")).toBeGreaterThan(0);
      expect(open).toBeGreaterThan(ROUNDS);
    } finally {
      await crew.end();
    }
  },
  6 * PATIENCE + ROUND * ROUNDS,
);

/** The number of answers with this value. */
function count(history: AnyHistory, what: string, value: unknown): number {
  return history.filter((operation) => says(operation, what, value)).length;
}

interface Planted {
  readonly kind: Kind;
  readonly edits: readonly Edit[];
}

const PLANTED: Readonly<Record<string, Planted>> = {
  "a mutex is granted to whoever asks": {
    kind: "mutex",
    edits: [
      {
        script: "fenced/acquire",
        from: "if redis.call('EXISTS', lock, tombstone) == 0 then",
        to: "if redis.call('EXISTS', tombstone) == 0 then",
      },
    ],
  },
  "a release frees whoever holds it": {
    kind: "mutex",
    edits: [
      {
        script: "lock/release",
        from: "if redis.call('HDEL', lock, owner) == 1 then",
        to: "if redis.call('DEL', lock) == 1 then",
      },
    ],
  },
  "a token does not rise": {
    kind: "mutex",
    edits: [
      { script: "fenced/acquire", times: 2 },
      { script: "fenced/pass", times: 1 },
    ].flatMap((draws) => [
      { ...draws, from: "redis.call('INCR', counter)", to: "redis.call('INCRBY', counter, 0)" },
      { ...draws, from: "if token < floor then", to: "if token == 0 then" },
    ]),
  },
  "a reader enters beside a writer": {
    kind: "readwrite",
    edits: [{ script: "read/acquire", from: "if mode ~= 'read' then", to: "if not mode then" }],
  },
  "there is a permit too many": {
    kind: "semaphore",
    edits: [
      {
        script: "semaphore/acquire",
        from: "if free < tonumber(count) then",
        to: "if free < tonumber(count) - 1 then",
      },
    ],
  },
};

test.each(Object.entries(PLANTED))(
  "is found: %s",
  async (_, { kind, edits }) => {
    const crew = await Crew.gather({ seed: SEED, kinds: [kind], edits });
    try {
      let isFound = false;
      for (let i = 0; i < MOST && !isFound; i++) {
        await crew.play();
        isFound = judge(crew.history())[kind].linearizable === false;
      }
      expect(isFound).toBe(true);
    } finally {
      await crew.end();
    }
  },
  6 * PATIENCE + ROUND * MOST,
);
